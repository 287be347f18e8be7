"""Nodes, the order in which they are met, and the place of the bytes of constants."""

import struct
from pathlib import Path

import pytest

from gevar.errors import ModelFileError, StateError
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import OmNode
from gevar.om.om_file import OmFile, open_om
from gevar.om.op_def import APART_BYTES
from gevar.status import ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED
from gevar.types.data_type import DataType
from tests.helpers import om_builder as build

LARGE = bytes(range(256)) * (APART_BYTES // 256)


def model(data: bytes) -> OmModel:
    (found,) = OmFile.from_bytes(data, "n.om").models
    return found


def graphs_of(*graphs: bytes, weights: bytes | None = build.WEIGHTS, **attrs: bytes) -> OmModel:
    partitions = [(0, build.model_def("m", graphs, attrs))]
    return model(build.g3(partitions if weights is None else [*partitions, (1, weights)]))


def node(data: bytes, **attrs: bytes) -> OmNode:
    return next(graphs_of(build.graph("g", [data]), **attrs).nodes())


def const(data: bytes, weights: bytes | None = build.WEIGHTS, **attrs: bytes) -> ConstNode:
    (found,) = graphs_of(build.graph("g", [data]), weights=weights, **attrs).const_nodes()
    return found


def names(found: OmModel) -> list[str]:
    return [item.name for item in found.nodes()]


def plain(name: str, *subgraphs: str) -> bytes:
    return build.op(name, "Op", subgraphs=subgraphs)


# --- order ------------------------------------------------------------------------------------------------------------


def test_nodes_of_a_subgraph_follow_their_owner() -> None:
    found = graphs_of(
        build.graph("root", [plain("a"), plain("b", "inner"), plain("c")]),
        build.graph("inner", [plain("d"), plain("e", "innermost"), plain("f")]),
        build.graph("innermost", [plain("g")]),
    )
    assert names(found) == ["a", "b", "d", "e", "g", "f", "c"]
    assert [graph.name for graph in found.graphs] == ["root", "inner", "innermost"]


def test_several_subgraphs_of_one_node_keep_their_order() -> None:
    found = graphs_of(
        build.graph("root", [plain("if", "then", "else"), plain("z")]),
        build.graph("else", [plain("e")]),
        build.graph("then", [plain("t", "deep")]),
        build.graph("deep", [plain("d")]),
    )
    assert names(found) == ["if", "t", "d", "e", "z"]


def test_each_graph_is_met_once() -> None:
    found = graphs_of(
        build.graph("root", [plain("a", "s", "s"), plain("b", "s", "root")]),
        build.graph("s", [plain("x", "s", "root", "missing")]),
    )
    assert names(found) == ["a", "x", "b"]


def test_graphs_without_owner_come_last() -> None:
    found = graphs_of(
        build.graph("root", [plain("a")]), build.graph("lost", [plain("b")]), build.graph("l2", [plain("c")])
    )
    assert names(found) == ["a", "b", "c"]


def test_of_two_graphs_with_one_name_the_first_counts() -> None:
    found = graphs_of(
        build.graph("root", [plain("a", "s"), plain("b")]),
        build.graph("s", [plain("x")]),
        build.graph("s", [plain("y")]),
    )
    assert names(found) == ["a", "x", "b", "y"]


def test_deep_nesting_does_not_recurse() -> None:
    chain = [build.graph(f"g{number}", [plain(f"n{number}", f"g{number + 1}")]) for number in range(3000)]
    assert names(graphs_of(*chain)) == [f"n{number}" for number in range(3000)]


def test_variable_nodes_are_the_four_kinds_in_load_order() -> None:
    kinds = ("Variable", "Const", "FileConstant", "Data", "Constant", "ConstPlaceHolder", "RefData", "Add")
    found = graphs_of(
        build.graph(
            "root", [build.op(f"r{kind}", kind) for kind in kinds] + [plain("call", "s"), build.op("v", "Variable")]
        ),
        build.graph("s", [build.op(f"s{kind}", kind) for kind in kinds]),
    )
    expected = ["Variable", "FileConstant", "Constant", "ConstPlaceHolder"]
    assert [item.name for item in found.variable_nodes()] == [
        *(f"r{kind}" for kind in expected),
        *(f"s{kind}" for kind in expected),
        "v",
    ]
    assert [item.graph_name for item in found.variable_nodes()] == ["root"] * 4 + ["s"] * 4 + ["root"]


# --- one node ---------------------------------------------------------------------------------------------------------


def test_everything_of_a_node() -> None:
    init = build.attr_t(build.tensor(build.tensor_desc((2,)), struct.pack("<2f", 1, 2)))
    desc = build.tensor_desc(
        (2,), build.DT_FLOAT, "ND", size=64, attrs={"_init_value": init, "_inner_offset": build.attr_i(8)}
    )
    data = build.op(
        "v",
        "Variable",
        {"i": build.attr_i(-1)},
        [desc],
        [build.tensor_desc((7,), build.DT_INT8, "NCHW")],
        [2**37, -5],
        ["s"],
    )
    data += build.field(28, 11) + build.field(28, 12) + build.field(32, 1) + build.field(32, 0)
    found = node(data)
    assert (found.name, found.type, found.graph_name) == ("v", "Variable", "g")
    assert (found.input_i, found.output_i, found.subgraph_names) == ((11, 12), (2**37, -5), ("s",))
    assert found.is_input_const == (True, False)
    assert found.attrs["i"].i == -1
    (output,) = found.output_descs
    assert (output.dtype, output.shape, output.size, output.inner_offset) == (DataType.DT_FLOAT, (2,), 64, 8)
    assert output.init_value is not None
    assert output.init_value.data == struct.pack("<2f", 1, 2)
    (given,) = found.input_descs
    assert (given.dtype, given.shape) == (DataType.DT_INT8, (7,))
    assert repr(found) == "<OmNode v (Variable) of graph g>"


def test_is_input_const_from_the_attribute() -> None:
    assert node(build.op("n", "T", {"is_input_const": build.attr_bools([False, True])})).is_input_const == (False, True)
    assert node(build.op("n", "T")).is_input_const == ()


def test_compressed_node() -> None:
    desc = build.tensor_desc((2,), attrs={"\0\x02": build.attr_i(24), "\0\x03": build.attr_i(0), "o": build.attr_i(1)})
    data = build.op("n", "T", {"\0\x01": build.attr_bools([True])}, [desc], [desc])
    table = build.compression(["is_input_const", "_inner_offset", "kind"], [False, False, True], ["text"])
    found = node(data, **table)
    assert found.is_input_const == (True,)
    assert found.attr_name_rounds() == 1
    for tensor in (*found.output_descs, *found.input_descs):
        assert tensor.inner_offset == 24
        assert tensor.attrs["kind"].s == b"text"
        assert tensor.attrs["o"].i == 1


def test_bad_name_in_a_description_is_met_when_it_is_read() -> None:
    data = build.op("n", "T", {"a": build.attr_i(1)}, [build.tensor_desc(attrs={"\0\x05": build.attr_i(0)})])
    found = node(data, **build.compression(["a"]))
    assert found.attrs["a"].i == 1
    with pytest.raises(ModelFileError, match="attribute name 4 is asked for"):
        _ = found.output_descs
    with pytest.raises(ModelFileError, match="attribute name 4 is asked for"):
        found.attr_name_rounds()


def test_text_of_a_description_that_is_not_utf8_names_file_and_node() -> None:
    found = node(build.op("n", "T", None, [build.tensor_desc(attrs={"cmps_tab": build.attr_s(b"\xff")})]))
    with pytest.raises(ModelFileError, match=r"^n\.om: MODEL_DEF at offset \d+: node n: .*UTF-8"):
        _ = found.output_descs


# --- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Const", "Constant"])
def test_inline_bytes(kind: str) -> None:
    found = const(build.inline_const("c", b"\x01\x02\x03", kind))
    assert (found.name, found.storage, found.offset, found.size_bytes) == ("c", ConstStorage.INLINE, None, 3)
    assert found.file_offset is None
    assert found.data() == b"\x01\x02\x03"
    assert found.desc is not None
    assert (found.desc.dtype, found.desc.shape, found.layout) == (DataType.DT_UINT8, (3,), "ND")


def test_large_inline_bytes_have_a_place_in_the_file() -> None:
    data = build.g3([(8, b""), (0, build.model_def("m", [build.graph("g", [build.inline_const("c", LARGE)])]))])
    (found,) = model(data).const_nodes()
    assert (found.storage, found.offset, found.size_bytes) == (ConstStorage.INLINE, None, APART_BYTES)
    assert found.file_offset == data.index(LARGE)
    assert found.data() == LARGE
    assert found.declared_bytes == APART_BYTES


def test_large_inline_bytes_under_a_compressed_name() -> None:
    value = build.attr_t(build.tensor(build.tensor_desc((APART_BYTES,), build.DT_UINT8), LARGE))
    found = const(build.op("c", "Constant", {"\0\x02": value}), **build.compression(["a", "value"]))
    assert found.data() == LARGE
    assert found.file_offset is not None


def test_model_def_puts_large_bytes_and_names_back() -> None:
    value = build.attr_t(build.tensor(build.tensor_desc((APART_BYTES,), build.DT_UINT8), LARGE))
    found = graphs_of(
        build.graph("g", [build.op("c", "Constant", {"\0\x01": value})]),
        **build.compression(["value"]),
        tasks=build.field(7, b"x"),
    )
    message = found.model_def()
    assert message.graph[0].op[0].attr["value"].t.data == LARGE
    assert "tasks" not in message.attr
    message.graph[0].op[0].name = "changed"
    assert found.model_def().graph[0].op[0].name == "c"


def test_the_graph_ir_is_the_same_as_that_of_the_message() -> None:
    value = build.attr_t(build.tensor(build.tensor_desc((APART_BYTES,), build.DT_UINT8), LARGE))
    inner = build.graph("inner", [build.op("d", "Const", {"\0\x01": value})])
    caller = build.op("call", "PartitionedCall", subgraphs=["inner"])
    outer = build.graph("outer", [build.op("c", "Constant", {"\0\x01": value}), caller])
    body = build.model_def("m", [outer, inner], {**build.compression(["value"]), "tasks": build.field(7, b"x")})
    unknown = build.field(1000, b"kept")
    found = model(build.g3([(0, body + unknown)]))
    message = found.model_def()
    assert message.graph[1].op[0].attr["value"].t.data == LARGE
    model_read = found.graph_ir()
    assert model_read.to_proto() == message
    assert model_read.to_proto().SerializeToString().count(unknown) == 1
    assert [graph.name for graph in model_read.graph.all_subgraphs()] == ["inner"]
    assert "tasks" not in model_read.attrs


@pytest.mark.parametrize("broken", ["op", "graph", "name"])
def test_a_graph_that_does_not_decode_is_no_graph_ir(broken: str) -> None:
    bad = {
        "op": build.graph("g", [build.op("a", "Data"), b"\xff"]),
        "graph": build.graph("g", [build.op("a", "Data")]) + b"\x0a\x01\xff",
        "name": build.graph("g", [build.op("a", "Data", {"\0\x09": build.field(3, b"")})]),
    }[broken]
    found = model(build.g3([(0, build.model_def("m", [bad], build.compression(["value"])))]))
    with pytest.raises(ModelFileError, match=r"MODEL_DEF|table") as caught:
        found.graph_ir()
    assert caught.value.status == ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED


def test_weights_partition() -> None:
    file = build.g3([(0, build.model_def("m", [build.graph("g", [build.const("c", 512, 64)])])), (1, build.WEIGHTS)])
    (found,) = model(file).const_nodes()
    assert (found.storage, found.offset, found.size_bytes) == (ConstStorage.DATA_OFFSET, 512, 64)
    assert found.file_offset == len(file) - len(build.WEIGHTS) + 512
    assert found.data() == bytes(range(64))
    assert found.data().readonly


def test_merged_offset_wins_over_data_offset() -> None:
    desc = build.tensor_desc(
        (4,), build.DT_UINT8, weight_size=4, data_offset=512, attrs={"merged_offset": build.attr_i(1024)}
    )
    found = const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))}))
    assert (found.storage, found.offset) == (ConstStorage.MERGED_OFFSET, 1024)
    assert found.data() == b"\x01\x02\x03\x04"


def test_merged_offset_zero_is_a_place() -> None:
    desc = build.tensor_desc(
        (4,), build.DT_UINT8, weight_size=4, data_offset=512, attrs={"merged_offset": build.attr_i(0)}
    )
    assert const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))})).offset == 0


def test_inline_bytes_win_over_every_offset() -> None:
    desc = build.tensor_desc((4,), weight_size=4, data_offset=512, attrs={"merged_offset": build.attr_i(1024)})
    assert const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc, b"xyz"))})).data() == b"xyz"


def test_byte_count_is_trusted_before_the_shape() -> None:
    desc = build.tensor_desc((64,), build.DT_FLOAT, weight_size=64, data_offset=512)
    found = const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))}))
    assert found.size_bytes == found.data().nbytes == 64


def test_equal_constants_may_share_a_place() -> None:
    found = graphs_of(build.graph("g", [build.const("a", 512, 64), build.const("b", 512, 64)])).const_nodes()
    assert [item.offset for item in found] == [512, 512]


def test_old_form_with_numbers_in_attributes() -> None:
    desc = build.tensor_desc((4,), attrs={"weight_size": build.attr_i(4), "data_offset": build.attr_i(1024)})
    found = const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))}))
    assert (found.offset, found.size_bytes) == (1024, 4)


@pytest.mark.parametrize(
    "attrs", [None, {"value": build.attr_i(3)}, {"other": build.attr_t(build.tensor(build.tensor_desc(), b"x"))}]
)
def test_without_value(attrs: dict[str, bytes] | None) -> None:
    found = const(build.op("c", "Const", attrs))
    assert (found.storage, found.size_bytes, found.desc) == (ConstStorage.NONE, 0, None)
    assert found.data() == b""
    assert found.declared_bytes == 0


@pytest.mark.parametrize("size", [0, 1536 - 512])
def test_bytes_at_the_end_of_the_partition(size: int) -> None:
    assert len(build.WEIGHTS) == 1536
    assert const(build.const("c", 1536 - size, size)).data() == build.WEIGHTS[1536 - size :]


@pytest.mark.parametrize(
    ("offset", "size"),
    [(-1, 1), (512, -1), (512, 1025), (1537, 0), (2**62, 4), (0, 2**62), (2**63 - 1, 2**63 - 1), (-(2**63), 4)],
)
def test_bytes_outside_the_partition(offset: int, size: int) -> None:
    desc = build.tensor_desc((4,), weight_size=size, data_offset=offset)
    with pytest.raises(ModelFileError, match=f"{size} B at {offset} leave the weights partition of 1536 B") as caught:
        const(build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))}))
    assert caught.value.field == "constant c"


def test_static_model_without_weights_partition() -> None:
    with pytest.raises(ModelFileError, match="the model has no such partition"):
        const(build.const("c", 512, 64), weights=None)
    assert const(build.const("c", 512, 0), weights=None).data() == b""


def test_root_of_a_dynamic_file_has_its_constants_elsewhere() -> None:
    graph = build.graph("g", [build.const("c", 512, 64)])
    sub = [(0, build.model_def("s", [graph])), (1, build.WEIGHTS)]
    root, inner = OmFile.from_bytes(build.dynamic([[(0, build.model_def("r", [graph]))], sub]), "n.om").models
    (there,) = root.const_nodes()
    assert (there.storage, there.offset, there.size_bytes, there.declared_bytes) == ("data_offset", 512, 0, 64)
    assert there.data() == b""
    (here,) = inner.const_nodes()
    assert here.data() == bytes(range(64))


def test_constants_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.om"
    ops = [build.const("w", 512, 64), build.inline_const("large", LARGE), build.inline_const("small", b"abc")]
    path.write_bytes(build.g3([(0, build.model_def("m", [build.graph("g", ops)])), (1, build.WEIGHTS)]))
    data = path.read_bytes()
    om = open_om(path)
    found = om.models[0].const_nodes()
    views = [item.data() for item in found]
    om.close()
    assert [bytes(view) for view in views] == [bytes(range(64)), LARGE, b"abc"]
    for item, view in zip(found[:2], views, strict=False):
        assert item.file_offset is not None
        assert data[item.file_offset : item.file_offset + item.size_bytes] == view
    for item in found[:2]:
        with pytest.raises(StateError, match="was closed"):
            item.data()
