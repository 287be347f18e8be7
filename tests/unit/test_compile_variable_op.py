"""Folding trans ops into variables: what is folded, what is refused and why, what manager and rebuild control learn."""

import pytest

from gevar.compile import PassContext, PassManager
from gevar.compile.trans_support import is_registered, unsupported_reason
from gevar.compile.variable_op_pass import VariableOpPass, road_text
from gevar.errors import GraphError, StateError
from gevar.graph import ComputeGraph, OpDesc
from gevar.status import GE_GRAPH_VARIABLE_OP_PASS_FAILED, INTERNAL_ERROR
from gevar.types import DataType, Format
from gevar.var import TransNodeInfo, VarManager
from tests.helpers.compile_graphs import DESCS, changes, compile_graph, made, manager_of, refusals, run, session
from tests.helpers.graphs import edges

WRITTEN_BACK = """
    w Variable = N4
    t1 TransData w = N5
    r1 Relu t1 = N5
    am Apply r1 = N5
    b TransData am = N4
    w_ref Variable b = N4 ref:w
"""


def fused(text: str, *known: str) -> tuple[ComputeGraph, PassContext]:
    graph = compile_graph(text)
    return graph, run(graph, VariableOpPass(), context=session(graph, known))


def refused(text: str, *words: str) -> None:
    """Check that nothing is folded, the reason, and that only what the manager knows is staged."""
    graph = compile_graph(text)
    before = edges(graph)
    context = run(graph, VariableOpPass(), context=session(graph, ["w"]))
    manager = manager_of(context)
    assert edges(graph) == before
    assert all(word in refusals(context)["w"] for word in words), refusals(context)
    assert (changes(context), manager.get_trans_road("w"), manager.get_changed_graph_id("w")) == ([], None, None)
    assert set(manager.get_staged_var_descs(1)) == {"w"}
    assert context.rebuild_control is not None
    assert context.rebuild_control.is_var_permit_to_change_formats("w")


def road_of(context: PassContext, name: str = "w") -> str:
    return road_text(manager_of(context).get_trans_road(name) or ())


# --- what is folded ---------------------------------------------------------------------------------------------------


def test_a_reader_is_folded() -> None:
    graph, context = fused("w Variable = N4; t TransData w = N5; r Relu t = N5", "w")
    assert edges(graph) == {"w:0 -> r:0"}
    assert made(graph["w"]) == "N5"
    assert road_of(context) == ("NCHW DT_FLOAT16 [1, 3, 2, 2] -TransData-> NC1HWC0 C0=16 DT_FLOAT16 [1, 1, 2, 2, 16]")
    manager, control = manager_of(context), context.rebuild_control
    assert manager.get_changed_graph_id("w") == 1
    assert manager.get_cur_var_desc("w").format == Format.FORMAT_NCHW
    assert manager.get_staged_var_descs(1)["w"].format == Format.FORMAT_NCHW
    assert control is not None
    assert (control.is_graph_need_rebuild(1), control.is_var_permit_to_change_formats("w")) == (True, False)


def test_readers_and_the_inverse_writer_go_together() -> None:
    graph, _ = fused(WRITTEN_BACK + "t2 TransData w = N5; r2 Relu t2 = N5")
    assert edges(graph) == {"w:0 -> r1:0", "r1:0 -> am:0", "am:0 -> w_ref:0", "w:0 -> r2:0"}
    assert [made(graph[name]) for name in ("w", "w_ref")] == ["N5", "N5"]
    assert graph["w_ref"].op_desc.input_desc(0) == graph["w"].op_desc.output_desc(0)


def test_a_shared_inverse_stays_for_the_others() -> None:
    graph, _ = fused(WRITTEN_BACK + "log Relu b = N4; n NoOp; n => b")
    assert {"am:0 -> b:0", "am:0 -> w_ref:0", "b:0 -> log:0", "n => b", "n => w_ref"} <= edges(graph)


def test_one_inverse_for_two_ref_nodes_goes_with_the_last() -> None:
    graph, _ = fused(WRITTEN_BACK + "w_ref2 Variable b = N4 ref:w")
    assert {"am:0 -> w_ref:0", "am:0 -> w_ref2:0"} <= edges(graph)
    assert "b" not in graph


def test_round_after_round_is_folded() -> None:
    graph, context = fused("w Variable = F4; t TransData w = F5; c Cast t = N5; r Relu c = N5")
    assert edges(graph) == {"w:0 -> r:0"}
    assert [step.node_type for step in manager_of(context).get_trans_road("w") or ()] == ["TransData", "Cast"]
    assert refusals(context)["w"].startswith("no step after the 2 of its road: reader 'r' (Relu)")


def test_a_gap_in_the_format_is_filled() -> None:
    graph, context = fused("w Variable = D4; c Cast w@F4 = N4; r Relu c = N4")
    assert made(graph["w"]) == "N4"
    assert graph["w"].op_desc.output_desc(0).origin_format == Format.FORMAT_ND
    assert [step.node_type for step in manager_of(context).get_trans_road("w") or ()] == ["ReFormat", "Cast"]


def test_no_gap_where_only_the_shape_differs() -> None:
    _, context = fused("w Variable = D2; c Reshape w@D4 = F4; r Relu c = F4")
    assert [step.node_type for step in manager_of(context).get_trans_road("w") or ()] == ["Reshape"]


def test_steps_that_move_nothing_renew_the_manager() -> None:
    graph, context = fused("w Variable = D2; s Reshape w = F4; r Relu s = F4", "w")
    current = manager_of(context).get_cur_var_desc("w")
    assert (current.format, current.shape) == (Format.FORMAT_NCHW, (3, 4))
    assert graph["w"].op_desc.output_desc(0).origin_shape == (1, 3, 2, 2)


def test_other_readers_need_not_be_of_the_same_type() -> None:
    graph, context = fused("w Variable = F4; a Cast w = N4; b ReFormat w = N4; r Relu a = N4; s Relu b = N4")
    assert edges(graph) == {"w:0 -> r:0", "w:0 -> s:0"}
    assert [step.node_type for step in manager_of(context).get_trans_road("w") or ()] == ["ReFormat"]


def test_the_order_through_a_trans_op_stays() -> None:
    graph, _ = fused("w Variable = N4; t TransData w = N5; r Relu t = N5; a NoOp; z NoOp; a => t; t => z")
    assert edges(graph) == {"w:0 -> r:0", "a => r", "a => z", "w => z"}


def test_a_variable_in_two_graphs_is_folded_in_both() -> None:
    graph = compile_graph("w Variable = N4; t TransData w = N5; r Relu t = N5; p PartitionedCall r = N5")
    body = compile_graph("w Variable = N4; u TransData w = N5; q Relu u = N5", "body")
    graph.add_subgraph(graph["p"], body)
    context = run(graph, VariableOpPass())
    assert [made(one["w"]) for one in (graph, body)] == ["N5", "N5"]
    assert len([text for text in changes(context) if "road" in text]) == 1


def test_a_node_of_the_variable_that_nobody_reads_takes_the_form_too() -> None:
    graph = compile_graph(WRITTEN_BACK + "p PartitionedCall")
    body = compile_graph("w Variable = N4", "body")
    graph.add_subgraph(graph["p"], body)
    run(graph, VariableOpPass())
    assert [made(one) for one in (graph["w"], body["w"], graph["w_ref"])] == ["N5", "N5", "N5"]


def test_variables_are_folded_by_themselves() -> None:
    graph, context = fused(
        "b Variable = N4; a Variable = N4; t TransData a = N5; r Relu t = N5; u TransData b = N5; s Relu b = N4"
    )
    assert (made(graph["a"]), made(graph["b"])) == ("N5", "N4")
    assert set(refusals(context)) == {"a", "b"}


def test_a_ref_node_fed_by_the_reader_itself() -> None:
    graph, _ = fused("w Variable = N4; t ReFormat w = N4; w_ref Variable t = N4 ref:w; r Relu t = N4")
    assert edges(graph) == {"w:0 -> w_ref:0", "w:0 -> r:0"}


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("w Variable = N4; a TransData w = N5; b TransData w = N4", ["different things", "'a' makes NC1HWC0", "'b'"]),
        ("w Variable = N4; a TransData w = N5; b Relu w = N4", ["reader 'b' (Relu) is no trans op"]),
        ("w Variable = U4; a TransData w = U5", ["'a': TransData makes", "unknown dimension"]),
        ("w Variable = H4; a TransData w = F5", ["from HWCN to NC1HWC0 C0=16 is no conversion"]),
        ("w Variable = N4; a Cast w = B", ["Cast from DT_FLOAT16 to DT_BOOL is no conversion"]),
        ("w Variable = N4; a Transpose w = N4", ["'a': Transpose has no conversion"]),
        ("w Variable = N4; a Squeeze w = N4", ["Squeeze has no conversion"]),
        ("w Variable = N4", ["nobody reads it"]),
        ("w Variable = N4; x Const = N4; s Reshape x w = N4", ["'s' (Reshape)", "in input 1"]),
        (WRITTEN_BACK.replace("b TransData am = N4", "b TransData am = F4"), ["'b' (TransData)", "does not undo 't1'"]),
        (WRITTEN_BACK.replace("am Apply r1 = N5", "am Apply r1 = F5"), ["'b'", "NC1HWC0 C0=16 DT_FLOAT "]),
        (WRITTEN_BACK.replace("b TransData am = N4", "b Apply = N4"), ["it has no input to NCHW"]),
    ],
)
def test_refusals(text: str, words: list[str]) -> None:
    refused(text, *words)


def test_an_inverse_of_any_type_counts() -> None:
    graph, _ = fused(WRITTEN_BACK.replace("b TransData am = N4", "b Assign am am = N4"))
    assert "am:0 -> w_ref:0" in edges(graph)


def test_a_later_refusal_keeps_what_was_folded() -> None:
    graph, context = fused(
        "w Variable = F4; t TransData w = F5; c Cast t = N5; r Relu c = N5; am Apply r@F5 = F5; "
        "b TransData am = F4; w_ref Variable b = F4 ref:w"
    )
    assert [step.node_type for step in manager_of(context).get_trans_road("w") or ()] == ["TransData"]
    assert (made(graph["w"]), made(graph["w_ref"])) == ("F5", "F5")
    assert edges(graph) == {"w:0 -> c:0", "c:0 -> r:0", "r:0 -> am:0", "am:0 -> w_ref:0"}
    assert "after the 1 of its road" in refusals(context)["w"]


def test_a_variable_changes_once() -> None:
    _, context = fused("w Variable = N4; t TransData w = N5; r Relu t = N5", "w")
    again = compile_graph("w Variable = N5; c TransData w = N4; r Relu c = N4", graph_id=2)
    run(again, VariableOpPass(), context=context)
    assert "once in this session" in refusals(context)["w"]
    assert made(again["w"]) == "N5"
    assert manager_of(context).get_changed_graph_id("w") == 1


def test_a_subgraph_alone_is_left() -> None:
    graph, body = compile_graph("p PartitionedCall"), compile_graph("w Variable = N4; t TransData w = N5", "body")
    graph.add_subgraph(graph["p"], body)
    context = session(body)
    PassManager([VariableOpPass()]).run(body, context)
    assert "t" in body
    assert "it is a subgraph" in refusals(context)["body"]


def test_nothing_is_done_where_batches_share_variables() -> None:
    graph = compile_graph("w Variable = N4; t TransData w = N5; r Relu t = N5")
    context = session(graph, ["w"])
    manager_of(context).set_batch_variables_key_name("w_batch", "w")
    run(graph, VariableOpPass(), context=context)
    assert "t" in graph
    assert manager_of(context).get_staged_var_descs(1) == {}


def test_the_first_road_of_a_variable_stays() -> None:
    graph = compile_graph("w Variable = N4; t TransData w = N5; r Relu t = N5")
    context = session(graph, ["w"])
    first = TransNodeInfo("Cast", DESCS["F4"], DESCS["N4"])
    manager_of(context).set_trans_road("w", [first])
    run(graph, VariableOpPass(), context=context)
    assert manager_of(context).get_trans_road("w") == (first,)
    assert manager_of(context).get_changed_graph_id("w") == 1
    (warning,) = context.log.records[0].warnings
    assert warning.startswith("'w' has a road already: the first one is kept")


# --- what fails -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("producers", ["", "b am"])
def test_a_ref_node_has_one_producer(producers: str) -> None:
    graph = compile_graph(WRITTEN_BACK.replace("w_ref Variable b", f"w_ref Variable {producers}"))
    before, context = graph.to_proto(), session(graph, ["w"])
    with pytest.raises(GraphError, match=rf"node 'w_ref': .*{len(producers.split())} producers") as caught:
        run(graph, VariableOpPass(), context=context)
    assert caught.value.status == GE_GRAPH_VARIABLE_OP_PASS_FAILED
    assert graph.to_proto() == before
    assert manager_of(context).get_staged_var_descs(1) == {}


def test_an_inverse_without_a_producer_is_an_error() -> None:
    graph = compile_graph(WRITTEN_BACK.replace("b TransData am", "b TransData -@N5"))
    with pytest.raises(GraphError, match="node 'b': VariableOpPass: input 0 is not linked"):
        run(graph, VariableOpPass())


def test_a_trans_op_without_an_output_is_an_error() -> None:
    graph = compile_graph("w Variable = N4")
    node = graph.add_node(OpDesc("t", "TransData", inputs=[DESCS["N4"]]))
    graph["w"].out_data_anchor(0).link_to(node.in_data_anchor(0))
    with pytest.raises(GraphError, match="node 't': VariableOpPass: output 0 is asked for, it has 0 outputs"):
        run(graph, VariableOpPass())


def test_manager_and_rebuild_control_are_needed() -> None:
    graph = compile_graph("w Variable = N4")
    context = session(graph)
    for broken in (PassContext(None, context.rebuild_control), PassContext(context.var_manager, None)):
        with pytest.raises(GraphError, match="give one") as caught:
            run(graph, VariableOpPass(), context=broken)
        assert caught.value.status == INTERNAL_ERROR
    with pytest.raises(StateError, match="call init before graph 'main'") as state:
        run(graph, VariableOpPass(), context=PassContext(VarManager(3), context.rebuild_control))
    assert state.value.status == INTERNAL_ERROR


def test_a_format_that_the_variable_has_in_another_form_is_an_error() -> None:
    graph = compile_graph("w Variable = N4")
    context = session(graph, ["w"])
    manager = manager_of(context)
    manager.assign_var_mem("w", None, DESCS["N4"].replace(format=Format.FORMAT_ND))
    with pytest.raises(GraphError, match=r"node 'w': VariableOpPass: .*there already") as caught:
        run(graph, VariableOpPass(), context=context)
    assert caught.value.status == GE_GRAPH_VARIABLE_OP_PASS_FAILED
    assert manager.get_staged_var_descs(1) == {}


# --- conversions ------------------------------------------------------------------------------------------------------


def cast_reason(source: DataType, target: DataType) -> str:
    step = TransNodeInfo("Cast", DESCS["N4"].replace(dtype=source), DESCS["N4"].replace(dtype=target))
    return unsupported_reason(step)


def test_what_ge_converts() -> None:
    pairs = [(a, b) for a in Format for b in Format if is_registered(a, b)]
    assert len(pairs) == 42
    assert cast_reason(DataType.DT_FLOAT, DataType.DT_FLOAT16) == ""
    assert "Cast from DT_DOUBLE to DT_FLOAT" in cast_reason(DataType.DT_DOUBLE, DataType.DT_FLOAT)
    types = list(DataType)
    assert sum(not cast_reason(one, other) for one in types for other in types) == 20
    assert (Format.FORMAT_FRACTAL_Z, Format.FORMAT_ND) not in pairs


def test_unknown_dimensions_come_first() -> None:
    step = TransNodeInfo("Transpose", DESCS["U4"], DESCS["U5"])
    assert "unknown dimension" in unsupported_reason(step)
    assert unsupported_reason(TransNodeInfo("SqueezeV2", DESCS["U4"], DESCS["D2"])) == ""
