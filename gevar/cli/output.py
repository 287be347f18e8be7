"""What the commands share: options, tables, JSON, and the line that names the backend."""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acl_shim import Runtime
from acl_shim.errors import printable
from gevar.om.named_tensor import is_tensor_file

T = TypeVar("T")
_F = TypeVar("_F", bound=Callable[..., object])
#: Most characters in a line of a table: no cell is ever cut or folded, so an address can be copied as it stands.
_WIDEST = 10_000


def shared_options(function: _F) -> _F:
    """Add the options that every command has: `--json` and `--debug`."""
    function = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)
    return click.option("--debug", is_flag=True, help="Print the log and the traceback of an error.")(function)


def backend_option(function: _F) -> _F:
    """Add the option `--backend`."""
    return click.option(
        "--backend",
        metavar="auto|npu|host|PATH",
        help="Library to use: a card's, the host runtime, or a file. Default: $GEVAR_ACL, else auto.",
    )(function)


def weight_dir_option(function: _F) -> _F:
    """Add the option `--weight-dir`."""
    return click.option(
        "--weight-dir",
        type=click.Path(),
        metavar="DIR",
        help="Folder of external weights of OM files. Default: weight beside each.",
    )(function)


def bundle_option(function: _F) -> _F:
    """Add the option `--bundle`."""
    return click.option("--bundle", is_flag=True, help="Read OM files as bundles of models.")(function)


def model_output_option(function: _F) -> _F:
    """Add the option `--output`, the name of an OM file."""
    return click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(),
        metavar="OUT.om",
        callback=_model_name,
        help="The file to write.",
    )(function)


def _model_name(context: click.Context, option: click.Parameter, path: str) -> str:  # noqa: ARG001
    """Refuse a name under which the model would be taken for a file of weights, or write over one."""
    if is_tensor_file(path):
        raise click.BadParameter(f"{path!r} is the name of a file of weights; let it end in .om")
    return path


def print_json(value: object) -> None:
    """Print one JSON value, readable, in the order it was built; what could upset a terminal is escaped."""
    for line in json.dumps(value, indent=2, ensure_ascii=False).split("\n"):
        print("".join(c if c.isprintable() else _json_escape(c) for c in line))


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def print_banner(runtime: Runtime) -> None:
    """Print which library serves, so that a figure of the host runtime is never taken for one of a card."""
    kind = "an NPU" if runtime.backend == "npu" else "the host runtime: no card, ordinary memory"
    print(f"backend  {runtime.backend} ({kind})")
    print(f"library  {printable(str(runtime.path))}")


def print_table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under column heads; each column is (head, "left" or "right")."""
    console = Console(highlight=False, width=_WIDEST)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head, justify in columns:
        table.add_column(head, justify="right" if justify == "right" else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)


class _Formatter(logging.Formatter):
    """Puts a message into one line that cannot upset a terminal, whatever names are in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))


def show_log(debug: bool) -> None:
    """Send the log to stderr: warnings of gevar, everything with `debug`.

    The binding's own warning, that no card was found, is left out: the banner says which library serves.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if debug else logging.WARNING)
    logging.getLogger("acl_shim").setLevel(logging.NOTSET if debug else logging.ERROR)


def origin_text(form: tuple[str, Sequence[int]], origin: tuple[str, Sequence[int] | None]) -> str:
    """Return format and shape as the framework sees them, "" where that is how the tensor is stored, or not known."""
    fmt, shape = origin
    return "" if shape is None or (fmt, [*shape]) == (form[0], [*form[1]]) else f"{fmt} {shape_text(shape)}"


def drop_empty(columns: Sequence[T], rows: Sequence[Sequence[str]]) -> tuple[list[T], list[list[str]]]:
    """Leave out the columns of a table in which no row has anything."""
    used = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    return [columns[index] for index in used], [[row[index] for index in used] for row in rows]


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as ``2x3``, a scalar as ``scalar``, an unknown dimension as ``?``."""
    return "x".join("?" if dim < 0 else str(dim) for dim in shape) or "scalar"
