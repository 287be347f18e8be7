"""One object for each open runtime, which all sessions of that runtime share."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from acl_shim import Runtime

T = TypeVar("T")


class PerRuntime(Generic[T]):
    """Objects by runtime, made at the first question; those of closed runtimes are forgotten.

    Parameters
    ----------
    make
        Makes the object of a runtime.

    Thread safety: any thread may use it.
    """

    def __init__(self, make: Callable[[Runtime], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: dict[Runtime, T] = {}

    def of(self, runtime: Runtime) -> T:
        """Return the object of a runtime."""
        with self._lock:
            if runtime not in self._made:
                self._made = {one: made for one, made in self._made.items() if not one.closed}
                self._made[runtime] = self._make(runtime)
            return self._made[runtime]
