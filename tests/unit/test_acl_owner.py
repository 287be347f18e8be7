"""Owners: given back exactly once, by close, with or the finaliser, whatever happens to the device meanwhile."""

import gc
import logging
import threading
from pathlib import Path

import pytest

from acl_shim import Device, open_runtime
from acl_shim.errors import AclError, StateError
from acl_shim.owner import Owner, SizedOwner
from tests.helpers.fake_acl import fake_library


class Thing(SizedOwner):
    """Counts how often it is given back; fails the first `failures` times."""

    __slots__ = ("failures", "given_back")

    def __init__(self, device: Device, handle: int = 0x1234, size_bytes: int = 2048, *, failures: int = 0) -> None:
        super().__init__(device, device._enter(), handle, size_bytes)
        self.failures = failures
        self.given_back: list[int] = []

    def _give_back(self, handle: int) -> None:
        if self.failures:
            self.failures -= 1
            raise AclError(507899, "giveBack", {"handle": handle})
        self.given_back.append(handle)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("owner") / "libascendcl.so", devices=2)


@pytest.fixture
def device(library: Path) -> Device:
    return open_runtime(str(library)).device(0)


class TestClose:
    def test_it_gives_back_once(self, device: Device) -> None:
        thing = Thing(device)
        assert not thing.closed
        thing.close()
        thing.close()
        assert thing.closed
        assert thing.given_back == [0x1234]

    def test_with_gives_back(self, device: Device) -> None:
        with Thing(device) as thing:
            assert not thing.closed
        assert thing.given_back == [0x1234]

    def test_with_gives_back_after_an_error(self, device: Device) -> None:
        with pytest.raises(ZeroDivisionError), Thing(device) as thing:
            _ = 1 // 0
        assert thing.given_back == [0x1234]

    def test_a_failure_leaves_it_open_and_close_may_be_repeated(self, device: Device) -> None:
        thing = Thing(device, failures=2)
        for _ in range(2):
            with pytest.raises(AclError, match="giveBack"):
                thing.close()
            assert not thing.closed
        thing.close()
        assert thing.given_back == [0x1234]

    def test_one_of_many_threads_gives_back(self, device: Device) -> None:
        for _ in range(20):
            thing = Thing(device)
            start = threading.Barrier(8)

            def close(thing: Thing = thing, start: threading.Barrier = start) -> None:
                start.wait()
                thing.close()

            threads = [threading.Thread(target=close) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert thing.given_back == [0x1234]

    def test_after_it_the_handle_is_refused(self, device: Device) -> None:
        thing = Thing(device)
        assert thing._handle() == 0x1234
        thing.close()
        with pytest.raises(StateError, match=r"Thing of 2\.00 KiB \(2048 B\) on device 0 is closed: make a new one"):
            thing._handle()

    def test_size_and_device_stay_known(self, device: Device) -> None:
        thing = Thing(device)
        thing.close()
        assert (thing.size_bytes, thing.device) == (2048, device)


class TestFinaliser:
    def test_it_gives_back(self, device: Device) -> None:
        thing = Thing(device)
        record = thing.given_back
        del thing
        assert record == [0x1234]

    def test_it_gives_back_a_thing_in_a_cycle(self, device: Device) -> None:
        thing = Thing(device)
        record = thing.given_back
        ring: list[object] = [thing]
        ring.append(ring)
        del thing, ring
        gc.collect()
        assert record == [0x1234]

    def test_it_does_nothing_after_close(self, device: Device) -> None:
        thing = Thing(device)
        record = thing.given_back
        thing.close()
        del thing
        assert record == [0x1234]

    def test_it_tries_again_what_close_could_not_do(self, device: Device) -> None:
        thing = Thing(device, failures=1)
        record = thing.given_back
        with pytest.raises(AclError):
            thing.close()
        del thing
        gc.collect()  # the traceback of the error held the thing
        assert record == [0x1234]

    def test_it_logs_what_fails_and_raises_nothing(self, device: Device, caplog: pytest.LogCaptureFixture) -> None:
        thing = Thing(device, failures=1)
        with caplog.at_level(logging.WARNING, "acl_shim"):
            del thing
        (record,) = caplog.records
        assert record.getMessage().startswith("the finaliser of <Thing 0x1234 of 2.00 KiB (2048 B) on device 0> failed")
        assert "507899" in record.getMessage()
        device.forget()


class TestLease:
    def test_it_knows_what_is_open(self, device: Device) -> None:
        things = [Thing(device, handle, 1 << 20) for handle in (1, 2, 3)]
        lease = device._enter()
        assert list(lease.owned.values()) == [1 << 20] * 3
        assert {kind for kind, _ in lease.owned} == {"Thing"}
        assert lease.owned_text() == "3 Thing (3.00 MiB (3145728 B))"
        for thing in things:
            thing.close()
        assert lease.owned == {}
        assert lease.owned_text() == ""

    def test_a_device_in_use_is_not_reset(self, device: Device) -> None:
        thing = Thing(device)
        with pytest.raises(
            StateError, match=r"device 0 is in use by 1 Thing \(2\.00 KiB \(2048 B\)\): close them first"
        ):
            device.reset()
        with pytest.raises(StateError, match="in use by 1 Thing"):
            device.runtime.close()
        thing.close()
        assert thing.given_back == [0x1234]
        device.reset()

    def test_a_thing_of_an_ended_lease_closes_without_a_call(self, device: Device) -> None:
        thing = Thing(device)
        device.forget()
        assert not thing.closed
        thing.close()
        assert thing.closed
        assert thing.given_back == []

    def test_a_new_lease_knows_nothing_of_the_old_things(self, device: Device) -> None:
        old = Thing(device)
        device.forget()
        new = Thing(device)
        old.close()
        assert (old.given_back, new.closed) == ([], False)
        assert list(device._enter().owned.values()) == [2048]
        new.close()
        assert new.given_back == [0x1234]

    def test_reset_is_harmless_where_nothing_was_used(self, device: Device) -> None:
        device.reset()
        device.reset()
        device.runtime.device(1).reset()


def test_an_owner_shows_what_it_is(device: Device) -> None:
    thing = Thing(device)
    assert repr(thing) == "<Thing 0x1234 of 2.00 KiB (2048 B) on device 0>"
    thing.close()
    assert repr(thing) == "<Thing closed of 2.00 KiB (2048 B) on device 0>"


def test_an_owner_must_say_how_it_gives_back(device: Device) -> None:
    with pytest.raises(TypeError, match="_give_back"):
        Owner(device, device._enter(), 1, 1)  # type: ignore[abstract]
    device.forget()
