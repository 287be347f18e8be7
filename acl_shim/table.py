"""The C function table of an opened library, bound to the typed face, and the C values its calls write.

A function that the library lacks raises `StateError` before anything is called, so the others pay nothing for the
check.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NoReturn, cast

from acl_shim._acl import ffi, lib
from acl_shim.api import AclApi
from acl_shim.api_types import (
    ArrayType,
    Cell,
    CellType,
    CharArray,
    FloatCell,
    IntArray,
    LiveStruct,
    Null,
    Table,
)
from acl_shim.errors import StateError

NULL = Null(ffi.NULL)
"""The null pointer, for optional arguments."""

CONTEXT_REFUSED: int = lib.ACL_SHIM_CONTEXT_REFUSED
"""Added to the code of a context that a copy could not make current."""

ANSWER: int = lib.ACL_SHIM_ANSWER
"""Added to an answer of a call that also returns codes."""

_REASON_BYTES = 1024


def new_cell(ctype: CellType, value: int = 0) -> Cell:
    """Return a cell for one out value, which holds a value already."""
    cell: Cell = ffi.new(ctype, value) if value else ffi.new(ctype)
    return cell


new_figures: Callable[[], IntArray] = partial(ffi.new, ffi.typeof("size_t[2]"))
"""Return two zeroed cells for figures of memory in bytes."""


def new_float_cell() -> FloatCell:
    """Return a zeroed cell for one float."""
    return cast(FloatCell, ffi.new("float *"))


def new_array(ctype: ArrayType, values: Iterable[int]) -> IntArray:
    """Return a C array of integers."""
    return cast(IntArray, ffi.new(ctype, list(values)))


def address_of(pointer: object) -> int:
    """Return the address of a C value, which must be kept alive as long as the address is used."""
    return cast(int, lib.acl_address(pointer))


def new_live() -> LiveStruct:
    """Return a zeroed `hostacl_live_t`."""
    return cast(LiveStruct, ffi.new("hostacl_live_t *"))


def new_text(size_bytes: int) -> CharArray:
    """Return a zeroed array for a text; `read_text` reads it."""
    return CharArray(ffi.new("char[]", size_bytes))


def new_c_text(content: bytes) -> CharArray:
    """Return an array that holds a text and its closing zero."""
    return CharArray(ffi.new("char[]", content))


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return a path as C takes it.

    Raises
    ------
    ValueError
        It has a zero byte, where C would end it, or no file can have it.
    """
    try:
        content = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ValueError(f"path {os.fspath(path)!r} is no text that a file can have: {error}") from error
    if b"\0" in content:
        raise ValueError(f"path {os.fspath(path)!r} has a zero byte, where C would end it: name a file without")
    return content


def read_text(text: CharArray) -> str:
    """Return the text in an array, up to its first zero."""
    return cast(bytes, ffi.string(text)).decode("utf-8", "replace")


def function_names() -> Iterator[str]:
    """Yield the C names of the functions of the table, in its order."""
    index = 0
    while (name := lib.acl_symbol_name(index)) != ffi.NULL:
        yield ffi.string(name).decode()
        index += 1


def open_table(file: str) -> Table | str:
    """Load a library and fill a table from it.

    Parameters
    ----------
    file
        A path, or a bare name that the loader searches.

    Returns
    -------
    Table or str
        The table, or the loader's reason.
    """
    out, reason = ffi.new("acl_table **"), new_text(_REASON_BYTES)
    if lib.acl_open(os.fsencode(file), out, reason, _REASON_BYTES):
        return read_text(reason)
    return Table(out[0])


def close_table(table: Table) -> None:
    """Unload a library none of whose functions was called."""
    lib.acl_close(table)


def table_path(table: Table) -> str:
    """Return the file a library was loaded from; empty where the loader does not say."""
    return os.fsdecode(ffi.string(lib.acl_path(table)))


def has_function(table: Table, name: str) -> bool:
    """Return whether a library has a function, in the table or not."""
    return bool(lib.acl_has(table, name.encode()))


_IN_CONTEXT = {
    "query_stream": "aclrtStreamQuery",
    "query_event": "aclrtQueryEventStatus",
    "record_event": "aclrtRecordEvent",
    "mem_info": "aclrtGetMemInfo",
}
"""Calls that make a context current first -> the C function they then call."""


class _BoundApi:
    """Holds one callable per function of the table, and those that make two calls at once."""

    copy_in: Callable[..., int]
    copy_out: Callable[..., int]
    copy_block: Callable[..., int]
    move_blocks: Callable[..., int]
    query_stream: Callable[..., int]
    query_event: Callable[..., int]
    record_event: Callable[..., int]
    mem_info: Callable[..., int]


class _RefusingApi:
    """Stands in for a face that must not be used any more."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        raise StateError(f"{name} was not called: {self._reason}")


def _text_call(call: Callable[..., object]) -> Callable[..., str | None]:
    """Wrap a function that returns a C string."""

    def text_or_none(*arguments: object) -> str | None:
        text = call(*arguments)
        return None if text == ffi.NULL else ffi.string(text).decode("utf-8", "replace")

    return text_or_none


def _missing_call(name: str, library: str) -> Callable[..., int]:
    """Return what stands for a function that the library lacks."""

    def missing(*_: object) -> NoReturn:
        raise StateError(f"{library} has no {name}: ask supports({name!r}) first, or install a newer CANN")

    return missing


def bind(table: Table, library: str) -> AclApi:
    """Return the typed face of an opened library.

    Parameters
    ----------
    table
        Function table of the library.
    library
        Path of the library, for the message about a function it lacks.
    """
    face = _BoundApi()
    for name in function_names():
        wrapper = getattr(lib, f"acl_{name}")
        call = partial(wrapper, table)
        if not has_function(table, name):
            setattr(face, name, _missing_call(name, library))
        elif ffi.typeof(wrapper).result.kind == "pointer":
            setattr(face, name, _text_call(call))
        else:
            setattr(face, name, call)
    face.copy_in, face.copy_out = partial(lib.acl_copy_in, table), partial(lib.acl_copy_out, table)
    face.copy_block, face.move_blocks = partial(lib.acl_copy_block, table), partial(lib.acl_move_blocks, table)
    for name, function in _IN_CONTEXT.items():
        call = partial(getattr(lib, f"acl_{name}"), table)
        setattr(face, name, call if has_function(table, function) else _missing_call(function, library))
    return cast(AclApi, face)


def refusing(reason: str) -> AclApi:
    """Return a face whose every function raises `StateError` with the reason."""
    return cast(AclApi, _RefusingApi(reason))
