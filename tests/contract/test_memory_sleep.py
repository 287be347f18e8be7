"""Memory that sleeps: pages go back, addresses stay, bytes come back the way that was chosen."""

import threading
from functools import partial

import pytest

from acl_shim import Device
from acl_shim.host import HostControls
from gevar.errors import OutOfMemoryError, StateError
from gevar.memory import ExpandableActiveMemoryAllocator, HugePageMode, SharedPagePools
from gevar.types import DevAddr
from tests.helpers.runtime import host_runtime, live_now

MIB, GIB = 1 << 20, 1 << 30


class Filled:
    """An allocator with three blocks whose bytes are known."""

    def __init__(self, device: Device, **settings: object) -> None:
        self.device = device
        self.allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
        self.bytes: dict[DevAddr, bytes] = {}
        for number, size in enumerate((700, 3 * MIB, 4096), 1):
            addr = self.allocator.allocate(size, f"v{number}")
            self.bytes[addr] = bytes([number]) * size
            self.fill(addr, size, f"v{number}")

    def fill(self, addr: DevAddr, size: int, tag: str) -> None:
        data = self.bytes[addr]
        assert (len(data), tag) == (size, f"v{data[0]}")
        self.device.memcpy_in(addr, size, data)

    def check(self) -> None:
        for addr, data in self.bytes.items():
            back = bytearray(len(data))
            self.device.memcpy_out(back, addr)
            assert back == data


def _taken(host: HostControls) -> tuple[int, int, int]:
    live = live_now(host)
    return live.handles, live.mappings, live.reservations


@pytest.fixture
def filled(device: Device) -> Filled:
    return Filled(device)


@pytest.mark.parametrize("keep", ["host", "reload"])
def test_bytes_and_addresses_come_back(filled: Filled, host: HostControls, keep: str) -> None:
    allocator, blocks = filled.allocator, filled.allocator.blocks()
    before, used_bytes = _taken(host), live_now(host).devices[0].pages_2m_used * 2 * MIB
    for _ in range(2):
        freed = allocator.sleep(keep, filled.fill if keep == "reload" else None)
        assert freed == used_bytes == 4 * MIB
        assert _taken(host) == (0, 0, 1)
        figures = allocator.figures
        assert (figures.is_asleep, figures.physical_bytes) == (True, 0)
        assert figures.saved_bytes == (sum(map(len, filled.bytes.values())) if keep == "host" else 0)
        assert allocator.blocks() == blocks
        allocator.wake()
        assert _taken(host) == before
        filled.check()
        assert not allocator.figures.is_asleep
        assert allocator.figures.saved_bytes == 0
    allocator.allocate(512)
    allocator.close()


def test_bytes_may_be_lost(filled: Filled, host: HostControls) -> None:
    host.adjust(poison=0xAB)
    allocator = filled.allocator
    calls = host.calls("aclrtMemcpy")
    allocator.sleep("discard")
    allocator.wake()
    assert host.calls("aclrtMemcpy") == calls
    for addr, size, tag in allocator.blocks():
        filled.fill(addr, size, tag)
    filled.check()
    allocator.close()


def test_pages_serve_others_meanwhile(host: HostControls) -> None:
    host.configure(pages_2m=2)
    filled = Filled(host_runtime().device(0))
    filled.allocator.sleep()
    with ExpandableActiveMemoryAllocator(filled.device, max_bytes=GIB) as other:
        other.allocate(3 * MIB)
        for _ in range(2):
            with pytest.raises(OutOfMemoryError, match="2 MiB pages"):
                filled.allocator.wake()
            assert filled.allocator.figures.is_asleep
            assert _taken(host) == (2, 2, 2)
    filled.allocator.wake()
    filled.check()
    filled.allocator.close()


def test_nothing_is_handed_out_or_taken_back_while_it_sleeps(filled: Filled) -> None:
    allocator, addr = filled.allocator, next(iter(filled.bytes))
    allocator.sleep()
    for call in (
        lambda: allocator.allocate(512),
        lambda: allocator.malloc_memory("x", 512),
        lambda: allocator.free(addr),
        allocator.sleep,
    ):
        with pytest.raises(StateError, match="sleeps: call wake first"):
            call()
    allocator.wake()
    allocator.wake()
    filled.check()
    allocator.free(addr)
    allocator.close()


def test_all_of_it_may_be_freed_while_it_sleeps(filled: Filled, host: HostControls) -> None:
    filled.allocator.sleep()
    filled.allocator.free_memory()
    assert _taken(host) == (0, 0, 0)
    assert not filled.allocator.figures.is_asleep
    filled.allocator.allocate(512)
    filled.allocator.close()


def test_memory_of_which_nothing_is_used_can_sleep(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=GIB) as allocator:
        assert allocator.sleep() == 0
        with pytest.raises(StateError, match="sleeps"):
            allocator.allocate(512)
        allocator.wake()
        allocator.free(allocator.allocate(512))
        assert allocator.sleep() == 0
        allocator.wake()
        allocator.allocate(512)


@pytest.mark.parametrize(
    ("keep", "has_function"), [("disk", False), ("", False), ("reload", False), ("host", True), ("discard", True)]
)
def test_ways_to_keep_bytes_that_make_no_sense(filled: Filled, keep: str, has_function: bool) -> None:
    with pytest.raises(ValueError, match="keep is"):
        filled.allocator.sleep(keep, filled.fill if has_function else None)
    filled.check()
    filled.allocator.close()


def test_a_reload_that_fails_leaves_it_asleep(filled: Filled, host: HostControls) -> None:
    calls: list[str] = []

    def reload(addr: DevAddr, size: int, tag: str) -> None:
        calls.append(tag)
        if len(calls) == 2:
            raise KeyError(tag)
        filled.fill(addr, size, tag)

    filled.allocator.sleep("reload", reload)
    with pytest.raises(KeyError, match="v2"):
        filled.allocator.wake()
    assert filled.allocator.figures.is_asleep
    assert _taken(host) == (0, 0, 1)
    filled.allocator.wake()
    assert calls == ["v1", "v2", "v1", "v2", "v3"]
    filled.check()
    filled.allocator.close()


def test_the_reload_runs_without_a_lock_and_nobody_else_gets_in(filled: Filled) -> None:
    allocator, found = filled.allocator, list[str]()

    def reload(addr: DevAddr, size: int, tag: str) -> None:
        def other() -> None:
            for call in (lambda: allocator.allocate(512), allocator.wake, allocator.free_memory):
                try:
                    call()
                except StateError as error:
                    found.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        filled.fill(addr, size, tag)

    allocator.sleep("reload", reload)
    allocator.wake()
    assert len(found) == 9
    assert "is being woken by another thread" in found[1]
    assert "is being woken: free it afterwards" in found[2]
    filled.check()
    allocator.close()


def test_the_fixed_base_form_sleeps_too(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=GIB) as allocator:
        base = allocator.malloc_memory("maps", 3 * MIB)
        assert allocator.malloc_memory("maps", 5 * MIB) == base
        device.memcpy_in(base + 5 * MIB - 3, 3, b"end")
        allocator.sleep()
        allocator.wake()
        back = bytearray(3)
        device.memcpy_out(back, base + 5 * MIB - 3)
        assert back == b"end"


def test_shared_pages_go_to_the_device_as_well(device: Device, host: HostControls) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, shared_pools=SharedPagePools())
    allocator.allocate(3 * MIB)
    allocator.sleep("discard")
    assert live_now(host).handles == 0
    allocator.wake()
    assert live_now(host).handles == 2
    allocator.close()


def test_pages_of_2_mib_stand_in_for_one_of_1_gib_that_is_gone(host: HostControls) -> None:
    host.configure(pages_1g=1)
    device = host_runtime().device(0)
    make = partial(ExpandableActiveMemoryAllocator, device, GIB, max_bytes=GIB, is_checked=True)
    with make(mode=HugePageMode.FIRST) as allocator, make(mode=HugePageMode.ONLY) as other:
        first, second = allocator.allocate(3 * MIB), allocator.allocate(100)
        device.memcpy_in(second, 100, bytes(range(100)))
        allocator.sleep()
        addr = other.allocate(512)
        allocator.wake()
        taken = live_now(host).devices[0]
        assert (taken.pages_1g_used, taken.pages_2m_used) == (1, 2)
        back = bytearray(100)
        device.memcpy_out(back, second)
        assert back == bytes(range(100))
        other.sleep()
        allocator.sleep()
        allocator.wake()  # the page of 1 GiB is free again
        assert live_now(host).devices[0].pages_1g_used == 1
        with pytest.raises(OutOfMemoryError, match="1 GiB pages"):
            other.wake()
        allocator.free(first)
        allocator.free(second)
        other.wake()
        other.free(addr)


def test_pages_of_1_gib_and_their_stand_ins_come_back_as_they_were(host: HostControls) -> None:
    host.configure(pages_1g=1)
    device = host_runtime().device(0)
    with ExpandableActiveMemoryAllocator(device, GIB, mode=HugePageMode.FIRST, max_bytes=4 * GIB) as allocator:
        allocator.allocate(GIB - MIB)
        addr = allocator.allocate(4 * MIB)
        device.memcpy_in(addr + MIB - 4, 8, b"boundary")
        taken = live_now(host).devices[0]
        assert (taken.pages_1g_used, taken.pages_2m_used) == (1, 2)
        allocator.sleep("reload", lambda at, size, tag: device.memcpy_in(addr + MIB - 4, 8, b"boundary"))
        assert live_now(host).devices[0].pages_1g_used == 0
        allocator.wake()
        assert live_now(host).devices[0] == taken
        back = bytearray(8)
        device.memcpy_out(back, addr + MIB - 4)
        assert back == b"boundary"
