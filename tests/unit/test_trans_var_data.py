"""Conversion of a variable's bytes along its road, when a graph is loaded."""

import logging
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest

from acl_shim.host_memory import HostBuffer, read_access
from gevar.errors import AclError, VariableError
from gevar.runtime.trans_var_data import trans_all_var_data
from gevar.status import INTERNAL_ERROR
from gevar.types import DataType, DevAddr, DeviceId, Format, TensorDesc
from gevar.types.format import format_from_c0
from gevar.var import LoadState, TransNodeInfo, VarManager, VarOp
from tests.helpers.var_memory import FakeMemory, make_manager

ZERO = DeviceId(0)
GRAPH, OTHER = 7, 3
C0_16 = 5
SHAPE = (1, 3, 2, 2)
NCHW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, SHAPE, size=48)
HALF = NCHW.replace(dtype=DataType.DT_FLOAT16, size=24)
FIVE = HALF.replace(format=format_from_c0(Format.FORMAT_NC1HWC0, C0_16), shape=(1, 1, 2, 2, 16), size=128)
ROAD = [TransNodeInfo("Cast", NCHW, HALF), TransNodeInfo("TransData", HALF, FIVE)]
HALVE = ROAD[:1]
VALUES = np.arange(12, dtype=np.float32).reshape(SHAPE) - 5


def _op(name: str = "v", op_type: str = "Variable") -> VarOp:
    return VarOp(name, op_type)


def _changed(memory: FakeMemory, road: list[TransNodeInfo], values: npt.NDArray[np.float32] = VALUES) -> VarManager:
    """A manager whose variable has bytes in the form before its road, and a place in the form after it."""
    vm = make_manager(memory)
    vm.assign_var_mem("v", None, road[0].input)
    vm.set_allocated_graph_id("v", OTHER)
    vm["v"].write(values)
    vm.set_trans_road("v", road)
    vm.set_changed_graph_id("v", GRAPH)
    vm.assign_var_mem("v", None, road[-1].output)
    return vm


def _read(vm: VarManager, desc: TensorDesc) -> bytes:
    data = np.empty(desc.size, np.uint8)
    vm.read_var_memory(vm.get_var_addr("v", desc), data)
    return data.tobytes()


def _expected() -> bytes:
    """NC1HWC0 by hand: channels are the innermost, 13 of 16 are padding."""
    stored = np.zeros((1, 1, 2, 2, 16), np.float16)
    stored[0, 0, :, :, :3] = VALUES[0].transpose(1, 2, 0)
    return stored.tobytes()


def test_a_road_of_two_steps() -> None:
    vm = _changed(FakeMemory(), ROAD)
    assert trans_all_var_data(vm, [None, _op("w", "VariableV2"), _op(), _op()], ZERO, GRAPH) == ["v"]
    assert _read(vm, FIVE) == _expected()
    assert vm.get_changed_graph_id("v") is None
    assert vm.get_var_load_state(vm.get_var_addr("v", FIVE)) is LoadState.LOADED
    assert trans_all_var_data(vm, [_op()], ZERO, GRAPH) == []


def test_a_road_back_brings_the_values_again() -> None:
    back = [TransNodeInfo("TransData", FIVE, HALF), TransNodeInfo("Cast", HALF, NCHW)]
    vm = make_manager(FakeMemory())  # the first road of a variable stays, so the way back has a manager of its own
    vm.assign_var_mem("v", None, FIVE)
    vm.set_allocated_graph_id("v", OTHER)
    vm.write_var_memory(vm.get_var_addr("v", FIVE), np.frombuffer(_expected(), np.uint8))
    assert vm.set_trans_road("v", back)
    vm.set_changed_graph_id("v", GRAPH)
    vm.assign_var_mem("v", None, NCHW)
    assert trans_all_var_data(vm, [_op()], ZERO, GRAPH) == ["v"]
    assert _read(vm, NCHW) == VALUES.tobytes()


@pytest.mark.parametrize("road", [ROAD, HALVE], ids=["in another block", "in its own block"])
def test_each_call_fails_once_and_the_old_bytes_stay(road: list[TransNodeInfo]) -> None:
    for number in count(1):
        memory = FakeMemory()
        vm = _changed(memory, road)
        assert (vm.get_var_addr("v", NCHW) == vm.get_var_addr("v", road[-1].output)) == (road is HALVE)
        memory.fail_at = memory.calls + number
        try:
            trans_all_var_data(vm, [_op()], ZERO, GRAPH)
        except AclError:
            memory.fail_at = 0
            assert _read(vm, NCHW) == VALUES.tobytes()
            assert vm.get_changed_graph_id("v") == GRAPH
            assert trans_all_var_data(vm, [_op()], ZERO, GRAPH) == ["v"]
            continue
        break
    assert number > 2


class _Torn(FakeMemory):
    """Memory whose copies to it write half when they fail; `refusals` says how many of them will."""

    refusals = 0

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        if self.refusals:
            self.refusals -= 1
            with read_access(data) as memory:
                super().memcpy_in(dev_addr, max_bytes, bytes(memory.size_bytes // 2), device_id)
            raise AclError(507899, "memcpy_in", {})
        super().memcpy_in(dev_addr, max_bytes, data, device_id)


@pytest.mark.parametrize("refusals", [1, 2])
def test_bytes_that_came_in_part_are_taken_back(refusals: int) -> None:
    memory = _Torn()
    vm = _changed(memory, HALVE)
    memory.refusals = refusals
    with pytest.raises(AclError) as caught:
        trans_all_var_data(vm, [_op()], ZERO, GRAPH)
    if refusals == 1:
        assert _read(vm, NCHW) == VALUES.tobytes()
    else:
        assert "its old 48 B could not be written again" in "".join(caught.value.__notes__)


def test_a_warning_names_variable_and_losses(caplog: pytest.LogCaptureFixture) -> None:
    values = VALUES.copy()
    values[0, 0, 0] = 1e30, np.nan
    vm = _changed(FakeMemory(), HALVE, values)
    with caplog.at_level(logging.WARNING):
        trans_all_var_data(vm, [_op()], ZERO, GRAPH)
    assert "variable 'v' was cast: 1 elements saturated, 0 wrapped, 1 NaN" in caplog.text
    assert np.isfinite(vm["v"].read()).all()


def test_infinity_and_nan_stay_where_they_are_asked_to() -> None:
    values = VALUES.copy()
    values[0, 0, 0] = 1e30, np.nan
    vm = _changed(FakeMemory(), HALVE, values)
    trans_all_var_data(vm, [_op()], ZERO, GRAPH, on_loss="ieee")
    assert np.isinf(vm["v"].read()[0, 0, 0, 0])
    assert np.isnan(vm["v"].read()[0, 0, 0, 1])


def test_losses_are_refused_where_they_are_asked_to() -> None:
    values = VALUES.copy()
    values[0, 0, 0, 0] = 1e30
    vm = _changed(FakeMemory(), ROAD, values)
    with pytest.raises(VariableError, match=r"'v': its road cannot be gone: .*1 values would be lost") as caught:
        trans_all_var_data(vm, [_op()], ZERO, GRAPH, on_loss="raise")
    assert caught.value.status == INTERNAL_ERROR
    assert _read(vm, NCHW) == values.tobytes()
    assert vm.get_changed_graph_id("v") == GRAPH


def test_the_place_of_the_last_form_is_needed() -> None:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("v", None, NCHW)
    vm.set_allocated_graph_id("v", OTHER)
    vm["v"].write(VALUES)
    vm.set_trans_road("v", ROAD)
    vm.set_changed_graph_id("v", GRAPH)
    with pytest.raises(VariableError, match=r"'v': it is not there in the form NC1HWC0 .*DT_FLOAT16") as caught:
        trans_all_var_data(vm, [_op()], ZERO, GRAPH)
    assert caught.value.status == INTERNAL_ERROR


def test_many_variables_at_once() -> None:
    vm = make_manager(FakeMemory())
    for number in range(40):
        name = f"v{number}"
        vm.assign_var_mem(name, None, NCHW)
        vm.set_allocated_graph_id(name, OTHER)
        vm[name].write(VALUES + number)
        vm.set_trans_road(name, HALVE)
        vm.set_changed_graph_id(name, GRAPH)
        vm.assign_var_mem(name, None, HALF)
    names = [f"v{number}" for number in range(40)]
    assert trans_all_var_data(vm, map(_op, names), ZERO, GRAPH) == names
    for number, name in enumerate(names):
        assert vm[name].read().tolist() == (VALUES + number).tolist()
