"""Adaptors under a variable manager: limit and tracking of variables; page records in debug."""

import io
import logging

import numpy as np
import pytest

from acl_shim import Device, Runtime
from gevar.errors import OutOfMemoryError
from gevar.memory import (
    AdaptedMemoryManager,
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    LimitingResourceAdaptor,
    LoggingResourceAdaptor,
    MemoryManager,
    TrackingResourceAdaptor,
    replay_log,
)
from gevar.types import DevAddr, DeviceId, MemType
from tests.helpers.memory_resource import FakeResource
from tests.helpers.var_memory import make_desc, make_manager

D0, D1, HBM, P2P = DeviceId(0), DeviceId(1), MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_P2P_HBM


def test_variables_are_limited_tracked_and_logged(runtime: Runtime) -> None:
    file = io.StringIO()
    with DeviceMemoryManager(runtime) as plain:
        tracked = TrackingResourceAdaptor(LoggingResourceAdaptor(plain.resource(HBM, D0), file))
        adapted: MemoryManager = AdaptedMemoryManager(plain, {(HBM, D0): LimitingResourceAdaptor(tracked, 6000)})
        vm = make_manager()
        vm.set_mem_manager(adapted)
        for name in "abc":
            vm.assign_var_mem(name, None, make_desc(1000))
        vm["a"].write(np.arange(1000, dtype=np.int8))
        assert (vm["a"].read() == np.arange(1000, dtype=np.int8)).all()
        vm["b"].dev_addr()
        with pytest.raises(OutOfMemoryError, match="raise the limit") as caught:
            vm["c"].dev_addr()
        assert "variable c_2_2" in caught.value.__notes__[0]
        assert [(holder.tag, holder.size_bytes, holder.count) for holder in tracked.holders()] == [
            ("a", 2048, 1),
            ("b", 2048, 1),
        ]
        vm.free_var_memory()
        assert (tracked.blocks(), plain.counts.live_blocks) == ([], 0)
        vm["c"].dev_addr()
        vm.destroy()
    replayed = replay_log(file.getvalue().splitlines(), FakeResource())
    assert (replayed.allocated, replayed.freed, replayed.leaked) == (3, 3, {})


def test_other_kinds_and_devices_come_from_the_manager(runtime: Runtime) -> None:
    with DeviceMemoryManager(runtime) as plain:
        resource = FakeResource()
        adapted = AdaptedMemoryManager(plain, {(HBM, D0): resource})
        mine = adapted.malloc_memory(HBM, "mine", 100, D0)
        other = adapted.malloc_memory(P2P, "other", 100, D0)
        assert resource.asked == [(100, "mine")]
        assert [block.purpose for block in plain.blocks()] == ["other"]
        adapted.memcpy_in(other, 4, b"1234", D0)
        back = bytearray(4)
        adapted.memcpy_out(back, other, D0)
        assert back == b"1234"
        adapted.free_memory(HBM, mine, D0)
        adapted.free_memory(P2P, other, D0)
        assert (resource.live, plain.counts.live_blocks) == ({}, 0)
        assert adapted.get_host_pool_memory(HBM, 0) > 0
        plain.pools.init_rdma_pool(4096, D0)
        assert adapted.get_rdma_pool_memory(HBM, 10, D0) == plain.pools.rdma_pool(HBM, D0).get_base_addr()[0]


def test_a_resource_of_another_device(runtime: Runtime) -> None:
    with (
        DeviceMemoryManager(runtime) as plain,
        pytest.raises(ValueError, match="RT_MEMORY_HBM of device 1 belongs to device 0"),
    ):
        AdaptedMemoryManager(plain, {(HBM, D1): FakeResource()})


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_pages_keep_records_in_debug(device: Device, level: int, caplog: pytest.LogCaptureFixture) -> None:
    """A block that lies on another one, which only a fault in the allocator can make, is noticed in debug."""
    with caplog.at_level(level, "gevar.memory"):
        allocator = ExpandableActiveMemoryAllocator(device, max_bytes=1 << 20)
    addr = allocator.allocate(4096)
    allocator._used -= 512
    if level == logging.DEBUG:
        with pytest.raises(AssertionError, match=r"block 3584\.\.3585 on page .* overlaps"):
            allocator.allocate(1)
    else:
        assert allocator.allocate(1) == DevAddr(addr + 3584)
    allocator.close()
