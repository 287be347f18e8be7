"""Exceptions of the binding, and the one place where an ACL code becomes one.

The tree; `gevar.errors` hangs its own branches on the root::

    GevarError(Exception)                           root; .status is the reference's number where there is one
    ├── BackendUnavailableError                     no library serves: every path tried, and why it failed
    ├── AclError                                    a call returned a code other than 0
    │   └── OutOfMemoryError(AclError, MemoryError) code 207001, with the figures of the device
    ├── HostFunctionError                           Python functions on a stream raised
    └── StateError(RuntimeError)                    used at the wrong time: closed, forked, not the host runtime

Every message is one line of printable characters that names the thing, the numbers and the next step; what a name in
it has beside these stands there as an escape. Every exception can be pickled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from acl_shim.codes import AclErrorCode, code_name

Argument = int | str | Enum | None
"""Value of a call's argument as an error shows it."""

_NEXT_STEPS: dict[int, str] = {
    AclErrorCode.ACL_ERROR_INVALID_PARAM: "check for a null address, a size of 0 or a wrong flag",
    AclErrorCode.ACL_ERROR_REPEAT_FINALIZE: "finalise once for each aclInit",
    AclErrorCode.ACL_ERROR_RT_PARAM_INVALID: "check that the address is alive and starts its block, and that sizes fit",
    AclErrorCode.ACL_ERROR_RT_INVALID_DEVICEID: "use an id from 0 to the device count less 1",
    AclErrorCode.ACL_ERROR_RT_CONTEXT_NULL: "make a device current on this thread first",
    AclErrorCode.ACL_ERROR_RT_STREAM_CONTEXT: "use the stream or event in the context it was made in",
    AclErrorCode.ACL_ERROR_RT_INVALID_MEMORY_TYPE: "use one of MemAttr",
    AclErrorCode.ACL_ERROR_RT_FEATURE_NOT_SUPPORT: "take another route: product or driver lacks this feature",
    AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION: "free memory, ask for less or choose another page class",
    AclErrorCode.ACL_ERROR_RT_NO_DEVICE: "check the driver and the devices with npu-smi info",
    AclErrorCode.ACL_ERROR_RT_RESOURCE_ALLOC_FAIL: "free host memory or handles of this process",
    AclErrorCode.ACL_ERROR_RT_CONTEXT_RELEASE_ERROR: "set the device before it is reset",
    AclErrorCode.ACL_ERROR_RT_DRV_INTERNAL_ERROR: "check that the whole range is allocated and aligned",
    AclErrorCode.ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED: "give back devices, contexts and memory first",
}
_OTHER_STEP = "look the code up in the runtime's log"


def size_text(size_bytes: int) -> str:
    """Return a size as people and machines read it: ``512 B``, ``1.50 GiB (1610612736 B)``.

    Parameters
    ----------
    size_bytes
        Size in bytes.
    """
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size_bytes} B" if unit == "B" else f"{size:.2f} {unit} ({size_bytes} B)"


def printable(text: str) -> str:
    """Return a text that cannot upset a terminal: line ends, control characters and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return a text, such as a protobuf or system message, in one line of printable characters."""
    return printable(" ".join(text.split()))


def _rebuild(cls: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    """Make the exception of a pickle anew without its constructor."""
    builtin = cls  # the built-in class whose layout cls has; MemoryError among further bases may not make it
    while builtin.__module__ != "builtins" and builtin.__base__ is not None:
        builtin = builtin.__base__
    error = builtin.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class GevarError(Exception):
    """Root of everything the package raises on its own account.

    Attributes
    ----------
    status
        The reference's status number of this failure; None where it has none.
    """

    status: int | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message and the fields, whatever the constructor asks for."""
        return _rebuild, (type(self), self.args, self.__dict__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One library that was tried and did not serve.

    Attributes
    ----------
    path
        Where the library was looked for: a file, a folder, a bare name, or the name of an unset variable.
    reason
        Why it does not serve.
    missing
        Functions that it lacks, where that is the reason.
    """

    path: str
    reason: str
    missing: tuple[str, ...] = ()


class BackendUnavailableError(GevarError):
    """Raised where no library serves the backend that was asked for.

    Attributes
    ----------
    tried
        Every `Attempt`, in the order of the search.
    """

    def __init__(self, wanted: str, tried: tuple[Attempt, ...] = ()) -> None:
        clauses = "; ".join(f"{attempt.path}: {attempt.reason}" for attempt in tried)
        super().__init__(f"{wanted}; tried {clauses}" if tried else wanted)
        self.tried = tried


class StateError(GevarError, RuntimeError):
    """Raised where something is used at a time when it cannot be: closed, forked, or of the wrong runtime."""


class HostFunctionError(GevarError):
    """Raised by whoever waits for a stream on which Python functions raised.

    Attributes
    ----------
    errors
        What they raised, in order; the first is the cause as well.
    """

    def __init__(self, errors: tuple[BaseException, ...]) -> None:
        first = errors[0]
        others = f" ({len(errors)} functions did)" if len(errors) > 1 else ""
        super().__init__(
            f"a Python function on the stream raised {type(first).__name__}: {first}{others}; see errors for each"
        )
        self.errors = errors


def _shown(name: str, value: Argument) -> str:
    if isinstance(value, Enum):
        return f"{name}={value.name}"
    if isinstance(value, int) and name.endswith("_bytes"):
        return f"{name}={size_text(value)}"
    return f"{name}={value:#x}" if isinstance(value, int) and value >= 1 << 32 else f"{name}={value}"


class AclError(GevarError):
    """Raised where a call of the runtime returned a code other than 0.

    Attributes
    ----------
    code, status
        The `aclError` value.
    name
        ACL's name of the code.
    call
        Name of the C function.
    arguments
        Arguments of the call that matter, by name.
    text
        The runtime's own message; None where it gave none.
    """

    status: int

    def __init__(
        self, code: int, call: str, arguments: Mapping[str, Argument], text: str | None = None, *, facts: str = ""
    ) -> None:
        shown = ", ".join(_shown(name, value) for name, value in arguments.items())
        parts = [f"{call}({shown}) returned {int(code)} {code_name(code)}", facts]
        parts += [f"runtime says: {one_line(text)}" if text else "", _NEXT_STEPS.get(code, _OTHER_STEP)]
        super().__init__("; ".join(part for part in parts if part))
        self.code = self.status = int(code)
        self.name = code_name(code)
        self.call = call
        self.arguments = dict(arguments)
        self.text = text or None


@dataclass(frozen=True, slots=True)
class Shortage:
    """Figures of a device at the moment it had not enough memory.

    Attributes
    ----------
    requested_bytes
        Size asked for.
    free_bytes, total_bytes
        What the page pool asked had; None where the runtime does not tell.
    device_id
        The device.
    page_kind
        Page class asked for, for example ``2 MiB pages``.
    """

    requested_bytes: int
    free_bytes: int | None
    total_bytes: int | None
    device_id: int
    page_kind: str

    def __str__(self) -> str:
        if self.free_bytes is None or self.total_bytes is None:
            figures = "figures unknown"
        else:
            figures = f"{size_text(self.free_bytes)} free of {size_text(self.total_bytes)}"
        return f"device {self.device_id} was asked for {size_text(self.requested_bytes)} in {self.page_kind}: {figures}"


class OutOfMemoryError(AclError, MemoryError):
    """Raised where a device has not enough memory (code 207001); a retry after freeing may succeed.

    Attributes
    ----------
    requested_bytes, free_bytes, total_bytes, device_id, page_kind
        The figures of `Shortage`; all None where the failed call was not an allocation of known size.
    """

    def __init__(
        self,
        code: int,
        call: str,
        arguments: Mapping[str, Argument],
        text: str | None = None,
        *,
        shortage: Shortage | None = None,
    ) -> None:
        super().__init__(code, call, arguments, text, facts=str(shortage) if shortage else "")
        self.requested_bytes = shortage.requested_bytes if shortage else None
        self.free_bytes = shortage.free_bytes if shortage else None
        self.total_bytes = shortage.total_bytes if shortage else None
        self.device_id = shortage.device_id if shortage else None
        self.page_kind = shortage.page_kind if shortage else None


def error_from_code(
    code: int,
    call: str,
    arguments: Mapping[str, Argument],
    text: str | None = None,
    *,
    shortage: Shortage | None = None,
) -> AclError:
    """Turn the code of a failed call into an exception; every failed call goes through here.

    Parameters
    ----------
    code
        The `aclError` value, not 0.
    call
        Name of the C function.
    arguments
        Arguments that matter; a name that ends in ``_bytes`` is shown as a size.
    text
        The runtime's own message (`aclGetRecentErrMsg`).
    shortage
        Figures of the device, for an allocation that did not fit.

    Returns
    -------
    AclError
        An `OutOfMemoryError` for 207001, else an `AclError`.
    """
    if code == AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION:
        return OutOfMemoryError(code, call, arguments, text, shortage=shortage)
    return AclError(code, call, arguments, text)
