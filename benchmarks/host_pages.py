"""A host runtime with many pages, whatever rows before have left open."""

from acl_shim import Device, open_runtime
from acl_shim.host import host_controls

GIB = 1 << 30
PAGE = 2 << 20


def roomy_device() -> Device:
    """Return device 0 of the host runtime at its start, with 66 GiB in pages of 2 MiB that nobody touches."""
    runtime = open_runtime("host")
    host = host_controls(runtime)
    host.reset()
    host.configure(pages_2m=66 * GIB // PAGE)
    return runtime.device(0)
