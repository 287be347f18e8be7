"""What the tasks in a stream's queue still need: host memory to copy from or to, Python functions to call.

Host memory is dropped once the stream has passed it. A Python function runs on a thread of the runtime; what it raises
is kept here until somebody waits for the stream.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from itertools import count

from acl_shim._acl import ffi, lib
from acl_shim.errors import HostFunctionError

HOST_FUNCTION: int = lib.acl_host_function()
"""Address of the C function that calls the Python function of a key."""

_MANY = 64  # kept objects from which on a stream is asked whether it has passed them

_log = logging.getLogger("acl_shim")

_planned: dict[int, tuple["Queued", Callable[[], object]]] = {}
_new_key = count(1).__next__


class Queued:
    """What one stream's tasks need; objects are kept in the order of their tasks.

    A task is queued first and its object kept afterwards, so a mark taken before another call on the stream covers
    only objects whose tasks are queued before that call.

    Thread safety: any thread may use it.
    """

    __slots__ = ("__weakref__", "_errors", "_kept", "_keys", "_limit", "_lock", "_number", "_process_id")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[int, object]] = deque()
        self._number = 0
        self._limit = _MANY
        self._keys: set[int] = set()
        self._errors: deque[BaseException] = deque()
        self._process_id = os.getpid()

    def keep(self, thing: object) -> bool:
        """Keep an object that a queued task uses; return whether it is time to ask the stream what it has passed."""
        with self._lock:
            self._number += 1
            self._kept.append((self._number, thing))
            return len(self._kept) >= self._limit

    def mark(self) -> int:
        """Return the number of the last kept object."""
        return self._number

    def passed(self, mark: int) -> None:
        """Drop what was kept up to a mark: the stream has passed it."""
        if not self._kept:
            return
        dropped = []  # dropped outside the lock: a finaliser may run anything
        with self._lock:
            kept = self._kept
            while kept and kept[0][0] <= mark:
                dropped.append(kept.popleft())
            self._limit = max(_MANY, 2 * len(kept))

    def plan(self, function: Callable[[], object]) -> int:
        """Keep a function that the runtime will call, and return the key to call it by."""
        key = _new_key()
        _planned[key] = self, function
        self._keys.add(key)
        return key

    def cancel(self, key: int) -> None:
        """Forget a function; a call by its key does nothing from now on."""
        _planned.pop(key, None)
        self._keys.discard(key)

    def call(self, key: int, function: Callable[[], object]) -> None:
        """Call a function that is due and keep what it raises."""
        self._keys.discard(key)
        try:
            function()
        except BaseException as error:  # the thread belongs to the runtime: nothing may leave it
            self._errors.append(error)

    def planned(self) -> tuple[int, ...]:
        """Return the keys of the functions that were not called yet."""
        return tuple(self._keys)

    def dropped(self, mark: int, keys: tuple[int, ...]) -> None:
        """Forget what was kept up to a mark, and functions: the stream has dropped their tasks."""
        self.passed(mark)
        for key in keys:
            self.cancel(key)

    def end(self) -> None:
        """Forget everything: the stream is gone."""
        if os.getpid() != self._process_id:  # the lock may be held by a thread that does not exist in this fork
            return
        self.dropped(self._number, self.planned())

    def log_errors(self) -> None:
        """Log what functions raised and nobody waited for."""
        while self._errors and os.getpid() == self._process_id:
            _log.error(
                "a Python function on a stream raised, and nobody waited for it", exc_info=self._errors.popleft()
            )

    def raise_errors(self) -> None:
        """Raise what functions raised since the last time.

        Raises
        ------
        HostFunctionError
            At least one function raised.
        """
        errors = []
        while self._errors:
            errors.append(self._errors.popleft())
        if errors:
            raise HostFunctionError(tuple(errors)) from errors[0]


@ffi.def_extern()  # type: ignore[untyped-decorator]
def acl_run_host_function(key: int) -> None:
    """Call the function of a key, on whatever thread the runtime chose."""
    if planned := _planned.pop(key, None):
        queued, function = planned
        queued.call(key, function)


def end_host_functions() -> None:
    """Let no Python function start any more, and wait for those that run."""
    lib.acl_end_host_functions()


os.register_at_fork(after_in_child=lib.acl_forget_host_functions)
