"""Addresses of variables on the nodes that write into them."""

from collections.abc import Sequence

import pytest

from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.errors import GraphError, VariableError
from gevar.graph import ComputeGraph, Node, OpDesc
from gevar.proto import ge_ir
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarBroadCastInfo, VarManager
from tests.helpers.graphs import graph_of
from tests.helpers.var_memory import FakeMemory, make_manager

BASE = 128 << 30
BLOCK = 1536
ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))


def make_graph(text: str, *, offsets: int = 7) -> ComputeGraph:
    """A graph whose nodes have the offset `offsets` for every output."""
    graph = graph_of(text)
    graph.graph_id = 3
    for node in graph:
        node.op_desc.output_i = [offsets] * len(node.op_desc.output_descs)
        node.op_desc.input_i = [1] * len(node.op_desc.input_descs)
    return graph


def offsets_of(graph: ComputeGraph, names: Sequence[str] | None = None) -> dict[str, int]:
    nodes: list[Node] = list(graph) if names is None else [graph[name] for name in names]
    return {node.name: node.op_desc.output_i[0] for node in nodes if node.op_desc.output_i}


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def run(vm: VarManager, graph: ComputeGraph) -> None:
    util = VarMemAssignUtil(vm, graph)
    util.assign_var_memory()
    util.assign_var_attr2_nodes()


def test_assigns_of_assigns(vm: VarManager) -> None:
    graph = make_graph(
        "w/0/1/Variable; c/0/1/Const; a/2/1/Assign; b/2/1/AssignAdd; d/2/1/AssignSub; other/2/1/Assign; r/1/1/Relu;"
        "w:0 -> a:0; c:0 -> a:1; a:0 -> b:0; b:0 -> d:0; a:0 -> other:1; b:0 -> r:0; r:0 -> d:1"
    )
    run(vm, graph)
    assert offsets_of(graph) == {"w": BASE, "a": BASE, "b": BASE, "d": BASE, "c": 7, "other": 7, "r": 7}


def test_an_assign_of_a_value_is_no_write_to_the_variable(vm: VarManager) -> None:
    graph = make_graph("v/0/1/Variable; w/0/1/Variable; a/2/1/Assign; v:0 -> a:0; w:0 -> a:1")
    run(vm, graph)
    assert offsets_of(graph) == {"v": BASE, "w": BASE + BLOCK, "a": BASE}


def test_assigns_behind_conversions_get_what_these_have(vm: VarManager) -> None:
    graph = make_graph(
        "w/0/1/Variable; t/1/1/TransData; c/1/1/Cast; a/2/1/Assign; b/2/1/AssignAdd; d/2/1/Assign; w:0 -> t:0;"
        "t:0 -> c:0; c:0 -> a:1; a:0 -> b:1; b:0 -> d:0"
    )
    graph["c"].op_desc.output_i = [4096]
    run(vm, graph)
    assert offsets_of(graph) == {"w": BASE, "t": 7, "c": 4096, "a": 4096, "b": 4096, "d": 4096}


def test_of_several_conversions_the_last_one_is_followed(vm: VarManager) -> None:
    graph = make_graph(
        "w/0/1/Variable; t/1/1/Permute; p/1/1/Transpose; q/1/1/Cast; x/2/1/Cast; a/1/1/Assign; b/1/1/Assign;"
        "w:0 -> t:0; t:0 -> p:0; t:0 -> q:0; t:0 -> x:1; p:0 -> a:0; q:0 -> b:0"
    )
    graph["q"].op_desc.output_i = [512]
    run(vm, graph)
    assert offsets_of(graph, ["a", "b"]) == {"a": 7, "b": 512}


@pytest.mark.parametrize(("count", "reached"), [(3, True), (17, True), (18, False)])
def test_conversions_are_followed_as_far_as_in_ge(vm: VarManager, count: int, reached: bool) -> None:
    nodes = [f"t{number}/1/1/Cast" for number in range(count)]
    edges = [f"t{number}:0 -> t{number + 1}:0" for number in range(count - 1)]
    graph = make_graph(
        ";".join(["w/0/1/Variable; a/1/1/Assign", *nodes, "w:0 -> t0:0", *edges, f"t{count - 1}:0 -> a:0"])
    )
    graph[f"t{count - 1}"].op_desc.output_i = [512]
    run(vm, graph)
    assert offsets_of(graph, ["a"]) == {"a": 512 if reached else 7}


def test_long_chains_and_cycles_end(vm: VarManager) -> None:
    count = 5000
    nodes = [f"a{number}/2/1/AssignAdd" for number in range(count)]
    edges = [f"a{number}:0 -> a{number + 1}:0" for number in range(count - 1)]
    ring = "t/1/1/Cast; u/1/1/Cast; w:0 -> t:0; t:0 -> u:0; b/3/1/Assign; u:0 -> b:0; b:0 -> b:1"
    graph = make_graph(";".join(["w/0/1/Variable", *nodes, "w:0 -> a0:0", *edges, ring]))
    run(vm, graph)
    assert set(offsets_of(graph, [f"a{number}" for number in range(count)]).values()) == {BASE}


def test_references_to_variables_start_no_chain(vm: VarManager) -> None:
    graph = make_graph("w/0/1/Variable; ref/1/1/Variable; a/2/1/Assign; w:0 -> ref:0; ref:0 -> a:0")
    graph["ref"].op_desc.attrs["ref_var_src_var_name"] = "w"
    run(vm, graph)
    assert offsets_of(graph) == {"w": BASE, "ref": 7, "a": 7}


BROADCAST = "w/0/1/Variable; v/0/1/Variable; b/2/2/HcomBroadcast; v:0 -> b:0; w:0 -> b:1"


def sized_broadcast(op_type: str = "HcomBroadcast") -> ComputeGraph:
    graph = make_graph(BROADCAST.replace("HcomBroadcast", op_type))
    node = graph["b"].op_desc
    for index, size in enumerate((64, 96)):
        node.update_input_desc(index, ROW.replace(size=size))
        node.update_output_desc(index, ROW.replace(size=size))
    node.output_i = [1024, 2048]
    return graph


@pytest.mark.parametrize("op_type", ["HcomBroadcast", "HorovodBroadcast"])
def test_a_broadcast_is_recorded_and_reads_where_it_writes(vm: VarManager, op_type: str) -> None:
    graph = sized_broadcast(op_type)
    run(vm, graph)
    assert vm.get_broad_cast_info(3, "w") == VarBroadCastInfo("w", "b", 1, 2048, 96, 2048, 96)
    assert vm.get_broad_cast_info(3, "v") == VarBroadCastInfo("v", "b", 0, 1024, 64, 1024, 64)
    assert (graph["b"].op_desc.input_i, graph["b"].op_desc.output_i) == ((1024, 2048), (1024, 2048))


def test_the_last_broadcast_of_a_variable_counts(vm: VarManager) -> None:
    graph = make_graph("w/0/1/Variable; b/1/1/HcomBroadcast; c/1/1/HcomBroadcast; w:0 -> b:0; w:0 -> c:0")
    run(vm, graph)
    info = vm.get_broad_cast_info(3, "w")
    assert info is not None
    assert info.broadcast_name == "c"


def broken_broadcast(kind: str) -> ComputeGraph:
    graph = sized_broadcast()
    op_desc = graph["b"].op_desc
    if kind == "size":
        op_desc.update_output_desc(1, ROW.replace(size=32))
    elif kind == "negative":
        for index in range(2):
            op_desc.update_input_desc(index, ROW.replace(size=-1))
            op_desc.update_output_desc(index, ROW.replace(size=-1))
    elif kind == "offsets":
        op_desc.output_i = [1024]
    return graph


@pytest.mark.parametrize(
    ("kind", "reason"), [("size", "96 B in and 32 B out"), ("negative", "-1"), ("offsets", "1 offsets of outputs")]
)
def test_a_broadcast_that_cannot_be(vm: VarManager, kind: str, reason: str) -> None:
    graph = broken_broadcast(kind)
    util = VarMemAssignUtil(vm, graph)
    util.assign_var_memory()
    message = graph.to_proto()
    with pytest.raises(GraphError, match=reason) as caught:
        util.assign_var_attr2_nodes()
    assert (caught.value.node, caught.value.status) == ("b", FAILED)
    assert graph.to_proto() == message
    assert [vm.get_broad_cast_info(3, name) for name in "vw"] == [None, None]


@pytest.mark.parametrize(
    ("text", "node", "status"),
    [
        ("w/0/1/Variable; a/2/1/Assign; w:0 -> a:0", "a", PARAM_INVALID),
        ("w/0/1/Variable; t/1/1/Cast; a/1/1/Assign; w:0 -> t:0; t:0 -> a:0", "t", PARAM_INVALID),
        ("w/0/1/Variable; a/2/0/Assign; w:0 -> a:0", "a", PARAM_INVALID),
    ],
)
def test_nodes_without_offsets(vm: VarManager, text: str, node: str, status: int) -> None:
    graph = graph_of(text)
    util = VarMemAssignUtil(vm, graph)
    util.assign_var_memory()
    message = graph.to_proto()
    with pytest.raises(GraphError, match="no output offsets") as caught:
        util.assign_var_attr2_nodes()
    assert (caught.value.node, caught.value.status) == (node, status)
    assert graph.to_proto() == message


def test_a_variable_without_memory(vm: VarManager) -> None:
    graph = make_graph("w/0/1/Variable")
    with pytest.raises(VariableError, match="w") as caught:
        VarMemAssignUtil(vm, graph).assign_var_attr2_nodes()
    assert caught.value.status == INTERNAL_ERROR
    with pytest.raises(GraphError, match="without outputs"):
        VarMemAssignUtil(vm, make_graph("w/0/0/Variable")).assign_var_attr2_nodes()


def with_ref(name: str) -> TensorDesc:
    return ROW.replace(attrs={"ref_var_src_var_name": ge_ir.AttrDef(s=name.encode())})


def ref_graph(source: str = "w", offsets: int = 2) -> ComputeGraph:
    graph = make_graph("w/0/1/Variable; d/0/1/RefData")
    node = graph.add_node(OpDesc("a", "AddN", outputs=[ROW, with_ref(source)]))
    node.op_desc.output_i = [7] * offsets
    return graph


def test_outputs_that_are_a_variable(vm: VarManager) -> None:
    graph = ref_graph()
    run(vm, graph)
    VarMemAssignUtil(vm, graph).assign_memory2_has_ref_attr_node()
    assert graph["a"].op_desc.output_i == (7, BASE)


def test_outputs_that_are_ref_data_stay(vm: VarManager) -> None:
    graph = ref_graph("d")
    VarMemAssignUtil(vm, graph).assign_memory2_has_ref_attr_node()
    assert graph["a"].op_desc.output_i == (7, 7)


def test_the_variable_may_be_in_another_graph_of_the_model(vm: VarManager) -> None:
    graph, first, second = make_graph("p/0/1/PartitionedCall; q/0/1/PartitionedCall"), ref_graph("x"), ComputeGraph("b")
    inner = ComputeGraph("a")
    for node in first:
        inner.add_node(node.op_desc.copy(node.name))
    for name, fmt in (("x", Format.FORMAT_NHWC), ("y", Format.FORMAT_ND)):
        second.add_node(OpDesc(name, "Variable", outputs=[ROW.replace(format=fmt)]))
    graph.add_subgraph(graph["p"], inner)
    graph.add_subgraph(graph["q"], second)
    util = VarMemAssignUtil(vm, graph)
    util.assign_var_memory()
    util.assign_memory2_has_ref_attr_node()
    assert inner["a"].op_desc.output_i == (7, second["x"].op_desc.output_i[0])


@pytest.mark.parametrize(
    ("source", "offsets", "status", "reason"),
    [
        ("nowhere", 2, FAILED, "'nowhere', which is no node"),
        ("w", 1, FAILED, "output 1 gets an offset, it has 1"),
        ("w", 0, PARAM_INVALID, "no output offsets"),
    ],
)
def test_outputs_that_cannot_be_a_variable(vm: VarManager, source: str, offsets: int, status: int, reason: str) -> None:
    graph = ref_graph(source, offsets)
    util = VarMemAssignUtil(vm, graph)
    util.assign_var_memory()
    message = graph.to_proto()
    with pytest.raises(GraphError, match=reason) as caught:
        util.assign_memory2_has_ref_attr_node()
    assert (caught.value.node, caught.value.status) == ("a", status)
    assert graph.to_proto() == message
