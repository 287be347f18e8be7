"""Address ranges, physical memory, mappings: on every backend that has them."""

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from acl_shim import Device, Mapping, PhysicalHandle, Reservation
from acl_shim.codes import MemAttr, MemLocationType
from acl_shim.errors import AclError, OutOfMemoryError, StateError
from acl_shim.host import HostControls
from acl_shim.memory_codes import MemAccessFlag
from tests.helpers.runtime import host_runtime, live_now

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB


@pytest.fixture(autouse=True)
def has_virtual_memory(device: Device) -> None:
    if not device.runtime.supports("aclrtReserveMemAddress"):
        pytest.skip(f"{device.runtime.path} has no virtual memory")


@pytest.fixture
def reservation(device: Device) -> Iterator[Reservation]:
    with device.reserve(8 * PAGE) as made:
        yield made


@pytest.fixture
def handle(device: Device) -> Iterator[PhysicalHandle]:
    with device.malloc_physical(PAGE) as made:
        yield made


def huge_free(device: Device) -> int:
    return device.mem_info(MemAttr.ACL_HBM_MEM_HUGE).free_bytes


class TestReserve:
    @pytest.mark.parametrize("size_bytes", [1, 512, PAGE, 3 * PAGE, 5 * GIB])
    def test_a_range_of_any_size_costs_nothing(self, device: Device, size_bytes: int) -> None:
        before = huge_free(device)
        with device.reserve(size_bytes) as made:
            assert made.addr % PAGE == 0
            assert (made.size_bytes, made.mapped_bytes, made.device) == (size_bytes, 0, device)
            assert huge_free(device) == before
        assert made.closed

    def test_a_wished_address_is_taken(self, device: Device) -> None:
        with device.reserve(16 * PAGE) as first:
            wish = first.addr
        with device.reserve(16 * PAGE, addr=wish) as second:
            assert second.addr == wish
            with pytest.raises(AclError) as caught:
                device.reserve(16 * PAGE, addr=wish)
        assert (caught.value.code, caught.value.call) == (507899, "aclrtReserveMemAddress")
        assert caught.value.arguments["addr"] == wish

    def test_a_wish_that_is_not_aligned_is_refused(self, device: Device) -> None:
        with device.reserve(PAGE) as made:
            start = made.addr
        with pytest.raises(AclError) as caught:
            device.reserve(PAGE, addr=start + 4096)
        assert caught.value.code == 107000

    @pytest.mark.parametrize("size_bytes", [0, -1])
    def test_a_size_below_one_is_refused_before_the_call(self, device: Device, size_bytes: int) -> None:
        with pytest.raises(ValueError, match=f"size_bytes is {size_bytes}"):
            device.reserve(size_bytes)

    def test_a_closed_range_refuses_every_use(self, device: Device, handle: PhysicalHandle) -> None:
        made = device.reserve(PAGE)
        made.close()
        made.close()
        for use in (lambda: made.addr, lambda: made.map(handle)):
            with pytest.raises(StateError, match=r"Reservation of 2\.00 MiB .* is closed"):
                use()


class TestMallocPhysical:
    def test_it_costs_memory_until_it_is_closed(self, device: Device) -> None:
        before = huge_free(device)
        with device.malloc_physical(3 * PAGE) as made:
            assert (made.size_bytes, made.page_bytes, made.map_count) == (3 * PAGE, PAGE, 0)
            assert huge_free(device) == before - 3 * PAGE
        assert huge_free(device) == before
        with pytest.raises(StateError, match=r"PhysicalHandle of 6\.00 MiB .* in pages of 2\.00 MiB .* is closed"):
            made.handle  # noqa: B018

    def test_pages_of_1_gib(self, device: Device) -> None:
        try:
            made = device.malloc_physical(GIB, GIB)
        except AclError as error:
            pytest.skip(f"no pages of 1 GiB: {error}")
        with made:
            assert made.page_bytes == GIB

    @pytest.mark.parametrize("size_bytes", [PAGE - 1, PAGE + 4096, 1])
    def test_a_size_that_is_no_multiple_is_refused_before_the_call(self, device: Device, size_bytes: int) -> None:
        with pytest.raises(ValueError, match=f"size_bytes is {size_bytes}: give a multiple of the page size, {PAGE} B"):
            device.malloc_physical(size_bytes)

    @pytest.mark.parametrize("page_bytes", [4096, 0, PAGE + 1])
    def test_other_pages_are_refused_before_the_call(self, device: Device, page_bytes: int) -> None:
        for allocate in (device.malloc_physical, device.map_memory):
            with pytest.raises(ValueError, match=f"page_bytes is {page_bytes}: give {PAGE}"):
                allocate(PAGE, page_bytes)

    def test_too_much_carries_the_figures(self, device: Device) -> None:
        info = device.mem_info(MemAttr.ACL_HBM_MEM_HUGE)
        wanted = info.total_bytes // PAGE * PAGE + PAGE
        with pytest.raises(OutOfMemoryError) as caught:
            device.malloc_physical(wanted)
        error = caught.value
        assert (error.call, error.requested_bytes, error.page_kind) == ("aclrtMallocPhysical", wanted, "2 MiB pages")
        assert (error.free_bytes, error.total_bytes) == (info.free_bytes, info.total_bytes)

    def test_granularity(self, device: Device) -> None:
        assert device.granularity() == PAGE
        assert device.granularity(recommended=True) % PAGE == 0


class TestMap:
    def test_mapped_memory_holds_bytes(self, device: Device, reservation: Reservation, handle: PhysicalHandle) -> None:
        content = np.random.default_rng(1).bytes(PAGE)
        with reservation.map(handle, 3 * PAGE) as mapping:
            assert (mapping.addr, mapping.size_bytes) == (reservation.addr + 3 * PAGE, PAGE)
            assert (mapping.handle, mapping.reservation, mapping.device) == (handle, reservation, device)
            mapping.copy_from(content)
            assert mapping.read() == content
            assert device.pointer_attributes(mapping.addr).location_type is (
                MemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE
            )
        with pytest.raises(StateError, match=r"Mapping of 2\.00 MiB .* is closed"):
            mapping.read(1)

    def test_one_memory_at_two_places_shows_the_same_bytes(
        self, reservation: Reservation, handle: PhysicalHandle
    ) -> None:
        with reservation.map(handle) as first, reservation.map(handle, 5 * PAGE) as second:
            assert handle.map_count == 2
            assert reservation.mapped_bytes == 2 * PAGE
            first.copy_from(b"alias")
            assert second.read(5) == b"alias"
        assert (handle.map_count, reservation.mapped_bytes) == (0, 0)

    def test_memory_keeps_its_bytes_between_maps(self, reservation: Reservation, handle: PhysicalHandle) -> None:
        with reservation.map(handle) as mapping:
            mapping.copy_from(b"kept")
        with reservation.map(handle, 2 * PAGE) as again:
            assert again.read(4) == b"kept"

    def test_a_closed_handle_lives_on_in_its_map(self, device: Device, reservation: Reservation) -> None:
        before = huge_free(device)
        handle = device.malloc_physical(PAGE)
        mapping = reservation.map(handle)
        handle.close()
        assert huge_free(device) == before - PAGE
        mapping.copy_from(b"still")
        assert mapping.read(5) == b"still"
        mapping.close()
        assert huge_free(device) == before

    def test_a_dropped_mapping_is_unmapped(self, reservation: Reservation, handle: PhysicalHandle) -> None:
        mapping = reservation.map(handle)
        del mapping
        gc.collect()
        assert (handle.map_count, reservation.mapped_bytes) == (0, 0)
        reservation.map(handle).close()

    @pytest.mark.parametrize("offset", [-PAGE, 8 * PAGE, 7 * PAGE + 1, 1 << 60])
    def test_a_piece_outside_the_range_is_refused_with_the_numbers(
        self, reservation: Reservation, handle: PhysicalHandle, offset: int
    ) -> None:
        with pytest.raises(ValueError, match=f"a piece of {PAGE} B at offset {offset} B does not fit the range of"):
            reservation.map(handle, offset)

    @pytest.mark.parametrize("offset", [4096, PAGE + 1])
    def test_a_place_that_is_not_aligned_is_refused_by_the_runtime(
        self, reservation: Reservation, handle: PhysicalHandle, offset: int
    ) -> None:
        with pytest.raises(AclError) as caught:
            reservation.map(handle, offset)
        assert (caught.value.code, caught.value.call) == (507899, "aclrtMapMem")
        assert caught.value.arguments["addr"] == reservation.addr + offset
        assert handle.map_count == 0

    def test_a_place_in_use_is_refused_and_stays(self, reservation: Reservation, handle: PhysicalHandle) -> None:
        with reservation.map(handle) as mapping:
            mapping.copy_from(b"mine")
            with pytest.raises(AclError):
                reservation.map(handle)
            assert mapping.read(4) == b"mine"
            assert handle.map_count == 1

    def test_a_closed_handle_is_not_mapped(self, device: Device, reservation: Reservation) -> None:
        handle = device.malloc_physical(PAGE)
        handle.close()
        with pytest.raises(StateError, match="PhysicalHandle"):
            reservation.map(handle)

    def test_access(self, device: Device, reservation: Reservation, handle: PhysicalHandle) -> None:
        with reservation.map(handle) as mapping:
            mapping.set_access([device.id])
            mapping.set_access([device.id])
            assert mapping.access(device.id) is MemAccessFlag.ACL_RT_MEM_ACCESS_FLAGS_READWRITE
            with pytest.raises(ValueError, match="device_ids is empty"):
                mapping.set_access([])

    def test_memory_without_access_is_refused_until_it_is_given(
        self, device: Device, reservation: Reservation, handle: PhysicalHandle
    ) -> None:
        if not device.runtime.supports("aclrtMemMapNoAccess"):
            pytest.skip("the library maps with access only")
        with reservation.map(handle, accessible=False) as mapping:
            with pytest.raises(AclError):
                mapping.copy_from(b"x")
            mapping.set_access([device.id])
            mapping.copy_from(b"x")
            assert mapping.read(1) == b"x"

    def test_the_range_of_an_address(self, device: Device, reservation: Reservation, handle: PhysicalHandle) -> None:
        with reservation.map(handle, PAGE) as mapping:
            found = device.address_range(mapping.addr + 77)
            assert (found.base, found.size_bytes) == (mapping.addr, PAGE)
        with pytest.raises(AclError):
            device.address_range(reservation.addr + PAGE)


class TestRetain:
    def test_a_second_owner_keeps_the_memory(self, device: Device, reservation: Reservation) -> None:
        before = huge_free(device)
        first = device.malloc_physical(PAGE)
        with reservation.map(first) as mapping:
            mapping.copy_from(b"shared")
            second = first.retain()
            assert second.handle == first.handle
            assert (second.size_bytes, second.page_bytes, second.map_count) == (PAGE, PAGE, 0)
        first.close()
        assert huge_free(device) == before - PAGE
        with reservation.map(second, PAGE) as mapping:
            assert mapping.read(6) == b"shared"
        second.close()
        assert huge_free(device) == before

    def test_memory_that_is_not_mapped_has_no_second_owner(self, handle: PhysicalHandle) -> None:
        with pytest.raises(StateError, match="is not mapped: map it before it is retained"):
            handle.retain()


class TestCloseOfARange:
    def test_it_unmaps_what_is_mapped(self, device: Device, handle: PhysicalHandle) -> None:
        made = device.reserve(4 * PAGE)
        mappings = [made.map(handle, number * PAGE) for number in range(3)]
        mappings[1].close()
        made.close()
        assert [mapping.closed for mapping in mappings] == [True, True, True]
        assert handle.map_count == 0
        for mapping in mappings:
            mapping.close()
        assert not any(kind == "Mapping" for kind, _ in device._enter().owned)

    @pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
    def test_every_order_of_giving_back_works(self, device: Device, order: tuple[int, ...]) -> None:
        before = huge_free(device)
        handle = device.malloc_physical(PAGE)
        made = device.reserve(PAGE)
        owners = [made.map(handle), handle, made]
        for number in order:
            owners[number].close()
        assert huge_free(device) == before
        assert not device._enter().owned

    def test_a_range_in_a_cycle_with_its_pieces_goes_as_a_whole(self, device: Device) -> None:
        handle = device.malloc_physical(PAGE)
        made = device.reserve(4 * PAGE)
        ring: list[object] = [made, made.map(handle), made.map(handle, PAGE)]
        ring.append(ring)
        del made, ring
        gc.collect()
        assert handle.map_count == 0
        handle.close()
        assert not device._enter().owned

    def test_a_mapping_keeps_its_range(self, device: Device, handle: PhysicalHandle) -> None:
        mapping = device.reserve(PAGE).map(handle)
        gc.collect()
        mapping.copy_from(b"range")
        assert mapping.read(5) == b"range"
        mapping.close()

    def test_a_device_in_use_by_a_range_is_not_reset(self, device: Device) -> None:
        with device.reserve(PAGE), pytest.raises(StateError, match="in use by 1 Reservation"):
            device.reset()


class TestMapMemory:
    @pytest.mark.parametrize(
        ("size_bytes", "piece_bytes", "pieces"),
        [(1, None, [PAGE]), (PAGE, None, [PAGE]), (5 * PAGE - 7, None, [5 * PAGE]), (5 * PAGE, 2 * PAGE, [2, 2, 1])],
    )
    def test_a_range_with_memory_behind_all_of_it(
        self, device: Device, size_bytes: int, piece_bytes: int | None, pieces: list[int]
    ) -> None:
        before = huge_free(device)
        with device.map_memory(size_bytes, piece_bytes=piece_bytes) as memory:
            whole = -(-size_bytes // PAGE) * PAGE
            assert (memory.size_bytes, memory.device, memory.closed) == (whole, device, False)
            assert huge_free(device) == before - whole
            sizes = [handle.size_bytes for handle in memory.handles]
            assert sizes == [size if size >= PAGE else size * PAGE for size in pieces]
            content = np.random.default_rng(2).bytes(whole)
            memory.copy_from(content)
            assert memory.read() == content
            assert f"in {len(pieces)} pieces on device {device.id}" in repr(memory)
        assert memory.closed
        assert repr(memory).startswith("<MappedMemory closed")
        assert huge_free(device) == before
        memory.close()

    def test_a_copy_over_the_seam_of_two_pieces(self, device: Device) -> None:
        with device.map_memory(2 * PAGE, piece_bytes=PAGE) as memory:
            memory.copy_from(b"over the seam", offset_bytes=PAGE - 4)
            assert memory.read(13, offset_bytes=PAGE - 4) == b"over the seam"

    def test_dropping_it_gives_everything_back(self, device: Device) -> None:
        before = huge_free(device)
        memory = device.map_memory(3 * PAGE, piece_bytes=PAGE)
        assert memory.addr
        del memory
        gc.collect()
        assert huge_free(device) == before
        assert not device._enter().owned

    def test_too_much_leaves_nothing(self, device: Device) -> None:
        free = huge_free(device)
        with pytest.raises(OutOfMemoryError) as caught:
            device.map_memory(free + GIB, piece_bytes=max(GIB, free // 3 // PAGE * PAGE))
        assert caught.value.call == "aclrtMallocPhysical"
        assert huge_free(device) == free
        assert not device._enter().owned

    @pytest.mark.parametrize("piece_bytes", [PAGE + 1, 4096])
    def test_a_piece_that_is_no_multiple_is_refused_before_the_call(self, device: Device, piece_bytes: int) -> None:
        with pytest.raises(ValueError, match=f"piece_bytes is {piece_bytes}"):
            device.map_memory(4 * PAGE, piece_bytes=piece_bytes)


class TestOnTheHostRuntime:
    """What the host runtime alone can show."""

    def test_a_reset_by_other_code_is_survived(self, host: HostControls) -> None:
        device = host_runtime().device(1)
        memory = device.map_memory(2 * PAGE)
        handle, reservation = device.malloc_physical(PAGE), device.reserve(PAGE)
        device.runtime.check(device.runtime.api.aclrtResetDeviceForce(device.id), "aclrtResetDeviceForce", {})
        with pytest.raises(StateError, match="was reset by other code"):
            memory.read(1)
        for owner in (memory, handle, reservation):
            owner.close()
        live = host.live()
        assert (live.reservations, live.handles, live.mappings) == (0, 0, 0)

    def test_counts(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.reserve(4 * PAGE) as made, device.malloc_physical(PAGE) as handle, made.map(handle):
            live = host.live()
            assert (live.reservations, live.reserved_bytes) == (1, 4 * PAGE)
            assert (live.handles, live.handle_bytes, live.mappings) == (1, PAGE, 1)
            assert live.devices[0].pages_2m_used == 1
        live = live_now(host)
        assert (live.reservations, live.handles, live.mappings) == (0, 0, 0)

    def test_a_driver_without_virtual_memory(self, host: HostControls) -> None:
        host.configure(virtual_memory=False)
        with pytest.raises(AclError) as caught:
            host_runtime().device().reserve(PAGE)
        assert caught.value.code == 207000

    def test_a_range_belongs_to_the_device_of_its_first_piece(self, host: HostControls) -> None:
        first, second = (host_runtime().device(number) for number in (0, 1))
        with first.reserve(4 * PAGE) as made, first.malloc_physical(PAGE) as mine:
            made.map(mine).close()
            with second.malloc_physical(PAGE) as other:
                with pytest.raises(AclError) as caught:
                    made.map(other, PAGE)
                assert (caught.value.code, caught.value.arguments["device_id"]) == (507899, 1)


CLOSERS: list[Callable[[Mapping], None]] = [Mapping.close, lambda mapping: mapping.reservation.close()]


@pytest.mark.parametrize("close", CLOSERS, ids=["mapping", "reservation"])
def test_closing_from_many_threads_unmaps_once(device: Device, close: Callable[[Mapping], None]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for _ in range(10):
        with device.malloc_physical(PAGE) as handle, device.reserve(PAGE) as made:
            mapping = made.map(handle)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _, mapping=mapping: close(mapping), range(8)))  # type: ignore[misc]
            assert mapping.closed
            assert handle.map_count == 0
