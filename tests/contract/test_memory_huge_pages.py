"""Pages of 1 GiB for memory that grows: only those, those first, none; real ones where the machine has them."""

import fcntl
import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acl_shim.host import HostControls
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import ExpandableActiveMemoryAllocator, HugePageMode, MemoryShortageError, SessionMemAllocator
from gevar.memory.huge_page_policy import RETRY_BUDGET
from gevar.types import DevAddr, DeviceId
from tests.helpers.runtime import host_runtime, live_now

MIB, GIB = 1 << 20, 1 << 30
OPTION = "ge.variableUse1gHugePage"
NR_HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages")


def _make(mode: HugePageMode, max_bytes: int = 4 * GIB) -> ExpandableActiveMemoryAllocator:
    page_bytes = 2 * MIB if mode is HugePageMode.NONE else GIB
    return ExpandableActiveMemoryAllocator(
        host_runtime().device(0), page_bytes, mode=mode, max_bytes=max_bytes, is_checked=True
    )


def _used(host: HostControls) -> tuple[int, int]:
    """Pages of 1 GiB and of 2 MiB that are taken."""
    device = live_now(host).devices[0]
    return device.pages_1g_used, device.pages_2m_used


def test_none_takes_none(host: HostControls) -> None:
    host.configure(pages_1g=4)
    with _make(HugePageMode.NONE) as allocator:
        allocator.allocate(3 * MIB)
        assert _used(host) == (0, 2)
        assert allocator.figures.decisions.pages == 2


def test_only_takes_nothing_else(host: HostControls) -> None:
    host.configure(pages_1g=2)
    with _make(HugePageMode.ONLY) as allocator:
        first = allocator.allocate(700 * MIB, "first")
        assert allocator.allocate(700 * MIB, "second") == first + 700 * MIB
        assert _used(host) == (2, 0)
        with pytest.raises(MemoryShortageError, match=r"ge\.variableUse1gHugePage is 1") as caught:
            allocator.allocate(700 * MIB)
        assert caught.value.page_kind == "1 GiB pages"
        assert any(f"set {OPTION} to 2" in step for step in caught.value.report.advice)
        assert _used(host) == (2, 0)
        decisions = allocator.figures.decisions
        assert (decisions.pages, decisions.fallback_pages, decisions.refused) == (2, 0, 0)


def test_only_without_such_pages_says_which_option_and_leaves_nothing(host: HostControls) -> None:
    host.configure(pages_1g=0)
    with _make(HugePageMode.ONLY) as allocator:
        for _ in range(2):
            with pytest.raises(OutOfMemoryError, match=r"1 GiB pages.*ge\.variableUse1gHugePage is 1"):
                allocator.allocate(1024)
            live = live_now(host)
            assert (live.handles, live.mappings, live.reservations) == (0, 0, 0)


def test_a_driver_without_such_pages(host: HostControls, caplog: pytest.LogCaptureFixture) -> None:
    """Only: an error that names the option. First: one warning, and 2 MiB pages without a further try."""
    host.configure(pages_1g=2)
    with _make(HugePageMode.ONLY) as allocator:
        host.fail_nth("aclrtMallocPhysical", 1, 207000)
        with pytest.raises(AclError, match=r"207000.*ge\.variableUse1gHugePage is 1\) takes no other pages") as caught:
            allocator.allocate(1024)
        assert caught.value.code == 207000
        assert live_now(host).reservations == 0
    with _make(HugePageMode.FIRST) as allocator, caplog.at_level(logging.WARNING, "gevar.memory"):
        host.fail_nth("aclrtMallocPhysical", 1, 207000)
        for _ in range(3):
            allocator.allocate(2 * MIB)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "2 MiB pages are taken where 1 GiB pages are refused" in caplog.text
        assert _used(host) == (0, 3)
        decisions = allocator.figures.decisions
        assert (decisions.pages, decisions.fallback_pages, decisions.refused, decisions.skipped) == (0, 3, 1, 0)


def test_a_product_without_such_pages(host: HostControls) -> None:
    host.configure(soc_name="Ascend310P3")
    device = host_runtime().device(0)
    with ExpandableActiveMemoryAllocator(device, GIB, mode=HugePageMode.FIRST) as allocator:
        for _ in range(3):
            allocator.free(allocator.allocate(2 * MIB))
        decisions = allocator.figures.decisions
        assert (decisions.fallback_pages, decisions.refused, decisions.skipped) == (3, 1, 2)
    with ExpandableActiveMemoryAllocator(device, GIB, mode=HugePageMode.ONLY) as allocator:
        with pytest.raises(AclError, match=r"ge\.variableUse1gHugePage is 1") as caught:
            allocator.allocate(512)
        assert caught.value.code == 207000
        assert live_now(host).reservations == 0


def test_first_takes_smaller_pages_when_they_run_out_and_moves_nothing(host: HostControls) -> None:
    host.configure(pages_1g=1)
    device = host_runtime().device(0)
    with _make(HugePageMode.FIRST) as allocator:
        first = allocator.allocate(700 * MIB, "first")
        device.memcpy_in(first, 9, b"stays put")
        second = allocator.allocate(700 * MIB, "second")
        assert second == first + 700 * MIB
        assert _used(host) == (1, (2 * 700 - 1024) // 2)  # no more of them than the second block touches
        device.memcpy_in(second, 4, b"next")
        device.memcpy_in(second + 700 * MIB - 4, 4, b"end.")
        back = bytearray(9)
        device.memcpy_out(back, first)
        assert back == b"stays put"
        allocator.free(second)
        assert _used(host) == (1, 0)
        with pytest.raises(StateError):
            allocator.free(second)


def test_each_page_is_decided_by_itself(host: HostControls) -> None:
    """A page of 1 GiB that became free is taken again after others had to do."""
    host.configure(pages_1g=1)
    with _make(HugePageMode.FIRST) as other, _make(HugePageMode.FIRST) as allocator:
        taken = other.allocate(512)
        allocator.allocate(512)  # on a page of 2 MiB
        assert _used(host) == (1, 1)
        other.free(taken)
        allocator.allocate(GIB - 512)  # the rest of the slot stays in 2 MiB pages
        assert _used(host) == (0, 512)
        allocator.allocate(512)
        assert _used(host) == (1, 512)
        decisions = allocator.figures.decisions
        assert (decisions.pages, decisions.fallback_pages, decisions.refused) == (1, 512, 1)


def test_refusals_in_a_row_end_the_tries_until_the_memory_is_freed(host: HostControls) -> None:
    host.configure(pages_1g=0, pages_2m=8)
    allocator = _make(HugePageMode.FIRST, 64 * GIB)
    addrs: list[DevAddr] = []
    for _ in range(RETRY_BUDGET + 2):
        addrs.append(allocator.allocate(512))
        allocator.free(addrs.pop())
    decisions = allocator.figures.decisions
    assert (decisions.refused, decisions.skipped) == (RETRY_BUDGET, 2)
    allocator.free_memory()
    allocator.allocate(512)
    assert allocator.figures.decisions.refused == RETRY_BUDGET + 1
    allocator.close()


def test_a_page_that_is_given_back_begins_the_tries_anew(host: HostControls) -> None:
    host.configure(pages_1g=1, pages_2m=8)
    with _make(HugePageMode.FIRST) as allocator:
        first = allocator.allocate(GIB)
        for _ in range(RETRY_BUDGET + 1):
            allocator.free(allocator.allocate(512))
        decisions = allocator.figures.decisions
        assert (decisions.pages, decisions.refused, decisions.skipped) == (1, RETRY_BUDGET, 1)
        allocator.free(first)
        assert allocator.allocate(512) == first
        assert (allocator.figures.decisions.pages, allocator.figures.decisions.skipped) == (2, 1)


def test_when_both_kinds_are_short_nothing_is_left(host: HostControls) -> None:
    host.configure(pages_1g=1, pages_2m=4)
    with _make(HugePageMode.FIRST) as allocator:
        first = allocator.allocate(GIB - 512)
        before = _used(host)
        with pytest.raises(MemoryShortageError, match="2 MiB pages"):
            allocator.allocate(20 * MIB)
        assert _used(host) == before == (1, 0)
        allocator.allocate(8 * MIB)  # four pages are there
        assert _used(host) == (1, 4)
        allocator.free(first)
        assert _used(host) == (1, 4)  # the second block begins on the page of 1 GiB


@pytest.mark.parametrize("text", ["yes", "", "3", "01", " 1"])
def test_option_text_that_means_nothing(text: str) -> None:
    sessions = SessionMemAllocator(host_runtime())
    with pytest.raises(ValueError, match=r"ge\.variableUse1gHugePage is .*give \"0\".*\"1\".*\"2\"") as caught:
        sessions.get_var_mem_allocator(1, DeviceId(0), {OPTION: text}, environ={})
    assert repr(text) in str(caught.value)
    assert sessions.allocators(1) == []


@pytest.mark.parametrize(
    ("options", "environ", "mode", "page_bytes"),
    [
        ({}, {}, HugePageMode.NONE, 2 * MIB),
        ({OPTION: "0"}, {}, HugePageMode.NONE, 2 * MIB),
        ({OPTION: "1"}, {}, HugePageMode.ONLY, GIB),
        ({OPTION: "2"}, {}, HugePageMode.FIRST, GIB),
        ({"ge.exec.staticMemoryPolicy": "0"}, {}, HugePageMode.NONE, 2 * MIB),
        ({"ge.exec.staticMemoryPolicy": "1"}, {}, HugePageMode.NONE, 2 * MIB),
        ({"ge.exec.staticMemoryPolicy": "2"}, {}, HugePageMode.NONE, 2 * MIB),
        ({"ge.exec.staticMemoryPolicy": "3"}, {}, HugePageMode.NONE, 8 * MIB),
        ({"ge.exec.staticMemoryPolicy": "4"}, {}, HugePageMode.NONE, 8 * MIB),
        ({}, {"GE_USE_STATIC_MEMORY": "3"}, HugePageMode.NONE, 8 * MIB),
        ({"ge.exec.staticMemoryPolicy": "2"}, {"GE_USE_STATIC_MEMORY": "3"}, HugePageMode.NONE, 8 * MIB),
        ({OPTION: "1", "ge.exec.staticMemoryPolicy": "4"}, {}, HugePageMode.ONLY, GIB),
    ],
)
def test_pages_follow_the_options(
    options: dict[str, str], environ: dict[str, str], mode: HugePageMode, page_bytes: int, host: HostControls
) -> None:
    host.configure(pages_1g=1)
    sessions = SessionMemAllocator(host_runtime())
    allocator = sessions.get_var_mem_allocator(1, DeviceId(0), options, environ=environ, max_bytes=GIB)
    allocator.allocate(512)
    assert allocator.mode is mode
    assert allocator.figures.physical_bytes == page_bytes
    assert live_now(host).handle_bytes == page_bytes
    allocator.close()


def test_the_mode_is_fixed_when_the_memory_is_made(host: HostControls, monkeypatch: pytest.MonkeyPatch) -> None:
    host.configure(pages_1g=2)
    sessions = SessionMemAllocator(host_runtime())
    options = {OPTION: "1"}
    allocator = sessions.get_var_mem_allocator(1, DeviceId(0), options, max_bytes=GIB)
    options[OPTION] = "0"
    monkeypatch.setenv("GE_USE_STATIC_MEMORY", "3")
    allocator.allocate(512)
    assert _used(host) == (1, 0)
    with pytest.raises(StateError, match="in mode ONLY on device 0, not FIRST"):
        sessions.get_var_mem_allocator(1, DeviceId(0), {OPTION: "2"})
    allocator.close()


@pytest.fixture
def alone() -> Iterator[None]:
    """Keep other test runs on this machine from counting its huge pages at the same time."""
    with (Path(tempfile.gettempdir()) / "gevar-huge-pages.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def giant_pages(alone: None) -> Iterator[str]:
    """Reserve a real page of 1 GiB where root can, and give it back; else say that they are emulated."""
    try:
        before = int(NR_HUGEPAGES.read_text())
        NR_HUGEPAGES.write_text(f"{before + 1}\n")
    except (OSError, ValueError):
        yield "emulated"
        return
    try:
        end = time.monotonic() + 5
        while int(NR_HUGEPAGES.read_text()) < before + 1 and time.monotonic() < end:
            time.sleep(0.05)
        yield "real" if int(NR_HUGEPAGES.read_text()) >= before + 1 else "emulated"
    finally:
        host_runtime().reset_devices()
        NR_HUGEPAGES.write_text(f"{before}\n")


def _free_giant_pages() -> int:
    return int(NR_HUGEPAGES.with_name("free_hugepages").read_text())


def test_more_real_pages_than_the_machine_has_are_refused_at_once(host: HostControls, giant_pages: str) -> None:
    """The kernel has no occasion to end the process at the first touch."""
    if giant_pages != "real":
        pytest.skip("this machine reserves no page of 1 GiB: pools of 1 GiB pages are ordinary memory")
    spare = _free_giant_pages()
    host.configure(pages_1g=spare + 1, hugetlb=True)
    with _make(HugePageMode.ONLY, (spare + 1) * GIB) as allocator:
        for _ in range(spare):
            allocator.allocate(GIB)
        with pytest.raises(MemoryShortageError, match="1 GiB pages"):
            allocator.allocate(GIB)
        assert _used(host) == (spare, 0)


def test_variables_on_pages_of_1_gib(host: HostControls, giant_pages: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run on real pages of the machine where there are any, else on emulated ones, and say which of the two."""
    with capsys.disabled():
        print(f" [pages of 1 GiB are {giant_pages}] ", end="")
    real = giant_pages == "real"
    host.configure(pages_1g=1, hugetlb=real)
    device, free = host_runtime().device(0), _free_giant_pages() if real else 0
    with _make(HugePageMode.ONLY) as allocator:
        addr = allocator.allocate(GIB, "weights")
        assert _used(host) == (1, 0)
        assert not real or _free_giant_pages() == free - 1
        for offset in (0, 12345, GIB - 16):
            device.memcpy_in(addr + offset, 16, b"a pattern of 16B")
            back = bytearray(16)
            device.memcpy_out(back, addr + offset)
            assert back == b"a pattern of 16B"
        allocator.sleep("discard")
        assert _used(host) == (0, 0)
        assert not real or _free_giant_pages() == free
        allocator.wake()
        device.memcpy_in(addr, 16, b"a pattern of 16B")
        assert _used(host) == (1, 0)
    assert not real or _free_giant_pages() == free
