"""`gevar load FILE…`: put models and files of weights into device memory and show what lies where."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Column

from acl_shim import Runtime, open_runtime
from acl_shim.errors import printable, size_text
from gevar.cli.output import (
    backend_option,
    bundle_option,
    drop_empty,
    origin_text,
    print_banner,
    print_json,
    print_table,
    shape_text,
    shared_options,
    show_log,
    weight_dir_option,
)
from gevar.om.named_tensor import is_tensor_file
from gevar.om.om_file import Kind
from gevar.session import (
    LoadedModel,
    LoadedTensor,
    LoadedWeights,
    Session,
    VerifyReport,
    load_model,
    load_weights,
)
from gevar.types.format import format_to_serial

_FINDING = 1
_Loaded = LoadedModel | LoadedWeights


class _OnProgress(Protocol):
    def __call__(self, done: int, total: int, /) -> None: ...


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE…")
@click.option("--device", "device_id", default=0, show_default=True, metavar="N", help="Device to load to.")
@click.option("--verify", is_flag=True, help="Read file and device again and compare every tensor.")
@bundle_option
@click.option("--one-session", is_flag=True, help="Load all files into one session, where equal variables are shared.")
@click.option("--share-equal", is_flag=True, help="Share the memory of weights with equal bytes, of all files.")
@click.option("--digests", is_flag=True, help="Compare weights with digests.json beside them while they are loaded.")
@weight_dir_option
@backend_option
@shared_options
@click.pass_context
def load(
    context: click.Context,
    files: tuple[str, ...],
    device_id: int,
    verify: bool,
    bundle: bool,
    one_session: bool,
    share_equal: bool,
    digests: bool,
    weight_dir: str | None,
    backend: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Load FILE… into device memory and show where each tensor lies: OM models, safetensors (or an index of several),
    npz, npy, ONNX, or files of external weights.

    Each file has variables of its own, as models loaded by ACL have, unless one session is asked for. The memory is
    given back at the end.
    """
    show_log(debug)
    runtime = open_runtime(backend)
    if not as_json:
        print_banner(runtime)
        print(f"device   {device_id}, {runtime.soc_name()}")
    loaded: list[tuple[_Loaded, VerifyReport | None]] = []
    with ExitStack() as stack:
        shared = stack.enter_context(Session(runtime)) if one_session else None
        for file in files:
            session = shared or stack.enter_context(Session(runtime))
            with _progress(file) as on_progress:
                model = _load(
                    file,
                    session,
                    _Options(device_id, "bundle" if bundle else "model", weight_dir, share_equal, digests),
                    on_progress,
                )
            stack.enter_context(model)
            loaded.append((model, model.verify(file) if verify else None))
            if not as_json:
                _print_model(*loaded[-1])
    if as_json:
        print_json(_facts(runtime, device_id, loaded))
    if any(report is not None and report.differences for _, report in loaded):
        context.exit(_FINDING)


@dataclass(frozen=True, slots=True)
class _Options:
    """How files are loaded."""

    device_id: int
    kind: Kind
    weight_dir: str | None
    share_equal: bool
    verify_digests: bool


def _load(file: str, session: Session, options: _Options, on_progress: _OnProgress | None) -> _Loaded:
    """Load a model, or a file of tensors by the ending of its name."""
    if is_tensor_file(file):
        return load_weights(
            file,
            session=session,
            device_id=options.device_id,
            share_equal=options.share_equal,
            verify_digests=options.verify_digests,
            on_progress=on_progress,
        )
    return load_model(
        file,
        session=session,
        kind=options.kind,
        device_id=options.device_id,
        weight_dir=options.weight_dir,
        share_equal=options.share_equal,
        verify_digests=options.verify_digests,
        on_progress=on_progress,
    )


@contextmanager
def _progress(file: str) -> Iterator[_OnProgress | None]:
    """Show a bar on stderr while a model is loaded; nothing where stderr is closed, or no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=2, no_wrap=True)),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        DownloadColumn(binary_units=True, table_column=Column(no_wrap=True)),
        TransferSpeedColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task(printable(Path(file).name), total=None)

        def on_progress(done: int, total: int, /) -> None:
            bar.update(task, completed=done, total=total)

        yield on_progress


def _print_model(model: _Loaded, report: VerifyReport | None) -> None:
    upload = model.upload
    print(f"\n{'model' if isinstance(model, LoadedModel) else 'weights':<8} {printable(model.path)}")
    columns = [("name", "left"), ("kind", "left"), ("data type", "left"), ("format", "left"), ("shape", "left")]
    columns += [("origin", "left"), ("logical address", "right"), ("device address", "right"), ("bytes", "right")]
    columns += [("padding", "right"), ("note", "left")]
    print_table(*drop_empty(columns, [_cells(row) for row in model.rows]))
    statistics = model.statistics
    shared = f", {size_text(statistics.shared_bytes)} of it shared" if statistics.shared_tensors else ""
    print(f"tensors  {len(model.rows)}, {size_text(statistics.size_bytes)}{shared}")
    if statistics.saved_bytes:
        print(f"saved    {size_text(statistics.saved_bytes)}, these weights were there already")
    if upload.checked:
        print(f"checked  {upload.checked} digests")
    workers = "1 reader" if upload.workers == 1 else f"{upload.workers} readers"
    speed = f"{upload.gb_per_s:.2f} GB/s" if upload.size_bytes else "nothing to move"
    print(f"moved    {size_text(upload.size_bytes)} in {upload.elapsed_s * 1e3:.1f} ms, {speed}, {workers}")
    if upload.bottleneck:
        print(f"held up  by {upload.bottleneck}" + (f"; {upload.reads} reads, {upload.mode}" if upload.reads else ""))
    if report is not None:
        _print_report(report)


def _print_report(report: VerifyReport) -> None:
    equal = report.tensors - len(report.differences)
    print(f"verified {equal} of {report.tensors} tensors equal, {size_text(report.size_bytes)} compared")
    for difference in report.differences:
        place = f"{printable(difference.name)} at byte {difference.offset}"
        print(f"differs  {place}: {difference.in_file:#04x} in the file, {difference.on_device:#04x} on the device")


def _cells(row: LoadedTensor) -> list[str]:
    return [
        row.name,
        row.kind,
        row.dtype.name,
        row.format_text,
        shape_text(row.shape),
        origin_text((row.format_text, row.shape), (format_to_serial(row.origin_format), row.origin_shape)),
        "-" if row.logic_addr is None else f"{row.logic_addr:#x}",
        "-" if row.dev_addr is None else f"{row.dev_addr:#x}",
        str(row.size_bytes),
        str(row.padding_bytes or ""),
        row.note or row.sharing,
    ]


def _facts(runtime: Runtime, device_id: int, loaded: list[tuple[_Loaded, VerifyReport | None]]) -> dict[str, object]:
    """Return everything `load` tells, for JSON; addresses and sizes are numbers."""
    return {
        "backend": runtime.backend,
        "library": str(runtime.path),
        "device": device_id,
        "soc_name": runtime.soc_name(),
        "files": [_model_facts(model, report) for model, report in loaded],
    }


def _model_facts(model: _Loaded, report: VerifyReport | None) -> dict[str, object]:
    upload = model.upload
    facts: dict[str, object] = {
        "file": model.path,
        "tensors": [
            {
                "name": row.name,
                "kind": row.kind,
                "dtype": row.dtype.name,
                "format": row.format_text,
                "shape": row.shape,
                "origin_format": format_to_serial(row.origin_format),
                "origin_shape": row.origin_shape,
                "logic_addr": row.logic_addr,
                "dev_addr": row.dev_addr,
                "size_bytes": row.size_bytes,
                "padding_bytes": row.padding_bytes,
                "note": row.note,
                "sharing": row.sharing,
            }
            for row in model.rows
        ],
        "size_bytes": model.statistics.size_bytes,
        "shared_bytes": model.statistics.shared_bytes,
        "device_bytes": model.statistics.device_bytes,
        "saved_bytes": model.statistics.saved_bytes,
        "upload": {**upload._asdict(), "gb_per_s": upload.gb_per_s, "bottleneck": upload.bottleneck},
    }
    if report is not None:
        facts["verify"] = {
            "tensors": report.tensors,
            "size_bytes": report.size_bytes,
            "differences": [
                {"name": d.name, "offset": d.offset, "in_file": d.in_file, "on_device": d.on_device}
                for d in report.differences
            ],
        }
    return facts
