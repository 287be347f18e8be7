"""Versions, figures, limits and modes, reductions and variables of a device, through pyACL's facade."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from acl_shim import open_runtime
from acl_shim.errors import AclError
from acl_shim.host import HostControls
from acl_shim.pyacl import acl
from acl_shim.pyacl.acl import _face

CUBE, VECTOR = 0, 1
SUM, MAX = 10, 11
SYMBOL = 0x1234


@pytest.fixture
def rt(host: HostControls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return `acl.rt` over the host runtime, with device 0 set."""
    host.configure(cann_version="8.5.1", cube_cores=20, vector_cores=40, l2_cache_bytes=96 << 20)
    monkeypatch.setattr(_face, "_opened", open_runtime("host"))
    assert acl.rt.set_device(0) == 0
    yield acl.rt
    assert acl.rt.reset_device(0) == 0


def upload(rt: Any, values: np.ndarray) -> int:
    """Return the address of a device block that holds an array."""
    block, code = rt.malloc(values.nbytes, 0)
    assert code == 0
    assert rt.memcpy(block, values.nbytes, values.ctypes.data, values.nbytes, 1) == 0
    return int(block)


def download(rt: Any, block: int, like: np.ndarray) -> np.ndarray:
    """Return what a device block holds."""
    values = np.empty_like(like)
    assert rt.memcpy(values.ctypes.data, values.nbytes, block, values.nbytes, 2) == 0
    return values


class TestInstallation:
    def test_versions(self, rt: Any) -> None:
        assert acl.sys_get_version_str("runtime") == ("8.5.1", 0)
        assert acl.sys_get_version_num("runtime") == (80501000, 0)
        assert acl.sys_get_version_str("nothing")[1] == acl.ACL_ERROR_INVALID_FILE

    def test_abilities(self, rt: Any) -> None:
        assert [acl.get_cann_attribute(attribute) for attribute in range(3)] == [(1, 0), (1, 0), (0, 0)]
        assert acl.get_cann_attribute(3)[1] == acl.ACL_ERROR_INVALID_PARAM

    def test_compatible_products(self, rt: Any) -> None:
        assert rt.check_arch_compatibility("Ascend910B4") == (1, 0)
        assert rt.check_arch_compatibility("Ascend310P3") == (0, 0)

    def test_a_wrong_version_is_refused(self, host: HostControls) -> None:
        with pytest.raises(AclError, match=r"three numbers"):
            host.configure(cann_version="new")


class TestFigures:
    def test_cores_and_cache(self, rt: Any) -> None:
        assert [acl.get_device_capability(0, info) for info in range(3)] == [(20, 0), (40, 0), (96 << 20, 0)]
        assert rt.get_device_info(0, 101) == (20, 0)

    def test_utilization(self, rt: Any) -> None:
        info, code = rt.get_device_utilization_rate(0)
        assert (info["cubeUtilization"], info["utilizationExtend"], code) == (0, 0, 0)
        assert 0 <= info["memoryUtilization"] <= 100

    def test_memory_of_the_process(self, rt: Any) -> None:
        block, _ = rt.malloc(3 << 20, 0)
        infos, count, code = rt.get_mem_usage_info(0, 4)
        assert (count, code, infos[0]["name"]) == (1, 0, "process")
        assert infos[0]["curMemSize"] == infos[0]["memPeakSize"] == 4 << 20
        assert rt.free(block) == 0

    def test_engines_reach_registered_memory(self, rt: Any) -> None:
        assert rt.host_mem_map_capabilities(0, 6) == (1, 0)


class TestLimits:
    def test_a_device_a_stream_and_a_thread(self, rt: Any) -> None:
        stream, _ = rt.create_stream()
        assert rt.get_device_res_limit(0, CUBE) == (20, 0)
        assert rt.set_device_res_limit(0, CUBE, 10) == 0
        assert rt.set_stream_res_limit(stream, VECTOR, 4) == 0
        assert rt.get_stream_res_limit(stream, CUBE) == (10, 0)
        assert rt.get_res_in_current_thread(VECTOR) == (40, 0)
        assert rt.use_stream_res_in_current_thread(stream) == 0
        assert rt.get_res_in_current_thread(VECTOR) == (4, 0)
        assert rt.unuse_stream_res_in_current_thread(stream) == 0
        assert rt.get_res_in_current_thread(VECTOR) == (40, 0)
        assert (rt.reset_stream_res_limit(stream), rt.reset_device_res_limit(0)) == (0, 0)
        assert rt.get_stream_res_limit(stream, VECTOR) == (40, 0)
        assert rt.set_device_res_limit(0, CUBE, 21) == acl.ACL_ERROR_RT_PARAM_INVALID
        assert rt.destroy_stream(stream) == 0


class TestModes:
    def test_saturation_and_switch(self, rt: Any) -> None:
        assert rt.get_device_sat_mode() == (1, 0)
        assert rt.set_device_sat_mode(0) == 0
        assert rt.get_device_sat_mode() == (0, 0)
        assert rt.set_stream_overflow_switch(0, 1) == 0
        assert rt.get_stream_overflow_switch(0) == (1, 0)

    def test_the_status_is_zero(self, rt: Any) -> None:
        ones = np.ones(16, np.uint32)
        block = upload(rt, ones)
        assert rt.reset_overflow_status(0) == 0
        assert rt.get_overflow_status(block, 64, 0) == 0
        assert rt.synchronize_stream(0) == 0
        assert not download(rt, block, ones).any()
        assert rt.free(block) == 0

    def test_times_of_operators(self, rt: Any) -> None:
        assert rt.set_op_execute_time_out(30) == 0
        assert rt.set_op_execute_time_out_v2(1500) == (1500, 0)


class TestMemoryInOrder:
    @pytest.mark.parametrize(("data_type", "dtype"), [(0, np.float32), (1, np.float16), (3, np.int32), (2, np.int8)])
    @pytest.mark.parametrize(("kind", "combine"), [(SUM, np.add), (MAX, np.maximum)])
    def test_a_reduction_is_that_of_numpy(self, rt: Any, data_type: int, dtype: Any, kind: int, combine: Any) -> None:
        random = np.random.default_rng(7)
        first, second = (random.integers(-100, 100, 3000).astype(dtype) for _ in range(2))
        dst, src = upload(rt, first), upload(rt, second)
        assert rt.reduce_async(dst, src, first.nbytes, kind, data_type, 0, 0) == 0
        assert rt.synchronize_stream(0) == 0
        assert np.array_equal(download(rt, dst, first), combine(first, second))
        assert (rt.free(dst), rt.free(src)) == (0, 0)

    def test_cache_operations_change_nothing(self, rt: Any) -> None:
        values = np.arange(64, dtype=np.uint8)
        block = upload(rt, values)
        assert rt.cmo_async(block, 64, 0, 0) == 0
        assert (rt.mem_flush(block, 64), rt.mem_invalidate(block, 64)) == (0, 0)
        assert rt.synchronize_stream(0) == 0
        assert np.array_equal(download(rt, block, values), values)
        assert rt.free(block) == 0
        assert rt.mem_flush(block, 64) == acl.ACL_ERROR_RT_DRV_INTERNAL_ERROR

    def test_a_copy_with_a_condition(self, rt: Any) -> None:
        values = np.arange(64, dtype=np.uint8)
        block = upload(rt, np.zeros_like(values))
        assert rt.memcpy_async_with_condition(block, 64, values.ctypes.data, 64, 1, 0) == 0
        assert np.array_equal(download(rt, block, values), values)
        assert rt.free(block) == 0

    def test_stop_and_abort(self, rt: Any) -> None:
        stream, _ = rt.create_stream()
        notify, _ = rt.create_notify(0)
        block = upload(rt, np.zeros(8, np.uint8))
        assert rt.wait_and_reset_notify(notify, stream, 0) == 0
        assert rt.memset_async(block, 8, 3, 8, stream) == 0
        assert rt.synchronize_stream_with_timeout(stream, 20) == acl.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
        assert rt.stream_stop(stream) == 0
        assert rt.synchronize_stream(stream) == 0
        assert download(rt, block, np.empty(8, np.uint8)).tolist() == [3] * 8
        assert rt.wait_and_reset_notify(notify, stream, 0) == 0
        assert rt.device_task_abort(0, 10000) == 0
        assert rt.stream_query(stream) == (0, 0)
        assert (rt.destroy_notify(notify), rt.destroy_stream(stream), rt.free(block)) == (0, 0, 0)


class TestVariables:
    def test_each_device_has_its_own(self, rt: Any, host: HostControls) -> None:
        host.define_symbol(SYMBOL, 16)
        assert rt.get_symbol_size(SYMBOL) == (16, 0)
        values, seen = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
        assert rt.memcpy_to_symbol(SYMBOL, values.ctypes.data, 16, 0, 1) == 0
        assert rt.memcpy_from_symbol(seen.ctypes.data, 12, SYMBOL, 12, 4, 2) == 0
        assert seen.tolist() == [1, 2, 3, 0]
        addr, code = rt.get_symbol_address(SYMBOL)
        assert code == 0
        assert np.array_equal(download(rt, addr, values), values)
        assert rt.memcpy_to_symbol_async(SYMBOL, seen.ctypes.data, 16, 0, 1, 0) == 0
        assert rt.memcpy_from_symbol_async(values.ctypes.data, 16, SYMBOL, 16, 0, 2, 0) == 0
        assert values.tolist() == [1, 2, 3, 0]
        host.define_symbol(SYMBOL, 0)

    def test_an_unknown_symbol_is_refused(self, rt: Any, host: HostControls) -> None:
        assert rt.get_symbol_address(SYMBOL)[1] == acl.ACL_ERROR_RT_PARAM_INVALID
        with pytest.raises(AclError, match="unknown symbol"):
            host.define_symbol(SYMBOL, 0)


class TestWaysBetweenDevices:
    def test_a_block_is_mapped_to_a_peer(self, rt: Any) -> None:
        values = np.arange(64, dtype=np.uint8)
        block = upload(rt, values)
        assert rt.set_device(1) == 0
        other, _ = rt.malloc(64, 0)
        assert rt.memcpy(other, 64, block, 64, 3) == acl.ACL_ERROR_RT_DRV_INTERNAL_ERROR
        assert rt.mem_p2p_map(block, 64, 1, 0) == 0
        assert rt.memcpy(other, 64, block, 64, 3) == 0
        assert np.array_equal(download(rt, other, values), values)
        assert (rt.free(block), rt.free(other), rt.reset_device(1), rt.set_device(0)) == (0, 0, 0, 0)
        assert rt.reset_device(0) == 0

    def test_links_are_checked(self, rt: Any) -> None:
        assert rt.mem_map_set_link(0, 0) == acl.ACL_ERROR_INVALID_PARAM
        assert rt.mem_map_selected_link(0, 1, 1, 0) == acl.ACL_ERROR_INVALID_PARAM
        assert rt.ipc_mem_set_attr("x", 0, 0) == acl.ACL_ERROR_RT_DRV_INTERNAL_ERROR
