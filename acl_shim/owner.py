"""What is given back exactly once: the base of buffers and of everything else the runtime hands out.

Every owner lives under the lease of its device or context; when that has ended (reset, end of the process, fork) the
thing behind the owner is gone already, so the owner closes without a call. Pinned host memory outlives a reset by other
code.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from acl_shim.errors import StateError, size_text
from acl_shim.lease import Lease

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.stream_scope import StreamScope

_log = logging.getLogger("acl_shim")

_new_number = count(1).__next__


class Owner(ABC):
    """Own one thing of the runtime and give it back exactly once: by `close`, by ``with`` or by the finaliser.

    A subclass says how, in `_give_back`. The finaliser may run on any thread, in the middle of anything, so
    `_give_back` leaves the thread's current context as it found it. A finaliser never raises: what fails there is
    logged, and the thing stays with the runtime until the device is reset.

    Thread safety: `close` may be called by several threads at once, one of them gives back.
    """

    __slots__ = ("__weakref__", "_device", "_key", "_lease", "_open")

    _lives_on_host: ClassVar[bool] = False  # True for what a reset of the device leaves alive

    def __init__(self, device: "Device", lease: Lease, handle: int, size_bytes: int = 0) -> None:
        self._open = [handle]  # holds the handle while open; pop() decides which thread gives back
        self._device = device
        self._lease = lease
        self._key = type(self).__name__, _new_number()
        lease.owned[self._key] = size_bytes

    @abstractmethod
    def _give_back(self, handle: int) -> None:
        """Give the thing back to the runtime."""

    def _what(self) -> str:
        """Return what the thing is, in words."""
        return f"on device {self._device.id}"

    def _handle(self) -> int:
        """Return the handle of the open thing."""
        try:
            return self._open[0]
        except IndexError:
            raise StateError(f"{type(self).__name__} {self._what()} is closed: make a new one") from None

    @property
    def device(self) -> "Device":
        """Device the thing belongs to."""
        return self._device

    @property
    def closed(self) -> bool:
        """Whether the thing was given back."""
        return not self._open

    def close(self) -> None:
        """Give the thing back; does nothing when that happened already.

        Raises
        ------
        AclError
            The runtime refuses. After failure the owner is open still and `close` may be called again.
        """
        self._close(self._give_back)

    def _close(self, give_back: Callable[[int], None]) -> None:
        """Give the thing back by a function, once."""
        if not self._open:
            return
        try:
            handle = self._open.pop()
        except IndexError:  # another thread was faster
            return
        try:
            if self._alive():
                give_back(handle)
        except BaseException:
            if self._alive():  # else the try has shown that the thing is gone
                self._open.append(handle)
                raise
        self._given_back()

    def _given_back(self) -> None:
        """Forget the thing; called once, when it is gone."""
        self._lease.owned.pop(self._key, None)

    def _alive(self) -> bool:
        """Return whether the runtime still has the thing."""
        return self._lease.host_alive if self._lives_on_host else self._lease.device_alive

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _finalise(self) -> None:
        """Give the thing back once nobody can reach it."""
        self.close()

    def __del__(self) -> None:
        try:
            self._finalise()
        except Exception as error:  # a finaliser has nobody to raise to
            _log.warning("the finaliser of %r failed: %s", self, error)

    def __repr__(self) -> str:
        state = "".join(f"{handle:#x}" for handle in self._open.copy()) or "closed"
        return f"<{type(self).__name__} {state} {self._what()}>"


class SizedOwner(Owner):
    """Own one thing that has a size."""

    __slots__ = ("_size_bytes",)

    def __init__(self, device: "Device", lease: Lease, handle: int, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        super().__init__(device, lease, handle, size_bytes)

    def _what(self) -> str:
        return f"of {size_text(self._size_bytes)} on device {self._device.id}"

    @property
    def size_bytes(self) -> int:
        """Size in bytes, as asked for."""
        return self._size_bytes


class StreamOwner(Owner):
    """Own one thing that goes back in the context of a stream; the thread's current context stays as it was."""

    __slots__ = ()

    @abstractmethod
    def _home(self) -> "StreamScope":
        """Return the context."""

    def _close(self, give_back: Callable[[int], None]) -> None:
        if not self.closed and self._alive():
            try:
                with self._home().current():
                    super()._close(give_back)
            except StateError:
                if self._alive():  # else the try has shown that the thing is gone
                    raise
        super()._close(give_back)
