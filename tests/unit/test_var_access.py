"""Uses of variables by threads, and times in which there are none."""

import threading

import pytest

from gevar.errors import StateError
from gevar.var.var_access import VarAccess


def _started(work: object) -> threading.Thread:
    assert callable(work)
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_being_alone_waits_for_users_and_keeps_new_ones_out() -> None:
    access, order, in_use, leave = VarAccess(), list[str](), threading.Event(), threading.Event()

    def first() -> None:
        with access.use(), access.use():  # once more within
            in_use.set()
            leave.wait(30)
            order.append("first")

    def sleeper() -> None:
        with access.alone():
            order.append("alone")

    def later() -> None:
        with access.use():
            order.append("later")

    threads = [_started(first)]
    assert in_use.wait(30)
    threads.append(_started(sleeper))
    while not access._is_closed:
        pass
    threads.append(_started(later))
    leave.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert order == ["first", "alone", "later"]
    assert access._uses == {}


def test_a_user_may_go_on_while_another_thread_waits_to_be_alone() -> None:
    access, done = VarAccess(), threading.Event()

    def sleeper() -> None:
        with access.alone():
            done.set()

    with access.use():
        thread = _started(sleeper)
        while not access._is_closed:
            pass
        with access.use():
            assert not done.is_set()
    thread.join(30)
    assert done.is_set()


def test_a_user_cannot_wait_for_himself() -> None:
    access = VarAccess()
    with access.use(), pytest.raises(StateError, match="this thread is reading or writing a variable"):
        access.refuse_user()
    access.refuse_user()


def test_it_is_open_again_after_a_failure() -> None:
    access = VarAccess()
    with pytest.raises(OSError), access.alone():
        raise OSError
    with pytest.raises(OSError), access.use():
        raise OSError
    with access.alone():
        pass
    with access.use():
        pass
