"""What queued tasks need: marks, order, functions, errors."""

import logging
import threading
import weakref
from collections.abc import Callable

import pytest

from acl_shim.errors import HostFunctionError
from acl_shim.queued import _MANY, Queued, _planned, acl_run_host_function
from acl_shim.timeouts import timeout_ms


class Thing:
    """Something that can be watched."""


def watched(queued: Queued) -> Callable[[], Thing | None]:
    thing = Thing()
    queued.keep(thing)
    return weakref.ref(thing)


class TestKept:
    def test_a_thing_lives_until_its_mark_is_passed(self) -> None:
        queued = Queued()
        first = watched(queued)
        mark = queued.mark()
        second = watched(queued)
        queued.passed(mark)
        assert first() is None
        assert second() is not None
        queued.passed(queued.mark())
        assert second() is None

    def test_an_older_mark_drops_nothing_more(self) -> None:
        queued = Queued()
        old = queued.mark()
        thing = watched(queued)
        queued.passed(old)
        queued.passed(old)
        assert thing() is not None

    def test_it_says_when_much_has_gathered(self) -> None:
        queued = Queued()
        assert [queued.keep(number) for number in range(_MANY)] == [False] * (_MANY - 1) + [True]
        assert queued.keep("more")
        queued.passed(queued.mark() - 40)  # a stream that is behind is asked less often
        answers = [queued.keep(number) for number in range(_MANY)]
        assert answers.index(True) == max(_MANY, 80) - 40 - 1

    def test_the_end_drops_everything(self) -> None:
        queued = Queued()
        thing = watched(queued)
        key = queued.plan(lambda: None)
        queued.end()
        assert thing() is None
        assert key not in _planned

    def test_a_finaliser_may_use_the_queue(self) -> None:
        queued = Queued()

        class Loud:
            def __del__(self) -> None:
                queued.keep("from a finaliser")
                queued.passed(0)

        queued.keep(Loud())
        queued.passed(queued.mark())
        assert len(queued._kept) == 1

    def test_many_threads(self) -> None:
        queued = Queued()
        start = threading.Barrier(8)

        def work() -> None:
            start.wait()
            for number in range(500):
                queued.keep(number)
                if number % 50 == 0:
                    queued.passed(queued.mark())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert queued.mark() == 4000
        queued.passed(queued.mark())
        assert not queued._kept


class TestFunctions:
    def test_a_key_calls_its_function_once(self) -> None:
        queued, seen = Queued(), []
        key = queued.plan(lambda: seen.append(1))
        acl_run_host_function(key)
        acl_run_host_function(key)
        assert seen == [1]
        assert not queued._keys

    def test_an_unknown_key_is_harmless(self) -> None:
        acl_run_host_function(0)
        acl_run_host_function((1 << 64) - 1)

    def test_a_cancelled_function_is_not_called(self) -> None:
        queued = Queued()
        key = queued.plan(lambda: pytest.fail("cancelled"))
        queued.cancel(key)
        queued.cancel(key)
        acl_run_host_function(key)

    def test_errors_are_raised_once_in_order(self) -> None:
        queued = Queued()
        for error in (ValueError("one"), KeyError("two")):
            acl_run_host_function(queued.plan(lambda error=error: (_ for _ in ()).throw(error)))  # type: ignore[misc]
        with pytest.raises(HostFunctionError) as caught:
            queued.raise_errors()
        assert [type(error) for error in caught.value.errors] == [ValueError, KeyError]
        assert caught.value.__cause__ is caught.value.errors[0]
        queued.raise_errors()

    def test_errors_that_nobody_asks_for_are_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        queued = Queued()
        acl_run_host_function(queued.plan(lambda: 1 // 0))
        with caplog.at_level(logging.ERROR, "acl_shim"):
            queued.log_errors()
            queued.log_errors()
        (record,) = caplog.records
        assert "nobody waited" in record.getMessage()


class TestTimeouts:
    @pytest.mark.parametrize(
        ("timeout_s", "wanted"), [(1, 1000), (0.0001, 1), (0.0011, 2), (2.5, 2500), (2147483.647, 2147483647)]
    )
    def test_milliseconds_are_rounded_up(self, timeout_s: float, wanted: int) -> None:
        assert timeout_ms(timeout_s) == wanted

    @pytest.mark.parametrize("timeout_s", [0, -0.5, float("inf"), float("nan"), 2147484])
    def test_a_number_out_of_range_is_refused(self, timeout_s: float) -> None:
        with pytest.raises(ValueError, match=f"timeout_s is {timeout_s}: give seconds above 0"):
            timeout_ms(timeout_s)

    @pytest.mark.parametrize("timeout_s", ["1", b"1", [1]])
    def test_what_is_no_number_is_refused(self, timeout_s: object) -> None:
        with pytest.raises(TypeError):
            timeout_ms(timeout_s)  # type: ignore[arg-type]
