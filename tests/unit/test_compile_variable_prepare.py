"""Ref nodes behind writers of variables, and the check that nothing writes a constant."""

import pytest

from gevar.compile.ref_input_check import CheckRefInputNode
from gevar.compile.ref_table import REF_PORT_INDEX, RefTable, refs_of
from gevar.compile.variable_prepare_op_pass import VariablePrepareOpPass
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, OpDesc
from gevar.proto.ge_ir import AttrDef, AttrDef_ListValue
from gevar.status import FAILED, PARAM_INVALID
from tests.helpers.compile_graphs import DESCS, changes, compile_graph, refusals, run, session
from tests.helpers.graphs import edges

N4 = DESCS["N4"]
WRITTEN = N4.replace(attrs={REF_PORT_INDEX: AttrDef(list=AttrDef_ListValue(i=[0]))})


def prepared(text: str) -> ComputeGraph:
    graph = compile_graph(text)
    run(graph, VariablePrepareOpPass())
    return graph


def with_scatter(text: str) -> ComputeGraph:
    """A graph in which `s` writes its input 0 without an output for it."""
    graph = compile_graph("w Variable = N4; c Const = N4")
    node = graph.add_node(OpDesc("s", "Scatter", inputs=[WRITTEN, N4], outputs=[N4]))
    graph["w"].out_data_anchor(0).link_to(node.in_data_anchor(0))
    graph["c"].out_data_anchor(0).link_to(node.in_data_anchor(1))
    for line in filter(None, text.split(";")):
        name, op_type = line.split()
        reader = graph.add_node(OpDesc(name, op_type, inputs=[N4], outputs=[N4]))
        node.out_data_anchor(0).link_to(reader.in_data_anchor(0))
    return graph


# --- the table --------------------------------------------------------------------------------------------------------


def test_an_input_is_written_where_an_output_has_its_name() -> None:
    both = OpDesc("a", "Apply", inputs={"m": N4, "x": N4, "v": N4}, outputs={"v": N4, "y": N4, "m": N4})
    assert refs_of(both) == {0: (2,), 2: (0,)}
    assert refs_of(OpDesc("a", "Apply", inputs=[N4], outputs=[N4])) == {}
    assert refs_of(OpDesc("a", "Apply", inputs={"x": N4}, outputs=[N4])) == {}


def test_a_ref_port_means_written_without_an_output() -> None:
    assert refs_of(OpDesc("a", "Apply", inputs=[N4, WRITTEN], outputs=[N4, N4])) == {1: (2,)}
    assert refs_of(OpDesc("a", "Apply", inputs={"x": WRITTEN}, outputs={"x": N4})) == {0: (0,)}
    empty = N4.replace(attrs={REF_PORT_INDEX: AttrDef(list=AttrDef_ListValue())})
    assert refs_of(OpDesc("a", "Apply", inputs=[empty])) == {}


def test_a_type_is_judged_by_its_first_node_with_refs() -> None:
    table, graph = RefTable(), ComputeGraph("g")
    plain = graph.add_node(OpDesc("a", "Apply", inputs=[N4], outputs=[N4]))
    table.learn(graph)
    assert not table
    graph.add_node(OpDesc("b", "Apply", inputs={"x": N4}, outputs={"x": N4}))
    other = graph.add_node(OpDesc("c", "Apply", inputs={"x": N4, "y": N4}, outputs={"y": N4}))
    table.learn(graph)
    assert table
    assert [table.ref_outputs(node, 0) for node in (plain, other)] == [(0,), (0,)]
    assert table.ref_outputs(other, 1) == ()


def test_a_framework_op_has_only_the_refs_of_its_framework_type() -> None:
    table, graph = RefTable(), ComputeGraph("g")
    switch = OpDesc("s", "FrameworkOp", inputs={"x": N4}, outputs={"x": N4}, attrs={"original_type": "RefSwitch"})
    node = graph.add_node(switch)
    table.learn(graph)
    assert (table.ref_outputs(node, 0), table.ref_outputs(node, 1)) == ((0, 1), ())
    node.op_desc.attrs["original_type"] = "Switch"
    assert table.ref_outputs(node, 0) == ()
    del node.op_desc.attrs["original_type"]
    assert table.ref_outputs(node, 0) == ()


# --- the pass ---------------------------------------------------------------------------------------------------------


def test_only_the_last_writer_gets_a_ref_node() -> None:
    graph = prepared("w Variable = N4; c Const = N4; a1 Assign w c; a2 AssignAdd a1 c; out NetOutput a2")
    assert [node.name for node in graph if node.name.startswith("w_")] == ["w_TO_a2_REF_0"]
    ref = graph["w_TO_a2_REF_0"]
    assert (ref.type, ref.op_desc.attrs["ref_var_src_var_name"]) == ("Variable", "w")
    assert ref.op_desc.input_descs == ref.op_desc.output_descs == (N4,)
    assert {"a2:0 -> w_TO_a2_REF_0:0", "w_TO_a2_REF_0 => out"} <= edges(graph)


def test_a_writer_that_something_waits_for_gets_one_too() -> None:
    graph = prepared(
        "w Variable = N4; c Const = N4; a1 Assign w c; a2 AssignAdd a1 c; out NetOutput a2; n NoOp; a1 => n"
    )
    assert {"a1:0 -> w_TO_a1_REF_0:0", "w_TO_a1_REF_0 => a2", "w_TO_a1_REF_0 => n"} <= edges(graph)
    assert "w_TO_a2_REF_0" in graph


def test_a_second_run_adds_nothing() -> None:
    graph = prepared("w Variable = N4; c Const = N4; a Assign w c; out NetOutput a")
    before = edges(graph)
    context = run(graph, VariablePrepareOpPass())
    assert (edges(graph), changes(context)) == (before, [])


def test_every_reader_of_a_variable_is_followed() -> None:
    graph = prepared("w RefData = N4; c Const = N4; a Assign w c; b Assign w c; r Relu w = N4")
    assert {"w_TO_a_REF_0", "w_TO_b_REF_0"} <= {node.name for node in graph}
    assert graph["w_TO_a_REF_0"].type == "RefData"


def test_a_write_without_an_output_is_read_through_a_bridge() -> None:
    graph = with_scatter("r Relu")
    run(graph, VariablePrepareOpPass())
    bridge, ref = graph["RefIdentity_w_0_TO_s_0"], graph["w_TO_s_REF_0"]
    assert (bridge.type, bridge.op_desc.input_desc(0)) == ("RefIdentity", WRITTEN)
    assert edges(graph) == {
        *("w:0 -> RefIdentity_w_0_TO_s_0:0", "RefIdentity_w_0_TO_s_0:0 -> s:0", "c:0 -> s:1", "s:0 -> r:0"),
        *("RefIdentity_w_0_TO_s_0:0 -> w_TO_s_REF_0:0", "s => w_TO_s_REF_0", "w_TO_s_REF_0 => r"),
    }
    assert ref.op_desc.attrs["ref_var_src_var_name"] == "w"


def test_the_ref_node_takes_the_stream_of_the_writer() -> None:
    graph = prepared("w Variable = N4; c Const = N4; a Assign w c = N4 _stream_label=s1; b Assign w c")
    assert graph["w_TO_a_REF_0"].op_desc.attrs["_stream_label"] == "s1"
    assert "_stream_label" not in graph["w_TO_b_REF_0"].op_desc.attrs


@pytest.mark.parametrize("merge", ["RefMerge m", "FrameworkOp m original_type=RefMerge"])
def test_a_merge_waits_through_an_identity(merge: str) -> None:
    op_type, name, *attrs = merge.split()
    graph = prepared(f"w Variable = N4; c Const = N4; a Assign w c; {name} {op_type} a = N4 {' '.join(attrs)}")
    guard = graph["Identity_a_TO_m_0"]
    assert (guard.op_desc.input_name(0), guard.op_desc.output_name(0), guard.type) == ("x", "y", "Identity")
    assert {"a:0 -> Identity_a_TO_m_0:0", "Identity_a_TO_m_0:0 -> m:0"} <= edges(graph)
    assert "w_TO_a_REF_0 => Identity_a_TO_m_0" in edges(graph)
    assert "w_TO_a_REF_0 => m" not in edges(graph)


def test_a_switch_is_followed_through_both_outputs() -> None:
    graph = prepared(
        "w Variable = N4; c Const = N4; s FrameworkOp w c = N4 N4 original_type=RefSwitch; "
        "a Assign s:0 c; b Assign s:1 c"
    )
    assert {"w_TO_a_REF_0", "w_TO_b_REF_0"} <= {node.name for node in graph}
    assert not any("_TO_s_" in node.name for node in graph)


def test_a_framework_op_without_its_type_fails_the_pass() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign w c; f FrameworkOp a = N4")
    before = graph.to_proto()
    with pytest.raises(GraphError, match=r"node 'f': VariablePrepareOpPass: .*original_type") as caught:
        run(graph, VariablePrepareOpPass())
    assert caught.value.status == FAILED
    assert graph.to_proto() == before


def test_a_name_that_is_taken_is_an_error() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign w c; w_TO_a_REF_0 NoOp")
    with pytest.raises(GraphError, match=r"'w_TO_a_REF_0'.*taken"):
        run(graph, VariablePrepareOpPass())


def test_a_variable_without_an_output_is_left_alone() -> None:
    graph = compile_graph("c Const = N4; v Variable = N4; a Assign v c")
    odd = graph.add_node(OpDesc("odd", "Variable"))
    run(graph, VariablePrepareOpPass())
    assert odd.out_nodes == ()


def test_a_writer_whose_written_input_is_not_linked_is_never_reached() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign -@N4 c")
    context = run(graph, VariablePrepareOpPass())
    assert changes(context) == []


def test_nothing_to_do_is_said() -> None:
    context = run(compile_graph("w Variable = N4; r Relu w = N4"), VariablePrepareOpPass())
    assert refusals(context) == {"main": "no operator writes an input"}


def test_the_table_of_the_graph_serves_its_subgraphs() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign w c; p PartitionedCall w = N4")
    body = compile_graph("w Variable = N4; c Const = N4; a AssignSub w c", "body")
    graph.add_subgraph(graph["p"], body)
    run(graph, VariablePrepareOpPass())
    assert "w_TO_a_REF_0" in body
    assert "w_TO_a_REF_0" in graph


# --- the check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", ["Const", "Constant"])
def test_a_constant_is_not_written(constant: str) -> None:
    graph = compile_graph(f"c {constant} = N4; a Assign c c")
    with pytest.raises(GraphError, match="node 'a': CheckRefInputNode: input 0 is written, and reads c:0") as caught:
        run(graph, CheckRefInputNode())
    assert caught.value.status == PARAM_INVALID


def test_what_writes_may_be_written_on() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign w c; b AssignAdd a c")
    run(graph, CheckRefInputNode(), context=session(graph))
    # an operator that writes its own input counts as one that writes, whatever its type
    odd = graph.add_node(OpDesc("odd", "Const", inputs={"x": DESCS["N4"]}, outputs={"x": DESCS["N4"]}))
    last = graph.add_node(OpDesc("last", "Assign", inputs={"ref": DESCS["N4"]}, outputs={"ref": DESCS["N4"]}))
    odd.out_data_anchor(0).link_to(last.in_data_anchor(0))
    run(graph, CheckRefInputNode(), context=session(graph))
