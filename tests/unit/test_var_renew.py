"""Renewing the current description of a variable, and what was called ready."""

import pytest

from gevar.errors import StateError, VariableError
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, with_init

BASE = 128 * GIB
NCHW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (1, 3, 4, 4), size=192)
OTHER = TensorDesc(
    DataType.DT_FLOAT16, Format.FORMAT_NHWC, (9, 9), origin_format=Format.FORMAT_NCHW, origin_shape=(4,), size=1
)
NHWC = NCHW.replace(format=Format.FORMAT_NHWC)


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def test_format_and_origin_format_change_and_nothing_else(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    vm.renew_cur_var_desc("v", OTHER)
    assert vm.get_cur_var_desc("v") == NHWC.replace(origin_format=Format.FORMAT_NCHW)
    assert vm.get_var_addr("v", NHWC) == BASE
    assert not vm.is_var_exist("v", NCHW)
    with pytest.raises(VariableError) as caught:
        vm.get_var_addr("v", NCHW)
    assert caught.value.status == INTERNAL_ERROR
    vm.check()


def test_the_old_form_can_be_assigned_again_in_the_same_place(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    vm.renew_cur_var_desc("v", OTHER)
    vm.renew_cur_var_desc("v", OTHER)
    assert vm.assign_var_mem("v", None, NCHW) == BASE
    assert vm.get_var_mem_size() == 1536
    assert vm.get_var_addr("v", NHWC) == BASE
    vm.check()


def test_the_worked_example_of_keys(vm: VarManager) -> None:
    vm.assign_var_mem("A", None, make_desc(24, DataType.DT_FLOAT))
    vm.renew_cur_var_desc("A", make_desc(24, DataType.DT_FLOAT, Format.FORMAT_NC1HWC0))
    with pytest.raises(VariableError, match="its current one is A_3_0"):
        vm.get_var_addr("A", make_desc(24, DataType.DT_FLOAT))


def test_a_name_that_is_not_there_is_passed_over(vm: VarManager) -> None:
    vm.renew_cur_var_desc("unknown", OTHER)
    vm.renew_cur_var_desc("unknown", op=VarOp("x", "Variable", (OTHER,)))
    vm.renew_cur_var_desc("unknown")
    assert not vm.is_var_exist("unknown")


def test_a_node_gives_its_output_0(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    vm.renew_cur_var_desc("v", op=VarOp("x", "Variable", (OTHER, NCHW)))
    assert vm.get_cur_var_desc("v") == NHWC.replace(origin_format=Format.FORMAT_NCHW)
    vm.renew_cur_var_desc("v", op=VarOp("x", "Variable"))
    assert vm.get_cur_var_desc("v") == NCHW.replace(format=Format.FORMAT_ND)
    assert vm.get_var_addr("v", NCHW.replace(format=Format.FORMAT_ND)) == BASE


def test_neither_description_nor_node_is_refused(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    with pytest.raises(VariableError, match="no description to renew it with") as caught:
        vm.renew_cur_var_desc("v")
    assert caught.value.status == FAILED
    with pytest.raises(StateError) as uninitialised:
        VarManager(1).renew_cur_var_desc("v")
    assert uninitialised.value.status == PARAM_INVALID
    with pytest.raises(ValueError, match="give one of them"):
        vm.renew_cur_var_desc("v", NCHW, op=VarOp("x", "Variable", (OTHER,)))
    assert vm.get_cur_var_desc("v") == NCHW


def test_a_batch_name_renews_its_key_name(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("w_batch_1", "w")
    vm.assign_var_mem("w_batch_1", None, NCHW)
    vm.renew_cur_var_desc("w_batch_1", OTHER)
    assert vm.get_cur_var_desc("w").format == Format.FORMAT_NHWC
    assert vm.get_var_addr("w", NHWC) == BASE


def test_a_form_of_the_same_name_is_not_overwritten(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    larger = NHWC.replace(shape=(1, 16, 4, 4), size=1024)
    vm.assign_var_mem("v", None, larger)
    with pytest.raises(VariableError, match="is there already") as caught:
        vm.renew_cur_var_desc("v", NCHW)
    assert caught.value.status == PARAM_INVALID
    assert vm.get_cur_var_desc("v") == larger
    assert vm.get_var_addr("v", NCHW) == BASE
    assert vm.get_var_addr("v", larger) == BASE + 1536
    vm.check()


def test_other_forms_keep_their_place(vm: VarManager) -> None:
    int32 = NCHW.replace(dtype=DataType.DT_INT32)
    vm.assign_var_mem("v", None, int32)
    vm.assign_var_mem("v", None, NCHW)
    vm.renew_cur_var_desc("v", OTHER)
    assert vm.get_var_addr("v", int32) == vm.get_var_addr("v", NHWC) == BASE


def test_device_memory_keeps_the_description_it_was_made_with() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("v", None, with_init(make_desc(8), b"12345678"))
    vm.renew_cur_var_desc("v", make_desc(8, fmt=Format.FORMAT_NCHW))
    assert vm["v"].read().tobytes() == b"12345678"
    vm.renew_cur_var_desc("v", make_desc(8, fmt=Format.FORMAT_NHWC))
    assert vm["v"].read().tobytes() == b"12345678"
    assert len(memory.mallocs) == 1


def test_shared_weights_are_found_after_a_renewal(vm: VarManager) -> None:
    file = VarOp("f", "FileConstant", attrs={"location": "/w", "length": 8})
    desc = make_desc(8)
    addr = vm.assign_var_mem("f", file, desc)
    vm.renew_cur_var_desc("f", desc.replace(format=Format.FORMAT_NCHW))
    assert vm.assign_var_mem("g", VarOp("g", "FileConstant", attrs=file.attrs), desc) == addr
    const = VarOp("c", "Constant", (desc,), value=b"abcdefgh")
    addr = vm.assign_var_mem("c", const, desc)
    vm.renew_cur_var_desc("c", desc.replace(format=Format.FORMAT_NCHW))
    assert vm.assign_var_mem("d", VarOp("d", "Constant", (desc,), value=b"abcdefgh"), desc) == addr


def test_ready_goes_by_device_and_key(vm: VarManager) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2,), size=8)
    assert not vm.is_var_ready("v", desc)
    vm.set_var_is_ready("v", desc)
    assert vm.is_var_ready("v", desc)
    assert vm.is_var_ready("v", desc.replace(shape=(9,), size=36))
    assert not vm.is_var_ready("v", desc, DeviceId(1))
    assert not vm.is_var_ready("v", desc.replace(format=Format.FORMAT_NCHW))
    assert not vm.is_var_ready("v", desc.replace(dtype=DataType.DT_INT32))
    assert not vm.is_var_exist("v")
    vm.set_batch_variables_key_name("v_batch_0", "v")
    assert vm.is_var_ready("v_batch_0", desc)


def test_ready_goes_with_the_renewed_form_on_every_device(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    vm.set_var_is_ready("v", NCHW)
    vm.set_var_is_ready("v", NCHW, DeviceId(3))
    vm.set_var_is_ready("u", NCHW)
    vm.renew_cur_var_desc("v", OTHER)
    for device in (DeviceId(0), DeviceId(3)):
        assert vm.is_var_ready("v", NHWC, device)
        assert not vm.is_var_ready("v", NCHW, device)
    assert vm.is_var_ready("u", NCHW)
    assert not vm.is_var_ready("v", NHWC, DeviceId(1))
    vm.renew_cur_var_desc("v", OTHER)
    assert vm.is_var_ready("v", NHWC)


@pytest.mark.parametrize("destroy", [False, True])
def test_ready_goes_with_the_memory(vm: VarManager, destroy: bool) -> None:
    vm.set_var_is_ready("v", NCHW, DeviceId(1))
    if destroy:
        vm.destroy()
        vm.init(0, 1)
    else:
        vm.free_var_memory()
    assert not vm.is_var_ready("v", NCHW, DeviceId(1))


def test_a_resolved_address_stays_with_the_renewed_form(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, NCHW)
    before = vm.get_var_memory_addr(LogicAddr(BASE))
    vm.renew_cur_var_desc("v", OTHER)
    assert vm.get_var_memory_addr(vm.get_var_addr("v", NHWC)) == before
