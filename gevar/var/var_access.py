"""Who reads or writes variables, so that their memory falls asleep only when nobody does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gevar.errors import StateError


class VarAccess:
    """Uses of variables by threads, and times in which there are none.

    Thread safety: all methods, from any thread. One `alone` at a time: its caller sees to that.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._uses: dict[int, int] = {}  # thread -> uses that are under way
        self._is_closed = False

    @contextmanager
    def use(self) -> Iterator[None]:
        """Be a user, once `alone` of another thread is over."""
        thread_id, uses = threading.get_ident(), self._uses
        with self._changed:
            while self._is_closed and thread_id not in uses:
                self._changed.wait()
            uses[thread_id] = uses.get(thread_id, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                uses[thread_id] -= 1
                if not uses[thread_id]:
                    del uses[thread_id]
                    self._changed.notify_all()

    def refuse_user(self) -> None:
        """Raise where the calling thread is a user, and would wait for itself.

        Raises
        ------
        StateError
            It is.
        """
        if threading.get_ident() in self._uses:
            raise StateError("this thread is reading or writing a variable: let the memory sleep afterwards")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody is a user, and let nobody be one meanwhile."""
        with self._changed:
            self._is_closed = True
            try:
                while self._uses:
                    self._changed.wait()
            except BaseException:
                self._open()
                raise
        try:
            yield
        finally:
            with self._changed:
                self._open()

    def _open(self) -> None:
        self._is_closed = False
        self._changed.notify_all()
