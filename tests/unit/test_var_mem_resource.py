"""Offsets in the logical space of device memory."""

from dataclasses import replace

import pytest

from gevar.errors import SizeOverflowError, StateError
from gevar.status import INTERNAL_ERROR
from gevar.types import MemType
from gevar.var import MemoryConfig
from gevar.var.logic_space import LogicSpace
from gevar.var.mem_resource import HbmMemResource, Placement, PoolMemResource, build_mem_resource

BASE = 34359738368
CONFIG = MemoryConfig()


def _assign(resource: HbmMemResource, size: int, config: MemoryConfig = CONFIG, *, holder: bool = False) -> Placement:
    placement = resource.place(size, config)
    resource.take(placement, is_place_holder=holder)
    return placement


@pytest.mark.parametrize(
    ("size", "block"),
    [
        (0, 1024),
        (1, 1536),
        (24, 1536),
        (511, 1536),
        (512, 1536),
        (513, 2048),
        (1024, 2048),
        ((1 << 32) + 1, 4294968832),
    ],
)
def test_a_block_is_data_in_units_of_512_and_1024_of_guard(size: int, block: int) -> None:
    resource = HbmMemResource(LogicSpace())
    assert _assign(resource, size) == Placement(BASE, 0, block)
    assert resource.figures.own_bytes == block
    assert _assign(resource, 4).offset == block


def test_finding_room_changes_nothing() -> None:
    resource = HbmMemResource(LogicSpace())
    assert resource.place(100, CONFIG) == resource.place(100, CONFIG)
    assert resource.figures.own_bytes == 0


def test_place_holders_are_counted_apart() -> None:
    resource = HbmMemResource(LogicSpace())
    _assign(resource, 24)
    assert _assign(resource, 24, holder=True).offset == 1536
    assert _assign(resource, 24).offset == 3072
    assert (
        resource.figures.own_bytes,
        resource.figures.const_place_holder_mem_size,
        resource.figures.var_mem_size,
    ) == (
        3072,
        1536,
        4608,
    )


def test_the_window_ends_where_the_variable_memory_ends() -> None:
    config = MemoryConfig(var_mem_max_size=2000)
    resource = HbmMemResource(LogicSpace())
    _assign(resource, 24, config)
    assert resource.place(464, config).offset == 1536  # the data ends exactly at 2000; the guard may pass it
    with pytest.raises(SizeOverflowError, match="465 B at offset 1536") as caught:
        resource.place(465, config)
    assert (caught.value.value, caught.value.limit, caught.value.status) == (2001, 2000, INTERNAL_ERROR)


@pytest.mark.parametrize("size", [(1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 510, (1 << 64) - 513])
def test_sizes_near_the_end_of_64_bits_overflow(size: int) -> None:
    resource = HbmMemResource(LogicSpace())
    with pytest.raises(SizeOverflowError) as caught:
        resource.place(size, replace(CONFIG, var_mem_max_size=(1 << 64) - 1))
    assert caught.value.status == INTERNAL_ERROR
    assert resource.figures.own_bytes == 0


def test_an_address_stays_below_63_bits() -> None:
    config = MemoryConfig(var_mem_logic_base=(1 << 63) - 4096, var_mem_max_size=(1 << 64) - 1)
    resource = HbmMemResource(LogicSpace())
    assert _assign(resource, 512, config).logic_addr == (1 << 63) - 4096
    with pytest.raises(SizeOverflowError, match="logical address"):
        resource.place(4096, config)


def test_the_base_of_the_moment_counts() -> None:
    resource = HbmMemResource(LogicSpace())
    _assign(resource, 64)
    later = replace(CONFIG, var_mem_logic_base=1 << 40)
    assert _assign(resource, 64, later) == Placement((1 << 40) + 1536, 1536, 1536)


def test_taken_space_is_stepped_over() -> None:
    space = LogicSpace()
    space.take(BASE, BASE + 1536)
    space.take(BASE + 2048, BASE + 3584)
    resource = HbmMemResource(space)
    assert _assign(resource, 512).offset == 3584
    assert resource.figures.own_bytes == 1536
    assert _assign(resource, 512).offset == 5120


def test_an_odd_end_of_taken_space_is_rounded_up() -> None:
    space = LogicSpace()
    space.take(BASE + 10, BASE + 1546)
    assert HbmMemResource(space).place(512, CONFIG).offset == 2048


def _no_pool(mem_type: MemType, size_bytes: int) -> int:
    raise StateError("no pool")


def test_kinds_of_memory() -> None:
    assert isinstance(build_mem_resource(MemType.RT_MEMORY_HBM, LogicSpace(), _no_pool), HbmMemResource)
    for mem_type in (MemType.RT_MEMORY_RDMA_HBM, MemType.RT_MEMORY_HOST):
        assert isinstance(build_mem_resource(mem_type, LogicSpace(), _no_pool), PoolMemResource)
    for mem_type in (MemType.RT_MEMORY_DEFAULT, MemType.RT_MEMORY_DDR, MemType.RT_MEMORY_RESERVED):
        with pytest.raises(ValueError, match="variables cannot be assigned in memory type"):
            build_mem_resource(mem_type, LogicSpace(), _no_pool)


def test_memory_of_a_pool_is_counted_as_it_is_asked_for() -> None:
    asked: list[tuple[MemType, int]] = []

    def pool(mem_type: MemType, size_bytes: int) -> int:
        asked.append((mem_type, size_bytes))
        return 1000 * len(asked)

    resource = build_mem_resource(MemType.RT_MEMORY_HOST, LogicSpace(), pool)
    placement = resource.place(700, CONFIG)
    assert placement == Placement(1000, 1000, 700)
    assert resource.figures.own_bytes == 0
    resource.take(placement, is_place_holder=False)
    resource.take(resource.place(9, CONFIG), is_place_holder=False)
    assert resource.figures.own_bytes == 709
    assert asked == [(MemType.RT_MEMORY_HOST, 700), (MemType.RT_MEMORY_HOST, 9)]


def test_what_a_pool_refuses_is_not_counted() -> None:
    resource = build_mem_resource(MemType.RT_MEMORY_RDMA_HBM, LogicSpace(), _no_pool)
    with pytest.raises(StateError, match="no pool"):
        resource.place(1, CONFIG)
    assert resource.figures.own_bytes == 0
