"""Graphs and models as messages: written back as read, after edits too, and what is wrong is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.errors import GraphError
from gevar.graph import ComputeGraph, Model, isolate_node
from gevar.om import OmBuilder
from gevar.proto import ge_ir
from tests.helpers.graphs import ROW, edges, graph_of, op
from tests.helpers.shared import REPOSITORY

UNKNOWN = b"\xa0\x3f\x07"  # field 1012 = 7


def with_unknown(message: ge_ir.GraphDef | ge_ir.OpDef | ge_ir.ModelDef) -> None:
    message.MergeFromString(UNKNOWN)


def small() -> ge_ir.GraphDef:
    message = graph_of("x/0/2/Data; w/0/1; y/2/1; z; x:0 -> y:0; w:0 -> y:1; y:0 -> z:0; x => w; w => z").to_proto()
    message.input.append("x:0")
    message.output.extend(["z:0", "y:0"])
    return message


def inputs(message: ge_ir.GraphDef, name: str) -> list[str]:
    return next(list(stored.input) for stored in message.op if stored.name == name)


def test_edges_are_texts() -> None:
    message = small()
    assert inputs(message, "y") == ["x:0", "w:0"]
    assert inputs(message, "w") == ["x:-1"]
    assert inputs(message, "z") == ["y:0", "w:-1"]
    graph = ComputeGraph.from_proto(message)
    assert edges(graph) == {"x:0 -> y:0", "w:0 -> y:1", "y:0 -> z:0", "x => w", "w => z"}
    assert (graph.inputs, [repr(out) for out in graph.outputs]) == ((graph["x"],), ["z:0", "y:0"])


def test_everything_comes_back() -> None:
    message = small()
    message.attr["g"].g.CopyFrom(small())
    message.attr_groups.attr_group_def.add().tensor_attr_group.origin_symbol_shape.append("s0")
    message.op[0].attr_groups.other_group_def.attr["a"].i = 3
    message.op[0].src_index.append(-1)
    message.op[0].has_out_attr = False
    message.op[1].attr["list"].list.val_type = 9
    message.op[1].attr["none"].SetInParent()
    with_unknown(message)
    with_unknown(message.op[2])
    message.op[2].attr["odd"].MergeFromString(UNKNOWN)
    message.op[2].input_desc[1].MergeFromString(UNKNOWN)
    message.op[2].input_desc[1].attr_groups.MergeFromString(UNKNOWN)
    kept = message.SerializeToString(deterministic=True)
    graph = ComputeGraph.from_proto(message)
    assert graph.to_proto().SerializeToString(deterministic=True) == kept
    del message
    assert graph.to_proto().SerializeToString(deterministic=True) == kept
    assert kept.count(UNKNOWN) == 5


def test_messages_without_anything_come_back() -> None:
    assert ComputeGraph.from_proto(ge_ir.GraphDef()).to_proto() == ge_ir.GraphDef()
    nameless = ge_ir.GraphDef(op=[ge_ir.OpDef()])
    assert ComputeGraph.from_proto(nameless).to_proto() == nameless
    assert Model.from_proto(ge_ir.ModelDef()).to_proto() == ge_ir.ModelDef()


ODD_LISTS = [
    ["x:-1", "y:0", ""],  # control first
    ["y:0"],  # inputs left out at the end
    ["y:0", "", "x:-1", "x:-1"],  # twice
    ["y:0", "nothing", "x:-2"],  # an empty slot with a text, another negative number
    ["y:00"],
]


@pytest.mark.parametrize("texts", ODD_LISTS, ids=str)
def test_a_list_in_another_form_stays_until_its_edges_change(texts: list[str]) -> None:
    message = graph_of("x/0/1; y/0/1; z/2/1").to_proto()
    message.op[2].input[:] = texts
    graph = ComputeGraph.from_proto(message)
    assert graph.to_proto() == message
    assert {"y:0 -> z:0"} <= edges(graph) <= {"y:0 -> z:0", "x => z"}
    controls = ["x:-1"] if graph["z"].in_control_nodes else []
    graph["z"].in_data_anchor(0).unlink()
    assert inputs(graph.to_proto(), "z") == ["", "", *controls]
    graph["y"].out_data_anchor(0).link_to(graph["z"].in_data_anchor(0))
    assert graph.to_proto() == message
    graph.rename_node(graph["y"], "other")
    assert inputs(graph.to_proto(), "z") == ["other:0", "", *controls]


def test_a_list_in_another_form_goes_with_a_control_edge() -> None:
    message = graph_of("x/0/1; y/0/1; z/1/1").to_proto()
    message.op[2].input[:] = ["x:-1", "y:0"]
    graph = ComputeGraph.from_proto(message)
    graph["y"].link_control_to(graph["z"])
    assert inputs(graph.to_proto(), "z") == ["y:0", "x:-1", "y:-1"]
    graph["z"].in_control_anchor.unlink_all()
    assert inputs(graph.to_proto(), "z") == ["y:0"]


def test_ends_in_another_form_stay_until_they_change() -> None:
    message = small()
    message.input[:] = ["x:1", "w:0"]
    message.output[:] = ["z:00"]
    graph = ComputeGraph.from_proto(message)
    assert graph.to_proto() == message
    graph.set_inputs([graph["x"]])
    graph.set_outputs([graph["y"].out_data_anchor(0)])
    assert (list(graph.to_proto().input), list(graph.to_proto().output)) == (["x:0"], ["y:0"])
    again = ComputeGraph.from_proto(message)
    again.remove_node(again["z"])
    assert (list(again.to_proto().input), list(again.to_proto().output)) == (["x:1", "w:0"], [])


def test_an_edited_graph_is_read_back_as_it_is() -> None:
    graph = ComputeGraph.from_proto(small())
    isolate_node(graph["y"], [0])
    graph.remove_node(graph["y"])
    again = ComputeGraph.from_proto(graph.to_proto())
    assert edges(again) == edges(graph) == {"x:0 -> z:0", "w => z", "x => w"}
    assert [repr(out) for out in again.outputs] == ["z:0"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.op.add(name="x"), "graph 'main', node 'x': the name is taken"),
        (lambda g: g.op[2].input.__setitem__(0, "q:0"), "node 'y': input 'q:0' names a node that is not there"),
        (lambda g: g.op[3].input.append("q:-1"), "node 'z': input 'q:-1' names a node that is not there"),
        (lambda g: g.op[2].input.__setitem__(0, "x:2"), "node 'y': input 'x:2' asks for output 2, 'x' has 2"),
        (lambda g: g.op[2].input.__setitem__(0, "x:one"), "node 'y': input 'x:one' ends in no number"),
        (lambda g: g.op[2].input.__setitem__(0, "x:+1"), "node 'y': input 'x:.1' ends in no number"),
        (lambda g: g.op[2].input.__setitem__(0, "x:"), "node 'y': input 'x:' ends in no number"),
        (lambda g: g.op[3].input.append("x:0"), "node 'z': has 2 edges of data, it has 1 inputs"),
        (lambda g: g.input.append("q:0"), "graph 'main': graph input 'q:0' names a node that is not there"),
        (lambda g: g.output.append("x:7"), "graph 'main': graph output 'x:7' asks for output 7, 'x' has 2"),
        (lambda g: g.output.append("x:-1"), "graph 'main': graph output 'x:-1' asks for output -1"),
        (lambda g: g.output.append("x"), "graph 'main': graph output 'x' ends in no number"),
    ],
)
def test_a_wrong_graph_is_told(change: Callable[[ge_ir.GraphDef], object], words: str) -> None:
    message = small()
    change(message)
    with pytest.raises(GraphError, match=words):
        ComputeGraph.from_proto(message)


def test_names_may_hold_colons() -> None:
    graph = ComputeGraph("main")
    graph.add_node(op("a:0", 0, 1))
    graph.add_node(op("b"))
    graph["a:0"].out_data_anchor(0).link_to(graph["b"].in_data_anchor(0))
    assert edges(ComputeGraph.from_proto(graph.to_proto())) == {"a:0:0 -> b:0"}


def test_the_example_of_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = OmBuilder("m")
    builder.output(builder.node("Relu", "y", inputs=[builder.data("x", ROW)], outputs=[ROW]))
    builder.write(tmp_path / "model.om")
    monkeypatch.chdir(tmp_path)
    code = (REPOSITORY / "docs/graph.md").read_text().split("```python\n")[1].split("```")[0]
    found: dict[str, object] = {}
    exec(code, found)
    assert capsys.readouterr().out.splitlines()[:2] == ["x Data []", "y Relu ['x']"]
    message = found["message"]
    assert isinstance(message, ge_ir.ModelDef)
    assert inputs(message.graph[0], "y") == ["cast:0"]
    assert inputs(message.graph[0], "cast") == ["x:0"]


# --- models -----------------------------------------------------------------------------------------------------------


def nested() -> ge_ir.ModelDef:
    """A root that runs two branches, of which one runs a body; one more graph has no owner."""
    message = ge_ir.ModelDef(name="m", version=2, custom_version="1.z")
    for name in ("root", "then", "else", "body", "lonely"):
        graph = message.graph.add(name=name)
        graph.op.add(name="a", type="If")
        graph.op.add(name=f"only_{name}", type="Relu")
    message.graph[0].op[0].subgraph_name.extend(["else", "then"])
    message.graph[1].op[1].subgraph_name.append("body")
    message.attr["memory_size"].i = 512
    with_unknown(message)
    return message


def test_a_model_comes_back() -> None:
    message = nested()
    model = Model.from_proto(message)
    assert model.to_proto() == message
    assert (model.name, model.version, model.platform_version) == ("m", 2, "1.z")
    assert model.attrs.get_as("memory_size", int) == 512
    assert repr(model) == "<Model m: <ComputeGraph root: 2 nodes, 4 subgraphs>>"


def test_subgraphs_know_where_they_belong() -> None:
    root = Model.from_proto(nested()).graph
    assert root is not None
    then, body = root.subgraph("then"), root.subgraph("body")
    assert [graph.name for graph in root["a"].subgraphs] == ["else", "then"]
    assert (then.parent_graph, then.parent_node, then.root) == (root, root["a"], root)
    assert (body.parent_graph, body.parent_node, body.root) == (then, then["only_then"], root)
    assert (root.parent_graph, root.parent_node, root.root) == (None, None, root)
    assert body.subgraph("else") is root.subgraph("else")
    assert (root.subgraph("lonely").parent_node, then.all_subgraphs()) == (None, ())
    with pytest.raises(GraphError, match="graph 'root': there is no subgraph 'q', 4 others are there"):
        root.subgraph("q")


def test_all_nodes_come_with_their_subgraphs() -> None:
    root = Model.from_proto(nested()).graph
    assert root is not None
    found = [f"{node.owner_compute_graph.name}/{node.name}" for node in root.all_nodes()]
    assert found == [
        *("root/a", "else/a", "else/only_else", "then/a", "then/only_then", "body/a", "body/only_body"),
        *("root/only_root", "lonely/a", "lonely/only_lonely"),
    ]


def test_a_subgraph_that_runs_itself_is_met_once() -> None:
    message = nested()
    message.graph[3].op[0].subgraph_name.extend(["body", "then", "body"])
    model = Model.from_proto(message)
    assert model.graph is not None
    assert len(list(model.graph.all_nodes())) == 10
    assert model.to_proto() == message
    model.graph.remove_node(model.graph["a"])
    assert [graph.name for graph in model.graph.all_subgraphs()] == ["lonely"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.graph.add(name="then"), "graph name 'then' is taken"),
        (lambda m: m.graph.add(name="root"), "graph name 'root' is taken"),
        (lambda m: m.graph[2].op.add(name="a"), "graph 'else', node 'a': the name is taken"),
    ],
)
def test_a_wrong_model_is_told(change: Callable[[ge_ir.ModelDef], object], words: str) -> None:
    message = nested()
    change(message)
    with pytest.raises(GraphError, match=words):
        Model.from_proto(message)


def test_a_sub_model_may_name_graphs_that_only_the_root_has() -> None:
    message = nested()
    message.graph[0].op[0].subgraph_name.append("elsewhere")
    model = Model.from_proto(message)
    assert model.graph is not None
    assert model.to_proto() == message
    with pytest.raises(GraphError, match="there is no subgraph 'elsewhere'"):
        list(model.graph.all_nodes())


def test_an_input_that_is_not_linked_needs_no_description() -> None:
    message = ge_ir.GraphDef(name="g")
    message.op.add(name="x", type="Data", input=["", ""])
    message.op.add(name="y", type="Data", input=["x:-1", ""])
    graph = ComputeGraph.from_proto(message)
    assert graph.to_proto() == message
    assert [len(node.in_data_anchors) for node in graph] == [0, 0]
    message.op[0].input[:] = ["", "y:0"]
    message.op[1].output_desc.add()
    with pytest.raises(GraphError, match="has 2 edges of data, it has 0 inputs"):
        ComputeGraph.from_proto(message)


def test_a_graph_alone_keeps_names_of_subgraphs() -> None:
    message = nested().graph[0]
    graph = ComputeGraph.from_proto(message)
    assert graph.to_proto() == message
    with pytest.raises(GraphError, match="there is no subgraph 'else'"):
        graph["a"].subgraphs  # noqa: B018
    graph.add_subgraph(graph["a"], ComputeGraph("else"))
    assert graph["a"].op_desc.subgraph_instance_names == ("else", "then")


def test_subgraphs_come_and_go_with_those_below() -> None:
    root, branch, body = graph_of("a; b"), ComputeGraph("branch"), ComputeGraph("body")
    inner = branch.add_node(op("inner"))
    branch.add_subgraph(inner, body)
    root.add_subgraph(root["a"], branch)
    assert root.all_subgraphs() == (branch, body)
    assert (body.root, branch.all_subgraphs(), Model("m", root).to_proto().graph[2].name) == (root, (), "body")
    with pytest.raises(GraphError, match="graph 'branch': is a subgraph of 'main'"):
        Model("m", branch).to_proto()
    root.remove_subgraph(branch)
    assert (root.all_subgraphs(), branch.all_subgraphs(), branch.root, body.root) == ((), (body,), branch, branch)
    assert (root["a"].op_desc.subgraph_instance_names, branch.parent_node) == ((), None)
    root.add_subgraph(root["b"], branch)
    node = root["b"]
    root.remove_node(node)
    assert (root.all_subgraphs(), node.op_desc.subgraph_instance_names, branch.all_subgraphs()) == ((), (), (body,))


def test_a_subgraph_is_checked_first() -> None:
    root, branch, body = graph_of("a; b"), graph_of("a"), ComputeGraph("body")
    root.add_subgraph(root["a"], body)
    for node, subgraph, words in (
        (branch["a"], ComputeGraph("q"), "node 'a': does not have the node that is to run 'q'"),
        (root["b"], body, "node 'b': 'body' is in a model already"),
        (root["b"], root, "node 'b': 'main' is in a model already"),
        (root["b"], branch, "graph name 'main' is taken"),
        (root["b"], ComputeGraph("body"), "graph name 'body' is taken"),
    ):
        with pytest.raises(GraphError, match=words):
            root.add_subgraph(node, subgraph)
        assert (root.all_subgraphs(), root["b"].op_desc.subgraph_instance_names) == ((body,), ())
    with pytest.raises(GraphError, match="'main' is no subgraph here"):
        root.remove_subgraph(branch)
