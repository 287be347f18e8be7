"""Message classes made from tables: numbers and types of the fields, the stub files, and the private pool."""

import ast
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message

from gevar.proto import flow_model, ge_ir, task, var_manager
from gevar.proto.pool import ProtoFile, file_descriptor, message_class
from tests.helpers.shared import REPOSITORY

MODULES = [ge_ir, var_manager, task, flow_model]
MESSAGES = [(module, name) for module in MODULES for name in module.FILE.messages]
SCALARS = {"string": "str", "bytes": "bytes", "float": "float", "bool": "bool"} | dict.fromkeys(
    ["int32", "int64", "uint32", "uint64"], "int"
)

# Bytes written down by hand from the tables of ge_ir.proto, var_manager.proto, task.proto and flow_model.proto.
WIRE = [
    (ge_ir, "ModelDef", {"name": "m", "version": 2, "custom_version": "c"}, "0a016d" + "1002" + "1a0163"),
    (ge_ir, "ShapeDef", {"dim": [2, -1]}, "0a0b02ffffffffffffffffff01"),
    (
        ge_ir,
        "OpDef",
        {"type": "Variable", "output_i": [300], "id": 1},
        "12085661726961626c65" + "a80101" + "ea0102ac02",
    ),
    (ge_ir, "OpDef", {"is_input_const": [True], "subgraph_name": ["s"]}, "82020101" + "9a020173"),
    (ge_ir, "TensorDescriptor", {"dtype": 41, "layout": "ND", "size": 64}, "1029" + "22024e44" + "5040"),
    (ge_ir, "TensorDescriptor", {"device_type": "C", "data_offset": 5, "cmps_tab_offset": 1}, "720143900105a80101"),
    (ge_ir, "TensorDef", {"data": b"\1\2"}, "12020102"),
    (ge_ir, "AttrDef", {"i": -1}, "18ffffffffffffffffff01"),
    (ge_ir, "AttrDef", {"f": 1.0}, "250000803f"),
    (ge_ir, "AttrDef", {"b": False}, "2800"),
    (ge_ir, "AttrDef", {"dt": 27}, "781b"),
    (ge_ir, "AttrDef", {"expression": b"x"}, "8a010178"),
    (ge_ir, "AttrDef_ListValue", {"i": [1], "val_type": 2}, "1a0101" + "a00102"),
    (var_manager, "VarAddrMgrInfo", {"address": 1, "offset": 2, "memory_type": 2}, "1001" + "1802" + "2002"),
    (var_manager, "VarDevAddrMgr", {"address": 1, "dev_addr": 1 << 63}, "1001" + "1880808080808080808001"),
    (var_manager, "BroadcastInfo", {"var_name": "v", "idx": -1}, "0a0176" + "18ffffffffffffffffff01"),
    (var_manager, "VarManagerInfo", {"version": 1, "var_mem_auto_malloc": True}, "0801" + "5801"),
    (var_manager, "SharedContentDescription", {"mem_type": 2, "om_content": b"o"}, "3002" + "42016f"),
    (task, "ModelTaskDef", {"memory_size": 65536, "weight_size": 2048}, "58808004" + "708010"),
    (task, "TaskDef", {"id": 1, "type": 2, "stream_id": 3}, "0801" + "1002" + "5003"),
    (flow_model, "SubmodelDef", {"model_name": "s", "om_data": b"o", "is_builtin_udf": True}, "0a01731a016f5001"),
    (flow_model, "FlowModelDef", {"submodel_name": ["a", "b"]}, "1a0161" + "1a0162"),
]


@pytest.mark.parametrize(("module", "name", "fields", "wire"), WIRE)
def test_bytes_on_the_wire(module: ModuleType, name: str, fields: dict[str, object], wire: str) -> None:
    cls = getattr(module, name)
    assert cls(**fields).SerializeToString(deterministic=True).hex() == wire
    assert cls.FromString(bytes.fromhex(wire)) == cls(**fields)


@pytest.mark.parametrize(("module", "name"), MESSAGES)
def test_rows_of_a_table_do_not_clash(module: ModuleType, name: str) -> None:
    rows = module.FILE.messages[name]
    assert len({row[0] for row in rows}) == len({row[1] for row in rows}) == len(rows) > 0
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


@pytest.mark.parametrize(("module", "name"), MESSAGES)
def test_a_class_has_the_fields_of_its_table(module: ModuleType, name: str) -> None:
    cls = getattr(module, name.replace(".", "_"))
    assert issubclass(cls, Message)
    assert cls.DESCRIPTOR.full_name == f"{module.FILE.package}.{name}"
    found = {field.number: field.name for field in cls.DESCRIPTOR.fields}
    assert found == {row[0]: row[1] for row in module.FILE.messages[name]}
    assert getattr(module, name.replace(".", "_")) is cls


def stub_types(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return class name -> attribute -> type text of the stub file beside a module."""
    path = REPOSITORY / "gevar" / "proto" / f"{module.__name__.rpartition('.')[2]}.pyi"
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = members = {}
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    members[item.target.id] = ast.unparse(item.annotation)
                elif isinstance(item, ast.FunctionDef) and item.name != "__init__":
                    assert ast.unparse(item.decorator_list[0]) == "property"
                    members[item.name] = f"readonly {ast.unparse(item.returns)}" if item.returns else ""
    return found


def stub_arguments(module: ModuleType) -> dict[str, list[str]]:
    path = REPOSITORY / "gevar" / "proto" / f"{module.__name__.rpartition('.')[2]}.pyi"
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    inits = {c.name: [f for f in c.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"] for c in classes}
    return {name: [arg.arg for arg in init[0].args.kwonlyargs] for name, init in inits.items()}


def expected_type(file: ProtoFile, text: str) -> str:
    """Return the type that a stub gives to a field of this type."""

    def plain(name: str) -> str:
        return "int" if name in file.enums else SCALARS.get(name, name.removeprefix(".ge.proto.").replace(".", "_"))

    def is_scalar(name: str) -> bool:
        return name in SCALARS or name in file.enums

    if text.startswith("repeated "):
        item = text.removeprefix("repeated ")
        kind = "RepeatedScalarFieldContainer" if is_scalar(item) else "RepeatedCompositeFieldContainer"
        return f"readonly {kind}[{plain(item)}]"
    if text.startswith("map<"):
        key, value = text[4:-1].split(", ")
        kind = "ScalarMap" if is_scalar(value) else "MessageMap"
        return f"readonly {kind}[{plain(key)}, {plain(value)}]"
    return plain(text) if is_scalar(text) else f"readonly {plain(text)}"


@pytest.mark.parametrize("module", MODULES)
def test_the_stub_file_agrees_with_the_table(module: ModuleType) -> None:
    file = module.FILE
    expected = {
        name.replace(".", "_"): {row[1]: expected_type(file, row[2]) for row in rows}
        for name, rows in file.messages.items()
    }
    assert stub_types(module) == expected
    assert stub_arguments(module) == {name: list(fields) for name, fields in expected.items()}


def test_oneofs_hold_one_member() -> None:
    attr = ge_ir.AttrDef(i=3)
    attr.s = b"x"
    assert attr.WhichOneof("value") == "s"
    assert attr == ge_ir.AttrDef(s=b"x")
    assert ge_ir.AttrDef().WhichOneof("value") is None
    assert ge_ir.AttrDef(b=False).WhichOneof("value") == "b"
    members = {field.name for field in ge_ir.AttrDef.DESCRIPTOR.oneofs_by_name["value"].fields}
    assert members == {row[1] for row in ge_ir.FILE.messages["AttrDef"]}


def test_enum_numbers() -> None:
    data_types = ge_ir.TensorDescriptor.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_name
    assert (data_types["DT_UNDEFINED"].number, data_types["DT_FLOAT"].number, data_types["DT_BF16"].number) == (
        0,
        1,
        27,
    )
    assert len(data_types) == 42
    list_types = ge_ir.AttrDef_ListValue.DESCRIPTOR.fields_by_name["val_type"].enum_type.values_by_name
    names = "NONE STRING INT FLOAT BOOL BYTES TENSOR_DESC TENSOR GRAPH NAMED_ATTRS DATA_TYPE"
    assert [name.removeprefix("VT_LIST_") for name in list_types] == names.split()
    assert [value.number for value in list_types.values()] == list(range(11))


def test_an_enum_number_from_a_later_version_is_kept() -> None:
    desc = ge_ir.TensorDescriptor.FromString(bytes.fromhex("102b"))
    assert desc.dtype == 43
    assert desc.SerializeToString() == bytes.fromhex("102b")


def test_messages_of_one_file_hold_those_of_another() -> None:
    info = var_manager.VarManagerInfo()
    info.var_resource.cur_var_tensor_desc_map["v"].CopyFrom(ge_ir.TensorDescriptor(layout="ND"))
    assert type(info.var_resource.cur_var_tensor_desc_map["v"]) is ge_ir.TensorDescriptor
    sub_model = flow_model.SubmodelDef(graph=ge_ir.GraphDef(name="g"))
    assert type(sub_model.graph) is ge_ir.GraphDef


def test_maps_of_every_kind() -> None:
    info = var_manager.VarResourceInfo()
    info.var_offset_map[1 << 63] = 2
    info.var_names_to_changed_graph_id["v"] = 0
    info.var_broad_cast_info[7].broadcast_info["v"].idx = -2
    info.var_dev_addr_mgr_map[5].dev_addr = 1
    back = var_manager.VarResourceInfo.FromString(info.SerializeToString())
    assert back == info
    assert dict(back.var_offset_map) == {1 << 63: 2}
    assert dict(back.var_names_to_changed_graph_id) == {"v": 0}
    assert back.var_broad_cast_info[7].broadcast_info["v"].idx == -2


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_is_no_message(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"{module.FILE.name} has no message Nothing"):
        _ = module.Nothing


def test_the_pool_is_private() -> None:
    assert ge_ir.ModelDef.DESCRIPTOR.file.pool is not descriptor_pool.Default()
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("ge.proto.ModelDef")


def test_all_threads_get_the_same_class() -> None:
    file = ProtoFile("threads.proto", "threads", {"M": [(1, "v", ".ge.proto.AttrDef")]}, {}, (ge_ir.FILE,))
    with ThreadPoolExecutor(16) as threads:
        classes = set(threads.map(lambda _: message_class(file, "M"), range(64)))
    assert len(classes) == 1
    assert type(classes.pop()().v) is ge_ir.AttrDef


def test_a_table_of_ones_own() -> None:
    file = ProtoFile(
        "own.proto",
        "own",
        {"Outer": [(1, "inner", "Outer.Inner"), (2, "n", "sint32", "pick"), (3, "s", "string", "pick")]}
        | {"Outer.Inner": [(1, "by_key_of", "map<int32, Outer>"), (4, "kind", "repeated Kind")]},
        {"Kind": {"A": 0, "B": 5}},
    )
    descriptor = file_descriptor(file)
    assert [message.name for message in descriptor.message_type] == ["Outer"]
    assert descriptor.message_type[0].nested_type[0].nested_type[0].name == "ByKeyOfEntry"
    outer = message_class(file, "Outer")
    message = outer.FromString(bytes.fromhex("0a0a" + "0a0408011200" + "22020500" + "1009"))
    inner = message.inner
    assert (list(inner.by_key_of), list(inner.kind), message.WhichOneof("pick"), message.n) == ([1], [5, 0], "n", -5)


def test_importing_the_messages_does_not_import_protobuf() -> None:
    code = (
        "import sys; from gevar.proto import ge_ir, var_manager, task, flow_model, parse, tensor_descriptor;"
        "assert 'google.protobuf' not in sys.modules; assert 'ml_dtypes' not in sys.modules;"
        "ge_ir.ModelDef; assert 'google.protobuf' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, timeout=120)
