"""Graphs that are compiled after a variable was given another format."""

from itertools import count

import pytest

from gevar.compile import PassContext
from gevar.compile.update_variable_formats import UpdateVariableFormats
from gevar.compile.variable_op_pass import VariableOpPass
from gevar.compile.variable_prepare_op_pass import VariablePrepareOpPass
from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from gevar.types import DataType
from gevar.var import TransNodeInfo
from tests.helpers.compile_graphs import DESCS, changes, compile_graph, made, manager_of, refusals, run, session
from tests.helpers.graphs import edges

TO_5HD = TransNodeInfo("TransData", DESCS["F4"], DESCS["F5"])
TO_HALF = TransNodeInfo("Cast", DESCS["F5"], DESCS["N5"])


def updated(text: str, *road: TransNodeInfo, name: str = "w") -> ComputeGraph:
    graph = compile_graph(text, graph_id=2)
    context = session(graph)
    manager_of(context).set_trans_road(name, road)
    run(graph, UpdateVariableFormats(count(), count()), context=context)
    return graph


def test_the_road_is_undone_behind_the_variable() -> None:
    graph = updated("w Variable = F4 _stream_label=s; r Relu w = F4; q Relu w = F4; n NoOp; w => n", TO_5HD, TO_HALF)
    assert edges(graph) == {
        *("w:0 -> w_trans_0:0", "w_trans_0:0 -> w_trans_1:0", "w_trans_1:0 -> r:0", "w_trans_1:0 -> q:0"),
        "w_trans_1 => n",
    }
    assert [(graph[f"w_trans_{n}"].type, made(graph[f"w_trans_{n}"])) for n in (0, 1)] == [
        ("Cast", "F5"),
        ("TransData", "F4"),
    ]
    assert graph["w_trans_0"].op_desc.input_desc(0) == DESCS["N5"]
    assert made(graph["w"]) == "N5"
    attrs = graph["w_trans_0"].op_desc.attrs
    assert (attrs["_stream_label"], attrs["_inserted_by_ge"]) == ("s", True)


def test_the_road_is_gone_before_a_ref_node() -> None:
    graph = updated(
        "w Variable = F4; c Const = F4; a Assign w c; w_ref Variable a = F4 ref:w; n NoOp; n => w_ref", TO_5HD, TO_HALF
    )
    assert {
        *("a:0 -> w_ref_trans_1:0", "w_ref_trans_1:0 -> w_ref_trans_0:0", "w_ref_trans_0:0 -> w_ref:0"),
        *("n => w_ref_trans_1", "w_trans_1:0 -> a:0"),
    } <= edges(graph)
    assert [graph[f"w_ref_trans_{n}"].type for n in (1, 0)] == ["TransData", "Cast"]
    assert graph["w_ref"].op_desc.input_desc(0).same_description(DESCS["N5"])
    assert made(graph["w_ref"]) == "N5"


def test_inputs_and_origins_follow_the_road() -> None:
    end = DESCS["F5"].replace(origin_shape=(7,), origin_dtype=DataType.DT_BF16)
    graph = updated("x Const = F4; w Variable x = F4; r Relu w = F4", TransNodeInfo("TransData", DESCS["F4"], end))
    for desc in (graph["w"].op_desc.input_desc(0), graph["w"].op_desc.output_desc(0)):
        assert (desc.shape, desc.origin_shape, desc.origin_dtype) == (end.shape, (7,), DataType.DT_BF16)


def test_other_nodes_are_left_alone() -> None:
    for text in ("w VariableV2 = F4; r Relu w = F4", "v Variable = F4; r Relu v = F4"):
        graph = updated(text, TO_5HD)
        assert (len(graph), made(graph["r"])) == (2, "F4")


def test_an_empty_road_changes_nothing() -> None:
    graph = updated("w Variable = F4; r Relu w = F4")
    assert edges(graph) == {"w:0 -> r:0"}


def test_ref_nodes_are_converted_once_though_the_variable_is_in_two_graphs() -> None:
    graph = compile_graph("w Variable = F4; c Const = F4; a Assign w c; w_ref Variable a = F4 ref:w; p PartitionedCall")
    graph.add_subgraph(graph["p"], compile_graph("w Variable = F4; r Relu w = F4", "body"))
    context = session(graph)
    manager_of(context).set_trans_road("w", [TO_5HD])
    run(graph, UpdateVariableFormats(count(), count()), context=context)
    names = [node.name for node in graph.all_nodes() if "_trans_" in node.name]
    assert sorted(names) == ["w_ref_trans_0", "w_trans_0", "w_trans_1"]


def test_names_are_numbered_over_the_process() -> None:
    names = []
    for _ in range(2):
        graph = compile_graph("w Variable = F4; r Relu w = F4")
        context = session(graph)
        manager_of(context).set_trans_road("w", [TO_5HD])
        run(graph, UpdateVariableFormats(), context=context)
        names += [node.name for node in graph if node.name.startswith("w_trans_")]
    first, second = (int(name.rpartition("_")[2]) for name in names)
    assert second == first + 1


@pytest.mark.parametrize(
    ("text", "road", "words"),
    [
        ("w Variable = F4", [TO_HALF, TO_5HD], "the steps of its road do not fit"),
        ("w Variable = N4", [TO_5HD], "is NCHW DT_FLOAT16 .* starts at NCHW DT_FLOAT "),
        ("w Variable = D2", [TO_5HD], r"is ND DT_FLOAT \[3, 4\] here"),
        ("w Variable = F4; w_ref Variable -@F4 = F4 ref:w", [TO_5HD], "'w_ref': .*input 0 is not linked"),
    ],
)
def test_a_road_that_is_not_that_of_the_variable_is_refused(text: str, road: list[TransNodeInfo], words: str) -> None:
    graph = compile_graph(text)
    context = session(graph)
    manager_of(context).set_trans_road("w", road)
    before = graph.to_proto()
    with pytest.raises(GraphError, match=words):
        run(graph, UpdateVariableFormats(), context=context)
    assert graph.to_proto() == before


def test_the_next_graph_takes_what_the_first_one_changed() -> None:
    first = compile_graph("w Variable = F4; t TransData w = F5; r Relu t = F5")
    context = session(first, ["w"])
    run(first, VariableOpPass(), context=context)
    later = compile_graph("w Variable = F4; c Const = F4; a AssignAdd w c; out NetOutput a", graph_id=2)
    again = PassContext(context.var_manager, context.rebuild_control)
    run(later, VariablePrepareOpPass(), UpdateVariableFormats(count(), count()), VariableOpPass(), context=again)
    assert made(later["w"]) == "F5"
    assert {"w:0 -> w_trans_0:0", "w_trans_0:0 -> a:0", "a:0 -> w_TO_a_REF_0_trans_0:0"} <= edges(later)
    assert len(changes(again)) == 2
    assert context.rebuild_control is not None
    assert not context.rebuild_control.is_graph_need_rebuild(2)


def test_a_road_of_a_restored_session_is_not_left_again() -> None:
    """Nothing counted the change in this process; to fold the conversions back would leave the manager's road."""
    graph = compile_graph("w Variable = F4; r Relu w = F4", graph_id=2)
    context = session(graph)
    manager_of(context).set_trans_road("w", [TO_5HD])
    run(graph, UpdateVariableFormats(count(), count()), VariableOpPass(), context=context)
    assert (made(graph["w"]), edges(graph)) == ("F5", {"w:0 -> w_trans_0:0", "w_trans_0:0 -> r:0"})
    assert context.changed_names == []
    assert manager_of(context).get_trans_road("w") == (TO_5HD,)
    assert manager_of(context).get_changed_graph_id("w") is None
    assert refusals(context) == {"w": "it was given another format once in this session"}
    # another graph of the same context, whose variable nobody took so, is free
    other = compile_graph("v Variable = F4; t TransData v = F5; r Relu t = F5", graph_id=3)
    run(other, UpdateVariableFormats(), VariableOpPass(), context=context)
    assert context.changed_names == ["v"]
