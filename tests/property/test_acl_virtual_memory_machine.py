"""Any order of reserving, allocating, mapping, copying and closing gives what plain dictionaries of bytes give."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from acl_shim import Mapping, PhysicalHandle, Reservation
from acl_shim.errors import AclError, StateError
from tests.helpers.runtime import controls, host_runtime

PAGE = 2 << 20
PAGES = st.integers(1, 3)


class VirtualMemory(RuleBasedStateMachine):
    """Ranges, handles and maps of one device; the model keeps the first bytes of each page of each handle."""

    ranges = Bundle("ranges")
    handles = Bundle("handles")
    maps = Bundle("maps")

    def __init__(self) -> None:
        super().__init__()
        self.device = host_runtime().device()
        self.open_ranges: dict[int, Reservation] = {}
        self.open_handles: dict[int, PhysicalHandle] = {}
        self.open_maps: dict[int, Mapping] = {}
        self.bytes: dict[int, list[int | None]] = {}  # id of the handle -> first byte of each page
        self.kept: list[object] = []  # ids stay unique while the objects live

    @rule(target=ranges, pages=st.integers(1, 8))
    def reserve(self, pages: int) -> Reservation:
        made = self.device.reserve(pages * PAGE)
        self.open_ranges[id(made)] = made
        self.kept.append(made)
        return made

    @rule(target=handles, pages=PAGES)
    def malloc_physical(self, pages: int) -> PhysicalHandle:
        made = self.device.malloc_physical(pages * PAGE)
        self.open_handles[id(made)] = made
        self.bytes[id(made)] = [None] * pages
        self.kept.append(made)
        return made

    def taken(self, reservation: Reservation, first: int, pages: int) -> bool:
        """Return whether the model has a map on one of these pages."""
        wanted = set(range(first, first + pages))
        for mapping in self.open_maps.values():
            if mapping.reservation is reservation:
                start = (mapping.addr - reservation.addr) // PAGE
                if wanted & set(range(start, start + mapping.size_bytes // PAGE)):
                    return True
        return False

    @rule(target=maps, reservation=ranges, handle=handles, first=st.integers(0, 7))
    def map(self, reservation: Reservation, handle: PhysicalHandle, first: int) -> Mapping | None:
        pages = handle.size_bytes // PAGE
        if id(reservation) not in self.open_ranges or id(handle) not in self.open_handles:
            with pytest.raises((StateError, ValueError)):
                reservation.map(handle, first * PAGE)
            return None
        if (first + pages) * PAGE > reservation.size_bytes:
            with pytest.raises(ValueError, match="does not fit the range"):
                reservation.map(handle, first * PAGE)
            return None
        if self.taken(reservation, first, pages):
            with pytest.raises(AclError, match="aclrtMapMem"):
                reservation.map(handle, first * PAGE)
            return None
        made = reservation.map(handle, first * PAGE)
        self.open_maps[id(made)] = made
        self.kept.append(made)
        return made

    @rule(mapping=maps, page=st.integers(0, 2), value=st.integers(0, 255))
    def write(self, mapping: Mapping | None, page: int, value: int) -> None:
        if mapping is None or id(mapping) not in self.open_maps or page * PAGE >= mapping.size_bytes:
            return
        mapping.copy_from(bytes([value]), offset_bytes=page * PAGE)
        self.bytes[id(mapping.handle)][page] = value

    @rule(mapping=maps)
    def read(self, mapping: Mapping | None) -> None:
        if mapping is None:
            return
        if id(mapping) not in self.open_maps:
            with pytest.raises(StateError):
                mapping.read(1)
            return
        for page, value in enumerate(self.bytes[id(mapping.handle)]):
            if value is not None:
                assert mapping.read(1, offset_bytes=page * PAGE) == bytes([value])

    @rule(mapping=consumes(maps))
    def unmap(self, mapping: Mapping | None) -> None:
        if mapping is not None:
            mapping.close()
            self.open_maps.pop(id(mapping), None)

    @rule(reservation=consumes(ranges))
    def release(self, reservation: Reservation) -> None:
        reservation.close()
        self.open_ranges.pop(id(reservation))
        for key, mapping in list(self.open_maps.items()):
            if mapping.reservation is reservation:
                assert mapping.closed
                del self.open_maps[key]

    @rule(handle=consumes(handles))
    def free(self, handle: PhysicalHandle) -> None:
        handle.close()
        self.open_handles.pop(id(handle))

    @invariant()
    def the_runtime_has_what_the_model_has(self) -> None:
        live = controls().live()
        alive = set(self.open_handles) | {id(mapping.handle) for mapping in self.open_maps.values()}
        assert (live.reservations, live.mappings) == (len(self.open_ranges), len(self.open_maps))
        assert live.handles == len(alive)
        assert live.devices[0].pages_2m_used == sum(len(self.bytes[key]) for key in alive)

    @invariant()
    def maps_are_counted(self) -> None:
        for key, handle in self.open_handles.items():
            mapped = [mapping for mapping in self.open_maps.values() if id(mapping.handle) == key]
            assert handle.map_count == len(mapped)
        for reservation in self.open_ranges.values():
            mapped = [mapping for mapping in self.open_maps.values() if mapping.reservation is reservation]
            assert reservation.mapped_bytes == sum(mapping.size_bytes for mapping in mapped)

    def teardown(self) -> None:
        for owner in (*self.open_maps.values(), *self.open_ranges.values(), *self.open_handles.values()):
            owner.close()
        self.device.reset()


TestVirtualMemory = VirtualMemory.TestCase
TestVirtualMemory.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
