"""Load states: absent, loading, loaded, and who waits for whom."""

import threading

import pytest

from gevar.errors import StateError
from gevar.var.load_state import LoadState, LoadTable, LoadTicket, set_loaded


@pytest.fixture
def table() -> LoadTable[str]:
    return LoadTable(threading.RLock())


def _begin(table: LoadTable[str], key: str) -> LoadTicket[str]:
    ticket = table.begin(key)
    assert ticket is not None
    return ticket


def test_a_key_goes_from_absent_over_loading_to_loaded(table: LoadTable[str]) -> None:
    assert table.state("k") is LoadState.ABSENT
    ticket = _begin(table, "k")
    assert table.state("k") is LoadState.LOADING
    assert not table.is_loaded("k")
    assert ticket.commit()
    assert table.state("k") is LoadState.LOADED
    assert table.is_loaded("k")
    assert table.begin("k") is None


def test_an_abort_makes_the_key_absent_again(table: LoadTable[str]) -> None:
    _begin(table, "k").abort()
    assert table.state("k") is LoadState.ABSENT
    _begin(table, "k").commit()
    assert table.is_loaded("k")


def test_keys_do_not_touch_each_other(table: LoadTable[str]) -> None:
    _begin(table, "a").commit()
    ticket = _begin(table, "b")
    assert (table.state("a"), table.state("b"), table.state("c")) == (
        LoadState.LOADED,
        LoadState.LOADING,
        LoadState.ABSENT,
    )
    ticket.abort()


def test_a_context_commits_when_the_block_ends(table: LoadTable[str]) -> None:
    with _begin(table, "k") as ticket:
        assert ticket.key == "k"
    assert table.is_loaded("k")


def test_a_context_aborts_when_the_block_raises(table: LoadTable[str]) -> None:
    with pytest.raises(RuntimeError, match="disk"), _begin(table, "k"):
        raise RuntimeError("disk")
    assert table.state("k") is LoadState.ABSENT


def test_only_the_first_end_of_a_ticket_counts(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    assert ticket.commit()
    assert not ticket.commit()
    ticket.abort()
    assert table.is_loaded("k")
    other = _begin(table, "other")
    other.abort()
    assert not other.commit()
    assert table.state("other") is LoadState.ABSENT


def test_an_old_ticket_does_not_end_a_new_load(table: LoadTable[str]) -> None:
    old = _begin(table, "k")
    old.abort()
    new = _begin(table, "k")
    assert not old.commit()
    assert table.state("k") is LoadState.LOADING
    assert new.commit()


def test_what_was_loaded_is_told_until_it_is_forgotten(table: LoadTable[str]) -> None:
    ticket, mine = table.enter("k", "file a")
    assert mine
    assert ticket is not None
    assert table.content("k") == ""
    ticket.commit()
    assert table.is_loaded("k")
    assert table.content("k") == "file a"
    assert table.enter("k", "file b") == (None, False)
    assert table.content("k") == "file a"
    _begin(table, "other").commit()
    assert table.content("other") == table.content("none") == ""
    table.clear()
    assert table.content("k") == ""


def test_clear_makes_tickets_stale(table: LoadTable[str]) -> None:
    _begin(table, "done").commit()
    ticket = _begin(table, "k")
    table.clear()
    assert table.state("done") is LoadState.ABSENT
    assert not ticket.commit()
    assert table.state("k") is LoadState.ABSENT


def test_enter_does_not_wait(table: LoadTable[str]) -> None:
    ticket, mine = table.enter("k")
    assert ticket is not None
    assert mine
    assert table.enter("k") == (ticket, False)
    ticket.commit()
    assert table.enter("k") == (None, False)


def test_set_loaded_does_not_wait(table: LoadTable[str]) -> None:
    assert set_loaded(table.states, "k") is False
    assert set_loaded(table.states, "k") is True
    assert table.is_loaded("k")
    assert table.begin("k") is None
    ticket = _begin(table, "other")
    assert set_loaded(table.states, "other") is ticket
    assert table.state("other") is LoadState.LOADING
    ticket.abort()
    assert set_loaded(table.states, "other") is False


def test_what_is_set_in_cleared_states_is_forgotten(table: LoadTable[str]) -> None:
    states = table.states
    table.clear()
    assert set_loaded(states, "k") is False
    assert table.state("k") is LoadState.ABSENT


def test_of_many_threads_one_sets_it(table: LoadTable[str]) -> None:
    answers: list[object] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        answers.extend(set_loaded(table.states, str(number)) for number in range(500))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers.count(False), answers.count(True)) == (500, 7 * 500)


def test_a_thread_does_not_wait_for_itself(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    with pytest.raises(StateError, match="'k' is being loaded by this very thread"):
        table.begin("k")
    ticket.commit()
    ticket.wait()  # a ticket that has ended keeps nobody


def _waiters(table: LoadTable[str], count: int) -> tuple[list[threading.Thread], list[LoadTicket[str] | None]]:
    results: list[LoadTicket[str] | None] = []

    def wait() -> None:
        ticket = table.begin("k")
        results.append(ticket)
        if ticket is not None:
            ticket.commit()

    threads = [threading.Thread(target=wait) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, results


def test_waiting_threads_find_it_loaded(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    threads, results = _waiters(table, 4)
    assert results == []
    ticket.commit()
    for thread in threads:
        thread.join()
    assert results == [None] * 4


def test_one_waiting_thread_takes_over_after_an_abort(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    threads, results = _waiters(table, 4)
    ticket.abort()
    for thread in threads:
        thread.join()
    assert sum(result is not None for result in results) == 1
    assert table.is_loaded("k")


def test_clear_wakes_waiting_threads(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    threads, results = _waiters(table, 3)
    table.clear()
    for thread in threads:
        thread.join()
    assert sum(result is not None for result in results) == 1
    assert not ticket.commit()


def test_a_ticket_may_be_committed_by_another_thread(table: LoadTable[str]) -> None:
    ticket = _begin(table, "k")
    thread = threading.Thread(target=ticket.commit)
    thread.start()
    thread.join()
    assert table.is_loaded("k")
