"""The manager of OM2 packages: exact sizes, memory of the caller's, initial data, conversions and copies, once each."""

import logging
import threading

import numpy as np
import pytest

from gevar.errors import AclError, AddressError, FormatError, StateError, VariableError
from gevar.runtime import CopyInfo, Om2RTVarManager, Om2RTVarManagerPool, RTVarEntry, RTVarResource
from gevar.runtime.om2_rt_var_manager import OM2_LOGIC_BASE
from gevar.runtime.trans_steps import convert, moves_data
from gevar.status import FAILED, PARAM_INVALID, UNSUPPORTED
from gevar.types import DataType, DevAddr, DeviceId, MemType, TensorDesc
from gevar.var.graph_tables import TransNodeInfo
from tests.helpers.var_memory import FakeMemory, make_desc

D0, D1 = DeviceId(0), DeviceId(1)
F32, F16, I8 = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_INT8
HBM = MemType.RT_MEMORY_HBM


def entry(name: str, size: int = 16, dtype: DataType = I8, *, offset: int = 0, **more: object) -> RTVarEntry:
    desc = make_desc(size, dtype, shape=(size // dtype.size_code,))
    return RTVarEntry(name, f"{name}_{dtype.name}", "Variable", OM2_LOGIC_BASE + offset, size, HBM, desc, **more)


def manager(memory: FakeMemory, *entries: RTVarEntry) -> Om2RTVarManager:
    made = Om2RTVarManager(3, memory)
    made.init(RTVarResource(entries))
    return made


def bytes_at(memory: FakeMemory, addr: DevAddr | None, size: int, device: DeviceId = D0) -> bytes:
    assert addr is not None
    value = np.empty(size, np.uint8)
    memory.memcpy_out(value, addr, device)
    return value.tobytes()


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


def test_memory_has_the_exact_size_and_no_guard(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", 17))
    addr = om2.get_var_dev_addr("v", D0)
    assert memory.mallocs == [(HBM, 17, 0)]
    assert (0, addr) in memory.blocks
    assert om2.get_var_dev_addr("v", D0) == om2.get_var_dev_addr("v_DT_INT8", D0) == addr
    other = om2.get_var_dev_addr(om2.entry("v"), D1)
    assert memory.mallocs == [(HBM, 17, 0), (HBM, 17, 1)]
    assert (om2.try_get_var_addr("v_DT_INT8", D1), om2.try_get_var_addr("w", D1)) == (other, None)
    om2.finalize()
    assert memory.blocks == {}
    assert sorted(device for _, _, device in memory.frees) == [0, 1]


def test_a_variable_that_is_not_there(memory: FakeMemory) -> None:
    with pytest.raises(VariableError, match="session 3 has no such variable") as caught:
        manager(memory).get_var_dev_addr("x", D0)
    assert caught.value.status == PARAM_INVALID


@pytest.mark.parametrize("bad", [{"var_key": ""}, {"size": -1}])
def test_bad_entries(bad: dict[str, object]) -> None:
    fields = {"var_key": "k", "size": 4, **bad}
    with pytest.raises(VariableError) as caught:
        RTVarEntry("v", fields["var_key"], "Variable", 0, fields["size"], HBM, make_desc(4))
    assert caught.value.status == PARAM_INVALID


def test_keys_that_are_there_stay_and_the_latest_key_has_the_name(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", 16))
    om2.init(RTVarResource([entry("v", 32), entry("v", 8, F32)]))
    assert om2.entry("v_DT_INT8").size == 16
    assert om2.entry("v").tensor_desc.dtype is F32


def test_initial_data_is_copied_once_for_each_device(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", init_data=b"0123456789"))
    for device in (D0, D1, D0):
        assert bytes_at(memory, om2.get_var_dev_addr("v", device), 10, device) == b"0123456789"
    assert memory.copies_in == 2


def test_initial_data_that_is_too_long(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", 4, init_data=b"12345"))
    with pytest.raises(VariableError, match="5 B and the variable 4 B") as caught:
        om2.get_var_dev_addr("v", D0)
    assert (caught.value.status, memory.blocks) == (FAILED, {})


def test_edge_29_memory_is_told_whole_and_freed_if_own(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", init_data=b"x" * 16))
    memory.fail_at = 2  # the copy
    with pytest.raises(AclError):
        om2.get_var_dev_addr("v", D0)
    assert (om2.try_get_var_addr("v_DT_INT8", D0), memory.blocks) == (None, {})
    assert bytes_at(memory, om2.get_var_dev_addr("v", D0), 16) == b"x" * 16
    region = memory.malloc_memory(HBM, "the caller's", 4096, D0)
    om2.init(RTVarResource([entry("w", 16, offset=512), entry("e", extern_dev_addr=DevAddr(77))]), region, 4096)
    assert om2.get_var_dev_addr("w", D0) == region + 512
    assert om2.get_var_dev_addr("e", D0) == 77
    om2.finalize()
    assert list(memory.blocks) == [(0, region)]


@pytest.mark.parametrize("offset", [-1, 4096 - 15, 4096, 1 << 40])
def test_a_variable_outside_memory_of_the_callers(memory: FakeMemory, offset: int) -> None:
    om2 = Om2RTVarManager(3, memory)
    om2.init(
        RTVarResource([entry("v", 16, offset=offset), entry("last", 16, offset=4096 - 16)]), DevAddr(1 << 40), 4096
    )
    assert om2.get_var_dev_addr("last", D0) == (1 << 40) + 4096 - 16
    with pytest.raises(AddressError, match="16 B of v_DT_INT8 do not lie in the 4096 B") as caught:
        om2.get_var_dev_addr("v", D0)
    assert caught.value.status == FAILED


def test_bad_memory_of_the_callers(memory: FakeMemory) -> None:
    for addr, size in ((0, 4), (5, -1)):
        with pytest.raises(ValueError, match="give an address and a size"):
            Om2RTVarManager(3, memory).init(RTVarResource(), DevAddr(addr), size)


def test_no_bytes_no_memory(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v", 0))
    for _ in range(2):
        assert om2.get_var_dev_addr("v", D0) is None
        assert om2.get_or_create_var_addr("k", D0, 0) is None
    assert memory.mallocs == []
    with pytest.raises(VariableError, match="size is -1 B"):
        om2.get_or_create_var_addr("k", D0, -1)


def test_external_weights_are_kept_by_key(memory: FakeMemory) -> None:
    om2 = manager(memory)
    addr = om2.get_or_create_var_addr("w.bin:0", D0, 100)
    assert om2.get_or_create_var_addr("w.bin:0", D0, 100) == addr
    assert om2.get_or_create_var_addr("w.bin:512", D0, 100) != addr
    with pytest.raises(VariableError, match="has 100 B on device 0, not 101 B") as caught:
        om2.get_or_create_var_addr("w.bin:0", D0, 101)
    assert caught.value.status == FAILED
    assert len(memory.mallocs) == 2


def test_many_threads_get_one_block(memory: FakeMemory) -> None:
    om2 = manager(memory, *(entry(f"v{n}", init_data=b"y" * 16) for n in range(50)))
    got: list[list[DevAddr | None]] = []
    work = lambda: got.append([om2.get_var_dev_addr(f"v{n}", D0) for n in range(50)])  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert all(one == got[0] for one in got)
    assert (len(memory.blocks), memory.copies_in) == (50, 50)


def _step(kind: str, source: TensorDesc, target: TensorDesc) -> TransNodeInfo:
    return TransNodeInfo(kind, source, target)


def _changed(kind: str = "CAST", *, changed: int = 2, allocated: int = 1) -> tuple[RTVarEntry, RTVarEntry]:
    old = entry("v", 16, F32, init_data=np.array([1, 2.5, -3, 4], np.float32).tobytes())
    new = entry("v", 8, F16)
    road = (_step("reshape", old.tensor_desc, old.tensor_desc), _step(kind, old.tensor_desc, new.tensor_desc))
    fields = {"trans_road": road, "changed_graph_id": changed, "allocated_graph_id": allocated}
    return old, entry("v", 8, F16, **fields)


def test_data_goes_through_the_road_once(memory: FakeMemory) -> None:
    om2 = manager(memory, *_changed())
    assert not om2.is_loaded("v", D0)
    assert om2.trans_all_var_data(["v"], D0, 2) == ["v"]
    addr = om2.get_var_dev_addr("v", D0)
    assert np.frombuffer(bytes_at(memory, addr, 8), np.float16).tolist() == [1, 2.5, -3, 4]
    assert (om2.is_loaded("v", D0), om2.is_loaded("v", D1)) == (True, False)
    assert om2.trans_all_var_data(["v"], D0, 2) == []
    assert om2.trans_all_var_data(["v"], D1, 2) == ["v"]


@pytest.mark.parametrize(
    ("kind", "changed", "allocated", "graph"),
    [("Cast", 2, 1, 3), ("Cast", 2, 2, 2), ("SqueezeV2", 2, 1, 2), ("UNSQUEEZEV2", 2, 1, 2)],
)
def test_what_is_not_converted(memory: FakeMemory, kind: str, changed: int, allocated: int, graph: int) -> None:
    om2 = manager(memory, *_changed(kind, changed=changed, allocated=allocated))
    assert om2.trans_all_var_data(["v"], D0, graph) == []
    assert memory.mallocs == []


def test_a_form_that_is_not_there(memory: FakeMemory) -> None:
    om2 = manager(memory, _changed()[1])
    with pytest.raises(VariableError, match="not there in format 2, type DT_FLOAT") as caught:
        om2.trans_all_var_data(["v"], D0, 2)
    assert caught.value.status == FAILED
    assert not om2.is_loaded("v", D0)


@pytest.mark.parametrize("kind", ["Transpose", "Permute", "transpose"])
def test_a_step_that_cannot_be_done(memory: FakeMemory, kind: str) -> None:
    om2 = manager(memory, *_changed(kind))
    with pytest.raises(FormatError, match=f"{kind} is no conversion that is done here") as caught:
        om2.trans_all_var_data(["v"], D0, 2)
    assert caught.value.status == UNSUPPORTED
    assert not om2.is_loaded("v", D0)


def test_edge_30_types_of_nodes_go_by_any_case() -> None:
    desc, half = make_desc(4, F32, shape=(1,)), make_desc(2, F16, shape=(1,))
    one = np.ones(1, np.float32).view(np.uint8)
    for kind in ("Cast", "CAST", "cast"):
        assert convert(one, (_step(kind, desc, half),))[0].view(np.float16).tolist() == [1]
    for kind in ("Reshape", "RESHAPE", "ReFormat", "SqueezeV2", "UNSQUEEZEV2"):
        assert convert(one, (_step(kind, desc, desc),))[0] is one
        assert not moves_data((_step(kind, desc, desc),))
    with pytest.raises(FormatError, match="5 B are not whole elements of 4 B"):
        convert(np.zeros(5, np.uint8), (_step("Cast", desc, half),))
    with pytest.raises(FormatError, match="there is no cast between these data types"):
        convert(np.zeros(4, np.uint8), (_step("Cast", desc, make_desc(1, DataType.DT_INT4, shape=(1,))),))


@pytest.mark.parametrize("dtype", [F32, F16])
def test_edge_28_copies_are_made_of_equal_types_too(memory: FakeMemory, dtype: DataType) -> None:
    source = entry("s", 16, F32, init_data=np.arange(4, dtype=np.float32).tobytes())
    copy = entry("c", 4 * dtype.size_code, dtype, copy_info=CopyInfo("s", source.tensor_desc))
    om2 = manager(memory, source, copy)
    assert om2.copy_var_data(["s", "c"], D0) == ["c"]
    value = np.frombuffer(bytes_at(memory, om2.get_var_dev_addr("c", D0), copy.size), dtype.to_numpy())
    assert value.tolist() == [0, 1, 2, 3]
    assert om2.copy_var_data(["c"], D0) == []


def test_a_source_that_is_not_there_is_passed_over(memory: FakeMemory, caplog: pytest.LogCaptureFixture) -> None:
    om2 = manager(memory, entry("c", copy_info=CopyInfo("s", make_desc(16))))
    with caplog.at_level(logging.WARNING):
        assert om2.copy_var_data(["c"], D0) == []
    assert "variable 'c' starts as a copy of 's', which session 3 does not have" in caplog.text
    assert (om2.is_loaded("c", D0), memory.mallocs) == (False, [])


def test_a_copy_that_does_not_fit(memory: FakeMemory) -> None:
    source = entry("s", 16, init_data=b"z" * 16)
    om2 = manager(memory, source, entry("c", 8, copy_info=CopyInfo("s", source.tensor_desc)))
    with pytest.raises(VariableError, match="16 B do not fit its 8 B"):
        om2.copy_var_data(["c"], D0)
    assert not om2.is_loaded("c", D0)


def test_each_call_of_a_conversion_fails_once(memory: FakeMemory) -> None:
    om2 = manager(memory, *_changed())
    for n in range(1, 20):
        memory.calls, memory.fail_at = 0, n
        try:
            om2.trans_all_var_data(["v"], D0, 2)
        except AclError:
            assert not om2.is_loaded("v", D0)
            memory.fail_at = 0
        else:
            break
    memory.fail_at = 0
    assert n >= 4
    assert np.frombuffer(bytes_at(memory, om2.get_var_dev_addr("v", D0), 8), np.float16).tolist() == [1, 2.5, -3, 4]
    om2.finalize()
    assert memory.blocks == {}


def test_finalised_memory_is_got_again(memory: FakeMemory) -> None:
    om2 = manager(memory, *_changed())
    om2.trans_all_var_data(["v"], D0, 2)
    om2.finalize()
    om2.finalize()
    assert (memory.blocks, om2.is_loaded("v", D0)) == ({}, False)
    assert om2.trans_all_var_data(["v"], D0, 2) == ["v"]


def test_finalize_frees_the_others_when_one_is_refused(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("a"), entry("b"), entry("c"))
    for name in "abc":
        om2.get_var_dev_addr(name, D0)
    memory.fail_at = memory.calls + 2
    with pytest.raises(AclError):
        om2.finalize()
    assert len(memory.frees) == 2
    assert om2.try_get_var_addr("a_DT_INT8", D0) is None


def test_the_pool_has_one_manager_for_a_session(memory: FakeMemory) -> None:
    pool = Om2RTVarManagerPool()
    one = pool.get_manager(1, memory)
    assert pool.get_manager(1, memory) is one is not pool.get_manager(2, memory)
    one.get_or_create_var_addr("k", D0, 8)
    pool.get_manager(2, memory).get_or_create_var_addr("k", D0, 8)
    pool.remove_manager(1)
    pool.remove_manager(1)
    assert len(memory.blocks) == 1
    assert pool.get_manager(1, memory) is not one
    pool.destroy()
    assert memory.blocks == {}


def test_memory_that_is_got_while_all_is_freed_goes_back(memory: FakeMemory) -> None:
    om2 = manager(memory, entry("v"))

    def finalize() -> None:
        memory.on_malloc = None
        om2.finalize()

    memory.on_malloc = finalize
    with pytest.raises(StateError, match="all memory was freed while v_DT_INT8 got some on device 0"):
        om2.get_var_dev_addr("v", D0)
    assert memory.blocks == {}
    assert om2.get_var_dev_addr("v", D0) is not None
