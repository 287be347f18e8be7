"""`gevar info`: which library serves, and the devices behind it."""

import click

from acl_shim import Device, Runtime, open_runtime
from acl_shim.codes import MemAttr
from acl_shim.errors import printable, size_text
from gevar.cli.output import backend_option, print_banner, print_json, print_table, shared_options, show_log
from gevar.errors import AclError

_PAGES = {
    "1 GiB pages": MemAttr.ACL_HBM_MEM_HUGE1G,
    "2 MiB pages": MemAttr.ACL_HBM_MEM_HUGE,
    "4 KiB pages": MemAttr.ACL_HBM_MEM_NORMAL,
}
_NOT_SUPPORTED = 207000


@click.command()
@backend_option
@shared_options
def info(backend: str | None, as_json: bool, debug: bool) -> None:
    """Show the backend, its library, the devices and their memory."""
    show_log(debug)
    runtime = open_runtime(backend)
    facts = _facts(runtime)
    if as_json:
        print_json(facts)
        return
    print_banner(runtime)
    print(f"chosen   {printable(runtime.reason)}")
    if runtime.version:
        print(f"version  {printable(runtime.version)}")
    print(f"soc      {printable(runtime.soc_name())}")
    rows = []
    for number in range(runtime.device_count()):
        for pages, figures in _memory(runtime.device(number)).items():
            free, total = ("not supported", "") if figures is None else map(size_text, figures)
            rows.append((str(number), pages, free, total))
    print_table([("device", "right"), ("memory", "left"), ("free", "right"), ("total", "right")], rows)


def _facts(runtime: Runtime) -> dict[str, object]:
    """Return everything `info` tells, for JSON."""
    devices = [{"device": n, "memory": _memory(runtime.device(n))} for n in range(runtime.device_count())]
    return {
        "backend": runtime.backend,
        "library": str(runtime.path),
        "reason": runtime.reason,
        "version": runtime.version,
        "soc_name": runtime.soc_name(),
        "devices": devices,
    }


def _memory(device: Device) -> dict[str, tuple[int, int] | None]:
    """Return (free, total) bytes for each class of pages; None where the product lacks it."""
    memory: dict[str, tuple[int, int] | None] = {}
    for pages, attr in _PAGES.items():
        try:
            figures = device.mem_info(attr)
        except AclError as error:
            if error.code != _NOT_SUPPORTED:
                raise
            memory[pages] = None
        else:
            memory[pages] = (figures.free_bytes, figures.total_bytes)
    return memory
