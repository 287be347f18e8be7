"""Exceptions of gevar. The root and what the binding raises come from `acl_shim.errors`; the rest is made here.

The whole tree::

    GevarError(Exception)                           root; .status is GE's status number where GE has one
    ├── BackendUnavailableError                     no library serves: every path tried, and why it failed
    ├── AclError                                    a call of the runtime returned a code other than 0
    │   └── OutOfMemoryError(AclError, MemoryError) code 207001, with the figures of the device
    ├── HostFunctionError                           a Python function on a stream raised
    ├── StateError(RuntimeError)                    used at the wrong time: before init, after close, wrong runtime
    ├── AddressError(LookupError)                   a logical address that belongs to nothing, or passes an end
    ├── VariableError(LookupError)                  a variable that is not there, or not as described
    ├── SizeOverflowError(OverflowError)            a size or address that leaves the range of GE's integer
    ├── FormatError(ValueError)                     a tensor description or conversion that breaks a rule
    ├── GraphError(ValueError)                      a graph that is wrong, or an edit that would make it so
    ├── ModelFileError(ValueError)                  a model file or message that cannot be what it should be
    └── LoadError(OSError)                          bytes of a weight file that could not be read

An argument of the wrong type or value is a plain `TypeError` or `ValueError`, raised before anything is done; it is
what GE calls PARAM_INVALID. Every message is one line of printable characters that names the thing, the numbers and
the next step. Every exception can be pickled and keeps its fields.
"""

from collections.abc import Iterable
from pathlib import Path

from acl_shim.errors import (
    AclError,
    BackendUnavailableError,
    GevarError,
    HostFunctionError,
    OutOfMemoryError,
    StateError,
    one_line,
    printable,
    size_text,
)

__all__ = [
    "AclError",
    "AddressError",
    "BackendUnavailableError",
    "FormatError",
    "GevarError",
    "GraphError",
    "HostFunctionError",
    "LoadError",
    "ModelFileError",
    "OutOfMemoryError",
    "SizeOverflowError",
    "StateError",
    "VariableError",
]


class AddressError(GevarError, LookupError):
    """Raised where a logical address belongs to no variable, or an access passes the end of its variable.

    Parameters
    ----------
    logic_addr
        The address.
    reason
        What is wrong with it and what to do.
    nearest
        Start and size in bytes of the nearest range that holds a variable; None where there is none.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    logic_addr, reason, nearest, status
        As given.
    """

    def __init__(
        self, logic_addr: int, reason: str, *, nearest: tuple[int, int] | None = None, status: int | None = None
    ) -> None:
        near = f"; the nearest range starts at {nearest[0]} and has {size_text(nearest[1])}" if nearest else ""
        super().__init__(f"logical address {logic_addr}: {one_line(reason)}{near}")
        self.logic_addr = logic_addr
        self.reason = reason
        self.nearest = nearest
        self.status = status


class VariableError(GevarError, LookupError):
    """Raised where a variable is not there, or is there with another description.

    Parameters
    ----------
    var_key
        Name or key of the variable.
    reason
        What is wrong with it and what to do.
    close
        Names that are there and look alike.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    var_key, reason, close, status
        As given; `close` is a tuple.
    """

    def __init__(self, var_key: str, reason: str, *, close: Iterable[str] = (), status: int | None = None) -> None:
        self.var_key = var_key
        self.reason = reason
        self.close = tuple(close)
        self.status = status
        alike = f"; close to it: {', '.join(map(repr, self.close))}" if self.close else ""
        super().__init__(f"variable {var_key!r}: {one_line(reason)}{alike}")


class SizeOverflowError(GevarError, OverflowError):
    """Raised where a size, count or address leaves the range of the integer that GE keeps it in.

    Parameters
    ----------
    what
        What was computed, with its numbers.
    value
        The result, as a mathematician would have it.
    limit
        Largest value that fits.
    status
        GE's status number of this failure.
    next_step
        What to do about it.

    Attributes
    ----------
    what, value, limit, status, next_step
        As given.
    """

    def __init__(
        self, what: str, value: int, limit: int, *, status: int | None = None, next_step: str = "use smaller sizes"
    ) -> None:
        super().__init__(f"{what} gives {value}, more than {limit}; {next_step}")
        self.what = what
        self.value = value
        self.limit = limit
        self.status = status
        self.next_step = next_step

    def named(self, thing: str) -> "SizeOverflowError":
        """Return the same error with the name of the thing in front."""
        what = f"{thing}: {self.what}"
        return SizeOverflowError(what, self.value, self.limit, status=self.status, next_step=self.next_step)


class FormatError(GevarError, ValueError):
    """Raised where a tensor description has no size, or a conversion between two descriptions is not possible.

    Parameters
    ----------
    source
        The description, in words, or the one to convert from.
    rule
        The rule that it breaks and what to do.
    destination
        The description to convert to; None where nothing is converted.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    source, rule, destination, status
        As given.
    """

    def __init__(self, source: str, rule: str, *, destination: str | None = None, status: int | None = None) -> None:
        target = "" if destination is None else f" to {destination}"
        super().__init__(f"{source}{target}: {one_line(rule)}")
        self.source = source
        self.rule = rule
        self.destination = destination
        self.status = status


class GraphError(GevarError, ValueError):
    """Raised where a graph cannot be what it should be, or an edit would leave it so; the graph stays as it was.

    Parameters
    ----------
    graph
        Name of the graph, or of the model; None where it is not known.
    reason
        What is wrong, with names and numbers.
    node
        Name of the node concerned; None where it is no single one.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    graph, reason, node, status
        As given.
    """

    def __init__(self, graph: str | None, reason: str, *, node: str | None = None, status: int | None = None) -> None:
        places = {"graph": graph, "node": node}
        named = ", ".join(f"{what} {name!r}" for what, name in places.items() if name is not None)
        super().__init__(f"{named or 'graph'}: {one_line(reason)}")
        self.graph = graph
        self.reason = reason
        self.node = node
        self.status = status


class ModelFileError(GevarError, ValueError):
    """Raised where a model file or a message cannot be what it should be.

    Parameters
    ----------
    file
        File, or a name for bytes that came from memory; None where only a message is known.
    offset
        Byte in the file where the trouble starts; None where it is not known.
    field
        Header field, partition or message.
    reason
        What was found and what was expected.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    file, offset, field, reason, status
        As given; `file` is text.
    """

    def __init__(
        self, file: str | Path | None, offset: int | None, field: str, reason: str, *, status: int | None = None
    ) -> None:
        self.file = None if file is None else str(file)
        self.offset = offset
        self.field = field
        self.reason = reason
        self.status = status
        name = "" if file is None else f"{printable(str(file))}: "
        place = "" if offset is None else f" at offset {offset}"
        super().__init__(f"{name}{field}{place}: {one_line(reason)}")


class LoadError(GevarError, OSError):
    """Raised where bytes of a weight file could not be read.

    Parameters
    ----------
    path
        The file.
    offset
        Byte in the file where reading started.
    wanted, got
        Bytes wanted, and bytes that came.
    reason
        Why the rest did not come.
    status
        GE's status number of this failure; None where GE has none.

    Attributes
    ----------
    path, offset, wanted, got, reason, status
        As given; `path` is text.
    """

    def __init__(
        self,
        path: str | Path,
        offset: int,
        wanted: int,
        got: int,
        reason: str = "the file is too short",
        *,
        status: int | None = None,
    ) -> None:
        self.path = str(path)
        self.offset = offset
        self.wanted = wanted
        self.got = got
        self.reason = reason
        self.status = status
        figures = f"{size_text(wanted)} wanted at offset {offset}, {size_text(got)} read"
        super().__init__(f"{printable(self.path)}: {figures}: {one_line(reason)}")
