"""Graphs that call graphs, memory of the caller's, and what belongs to variables and cannot run."""

from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.errors import GraphError
from gevar.graph import AttrValue, ComputeGraph, Model, Node, OpDesc
from gevar.proto.ge_ir import AttrDef
from gevar.status import UNSUPPORTED
from gevar.types import DataType, DeviceId, Format, MemType, TensorDesc
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.training_graphs import F32, const, data, op, outputs, variable

ROW = TensorDesc(F32, Format.FORMAT_ND, (4,), size=16)
ONES = np.ones(4, np.float32)


def given(graph: ComputeGraph, index: int) -> Node:
    """What a graph that is called gets."""
    return graph.add_node(OpDesc(f"in_{index}", "Data", outputs=[ROW], attrs={"_parent_node_index": index}))


def ends(graph: ComputeGraph, *nodes: Node, first: int = 0) -> ComputeGraph:
    descs = [ROW.replace(attrs={"_parent_node_index": AttrDef(i=first + index)}) for index in range(len(nodes))]
    end = graph.add_node(OpDesc("end", "NetOutput", inputs=descs))
    for index, node in enumerate(nodes):
        node.out_data_anchor(0).link_to(end.in_data_anchor(index))
    return graph


def called(graph: ComputeGraph, name: str, body: ComputeGraph, sources: list[Node], count: int = 1) -> Node:
    call = graph.add_node(OpDesc(name, "PartitionedCall", inputs=[ROW] * len(sources), outputs=[ROW] * count))
    for index, source in enumerate(sources):
        source.out_data_anchor(0).link_to(call.in_data_anchor(index))
    graph.add_subgraph(call, body)
    return call


def adding() -> ComputeGraph:
    """Adds its second input to its first, which is a variable, and gives what it was doubled, and what it is."""
    body = ComputeGraph("adding")
    v, x = given(body, 0), given(body, 1)
    doubled = op(body, "doubled", "Add", [v, v], ROW)
    added = op(body, "added", "AssignAdd", [v, x], ROW)
    doubled.link_control_to(added)
    return ends(body, doubled, added)


def test_a_called_graph_writes_a_variable(host: HostControls, tmp_path: Path) -> None:
    options = {"ge.graph_compiler_cache_dir": str(tmp_path), "ge.graph_key": "k"}
    for start in range(2):
        graph = ComputeGraph("main")
        call = called(graph, "call", adding(), [variable(graph, "v", ROW), data(graph, "x", 0, ROW)], 2)
        graph.set_outputs(list(call.out_data_anchors))
        with Session(host_runtime(), options=options) as session:
            session.add_graph(1, graph if start == 0 else Model("any", graph).to_proto())
            compiled = session.compile(1)
            assert compiled.is_from_cache == (start == 1)
            assert compiled.graph.subgraph("adding")["v"].type == "Variable"
            session.var_manager.write("v", ONES)
            alive = None
            for step in range(3):
                doubled, added = session.run(1, [ONES])
                assert doubled.tolist() == (ONES * 2 * (step + 1)).tolist()
                assert added.tolist() == session.var_manager.read("v").tolist() == (ONES * (step + 2)).tolist()
                assert alive in (None, live_now(host))
                alive = live_now(host)
        assert graph.subgraph("adding").find_node("v") is None  # the caller's graph is as it was


def test_calls_in_calls(host: HostControls) -> None:
    """A body that calls another one, and hands an input on as it is."""
    inner = ComputeGraph("inner")
    ends(inner, op(inner, "sum", "Add", [given(inner, 0), const(inner, "two", ONES * 2, ROW)], ROW))
    outer = ComputeGraph("outer")
    x = given(outer, 0)
    ends(outer, called(outer, "again", inner, [x]), x)
    graph = ComputeGraph("main")
    call = called(graph, "call", outer, [data(graph, "x", 0, ROW)], 2)
    outputs(graph, op(graph, "twice", "Mul", [call, const(graph, "three", ONES * 3, ROW)], ROW))
    graph.set_outputs([graph["twice"].out_data_anchor(0), call.out_data_anchor(1)])
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        value, same = session.run(1, [ONES])
        assert (value.tolist(), same.tolist()) == ((ONES * 9).tolist(), ONES.tolist())


def _broken(kind: str) -> ComputeGraph:
    graph, body = ComputeGraph("main"), ComputeGraph("body")
    x = given(body, 3 if kind == "input" else 0)
    if kind == "output":
        ends(body, x, first=1)
    elif kind != "no end":
        ends(body, x)
    if kind == "kernel":
        op(body, "odd", "Softmax", [x], ROW)
    call = called(graph, "call", body, [data(graph, "x", 0, ROW)])
    if kind == "two bodies":
        graph.add_subgraph(call, ends(ComputeGraph("more")))
    if kind == "names":
        const(graph, "c", ONES, ROW)
        const(body, "c", ONES * 2, ROW)
    return outputs(graph, op(graph, "sum", "Add", [call, call], ROW))


@pytest.mark.parametrize(
    ("kind", "node", "words"),
    [
        ("input", "in_3", "input 3 of 'call', which is not linked"),
        ("output", "call", "no input of the NetOutput of 'body' is output 0"),
        ("no end", "call", "'body' that it runs has no NetOutput"),
        ("two bodies", "call", "runs 2 graphs; give it one"),
        ("kernel", "odd", "no host kernel for Softmax"),
        ("names", "c", "graph 'body' has a Const of this name, too"),
    ],
)
def test_a_call_that_cannot_be_computed(host: HostControls, kind: str, node: str, words: str) -> None:
    graph = _broken(kind)
    before = graph.to_proto().SerializeToString(deterministic=True)
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        state = session.var_manager.var_manager_to_bytes()
        with pytest.raises(GraphError, match=words) as caught:
            session.run(1, [ONES])
        assert (caught.value.node, caught.value.status) == (node, UNSUPPORTED)
        assert session.var_manager.var_manager_to_bytes() == state
    assert graph.to_proto().SerializeToString(deterministic=True) == before


def test_memory_of_the_caller_is_read_where_it_lies(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        memory, device = session.memory_manager, DeviceId(0)
        addr = memory.malloc_memory(MemType.RT_MEMORY_HBM, "mine", 16, device)
        memory.memcpy_in(addr, 16, ONES * 5, device)
        place: dict[str, AttrValue] = {"storage_shape": (4,), "dtype": DataType.DT_FLOAT, "size": 16}
        graph = ComputeGraph("main")
        holder = graph.add_node(
            OpDesc("mine", "ConstPlaceHolder", outputs=[ROW], attrs={**place, "placement": 1, "addr": addr})
        )
        session.add_graph(1, outputs(graph, op(graph, "sum", "Add", [holder, holder], ROW)))
        assert session.run(1)[0].tolist() == [10] * 4
        memory.memcpy_in(addr, 16, ONES * 6, device)
        assert session.run(1)[0].tolist() == [12] * 4
        session.remove_graph(1)
        memory.memcpy_in(addr, 16, ONES, device)  # it is still there
        memory.free_memory(MemType.RT_MEMORY_HBM, addr, device)


@pytest.mark.parametrize("kind", ["FileConstant", "ConstPlaceHolder", "PartitionedCall"])
def test_what_cannot_write_its_output_elsewhere_is_copied_to_the_variable(
    host: HostControls, kind: str, tmp_path: Path
) -> None:
    """The Assign of a value that is no constant to the compiler is removed, and the value marked with the variable."""
    (tmp_path / "w.bin").write_bytes((ONES * 7).tobytes())
    with Session(host_runtime(), options={"ge.externalWeightDir": str(tmp_path)}) as session:
        graph, memory, device = ComputeGraph("main"), session.memory_manager, DeviceId(0)
        addr = memory.malloc_memory(MemType.RT_MEMORY_HBM, "mine", 16, device)
        memory.memcpy_in(addr, 16, ONES * 7, device)
        places: dict[str, dict[str, AttrValue]] = {
            "FileConstant": {"location": "w.bin", "offset": 0, "length": 16},
            "ConstPlaceHolder": {
                "storage_shape": (4,),
                "dtype": DataType.DT_FLOAT,
                "size": 16,
                "placement": 1,
                "addr": addr,
            },
        }
        if kind in places:
            value = graph.add_node(OpDesc("value", kind, outputs=[ROW], attrs=places[kind]))
        else:
            body = ComputeGraph("body")
            value = called(graph, "value", ends(body, given(body, 0)), [data(graph, "x", 0, ROW)])
        op(graph, "set", "Assign", [variable(graph, "v", ROW), value], ROW)
        session.add_graph(1, graph)
        session.run(1, [ONES * 7] if kind == "PartitionedCall" else [])
        assert "set" not in session.compile(1).graph
        assert session.var_manager.read("v").tolist() == [7] * 4
        memory.free_memory(MemType.RT_MEMORY_HBM, addr, device)


def test_memory_of_the_caller_that_is_none(host: HostControls) -> None:
    graph = ComputeGraph("main")
    place: dict[str, AttrValue] = {"storage_shape": (4,), "dtype": DataType.DT_FLOAT, "size": 8}
    holder = graph.add_node(
        OpDesc("mine", "ConstPlaceHolder", outputs=[ROW], attrs={**place, "placement": 1, "addr": 4096})
    )
    with Session(host_runtime()) as session:
        session.add_graph(1, outputs(graph, op(graph, "sum", "Add", [holder, holder], ROW)))
        with pytest.raises(GraphError, match="needs 16 B, size is 8 B") as caught:
            session.run(1)
        assert caught.value.node == "mine"
        assert session.var_manager.table() == ()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("VariableV2", "gives it no memory when a graph is compiled; make it a Variable"),
        ("RefData", "memory of the caller"),
        ("VarHandleOp", "make it a Variable"),
        ("While", "chooses a graph while it runs"),
        ("Case", "chooses a graph while it runs"),
    ],
)
def test_what_belongs_to_variables_and_cannot_run_says_why(host: HostControls, kind: str, words: str) -> None:
    graph = ComputeGraph("main")
    node = graph.add_node(OpDesc("it", kind, outputs=[ROW]))
    outputs(graph, op(graph, "sum", "Add", [node, node], ROW))
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        with pytest.raises(GraphError, match=f"no host kernel for {kind}; .*{words}") as caught:
            session.compile(1)
        assert (caught.value.node, caught.value.status) == ("it", UNSUPPORTED)
