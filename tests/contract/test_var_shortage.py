"""What is said where the variables do not fit their device: fields of the error, and text for people."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from acl_shim.host import HostControls
from gevar.errors import OutOfMemoryError
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator, Holder, HugePageMode, MemoryShortageError
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager
from tests.helpers.runtime import host_runtime

MIB, GIB = 1 << 20, 1 << 30
SIZES = {"big": 20, "middle": 8, "small1": 3, "small2": 3, "small3": 3, "tiny": 1, "too large": 60}
LARGEST = ["big", "middle", "small1", "small2", "small3"]
GUARD = 1024


def _desc(mib: int) -> TensorDesc:
    return TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (mib,), size=mib * MIB)


@contextmanager
def _manager(sizes: dict[str, int]) -> Iterator[tuple[VarManager, dict[str, LogicAddr]]]:
    """A manager of variables of so many MiB, on the host runtime."""
    vm = VarManager(1)
    vm.init(0, 1)
    vm.set_memory_malloc_size(64 * GIB)
    addrs = {name: vm.assign_var_mem(name, None, _desc(size)) for name, size in sizes.items()}
    with DeviceMemoryManager(host_runtime()) as memory:
        vm.set_mem_manager(memory)
        yield vm, addrs
        vm.destroy()


def _short(vm: VarManager, addr: LogicAddr) -> MemoryShortageError:
    with pytest.raises(OutOfMemoryError) as caught:
        vm.get_var_memory_addr(addr)
    assert isinstance(caught.value, MemoryShortageError)
    assert caught.value.code == 207001
    return caught.value


def test_the_largest_variables_are_named(host: HostControls) -> None:
    host.configure(capacity_bytes=64 * MIB)
    with _manager(SIZES) as (vm, addrs):
        for name in list(SIZES)[:-1]:
            vm.get_var_memory_addr(addrs[name])
        held = vm.get_var_malloc_mem_size()
        error = _short(vm, addrs["too large"])
        assert error.held_on_device == error.report.holders
        assert error.held_on_device == tuple(Holder(name, SIZES[name] * MIB + GUARD, 1) for name in LARGEST)
        assert f"  held by 'big': 20.00 MiB ({20 * MIB + GUARD} B) in 1 blocks" in error.report.text.splitlines()
        note = error.__notes__[-1]
        assert note.startswith("6 variables hold ")
        assert f"({held} B) on device 0; the largest: big " in note
        assert [name for name in SIZES if f" {name} " in note] == LARGEST
        assert vm.get_var_malloc_mem_size() == held


def test_memory_that_grows_knows_its_variables_by_name(host: HostControls) -> None:
    """Pages of 1 GiB only: two are there, a third is not; the variables that hold them are fields of the error."""
    host.configure(pages_1g=2)
    sizes = {"one": 600, "two": 300, "three": 500, "four": 1000}
    device = host_runtime().device(0)
    only = HugePageMode.ONLY
    with (
        _manager(sizes) as (vm, addrs),
        ExpandableActiveMemoryAllocator(device, GIB, mode=only, max_bytes=8 * GIB) as grows,
    ):
        vm.set_options({"ge.variableUse1gHugePage": "1"})
        vm.init_expandable_memory_allocator(grows)
        for name in ("one", "two", "three"):
            vm.get_var_memory_addr(addrs[name])
        assert [(tag, size) for _, size, tag in grows.blocks()] == [
            (name, sizes[name] * MIB + GUARD) for name in ("one", "two", "three")
        ]
        error = _short(vm, addrs["four"])
        assert [holder.tag for holder in error.report.holders] == ["one", "three", "two"]
        assert error.held_on_device == error.report.holders
        assert "1 GiB pages only (ge.variableUse1gHugePage is 1)" in error.report.where
        giant = error.report.page_classes[-1]
        assert (giant.free_bytes, giant.total_bytes, giant.largest_free_bytes) == (0, 2 * GIB, 0)
        assert "free one, or put it to sleep" in error.report.advice
        assert [holder.size_bytes for holder in error.report.holders] == [
            sizes[name] * MIB + GUARD for name in ("one", "three", "two")
        ]


def test_after_memory_that_grows_failed_both_kinds_are_told(host: HostControls) -> None:
    """The plain error knows plain blocks; what lies in memory that grows, and why it is used no more, is told too."""
    host.configure(pages_2m=16, pages_4k_bytes=0, pages_1g=0)
    with (
        _manager({"grown": 20, "plain": 4, "last": 20}) as (vm, addrs),
        ExpandableActiveMemoryAllocator(host_runtime().device(0), max_bytes=22 * MIB) as grows,
    ):
        vm.init_expandable_memory_allocator(grows)
        vm.get_var_memory_addr(addrs["grown"])
        vm.get_var_memory_addr(addrs["plain"])  # the range has no room for it
        error = _short(vm, addrs["last"])
        assert error.report.where == "plain device memory"
        assert [holder.tag for holder in error.report.holders] == ["plain"]
        assert [holder.tag for holder in error.held_on_device] == ["grown", "plain"]
        assert any(note.startswith("variables get plain memory, since memory that grows") for note in error.__notes__)
        assert any("2 variables hold " in note for note in error.__notes__)


@pytest.mark.parametrize("name", ["a\nb", 'quo"te', "it's", "\x00", "変数", ""])
def test_odd_names_do_not_break_a_report(host: HostControls, name: str) -> None:
    host.configure(capacity_bytes=16 * MIB)
    with _manager({name: 4, "more": 64}) as (vm, addrs):
        vm.get_var_memory_addr(addrs[name])
        error = _short(vm, addrs["more"])
        assert "\n" not in str(error)
        assert len(error.report.text.splitlines()) == 2 + len(error.report.page_classes) + 1 + len(error.report.advice)
        assert error.held_on_device[0].tag == (name or "blocks without a tag")


def test_a_device_that_is_short_says_which(host: HostControls) -> None:
    host.configure(devices=2, capacity_bytes=16 * MIB)
    with _manager({"small": 4, "large": 64}) as (vm, addrs):
        vm.get_var_memory_addr(addrs["small"])
        with pytest.raises(MemoryShortageError) as caught:
            vm.get_var_memory_addr(addrs["large"], device_id=DeviceId(1))
        error = caught.value
        assert (error.device_id, error.report.device_id, error.requested_bytes) == (1, 1, 64 * MIB + GUARD)
        assert error.held_on_device == error.report.holders == ()
        assert "0 variables hold 0 B on device 1" in error.__notes__
