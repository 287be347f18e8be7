"""Python functions that the runtime calls when a task fails, and when streams are made and destroyed.

They run on whatever thread the runtime chose and must not call the runtime but to read the failure. What they raise is
logged.
"""

import logging
from collections.abc import Callable
from itertools import count

from acl_shim._acl import ffi, lib
from acl_shim.stream_codes import StreamState

EXCEPTION_FUNCTION: int = lib.acl_exception_function()
"""Address of the C function that passes failed tasks on to `exceptions_go_to`."""

STREAM_STATE_FUNCTION: int = lib.acl_stream_state_function()
"""Address of the C function that passes streams on to the function of a key."""

_log = logging.getLogger("acl_shim")

_on_exception: Callable[[int], object] | None = None
_on_stream_state: dict[int, Callable[[int, StreamState], object]] = {}
_new_key = count(1).__next__


def exceptions_go_to(function: Callable[[int], object] | None) -> None:
    """Name the function that gets failed tasks.

    Parameters
    ----------
    function
        Called with the address of an `aclrtExceptionInfo`, which lives for the call; None for no function.
    """
    global _on_exception
    _on_exception = function


def plan_stream_states(function: Callable[[int, StreamState], object]) -> int:
    """Keep a function that gets streams, for the life of the process, and return its key.

    Parameters
    ----------
    function
        Called with the stream's handle and its state.
    """
    key = _new_key()
    _on_stream_state[key] = function
    return key


@ffi.def_extern()  # type: ignore[untyped-decorator]
def acl_run_exception_function(info: int) -> None:
    """Pass a failed task on."""
    if function := _on_exception:
        try:
            function(info)
        except BaseException:  # the thread belongs to the runtime: nothing may leave it
            _log.exception("the exception callback %r raised", function)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def acl_run_stream_state_function(stream: int, state: int, key: int) -> None:
    """Pass a stream on to the function of a key."""
    if function := _on_stream_state.get(key):
        try:
            function(stream, StreamState(state))
        except BaseException:  # the thread belongs to the runtime: nothing may leave it
            _log.exception("the stream callback %r raised", function)
