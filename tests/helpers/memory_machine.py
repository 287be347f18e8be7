"""Any order of taking, freeing, sleeping, waking and failing calls gives what a plain dict gives.

Two devices, each with memory that grows in a mode of its own, and pools of pages so small that they run out.
"""

import gc
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gevar.errors import AclError, StateError
from gevar.memory import ExpandableActiveMemoryAllocator, HugePageMode, SharedPagePools
from gevar.types import DevAddr
from tests.helpers.runtime import controls, host_runtime

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB
PAGES_2M = 6
COPIED_BYTES = 64 * MIB
"""Most that is copied to host memory for a sleep."""
SIZES = st.one_of(
    st.sampled_from([1, 512, 1536, PAGE - 1536, PAGE, PAGE + 1, 3 * PAGE, 5 * PAGE, GIB - PAGE, GIB]),
    st.integers(1, 3 * PAGE),
)
DEVICES = st.integers(0, 1)
CALLS = st.sampled_from(
    [
        "aclrtReserveMemAddress",
        "aclrtMallocPhysical",
        "aclrtMapMem",
        "aclrtUnmapMem",
        "aclrtReleaseMemAddress",
        "aclrtFreePhysical",
        "aclrtMemcpy",
    ]
)


class GrowingMemory(RuleBasedStateMachine):
    """The model keeps the size and the pattern of every block of each device."""

    @initialize(modes=st.tuples(*[st.sampled_from(HugePageMode)] * 2), shared=st.booleans(), pages_1g=st.integers(0, 2))
    def start(self, modes: tuple[HugePageMode, HugePageMode], shared: bool, pages_1g: int) -> None:
        self.host = controls()
        self.host.configure(devices=2, pages_2m=PAGES_2M, pages_1g=pages_1g)
        self.pools = SharedPagePools() if shared else None
        self.devices = [host_runtime().device(number) for number in range(2)]
        self.allocators = [
            ExpandableActiveMemoryAllocator(
                device,
                PAGE if mode is HugePageMode.NONE else GIB,
                mode=mode,
                max_bytes=8 * PAGE if mode is HugePageMode.NONE else 2 * GIB + PAGE,
                shared_pools=self.pools,
                is_checked=True,
            )
            for device, mode in zip(self.devices, modes, strict=True)
        ]
        self.blocks: list[dict[DevAddr, tuple[int, int]]] = [{}, {}]  # address -> (size, byte)
        self.asleep: list[str | None] = [None, None]
        self.numbers = 0

    def write(self, device: int, addr: DevAddr, size: int, byte: int) -> None:
        """Mark both ends of a block: they share pages with its neighbours."""
        edge = min(size, 600)
        self.devices[device].memcpy_in(addr, edge, bytes([byte]) * edge)
        self.devices[device].memcpy_in(addr + size - edge, edge, bytes([byte]) * edge)

    @rule(device=DEVICES, size=SIZES)
    def allocate(self, device: int, size: int) -> None:
        self.numbers += 1
        byte = self.numbers % 251 + 1
        try:
            addr = self.allocators[device].allocate(size, str(byte))
        except StateError:
            assert self.asleep[device] is not None
        except AclError:
            assert self.asleep[device] is None
        else:
            assert self.asleep[device] is None
            assert addr not in self.blocks[device]
            self.write(device, addr, size, byte)
            self.blocks[device][addr] = size, byte

    @rule(device=DEVICES, sizes=st.lists(SIZES, min_size=2, max_size=6))
    def fill(self, device: int, sizes: list[int]) -> None:
        """Take several blocks, of memory that is awake if it can be."""
        self.wake(device)
        for size in sizes:
            self.allocate(device, size)

    @rule(device=DEVICES, choices=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=4))
    def free(self, device: int, choices: list[int]) -> None:
        for choice in choices:
            known = list(self.blocks[device])
            if known and self.asleep[device] is None:
                addr = known[choice % len(known)]
                self.allocators[device].free(addr)
                del self.blocks[device][addr]

    @rule(device=DEVICES)
    def free_memory(self, device: int) -> None:
        self.allocators[device].free_memory()
        self.blocks[device] = {}
        self.asleep[device] = None

    @rule(device=DEVICES, keep=st.sampled_from(["host", "reload", "discard"]))
    def sleep(self, device: int, keep: str) -> None:
        if self.asleep[device] is None:
            keep = self.kept(device, keep)
            self.allocators[device].sleep(keep, self.reloader(device) if keep == "reload" else None)
            self.asleep[device] = keep
            assert self.allocators[device].figures.physical_bytes == 0

    def kept(self, device: int, keep: str) -> str:
        """Return the way to keep bytes, but do not copy a lot."""
        much = sum(size for size, _ in self.blocks[device].values()) > COPIED_BYTES
        return "reload" if keep == "host" and much else keep

    def reloader(self, device: int) -> Callable[[DevAddr, int, str], None]:
        def reload(addr: DevAddr, size: int, tag: str) -> None:
            assert self.blocks[device][addr] == (size, int(tag))
            self.write(device, addr, size, int(tag))

        return reload

    @rule(device=DEVICES)
    def wake(self, device: int) -> None:
        try:
            self.allocators[device].wake()
        except AclError:
            return
        self.host.clear_failures()
        if self.asleep[device] == "discard":
            for addr, (size, byte) in self.blocks[device].items():
                self.write(device, addr, size, byte)
        self.asleep[device] = None

    @rule(device=DEVICES, size=SIZES, call=CALLS, n=st.integers(1, 4), keep=st.sampled_from(["host", "reload"]))
    def fail_a_call(self, device: int, size: int, call: str, n: int, keep: str) -> None:
        """Fail a call of the next operation; what it says decides what the model does."""
        allocator = self.allocators[device]
        operation = self.numbers % 4
        self.host.fail_nth(call, n, 507899)
        try:
            if self.asleep[device] is not None:
                self.wake(device)
            elif operation == 0:
                keep = self.kept(device, keep)
                allocator.sleep(keep, self.reloader(device) if keep == "reload" else None)
                self.asleep[device] = keep
            elif operation == 1 and self.blocks[device]:
                addr = min(self.blocks[device])
                allocator.free(addr)
                del self.blocks[device][addr]
            elif operation == 2:
                self.free_all_with_failure(device)
            else:
                addr = allocator.allocate(size, str(byte := self.numbers % 251 + 1))
                self.host.clear_failures()
                self.write(device, addr, size, byte)
                self.blocks[device][addr] = size, byte
        except AclError:
            pass
        finally:
            self.host.clear_failures()
            self.numbers += 1

    def free_all_with_failure(self, device: int) -> None:
        """Free all; the failure leaves all blocks, or none where only a shared page could not go back."""
        allocator, before = self.allocators[device], len(self.blocks[device])
        try:
            allocator.free_memory()
        except AclError:
            left = len(allocator.blocks())
            assert left == before or (left == 0 and self.pools is not None)
            if left:
                return
        self.blocks[device] = {}

    @precondition(lambda self: hasattr(self, "allocators"))
    @invariant()
    def blocks_are_those_of_the_model(self) -> None:
        for device, allocator in enumerate(self.allocators):
            model, end = self.blocks[device], 0
            assert {addr: size for addr, size, _ in allocator.blocks()} == {a: size for a, (size, _) in model.items()}
            for addr, size, tag in allocator.blocks():
                assert addr >= end
                assert tag == str(model[addr][1])
                end = addr + size
            statistics = allocator.statistics
            assert statistics.current_bytes == sum(size for size, _ in model.values())
            assert statistics.current_count == len(model)
            assert allocator.figures.is_asleep == (self.asleep[device] is not None)
            if self.asleep[device] is None:
                self.check_bytes(device)

    def check_bytes(self, device: int) -> None:
        for addr, (size, byte) in self.blocks[device].items():
            edge = bytearray(min(size, 600))
            for at in (addr, addr + size - len(edge)):
                self.devices[device].memcpy_out(edge, at)
                assert edge == bytes([byte]) * len(edge)

    @precondition(lambda self: hasattr(self, "allocators"))
    @invariant()
    def pages_are_those_of_the_blocks(self) -> None:
        live = self.host.live()
        held = sum(allocator.figures.physical_bytes for allocator in self.allocators)
        for allocator in self.allocators:
            pages = [] if allocator._table is None else list(allocator._table.pages())
            there = sum(page.pool.page_bytes for page in pages if page.handle)
            assert allocator.figures.physical_bytes == there
        waiting = 0
        if self.pools is not None:
            for device in self.devices:
                for page_bytes in (PAGE, GIB):
                    waiting += self.pools.pool(device, page_bytes).statistics.free_pages * page_bytes
        assert held <= live.handle_bytes
        if self.pools is not None:
            assert live.handle_bytes == held + waiting
        assert live.reservations == sum(allocator.figures.reserved_bytes > 0 for allocator in self.allocators)

    def teardown(self) -> None:
        if hasattr(self, "allocators"):
            for allocator in self.allocators:
                allocator.close()
            live = self.host.live()
            assert (live.handles, live.mappings, live.reservations, live.blocks) == (0, 0, 0, 0)
            gc.collect()
            host_runtime().reset_devices()
