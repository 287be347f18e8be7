"""Graphs and variables: conversions, changed and first graphs, staged descriptions, broadcasts, all variables."""

from collections.abc import Callable

import pytest

from gevar.errors import StateError
from gevar.status import INTERNAL_ERROR
from gevar.types import DataType, Format, TensorDesc
from gevar.var import TransNodeInfo, VarBroadCastInfo, VarManager
from tests.helpers.var_memory import make_desc, make_manager

NCHW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (1, 16, 4, 4), size=1024)
NC1HWC0 = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NC1HWC0, (1, 1, 4, 4, 16), size=1024)
HALF = NC1HWC0.replace(dtype=DataType.DT_FLOAT16, size=512)
ROAD = (TransNodeInfo("TransData", NCHW, NC1HWC0), TransNodeInfo("Cast", NC1HWC0, HALF))
INFO = VarBroadCastInfo("v", "hcom", 0, 0, 512, 1024, 512)


@pytest.fixture
def vm() -> VarManager:
    return make_manager()


@pytest.mark.parametrize(
    "call",
    [
        lambda vm: vm.renew_cur_var_desc("v", NCHW),
        lambda vm: vm.record_staged_var_desc(1, "v", NCHW),
        lambda vm: vm.save_broad_cast_info(1, INFO),
        lambda vm: vm.set_trans_road("v", ROAD),
        lambda vm: vm.set_changed_graph_id("v", 1),
        lambda vm: vm.get_changed_graph_id("v"),
        lambda vm: vm.set_allocated_graph_id("v", 1),
        lambda vm: vm.get_allocated_graph_id("v"),
        lambda vm: vm.get_all_variables(),
    ],
)
def test_before_init_is_an_internal_error(call: Callable[[VarManager], object]) -> None:
    with pytest.raises(StateError, match="not initialised: call init") as caught:
        call(VarManager(1))
    assert caught.value.status == INTERNAL_ERROR


def test_before_init_there_is_nothing() -> None:
    vm = VarManager(1)
    assert vm.get_staged_var_descs(1) == {}
    assert vm.get_trans_road("v") is None
    assert vm.get_changed_var_names(1) == set()
    assert vm.get_broad_cast_info(1, "v") is None
    vm.remove_changed_graph_id("v")
    vm.set_var_is_ready("v", NCHW)
    vm.init(0, 1)
    assert not vm.is_var_ready("v", NCHW)


def test_the_first_road_stays(vm: VarManager) -> None:
    assert vm.get_trans_road("v") is None
    assert vm.set_trans_road("v", iter(ROAD))
    assert not vm.set_trans_road("v", ROAD[1:])
    assert vm.get_trans_road("v") == ROAD
    assert vm.set_trans_road("e", [])
    assert not vm.set_trans_road("e", [])
    assert not vm.set_trans_road("e", ROAD)
    assert vm.get_trans_road("e") == ()


def test_a_road_goes_by_the_batch_key_name(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("w_batch_1", "w")
    vm.set_trans_road("w_batch_1", ROAD)
    assert vm.get_trans_road("w") == ROAD


def test_all_variables_are_told_as_they_were_before_the_road(vm: VarManager) -> None:
    vm.set_trans_road("v", ROAD)
    vm.set_trans_road("e", [])
    for name, desc in (("v", HALF), ("e", NC1HWC0), ("n", NCHW)):
        vm.assign_var_mem(name, None, desc)
    assert vm.get_all_variables() == {"v": NCHW, "e": NC1HWC0, "n": NCHW}
    assert vm.get_cur_var_desc("v") == HALF


def test_the_list_looks_a_road_up_under_the_key_name_of_a_key_name(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("x", "y")
    vm.set_batch_variables_key_name("y", "z")
    vm.assign_var_mem("x", None, NC1HWC0)
    vm.set_trans_road("y", ROAD)
    assert vm.get_trans_road("x") is None
    assert vm.get_all_variables() == {"y": NCHW}


def test_changed_graphs_are_kept_both_ways(vm: VarManager) -> None:
    assert vm.get_changed_graph_id("v") is None
    vm.set_changed_graph_id("v", 1)
    vm.set_changed_graph_id("w", 1)
    vm.set_changed_graph_id("z", 0)
    vm.set_changed_graph_id("v", 1)
    assert vm.get_changed_graph_id("v") == 1
    assert vm.get_changed_graph_id("z") == 0
    assert vm.get_changed_var_names(1) == {"v", "w"}
    vm.set_changed_graph_id("v", 2)
    assert vm.get_changed_graph_id("v") == 2
    assert vm.get_changed_var_names(1) == {"w"}
    assert vm.get_changed_var_names(2) == {"v"}
    vm.remove_changed_graph_id("v")
    assert vm.get_changed_graph_id("v") is None
    assert vm.get_changed_var_names(2) == set()
    vm.remove_changed_graph_id("v")
    vm.remove_changed_graph_id("never")
    assert vm.get_changed_var_names(0) == {"z"}


def test_changed_graphs_go_by_the_batch_key_name(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("b0", "k")
    vm.set_changed_graph_id("b0", 5)
    assert vm.get_changed_graph_id("b0") == vm.get_changed_graph_id("k") == 5
    assert vm.get_changed_var_names(5) == {"k"}
    vm.set_changed_graph_id("k", 6)
    assert vm.get_changed_graph_id("b0") == 6
    vm.remove_changed_graph_id("b0")
    assert vm.get_changed_graph_id("k") is None
    assert vm.get_changed_var_names(6) == set()


def test_what_is_returned_is_the_callers(vm: VarManager) -> None:
    vm.set_changed_graph_id("v", 1)
    vm.get_changed_var_names(1).add("x")
    assert vm.get_changed_var_names(1) == {"v"}
    vm.record_staged_var_desc(1, "v", NCHW)
    vm.get_staged_var_descs(1).clear()
    assert vm.get_staged_var_descs(1) == {"v": NCHW}
    road = list(ROAD)
    vm.set_trans_road("v", road)
    road.clear()
    assert vm.get_trans_road("v") == ROAD


def test_the_first_graph_stays(vm: VarManager) -> None:
    assert vm.get_allocated_graph_id("v") is None
    assert vm.set_allocated_graph_id("v", 7)
    assert not vm.set_allocated_graph_id("v", 8)
    assert vm.get_allocated_graph_id("v") == 7
    assert vm.set_allocated_graph_id("u", 0)
    assert not vm.set_allocated_graph_id("u", 4294967295)
    assert vm.get_allocated_graph_id("u") == 0
    assert vm.set_allocated_graph_id("m", 4294967295)
    assert vm.get_allocated_graph_id("m") == 4294967295


def test_the_first_graph_goes_by_the_batch_key_name(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("w_batch_1", "w")
    assert vm.set_allocated_graph_id("w_batch_1", 3)
    assert not vm.set_allocated_graph_id("w", 4)
    assert vm.get_allocated_graph_id("w") == 3


@pytest.mark.parametrize("graph_id", [-1, 1 << 32])
def test_graph_ids_are_unsigned_32_bit_numbers(vm: VarManager, graph_id: int) -> None:
    for call in (
        lambda: vm.set_changed_graph_id("v", graph_id),
        lambda: vm.set_allocated_graph_id("v", graph_id),
        lambda: vm.record_staged_var_desc(graph_id, "v", NCHW),
        lambda: vm.save_broad_cast_info(graph_id, INFO),
    ):
        with pytest.raises(ValueError, match=r"give a number in 0\.\.4294967295"):
            call()
    assert vm.get_changed_graph_id("v") is None
    assert vm.get_allocated_graph_id("v") is None


def test_staged_descriptions_go_by_graph_and_name_as_given(vm: VarManager) -> None:
    vm.record_staged_var_desc(1, "b", NCHW)
    vm.record_staged_var_desc(1, "a", make_desc(24))
    vm.record_staged_var_desc(2, "a", NCHW)
    vm.record_staged_var_desc(1, "b", HALF)
    assert vm.get_staged_var_descs(1) == {"a": make_desc(24), "b": HALF}
    assert vm.get_staged_var_descs(2) == {"a": NCHW}
    vm.set_batch_variables_key_name("bb", "a")
    vm.record_staged_var_desc(3, "bb", NCHW)
    assert vm.get_staged_var_descs(3) == {"bb": NCHW}
    assert not vm.is_var_exist("a")


def test_the_last_broadcast_of_a_variable_counts(vm: VarManager) -> None:
    again = VarBroadCastInfo("v", "hcom9", -9, -512, (1 << 64) - 1, -1, 0)
    vm.save_broad_cast_info(1, INFO)
    vm.save_broad_cast_info(2, INFO)
    vm.save_broad_cast_info(1, again)
    assert vm.get_broad_cast_info(1, "v") == again
    assert vm.get_broad_cast_info(2, "v") == INFO
    assert vm.get_broad_cast_info(1, "w") is None
    assert vm.get_broad_cast_info(3, "v") is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("idx", 1 << 31),
        ("idx", -(1 << 31) - 1),
        ("input_offset", 1 << 63),
        ("output_offset", -(1 << 63) - 1),
        ("input_size", -1),
        ("output_size", 1 << 64),
    ],
)
def test_a_broadcast_holds_what_the_integers_hold(field: str, value: int) -> None:
    fields = {"idx": 0, "input_offset": 0, "input_size": 0, "output_offset": 0, "output_size": 0, field: value}
    with pytest.raises(ValueError, match=f"{field} of the broadcast of 'v' is {value}"):
        VarBroadCastInfo("v", "hcom", **fields)


def test_destroy_forgets_what_graphs_did(vm: VarManager) -> None:
    vm.set_trans_road("v", ROAD)
    vm.set_changed_graph_id("v", 1)
    vm.set_allocated_graph_id("v", 1)
    vm.record_staged_var_desc(1, "v", NCHW)
    vm.save_broad_cast_info(1, INFO)
    vm.destroy()
    vm.init(0, 1)
    assert vm.get_trans_road("v") is None
    assert vm.get_changed_graph_id("v") is None
    assert vm.get_changed_var_names(1) == set()
    assert vm.get_allocated_graph_id("v") is None
    assert vm.get_staged_var_descs(1) == {}
    assert vm.get_broad_cast_info(1, "v") is None
