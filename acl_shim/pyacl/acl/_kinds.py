"""Kinds of parameters: what a Python argument becomes in C, and what a C out value becomes in Python.

A kind adds the C arguments of one or more C parameters to a call. It takes as many Python arguments as it says and may
add out values, read after the call.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from acl_shim._acl import ffi, lib
from acl_shim.callbacks import EXCEPTION_FUNCTION, STREAM_STATE_FUNCTION, exceptions_go_to, plan_stream_states
from acl_shim.queued import HOST_FUNCTION, Queued

from ._values import Output, as_content, as_dict, mapping, number, sequence

_log = logging.getLogger("acl_shim")

T = TypeVar("T")

_MASK = (1 << 64) - 1
_KEY_LIMIT = 1024  # pyACL's own buffer for keys of text
_FABRIC = 2  # ACL_MEM_SHARE_HANDLE_TYPE_FABRIC


class Call:
    """One call in the making.

    Attributes
    ----------
    arguments
        C arguments so far.
    outputs
        Functions that read the out values after the call.
    finish
        Functions to run with the code after the call.
    refusal
        A code to return without the call; None for none.
    """

    __slots__ = ("_given", "_kept", "arguments", "finish", "outputs", "refusal")

    def __init__(self, given: Sequence[object]) -> None:
        self._given = iter(given)
        self._kept: list[object] = []
        self.arguments: list[object] = []
        self.outputs: list[Callable[[], Output]] = []
        self.finish: list[Callable[[int], None]] = []
        self.refusal: int | None = None

    def next(self) -> object:
        """Return the next Python argument."""
        return next(self._given)

    def keep(self, thing: T) -> T:
        """Keep a C value alive for the call, and return it."""
        self._kept.append(thing)
        return thing


class Kind(ABC):
    """One kind of parameter.

    Attributes
    ----------
    takes
        Names of the Python arguments it takes.
    """

    takes: tuple[str, ...] = ()

    @abstractmethod
    def add(self, call: Call) -> None:
        """Add the C arguments to a call."""


class Int(Kind):
    """A number of at most 32 bits; one that does not fit raises `OverflowError`.

    Attributes
    ----------
    mask
        Bits of the number that are kept.
    """

    mask = -1

    def __init__(self, name: str) -> None:
        self.takes = (name,)

    def add(self, call: Call) -> None:
        """Add one number."""
        call.arguments.append(number(call.next(), self.takes[0]) & self.mask)


class Word(Int):
    """An unsigned 64-bit number: a pointer, a handle, a size; larger and negative numbers are cut to 64 bits."""

    mask = _MASK


class Text(Kind):
    """A string of C; None for null."""

    def __init__(self, name: str) -> None:
        self.takes = (name,)

    def add(self, call: Call) -> None:
        """Add one string."""
        text = call.next()
        if text is None:
            call.arguments.append(ffi.NULL)
        elif isinstance(text, str):
            call.arguments.append(text.encode())
        else:
            raise TypeError(f"{self.takes[0]} is a str, not {type(text).__name__}")


class Out(Kind):
    """One number that the call writes.

    Attributes
    ----------
    c_type
        Pointer type of its cell.
    """

    def __init__(self, c_type: str) -> None:
        self.c_type = ffi.typeof(c_type)

    def add(self, call: Call) -> None:
        """Add a cell."""
        cell = call.keep(ffi.new(self.c_type))
        call.arguments.append(cell)
        call.outputs.append(lambda: cell[0])


class OutStruct(Kind):
    """One struct that the call writes; a dict."""

    def __init__(self, c_type: str, names: Mapping[str, str] | None = None) -> None:
        self._c_type = c_type
        self._names = names or {}

    def add(self, call: Call) -> None:
        """Add a zeroed struct."""
        struct = call.keep(ffi.new(f"{self._c_type} *"))
        call.arguments.append(struct)
        call.outputs.append(lambda: as_dict(struct, self._names))


class InStruct(Kind):
    """One struct that the call reads, from a dict with all its keys; fields named ``rsv`` may be left out."""

    def __init__(self, name: str, c_type: str, optional: Sequence[str] = ("rsv", "reserved")) -> None:
        self.takes = (name,)
        self._c_type = c_type
        self._optional = optional

    def add(self, call: Call) -> None:
        """Add the struct."""
        content = as_content(call.next(), self.takes[0], self._c_type, self._optional)
        call.arguments.append(call.keep(ffi.new(f"{self._c_type} *", content)))


class Numbers(Kind):
    """An array of numbers from a list, and its length where C wants that too."""

    def __init__(self, name: str, c_type: str, *, counted: bool = False) -> None:
        self.takes = (name,)
        self._c_type = c_type
        self._counted = counted

    def add(self, call: Call) -> None:
        """Add the array."""
        name = self.takes[0]
        values = [number(one, name) for one in sequence(call.next(), name)]
        call.arguments.append(call.keep(ffi.new(f"{self._c_type}[]", values)))
        if self._counted:
            call.arguments.append(len(values))


class Structs(Kind):
    """An array of structs from a list of dicts."""

    def __init__(self, name: str, c_type: str) -> None:
        self.takes = (name,)
        self._c_type = c_type

    def add(self, call: Call) -> None:
        """Add the array."""
        name = self.takes[0]
        contents = [as_content(one, name, self._c_type) for one in sequence(call.next(), name)]
        call.arguments.append(call.keep(ffi.new(f"{self._c_type}[]", contents)))


class Config(Kind):
    """An `aclrtMallocConfig` from a dict {numAttrs, attrs: [{attr, value: {…}}]}; an empty one for null."""

    takes = ("cfg",)

    def add(self, call: Call) -> None:
        """Add the struct or null."""
        content = mapping(call.next(), "cfg")
        if not content:
            call.arguments.append(ffi.NULL)
            return
        content = mapping(content, "cfg", ("numAttrs", "attrs"))
        attributes = sequence(content["attrs"], "cfg['attrs']")
        items = [mapping(one, "cfg['attrs']", ("attr", "value")) for one in attributes]
        array = call.keep(ffi.new("aclrtMallocAttribute[]", items)) if items else ffi.NULL
        count = number(content["numAttrs"], "cfg['numAttrs']")
        if count > len(items):
            raise TypeError(f"cfg['numAttrs'] is {count}, and cfg['attrs'] has {len(items)} entries")
        call.arguments.append(call.keep(ffi.new("aclrtMallocConfig *", {"attrs": array, "numAttrs": count})))


class OutKey(Kind):
    """A key of text that the call writes into as many bytes as the argument says; a str."""

    takes = ("len",)

    def add(self, call: Call) -> None:
        """Add an array and its length; a length that pyACL has no room for is a wrong parameter."""
        length = number(call.next(), "len")
        if not 0 <= length < _KEY_LIMIT:
            call.refusal = 100000
            length = 0
        key = call.keep(ffi.new("char[]", max(length, 1)))
        call.arguments += [key, length]
        call.outputs.append(lambda: cast(bytes, ffi.string(key)).decode("utf-8", "replace"))


class OutText(Kind):
    """A text that the call writes into as many bytes as it may need; a str."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    def add(self, call: Call) -> None:
        """Add an array."""
        text = call.keep(ffi.new("char[]", self._size_bytes))
        call.arguments.append(text)
        call.outputs.append(lambda: cast(bytes, ffi.string(text)).decode("utf-8", "replace"))


class OutUsage(Kind):
    """Entries of `aclrtMemUsageInfo`, and how many the call wrote; a list of dicts and an int."""

    takes = ("input_num",)

    def add(self, call: Call) -> None:
        """Add an array, its length and a cell."""
        count = number(call.next(), "input_num")
        infos, written = call.keep(ffi.new("aclrtMemUsageInfo[]", count)), call.keep(ffi.new("size_t *"))
        call.arguments += [infos, count, written]
        call.outputs.append(lambda: [self._entry(infos[at]) for at in range(min(count, written[0]))])
        call.outputs.append(lambda: written[0])

    @staticmethod
    def _entry(info: object) -> dict[str, Output]:
        entry = as_dict(info)
        return entry | {"name": cast(bytes, entry["name"]).split(b"\0")[0].decode("utf-8", "replace")}


class OutShareKey(Kind):
    """A key of the second version: an int, or the 128 bytes of a fabric key."""

    takes = ("share_type",)

    def add(self, call: Call) -> None:
        """Add the kind of key and the address it goes to."""
        kind = number(call.next(), "share_type")
        fabric = kind == _FABRIC
        key = call.keep(ffi.new("aclrtMemFabricHandle *" if fabric else "uint64_t *"))
        call.arguments += [kind, lib.acl_address(key)]
        call.outputs.append(lambda: bytes(ffi.buffer(key)) if fabric else key[0])


class InShareKey(Kind):
    """A key of the second version, as `OutShareKey` gives it."""

    takes = ("shareable_handle",)

    def add(self, call: Call) -> None:
        """Add the address of the key."""
        given = call.next()
        if isinstance(given, bytes):
            key = call.keep(ffi.new("aclrtMemFabricHandle *", {"data": given}))
        else:
            key = call.keep(ffi.new("uint64_t *", number(given, "shareable_handle") & _MASK))
        call.arguments.append(lib.acl_address(key))


class OutWord(Kind):
    """A 64-bit number that the call writes to an address."""

    def add(self, call: Call) -> None:
        """Add the address of a cell."""
        cell = call.keep(ffi.new("uint64_t *"))
        call.arguments.append(lib.acl_address(cell))
        call.outputs.append(lambda: cell[0])


class InWord(Kind):
    """A 64-bit number that the call reads from an address."""

    takes = ("value",)

    def add(self, call: Call) -> None:
        """Add the address of a cell."""
        cell = call.keep(ffi.new("uint64_t *", number(call.next(), "value") & _MASK))
        call.arguments.append(lib.acl_address(cell))


class ExceptionFunction(Kind):
    """The Python function that gets failed tasks; None for no function."""

    takes = ("callback",)

    def add(self, call: Call) -> None:
        """Add the address of the C function that calls it, or 0."""
        function = call.next()
        if function is not None and not callable(function):
            raise TypeError(f"callback cannot be called: {type(function).__name__}")
        call.arguments.append(0 if function is None else EXCEPTION_FUNCTION)
        call.finish.append(lambda code: None if code else exceptions_go_to(function))


class StreamStateFunction(Kind):
    """A Python function that gets a stream, its state and what it was registered with; None for no function."""

    takes = ("callback", "args")

    def add(self, call: Call) -> None:
        """Add the address of the C function that calls it, or 0, and its key."""
        function, user_data = call.next(), call.next()
        if function is None:
            call.arguments += [0, 0]
        elif callable(function):
            key = plan_stream_states(lambda stream, state: function(stream, int(state), user_data))
            call.arguments += [STREAM_STATE_FUNCTION, key]
        else:
            raise TypeError(f"callback cannot be called: {type(function).__name__}")


class Float(Kind):
    """A floating-point number."""

    def __init__(self, name: str) -> None:
        self.takes = (name,)

    def add(self, call: Call) -> None:
        """Add one number."""
        value = call.next()
        if not isinstance(value, int | float):
            raise TypeError(f"{self.takes[0]} is a float, not {type(value).__name__}")
        call.arguments.append(value)


class Function(Kind):
    """A Python function and what it is called with; an exception of it is logged."""

    takes = ("function", "user_data")

    _queued = Queued()

    def add(self, call: Call) -> None:
        """Add the address of the C function that calls it, and its key."""
        function, user_data = call.next(), call.next()
        if not callable(function):
            raise TypeError(f"function cannot be called: {type(function).__name__}")

        def run() -> None:
            try:
                function(user_data)
            except BaseException:
                _log.exception("the callback %r raised", function)

        key = self._queued.plan(run)
        call.arguments += [HOST_FUNCTION, key]
        call.finish.append(lambda code: self._queued.cancel(key) if code else None)
