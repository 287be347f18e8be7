"""Messages that cannot be the state of a manager: refused as a whole, with the field named."""

import pickle
from collections.abc import Callable

import pytest

from gevar.errors import ModelFileError
from gevar.proto.var_manager import VarManagerInfo
from gevar.status import PARAM_INVALID
from gevar.types import DeviceId
from gevar.var import MemoryConfig, VarManager
from tests.helpers.var_states import BASE, full_manager, state_bytes

V0, V3, C, P = "v0_0", "v3_0", "c2_2", "p2_2"
C_ADDR, P_ADDR = BASE + 2048, BASE + 5120


def _resource(change: Callable[..., object]) -> Callable[[VarManagerInfo], object]:
    return lambda info: change(info.var_resource)


def _block(addr: int, change: Callable[..., object]) -> Callable[[VarManagerInfo], object]:
    return lambda info: change(info.var_resource.var_dev_addr_mgr_map[addr])


def _record(text: str, change: Callable[..., object]) -> Callable[[VarManagerInfo], object]:
    return lambda info: change(info.var_resource.var_addr_mgr_map[text])


def _set(**values: object) -> Callable[..., None]:
    def change(message: object) -> None:
        for name, value in values.items():
            setattr(message, name, value)

    return change


def _rename_record(old: str, new: str) -> Callable[[VarManagerInfo], object]:
    def change(info: VarManagerInfo) -> None:
        records = info.var_resource.var_addr_mgr_map
        records[new].CopyFrom(records[old])
        del records[old]

    return change


def _old_cmps_tab(desc: object) -> None:
    desc.attr["cmps_tab"].s = b"\xff"  # type: ignore[attr-defined]


def _twice(info: VarManagerInfo) -> None:
    """The same variable under a key of either form."""
    info.var_resource.var_addr_mgr_map["c_2_2"].CopyFrom(info.var_resource.var_addr_mgr_map[C])


REFUSALS: list[tuple[str, Callable[[VarManagerInfo], object], str]] = [
    ("version", _set(version=3), "VarManagerInfo.version: 3 is more than 2"),
    ("base", _set(var_mem_logic_base=1 << 63), "VarManagerInfo.var_mem_logic_base: 9223372036854775808 is more than"),
    ("kind", lambda i: i.mem_resource_map[5].SetInParent(), r"mem_resource_map\[5\]: 5 is no kind of memory"),
    ("ddr", lambda i: i.mem_resource_map[4].SetInParent(), r"mem_resource_map\[4\]: variables are not assigned in"),
    ("count", lambda i: _set(var_mem_size=1 << 63)(i.mem_resource_map[2]), r"mem_resource_map\[2\]\.var_mem_size"),
    (
        "only an offset",
        _resource(lambda r: r.var_offset_map.update({5: 2})),
        r"var_resource\.var_offset_map\[5\]: the address is in one of",
    ),
    (
        "only a block",
        _resource(lambda r: r.var_offset_map.pop(C_ADDR)),
        rf"var_resource\.var_offset_map\[{C_ADDR}\]: the address is in one of",
    ),
    ("block kind", _resource(lambda r: r.var_offset_map.update({C_ADDR: 7})), "7 is no kind of memory"),
    (
        "other kind",
        _resource(lambda r: r.var_offset_map.update({C_ADDR: 4})),
        r"\['c2_2'\]: its memory is RT_MEMORY_HBM",
    ),
    ("address", _block(C_ADDR, _set(address=1)), rf"var_dev_addr_mgr_map\[{C_ADDR}\]: its address is 1"),
    ("negative", _block(C_ADDR, lambda b: _set(size=-1)(b.desc)), "its size is -1 B"),
    ("huge", _block(C_ADDR, lambda b: _set(size=(1 << 63) - 1)(b.desc)), "is more than 9223372036854775807"),
    ("overlap", _block(C_ADDR, lambda b: _set(size=1537)(b.desc)), "4 B of variable f_2_2 would overlap c_2_2"),
    ("block text", _block(C_ADDR, lambda b: _old_cmps_tab(b.desc)), "cmps_tab"),
    ("record kind", _record(C, _set(memory_type=3)), r"var_addr_mgr_map\['c2_2'\]: its memory is RT_MEMORY_RDMA_HBM"),
    ("no kind", _record(C, _set(memory_type=1 << 40)), r"\['c2_2'\]\.memory_type: 1099511627776 is no kind of memory"),
    ("key", _rename_record(C, "c"), r"var_addr_mgr_map\['c'\]: the key does not end in 2_2"),
    ("other key", _rename_record(C, "c3_2"), r"\['c3_2'\]: the key does not end in 2_2, format and data type of its"),
    ("twice", _twice, r"var_addr_mgr_map\['c_?2_2'\]: c_2_2 is there twice"),
    ("record text", _record(C, lambda r: _old_cmps_tab(r.desc)), r"var_addr_mgr_map\['c2_2'\]: .*cmps_tab"),
    (
        "current text",
        _resource(lambda r: _old_cmps_tab(r.cur_var_tensor_desc_map["c"])),
        r"cur_var_tensor_desc_map\['c'\]: .*cmps_tab",
    ),
    (
        "road text",
        _resource(lambda r: _old_cmps_tab(r.var_to_trans_road["v"].node_info[0].output)),
        r"var_to_trans_road\['v'\]\.output: .*cmps_tab",
    ),
    (
        "staged text",
        lambda i: _old_cmps_tab(i.gevar.staged_var_desc[3].desc["v"]),
        r"gevar\.staged_var_desc\[3\]: .*cmps_tab",
    ),
    ("block name", lambda i: i.gevar.block_name.update({5: "x"}), r"gevar\.block_name\[5\]: no variable starts at 5"),
    (
        "reference",
        lambda i: i.gevar.reference.add(name="x", format=2, dtype=2, src_var_name="r"),
        r"gevar\.reference\[1\]: x_2_2 is not there",
    ),
    (
        "no place holder",
        lambda i: i.gevar.place_holder_size.update({C_ADDR: 4}),
        rf"gevar\.place_holder_size\[{C_ADDR}\]: it is no place holder",
    ),
    (
        "holder address",
        lambda i: i.gevar.place_holder_size.update({5: 4}),
        r"place_holder_size\[5\]: no variable starts",
    ),
    (
        "holder size",
        lambda i: i.gevar.place_holder_size.update({P_ADDR: 1 << 63}),
        rf"place_holder_size\[{P_ADDR}\]: 9223372036854775808 is more than",
    ),
    ("digest", lambda i: _set(digest=b"short")(i.gevar.constant[0]), r"gevar\.constant\[0\]: .* digest of 5 B"),
    ("length", lambda i: _set(length=0)(i.gevar.constant[0]), r"gevar\.constant\[0\]: 0 B"),
    ("width", lambda i: _set(size_code=0)(i.gevar.constant[0]), r"gevar\.constant\[0\]: 4 B, size code 0"),
    ("constant", lambda i: _set(address=5)(i.gevar.constant[0]), r"gevar\.constant\[0\]: no variable starts at 5"),
    ("path", lambda i: _set(location="")(i.gevar.file_constant[0]), r"gevar\.file_constant\[0\]: it has no location"),
    (
        "file",
        lambda i: _set(address=5)(i.gevar.file_constant[0]),
        r"gevar\.file_constant\[0\]: no variable starts",
    ),
    ("holders", lambda i: _set(const_place_holder_mem_size=9999)(i.gevar.mem_resource[2]), "9999 is more than 6656"),
    ("next", lambda i: _set(next_offset=1 << 63)(i.gevar.mem_resource[2]), r"mem_resource\[2\]\.next_offset"),
    (
        "no such kind",
        lambda i: i.gevar.mem_resource[3].SetInParent(),
        r"mem_resource\[3\]: mem_resource_map has no",
    ),
    (
        "unknown kind",
        lambda i: i.gevar.mem_resource[1].SetInParent(),
        r"gevar\.mem_resource\[1\]: 1 is no kind",
    ),
]


@pytest.mark.parametrize(("name", "change", "message"), REFUSALS, ids=[name for name, _, _ in REFUSALS])
@pytest.mark.parametrize("initialised", [False, True])
def test_refusals_name_the_field_and_change_nothing(
    name: str, change: Callable[[VarManagerInfo], object], message: str, initialised: bool
) -> None:
    info = full_manager().var_manager_to_serial()
    change(info)
    vm = full_manager() if initialised else VarManager(1)
    before, config = state_bytes(vm), vm.memory_config
    with pytest.raises(ModelFileError, match=message) as caught:
        vm.var_manager_to_deserial(info, DeviceId(2))
    assert caught.value.status == PARAM_INVALID
    assert caught.value.field.startswith("VarManagerInfo")
    assert vm.is_var_resource_inited is initialised
    assert state_bytes(vm) == before
    assert (vm.memory_config, vm.device_id, vm.session_id) == (config, 0, 1)
    vm.check()


@pytest.mark.parametrize("data", [b"\xff", b"\x0a", b"\x4a\x05abc", b"\x4a\x7f", b"\x4a\x02\x12\xff"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    vm = VarManager(1)
    with pytest.raises(ModelFileError, match=r"deployer\.VarManagerInfo") as caught:
        vm.var_manager_to_deserial(data)
    assert caught.value.status == PARAM_INVALID
    assert not vm.is_var_resource_inited


def _nested(levels: int) -> bytes:
    """A message with a graph in a graph in a graph, in an attribute of a description."""

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length, size = length + bytes([size % 128 + 128]), size // 128
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    graph = b""
    for _ in range(levels):  # GraphDef.attr -> value AttrDef.g -> GraphDef
        graph = field(11, field(1, b"g") + field(2, field(13, graph)))
    attr = field(5, field(1, b"g") + field(2, field(13, graph)))
    return field(9, field(3, field(1, b"v") + field(2, attr)))


def test_deep_nesting_is_refused() -> None:
    vm = VarManager(1)
    vm.var_manager_to_deserial(_nested(3))
    assert vm.is_var_exist("v")
    other = VarManager(1)
    with pytest.raises(ModelFileError) as caught:
        other.var_manager_to_deserial(_nested(10_000))
    assert caught.value.status == PARAM_INVALID
    assert not other.is_var_resource_inited


def test_a_negative_device_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="device_id is -1"):
        VarManager(1).var_manager_to_deserial(b"", DeviceId(-1))


def test_a_long_key_is_cut_in_the_error_and_the_error_travels() -> None:
    info = full_manager().var_manager_to_serial()
    _rename_record(C, "k" * 100_000)(info)
    with pytest.raises(ModelFileError) as caught:
        VarManager(1).var_manager_to_deserial(info)
    assert len(str(caught.value)) < 400
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.status, again.field) == (str(caught.value), PARAM_INVALID, caught.value.field)


def test_a_refused_message_leaves_sizes_alone() -> None:
    vm = VarManager(1)
    vm.update_memory_config(MemoryConfig(1, 2, 3, 4))
    info = full_manager().var_manager_to_serial()
    info.version = 9
    with pytest.raises(ModelFileError):
        vm.var_manager_to_deserial(info)
    assert vm.memory_config == MemoryConfig(1, 2, 3, 4)
    vm.init(0, 1)
    assert vm.memory_config == MemoryConfig(1, 2, 3, 4)
