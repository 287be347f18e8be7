"""The session that something is loaded into, for as long as it is loaded."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gevar.session.caller_device import caller_device
from gevar.session.session import Session


@contextmanager
def session_for_load(
    session: Session | None, backend: str | None, *, share_equal: bool
) -> Iterator[tuple[Session, ExitStack]]:
    """Give the session to load into, or a new one, and a stack that undoes what is not taken over from it.

    Meanwhile the session is locked; with `share_equal` no other load shares equal weights. The device that the calling
    thread had current is current again at the end.

    Raises
    ------
    StateError
        The session is closed, or this thread is in a load that shares.
    BackendUnavailableError, AclError
        No library serves, or the runtime refuses.
    """
    with ExitStack() as outer, ExitStack() as stack:
        if session is None:
            session = stack.enter_context(Session(backend=backend))
        with session.lock:
            session.check_open()
            outer.enter_context(caller_device(session.runtime))
            if share_equal:
                outer.enter_context(session.equal_weights.load())
            yield session, stack
