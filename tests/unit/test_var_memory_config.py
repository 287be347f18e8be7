"""Sizes and logic base."""

from dataclasses import replace

import pytest

from gevar.errors import SizeOverflowError
from gevar.status import GE_GRAPH_OPTIONS_INVALID, INTERNAL_ERROR
from gevar.var import MemoryConfig

GIB = 1 << 30


def test_before_sizes_are_set() -> None:
    config = MemoryConfig()
    assert config.graph_mem_max_size == 27917287424
    assert config.var_mem_max_size == 5368709120
    assert config.use_max_mem_size == 33285996544
    assert config.var_mem_logic_base == 34359738368


@pytest.mark.parametrize(
    ("total", "graph", "var", "use"),
    [
        (GIB, 872415232, 167772160, 1040187392),
        (32 * GIB, 27917287424, 5368709120, 33285996544),
        (64 * GIB, 55834574848, 10737418240, 66571993088),
        (256 * GIB, 223338299392, 42949672960, 266287972352),
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (1000003, 812502, 156250, 968752),
    ],
)
def test_sizes_from_the_memory_of_the_device(total: int, graph: int, var: int, use: int) -> None:
    config = MemoryConfig().with_total_memory(total)
    assert (config.graph_mem_max_size, config.var_mem_max_size, config.use_max_mem_size) == (graph, var, use)
    assert config.var_mem_logic_base == 137438953472


def test_the_usable_size_is_the_sum() -> None:
    config = MemoryConfig(graph_mem_max_size=10, var_mem_max_size=7).with_all_memory_max_value()
    assert (config.use_max_mem_size, config.var_mem_logic_base) == (17, 128 * GIB)


def test_the_ceiling_is_inclusive() -> None:
    config = MemoryConfig(graph_mem_max_size=128 * GIB, var_mem_max_size=128 * GIB)
    assert config.with_all_memory_max_value().use_max_mem_size == 256 * GIB
    with pytest.raises(SizeOverflowError, match="274877906945") as caught:
        replace(config, var_mem_max_size=128 * GIB + 1).with_all_memory_max_value()
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID


def test_a_larger_device_needs_a_larger_ceiling() -> None:
    with pytest.raises(SizeOverflowError) as caught:
        MemoryConfig().with_total_memory(300 * GIB)
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID
    config = MemoryConfig().with_total_memory(300 * GIB, ceiling_bytes=512 * GIB)
    assert config.use_max_mem_size == (300 * GIB * 26 // 32) + (300 * GIB * 5 // 32)


@pytest.mark.parametrize(("graph", "var"), [((1 << 64) - 1, 0), ((1 << 64) - 32 * GIB, 0), (1 << 63, 1 << 63)])
def test_sums_beyond_64_bits(graph: int, var: int) -> None:
    config = MemoryConfig(graph_mem_max_size=graph, var_mem_max_size=var)
    with pytest.raises(SizeOverflowError) as caught:
        config.with_all_memory_max_value(ceiling_bytes=1 << 65)
    assert caught.value.status == INTERNAL_ERROR


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_values_are_unsigned_64_bit_numbers(value: int) -> None:
    with pytest.raises(ValueError, match="var_mem_logic_base is"):
        MemoryConfig(var_mem_logic_base=value)
    with pytest.raises(ValueError, match="graph_mem_max_size is"):
        MemoryConfig(graph_mem_max_size=value)


def test_a_negative_total_is_refused() -> None:
    with pytest.raises(ValueError, match="-26"):
        MemoryConfig().with_total_memory(-32)
