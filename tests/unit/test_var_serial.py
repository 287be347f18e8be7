"""Storing a manager in a message and restoring it."""

import logging

import pytest

from gevar.errors import AddressError, ModelFileError, StateError, VariableError
from gevar.proto import var_manager
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, TensorDesc
from gevar.var import LoadState, MemoryConfig, SessionVersion, VarManager, VarOp
from tests.helpers.child import expect_output
from tests.helpers.var_memory import (
    GIB,
    FakeMemory,
    constant,
    file_constant,
    make_desc,
    make_manager,
    place_holder,
    with_init,
)
from tests.helpers.var_states import (
    BASE,
    D0,
    D3,
    HBM,
    HOLDER,
    HOST,
    INFO,
    NC1HWC0,
    NCHW,
    RDMA,
    ROAD,
    WEIGHT,
    full_manager,
    restored,
    state_bytes,
)


@pytest.fixture
def vm() -> VarManager:
    return full_manager()


def test_before_init_there_is_no_state() -> None:
    for call in (VarManager(1).var_manager_to_serial, VarManager(1).var_desc_info_to_serial):
        with pytest.raises(StateError, match="not initialised") as caught:
            call()
        assert caught.value.status == INTERNAL_ERROR


def test_the_message_of_one_variable() -> None:
    vm = make_manager()
    vm.assign_var_mem("v", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=24))
    info = vm.var_manager_to_serial(extension=False)
    assert not info.HasField("gevar")
    assert (info.version, info.session_id, info.device_id, info.job_id) == (0, 1, 0, 0)
    assert (info.graph_mem_max_size, info.var_mem_max_size) == (55834574848, 10737418240)
    assert (info.use_max_mem_size, info.var_mem_logic_base) == (66571993088, BASE)
    assert dict(info.var_resource.var_offset_map) == {BASE: 2}
    assert {mem_type: one.var_mem_size for mem_type, one in info.mem_resource_map.items()} == {2: 1536}
    (text,) = info.var_resource.var_addr_mgr_map
    record = info.var_resource.var_addr_mgr_map[text]
    assert (text, record.address, record.offset, record.memory_type) == ("v2_0", BASE, 0, 2)
    device = info.var_resource.var_dev_addr_mgr_map[BASE]
    assert (device.address, device.dev_addr) == (BASE, 0)
    assert record.desc == device.desc == info.var_resource.cur_var_tensor_desc_map["v"]
    assert not info.var_mem_auto_malloc


@pytest.mark.parametrize("extension", [True, False])
def test_the_bytes_are_what_protobuf_writes(vm: VarManager, extension: bool) -> None:
    data = vm.var_manager_to_bytes(extension=extension)
    info = parse_message(var_manager.VarManagerInfo, data)
    assert info == vm.var_manager_to_serial(extension=extension)
    assert len(info.SerializeToString()) == len(data)
    other = VarManager(1)
    other.set_mem_manager(FakeMemory())
    other.var_manager_to_deserial(data)
    if extension:
        assert other.var_manager_to_bytes() == data


def test_entries_of_maps_rise() -> None:
    vm = make_manager()
    for name in ("b", "é", "a", "Z"):
        vm.assign_var_mem(name, None, make_desc(8))
    data = vm.var_manager_to_bytes(extension=False)
    texts = [f"{name}2_2".encode() for name in ("Z", "a", "b", "é")]
    places = [data.index(b"\x0a" + bytes((len(text),)) + text) for text in texts]
    assert places == sorted(places)


def test_a_restored_manager_tells_the_same_state(vm: VarManager) -> None:
    other = restored(vm)
    assert state_bytes(other) == state_bytes(vm)
    assert state_bytes(restored(other)) == state_bytes(vm)
    assert other.memory_config == vm.memory_config
    assert other.get_all_variables() == vm.get_all_variables()


def test_everything_is_there_again(vm: VarManager) -> None:
    vm = restored(vm)
    assert vm.get_var_addr("v", NCHW) == vm.get_var_addr("vb", NC1HWC0) == BASE
    assert vm.get_cur_var_desc("v") == NC1HWC0
    assert vm.get_trans_road("vb") == ROAD
    assert vm.get_trans_road("e") == ()
    assert vm.get_changed_graph_id("v") == 2
    assert vm.get_changed_var_names(2) == {"v"}
    assert vm.get_allocated_graph_id("vb") == 1
    assert vm.get_broad_cast_info(1, "v") == INFO
    assert vm.get_staged_var_descs(3) == {"v": NCHW}
    assert vm.has_shared_var_mem_between_batch()
    assert vm.get_var_mem_size() == 5120
    assert vm.get_var_const_place_holder_mem_size() == 1536
    assert vm.get_var_addr("named", make_desc(8)) == 12345
    assert not vm.is_var_addr(12345)
    assert vm.is_var_addr(BASE + 10240)
    assert vm.get_var_mem_type(BASE + 2048) == HBM


def test_what_belongs_to_a_process_is_not_restored(vm: VarManager) -> None:
    memory = FakeMemory()
    vm = restored(vm, memory)
    assert vm.get_var_malloc_mem_size() == 0
    assert not vm.is_var_ready("v", NC1HWC0)
    assert vm.get_var_load_state(LogicAddr(BASE + 2048)) is LoadState.ABSENT
    vm.get_var_memory_addr(LogicAddr(BASE))
    assert memory.mallocs == [(HBM, 2048, 0)]
    assert vm.get_graph_var_mem_statistics() == {}


def test_later_variables_get_the_same_addresses(vm: VarManager) -> None:
    other = restored(vm)
    for one in (vm, other):
        one.assign_var_mem("x", None, make_desc(2000))
        one.assign_var_mem("y", None, make_desc(5000))
        one.assign_var_mem("z", None, make_desc(1))
    assert state_bytes(other) == state_bytes(vm)
    assert other["z"].logic_addr == vm["z"].logic_addr


def test_the_next_variable_goes_behind_gaps_that_were_passed() -> None:
    vm = make_manager()
    vm.restore_var_mem("r", VarOp("r", "Variable", (), (BASE + 2048,)), make_desc(4))
    vm.assign_var_mem("large", None, make_desc(4096))  # steps over r, and leaves the gap before it
    other = restored(vm)
    assert other.assign_var_mem("x", None, make_desc(4)) == vm.assign_var_mem("x", None, make_desc(4)) > BASE + 4096


def test_equal_weights_share_after_a_restoration(vm: VarManager) -> None:
    vm = restored(vm)
    const, file = vm["c"].logic_addr, vm["f"].logic_addr
    assert vm.assign_var_mem("c2", constant("c2", WEIGHT, make_desc(4)), make_desc(4)) == const
    assert vm.assign_var_mem("f2", file_constant("f2", "/w/a", 16, 4), make_desc(4)) == file
    assert vm.assign_var_mem("c3", constant("c3", b"4321", make_desc(4)), make_desc(4)) > file
    assert vm.assign_var_mem("f3", file_constant("f3", "/w/a", 16, 5), make_desc(4)) > file
    wide = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1,), size=4)
    assert vm.assign_var_mem("c4", constant("c4", WEIGHT, wide), wide) > file  # another element width
    assert vm.assign_var_mem("c5", constant("c5", WEIGHT, make_desc(9)), make_desc(9)) > file  # does not fit
    vm.check()


def test_the_oldest_of_equal_weights_is_shared_after_a_restoration() -> None:
    vm = make_manager()
    vm.restore_var_mem("late", VarOp("l", "Constant", (make_desc(4),), (BASE + 8192,), WEIGHT), make_desc(4))
    vm.assign_var_mem("large", constant("c", WEIGHT, make_desc(64)), make_desc(64))
    vm.restore_var_mem("later", VarOp("l", "Constant", (make_desc(4),), (BASE + 16384,), WEIGHT), make_desc(4))
    for one in (vm, restored(vm)):
        assert one.assign_var_mem("c", constant("c", WEIGHT, make_desc(4)), make_desc(4)) == BASE + 8192
        assert one.assign_var_mem("d", constant("d", WEIGHT, make_desc(5)), make_desc(5)) == BASE


def test_a_restored_block_still_takes_equal_weights_and_references_of_models(vm: VarManager) -> None:
    vm = restored(vm)
    op = VarOp("c9", "Constant", (make_desc(4),), (BASE + 2048,), WEIGHT)
    assert vm.restore_var_mem("c9", op, make_desc(4)) == BASE + 2048
    again = VarOp("ref2", "Variable", (), (BASE + 10240,), attrs={"ref_var_src_var_name": "r"})
    assert vm.restore_var_mem("ref2", again, make_desc(100)) == BASE + 10240
    with pytest.raises(AddressError, match="would overlap"):
        vm.restore_var_mem("other", VarOp("o", "Variable", (), (BASE + 10240,)), make_desc(100))


def test_a_block_that_was_made_for_a_reference_takes_its_other_references() -> None:
    vm = make_manager()
    ref = VarOp("ref", "Variable", (), (BASE,), attrs={"ref_var_src_var_name": "r"})
    vm.restore_var_mem("ref", ref, make_desc(100))
    vm = restored(vm)
    assert vm.restore_var_mem("r", VarOp("r", "Variable", (), (BASE,)), make_desc(100)) == BASE


def test_initial_values_are_laid_down_after_a_restoration() -> None:
    vm = make_manager()
    vm.assign_var_mem("i", None, with_init(make_desc(4), b"abcd"))
    assert restored(vm)["i"].read().tobytes() == b"abcd"


def test_a_place_holder_is_told_and_resolves_once_it_was_assigned_again(vm: VarManager) -> None:
    vm = restored(vm)
    addr = vm["p"].logic_addr
    with pytest.raises(AddressError, match="place holder p_2_2 is that of another process; assign it again"):
        vm.get_var_memory_addr(addr)
    with pytest.raises(AddressError):
        vm["p"].read()
    assert vm.var_manager_to_serial().var_resource.var_dev_addr_mgr_map[addr].dev_addr == HOLDER
    with pytest.raises(VariableError, match="addr is 0"):
        vm.assign_var_mem("p", place_holder("p", 0, 32), make_desc(16))
    assert vm.assign_var_mem("p", place_holder("p", 20000, 32), make_desc(16)) == addr
    assert vm.get_var_memory_addr(addr) == 20000
    assert vm.assign_var_mem("p", place_holder("p", 30000, 32), make_desc(16)) == addr
    assert vm.get_var_memory_addr(addr) == 20000  # it has memory: nothing is changed, as in GE
    vm.check()


@pytest.mark.parametrize("form", [make_desc(16), make_desc(16, DataType.DT_UINT8)])
def test_a_place_holder_resolves_once_its_model_was_loaded_again(vm: VarManager, form: TensorDesc) -> None:
    vm = restored(vm)
    addr = vm["p"].logic_addr
    assert vm.restore_var_mem("p", place_holder("p", 20000, 32), form) == addr
    assert vm.get_var_memory_addr(addr) == 20000


def test_bytes_of_a_place_holders_memory_are_kept(vm: VarManager) -> None:
    info = restored(restored(vm)).var_manager_to_serial()
    assert list(info.gevar.place_holder_size.values()) == [32]


def test_variables_in_memory_of_a_pool_keep_their_description() -> None:
    memory = FakeMemory(rdma_room=1 << 20)
    vm = make_manager(memory)
    addrs = {
        name: vm.assign_var_mem(name, None, make_desc(100), mem_type) for name, mem_type in (("r", RDMA), ("h", HOST))
    }
    vm.assign_var_mem("d", None, make_desc(100))
    vm.set_trans_road("h", ROAD)
    info = vm.var_manager_to_serial()
    assert set(info.var_resource.var_offset_map) == {*addrs.values(), BASE}
    vm = restored(vm, memory)
    assert vm.get_all_variables().keys() == {"r", "h", "d"}
    assert vm.get_trans_road("h") == ROAD
    assert (vm.get_var_mem_size(RDMA), vm.get_var_mem_size(HOST)) == (100, 100)
    for name, mem_type in (("r", RDMA), ("h", HOST)):
        with pytest.raises(VariableError):
            vm.get_var_addr(name, make_desc(100))
        assert not vm.is_var_addr(addrs[name])
        addr = vm.assign_var_mem(name, None, make_desc(100), mem_type)
        assert addr != addrs[name]
        assert vm.get_var_memory_addr(addr, mem_type) == addr
    vm.check()


def test_ids_and_sizes_are_those_of_the_message_and_the_device_is_ones_own() -> None:
    vm = VarManager(7)
    vm.init(SessionVersion.MINI_VERSION, 7, D3, 9)
    vm.update_memory_config(MemoryConfig(10, 20, 30, 1 << 40))
    other = VarManager(9)
    other.var_manager_to_deserial(vm.var_manager_to_serial(), D0)
    assert (other.version, other.session_id, other.device_id, other.job_id) == (SessionVersion.MINI_VERSION, 7, 0, 9)
    assert other.memory_config == vm.memory_config
    assert other.is_var_resource_inited
    other.init(SessionVersion.CLOUD_VERSION, 5)  # it is initialised: nothing is changed
    assert other.session_id == 7


def test_bytes_are_taken_as_well(vm: VarManager) -> None:
    other = VarManager(1)
    other.var_manager_to_deserial(vm.var_manager_to_serial().SerializeToString())
    assert state_bytes(other) == state_bytes(vm)


def test_a_message_is_not_changed(vm: VarManager) -> None:
    info = vm.var_manager_to_serial()
    before = info.SerializeToString(deterministic=True)
    VarManager(1).var_manager_to_deserial(info)
    assert info.SerializeToString(deterministic=True) == before


def test_without_the_extension_it_is_what_ge_keeps(vm: VarManager) -> None:
    other = restored(vm, extension=False)
    assert other.var_manager_to_serial(extension=False) == vm.var_manager_to_serial(extension=False)
    assert other.get_var_addr("v", NCHW) == BASE
    assert not other.has_shared_var_mem_between_batch()
    assert not other.is_var_exist("vb")
    assert other.get_staged_var_descs(3) == {}
    assert other.get_changed_var_names(2) == {"v"}
    assert (other.get_var_mem_size(), other.get_var_const_place_holder_mem_size()) == (6656, 0)
    shared = other["c"].logic_addr
    assert other.assign_var_mem("c2", constant("c2", WEIGHT, make_desc(4)), make_desc(4)) == BASE + 6656 > shared
    with pytest.raises(AddressError, match="is that of another process"):
        other.get_var_memory_addr(other["p"].logic_addr)


def test_keys_that_are_one_text_in_ges_form_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    vm = make_manager()
    first, second = make_desc(4), make_desc(8, fmt=Format.FORMAT_NC1HWC0_C04)
    vm.assign_var_mem("w1", None, first)
    vm.assign_var_mem("w", None, second)
    with pytest.raises(VariableError, match="'w12_2': 'w' and 'w1' have this one key in GE's form") as caught:
        vm.var_manager_to_serial()
    assert caught.value.status == FAILED
    with caplog.at_level(logging.WARNING, "gevar.var"):
        info = vm.var_manager_to_serial(strict=False)
    assert caplog.messages == ["key 'w12_2' is that of 'w' and 'w1': GE will read the first of them only"]
    assert info.var_resource.var_addr_mgr_map["w12_2"].address == vm["w"].logic_addr
    assert [one.name for one in info.gevar.var_record] == ["w", "w1"]
    other = restored(vm)
    assert (other["w1"].logic_addr, other["w"].logic_addr) == (BASE, BASE + 1536)
    assert (other.get_cur_var_desc("w1"), other.get_cur_var_desc("w")) == (first, second)


def test_names_that_look_like_other_keys_are_kept() -> None:
    vm = make_manager()
    names = ["w", "w_", "w__", "", "_", "2_2", "变量", "a/b/c:0", 'q"\\', "x" * 300]
    addrs = {name: vm.assign_var_mem(name, None, make_desc(4)) for name in names}
    vm.assign_var_mem("w", None, make_desc(4, fmt=Format.FORMAT_NHWC))
    other = restored(vm)
    assert {name: other[name].logic_addr for name in names} == addrs
    for name in ("w", "w_"):  # forms that are not current
        vm.renew_cur_var_desc(name, make_desc(4, fmt=Format.FORMAT_NCHW))
    assert state_bytes(restored(vm)) == state_bytes(vm)


def test_keys_with_a_separator_are_read() -> None:
    vm = make_manager()
    vm.assign_var_mem("w", None, make_desc(4))
    info = vm.var_manager_to_serial(extension=False)
    record = info.var_resource.var_addr_mgr_map.pop("w2_2")
    info.var_resource.var_addr_mgr_map["w_2_2"].CopyFrom(record)
    other = VarManager(1)
    other.var_manager_to_deserial(info)
    assert other["w"].logic_addr == BASE


def test_unknown_fields_are_carried_along(vm: VarManager) -> None:
    info = vm.var_manager_to_serial()
    info.MergeFromString(bytes.fromhex("a23e03616263"))  # field 996, bytes
    info.var_resource.MergeFromString(bytes.fromhex("f80705"))  # field 127, a number
    info.gevar.MergeFromString(bytes.fromhex("f80706"))
    data = info.SerializeToString(deterministic=True)
    other = VarManager(1)
    other.var_manager_to_deserial(data)
    assert state_bytes(other) == data
    lean = other.var_manager_to_serial(extension=False).SerializeToString()
    assert bytes.fromhex("a23e03616263") in lean
    assert bytes.fromhex("f80705") in lean
    other.destroy()
    other.init(0, 1)
    assert bytes.fromhex("a23e03616263") not in state_bytes(other)


@pytest.mark.parametrize(
    ("inner", "where"),
    [
        (bytes.fromhex("12061a0477325f32"), "var_resource.var_addr_mgr_map"),  # an entry with a field 3
        (bytes.fromhex("1005"), "var_resource.var_addr_mgr_map"),  # a number in place of an entry
    ],
)
def test_a_damaged_entry_of_a_map_is_refused(vm: VarManager, inner: bytes, where: str) -> None:
    before = state_bytes(vm)
    for data, field in (
        (before + b"\x4a" + bytes([len(inner)]) + inner, where),
        (before + bytes.fromhex("120100"), "session_id"),  # bytes in place of a number
    ):
        with pytest.raises(ModelFileError, match=f"VarManagerInfo.{field}: damaged") as caught:
            vm.var_manager_to_deserial(data)
        assert caught.value.status == PARAM_INVALID
        assert state_bytes(vm) == before


def test_a_description_without_an_address_is_kept() -> None:
    info = var_manager.VarManagerInfo(session_id=1, var_mem_logic_base=BASE, var_mem_max_size=5 * GIB)
    desc = make_desc(16)
    info.var_resource.cur_var_tensor_desc_map["v"].CopyFrom(tensor_desc_to_proto(desc))
    vm = VarManager(1)
    vm.var_manager_to_deserial(info)
    vm.check()
    assert vm.is_var_exist("v")
    assert not vm.is_var_exist("v", desc)
    with pytest.raises(VariableError, match="has no address") as caught:
        vm.renew_cur_var_desc("v", desc.replace(format=Format.FORMAT_NCHW))
    assert caught.value.status == FAILED
    assert vm.get_cur_var_desc("v") == desc
    assert vm.assign_var_mem("v", None, desc) == BASE


def test_an_empty_message_is_a_manager_without_anything() -> None:
    vm = VarManager(3)
    vm.var_manager_to_deserial(b"")
    assert vm.is_var_resource_inited
    assert vm.session_id == 0
    assert vm.memory_config == MemoryConfig(0, 0, 0, 0)
    with pytest.raises(StateError, match="no variables"):
        vm.get_all_variables()


def test_descriptions_alone(vm: VarManager) -> None:
    info = vm.var_desc_info_to_serial()
    full = vm.var_manager_to_serial().var_resource
    assert info.cur_var_tensor_desc_map == full.cur_var_tensor_desc_map
    assert info.var_to_trans_road == full.var_to_trans_road
    assert not info.changed_var_names
    assert not info.staged_var_tensor_desc_map


def test_a_text_that_no_message_holds_is_a_value_error() -> None:
    vm = make_manager()
    vm.assign_var_mem("\ud800", None, make_desc(4))
    with pytest.raises(ValueError):
        vm.var_manager_to_serial()
    assert vm["\ud800"].logic_addr == BASE


def test_the_messages_around_a_state(vm: VarManager) -> None:
    before = vm.var_desc_info_to_serial()
    vm.renew_cur_var_desc("v", NCHW.replace(format=Format.FORMAT_NHWC))
    match = var_manager.VarMatchInfo(
        desc_info_before_compile=before, desc_info_after_compile=vm.var_desc_info_to_serial()
    )
    again = parse_message(var_manager.VarMatchInfo, match.SerializeToString())
    formats = [
        tensor_desc_from_proto(one.cur_var_tensor_desc_map["v"]).format
        for one in (again.desc_info_before_compile, again.desc_info_after_compile)
    ]
    assert formats == [Format.FORMAT_NC1HWC0, Format.FORMAT_NHWC]
    shared = var_manager.SharedContentDescription(
        session_id=1, node_name="c", mem_type=HBM, tensor_desc=tensor_desc_to_proto(NCHW), om_content=WEIGHT
    )
    again_shared = parse_message(var_manager.SharedContentDescription, shared.SerializeToString())
    assert tensor_desc_from_proto(again_shared.tensor_desc) == NCHW
    assert (again_shared.node_name, again_shared.om_content) == ("c", WEIGHT)


def test_in_another_process_nothing_is_live_and_the_first_question_allocates(vm: VarManager) -> None:
    """The message comes from a process that had memory, loaded flags and ready flags."""
    vm["v"].dev_addr()
    vm.set_var_is_ready("v", vm.get_cur_var_desc("v"))
    code = f"""
        from gevar.var import VarManager
        from tests.helpers.var_memory import FakeMemory
        vm, memory = VarManager(1), FakeMemory()
        vm.set_mem_manager(memory)
        vm.var_manager_to_deserial(bytes.fromhex("{state_bytes(vm).hex()}"))
        addr = vm["v"].logic_addr
        print(addr, vm.get_var_malloc_mem_size(), len(memory.mallocs), vm.is_var_ready("v", vm.get_cur_var_desc("v")))
        print(vm.get_var_memory_addr(addr) == vm["v"].dev_addr(), len(memory.mallocs))
    """
    expect_output(code, f"{vm['v'].logic_addr} 0 0 False\nTrue 1")
