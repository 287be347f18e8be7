"""Load states: whether something is there, and who is bringing it, so that it is brought once.

Each key of a `LoadTable` goes absent -> loading -> loaded. The thread that finds it absent gets a `LoadTicket` and does
the work without any lock held; the others wait for that ticket. A ticket that is committed makes the key loaded, one
that is aborted makes it absent again and one of the waiting threads takes over. `LoadTable.clear` forgets everything:
tickets that are still out become stale, and what they bring is not recorded.

The manager uses one table for the data of variables and one for their device memory, per device.
"""

import threading
from enum import Enum, auto
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from gevar.errors import StateError

K = TypeVar("K")

_LOADED: Final = object()


class LoadState(Enum):
    """State of one key."""

    ABSENT = auto()
    LOADING = auto()
    LOADED = auto()


class LoadTicket(Generic[K]):
    """The right to bring one key, and the duty to say how it went.

    As a context it commits when the block ends and aborts when the block raises. Only the first commit or abort counts.

    Attributes
    ----------
    key : object
        The key.
    content : str
        What is brought, in words, for `LoadTable.content` to tell; "" where nobody says.

    Thread safety: may be handed to another thread.
    """

    __slots__ = ("_event", "_is_done", "_table", "_thread_id", "content", "key")

    def __init__(self, table: "LoadTable[K]", key: K, content: str = "") -> None:
        self.key = key
        self.content = content
        self._table = table
        self._is_done = False
        self._event: threading.Event | None = None  # made when somebody waits: hardly ever, and it takes long
        self._thread_id = threading.get_ident()

    def commit(self) -> bool:
        """Record that the key is loaded, and wake the threads that wait for it.

        Returns
        -------
        bool
            False when the table was cleared since, or the ticket was used before: nothing is recorded then.
        """
        with self._table._lock:
            return self.commit_held()

    def commit_held(self) -> bool:
        """Do `commit`, for a caller that holds the table's lock."""
        states, key = self._table.states, self.key
        is_current = states.get(key) is self
        if is_current:
            states[key] = self.content or _LOADED
        self._is_done = True
        if self._event is not None:
            self._event.set()
        return is_current

    def abort(self) -> None:
        """Make the key absent again, and wake the threads that wait for it."""
        table = self._table
        with table._lock:
            if table.states.get(self.key) is self:
                del table.states[self.key]
            self._end()

    def wait(self) -> None:
        """Wait until the ticket is committed, aborted or stale.

        Raises
        ------
        StateError
            The calling thread took the ticket itself and would wait for ever.
        """
        with self._table._lock:
            if self._is_done:
                return
            if self._thread_id == threading.get_ident():
                what = f"{self.key!r} is being loaded by this very thread"
                raise StateError(f"{what}: commit or abort that load first")
            event = self._event = self._event or threading.Event()
        event.wait()

    def _end(self) -> None:
        """Wake the threads that wait; for a caller that holds the lock."""
        self._is_done = True
        if self._event is not None:
            self._event.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_done:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()


def set_loaded(states: "dict[K, LoadTicket[K] | object]", key: K) -> LoadTicket[K] | bool:
    """Make a key loaded if it is absent, without waiting and without a lock.

    Parameters
    ----------
    states
        `LoadTable.states`. Taken before the caller looks up what the key stands for, it keeps a state from outliving
        what was there: after `LoadTable.clear` it is a dictionary that nobody reads.
    key
        The key.

    Returns
    -------
    bool or LoadTicket
        Whether the key was loaded before; a ticket to wait for when a load is under way.
    """
    mine = object()
    found = states.setdefault(key, mine)  # one step, whatever other threads do
    if found is mine:
        return False
    return found if isinstance(found, LoadTicket) else True


class LoadTable(Generic[K]):
    """States of many keys.

    Parameters
    ----------
    lock
        Lock of the owner; held only for the moments in which a state changes.

    Attributes
    ----------
    states : dict
        Ticket of each key that is being loaded, anything else for one that is loaded; another dictionary after `clear`.

    Thread safety: all methods, from any thread; `is_loaded` takes no lock.
    """

    __slots__ = ("_lock", "states")

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.states: dict[K, LoadTicket[K] | object] = {}

    def is_loaded(self, key: K) -> bool:
        """Tell whether the key is loaded."""
        return self.state(key) is LoadState.LOADED

    def state(self, key: K) -> LoadState:
        """Return the state of the key."""
        found = self.states.get(key)
        if found is None:
            return LoadState.ABSENT
        return LoadState.LOADING if isinstance(found, LoadTicket) else LoadState.LOADED

    def content(self, key: K) -> str:
        """Return what was loaded, in the words of who loaded it; "" where nothing is or nobody said."""
        found = self.states.get(key)
        return found if isinstance(found, str) else ""

    def enter(self, key: K, content: str = "") -> tuple[LoadTicket[K] | None, bool]:
        """Take the key if it is absent, without waiting, to bring what `content` says.

        Returns
        -------
        tuple
            ``(None, False)`` when it is loaded, ``(ticket, True)`` when the caller has to load it now, ``(ticket,
            False)`` when another load is under way, which the ticket can wait for.
        """
        mine = LoadTicket(self, key, content)
        found = self.states.setdefault(key, mine)  # one step, whatever other threads do
        if found is mine:
            return mine, True
        return (found if isinstance(found, LoadTicket) else None), False

    def begin(self, key: K) -> LoadTicket[K] | None:
        """Take the key, or wait until somebody else has loaded it.

        Returns
        -------
        LoadTicket or None
            A ticket when the caller has to load it now; None when it is loaded.

        Raises
        ------
        StateError
            This thread holds the key's ticket already.
        """
        while True:
            ticket, mine = self.enter(key)
            if ticket is None or mine:
                return ticket
            ticket.wait()

    def clear(self) -> None:
        """Make every key absent and every ticket stale."""
        with self._lock:
            before, self.states = self.states, {}
            for found in list(before.values()):
                if isinstance(found, LoadTicket):
                    found._end()
