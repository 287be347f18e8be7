"""Graphs and roads that cannot be compiled: the error names the node; graph, variables and control stay byte by byte.

Each graph also has a variable that is folded, so that much has happened before the trouble is met.
"""

from collections.abc import Callable

import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.compile import PassManager, compile_passes
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, GeTensor, OpDesc
from gevar.proto import ge_ir
from gevar.status import FAILED
from gevar.types import DataType, Format, TensorDesc
from gevar.var import TransNodeInfo, VarManager
from tests.helpers.compile_graphs import DESCS, compile_graph, manager_of, session
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.var_states import state_bytes

GOOD = "good Variable = N4; gt TransData good = N5; gr Relu gt = N5; "
TO_5HD = TransNodeInfo("TransData", DESCS["N4"], DESCS["N5"])
OTHER = TransNodeInfo("TransData", DESCS["F4"], DESCS["F5"])
Damage = Callable[[ComputeGraph], object]


def same(_: ComputeGraph) -> None:
    """Leave it as it is."""


def cycle_of_data(graph: ComputeGraph) -> None:
    graph["a"].out_data_anchor(0).link_to(graph["b"].in_data_anchor(0))


def cycle_in_a_body(graph: ComputeGraph) -> None:
    body = compile_graph("a NoOp; b NoOp; a => b; b => a", "body")
    graph.add_subgraph(graph.add_node(OpDesc("p", "PartitionedCall")), body)


def missing_body(graph: ComputeGraph) -> None:
    graph["p"].op_desc._subgraph_names = ("lost",)


def without_output(graph: ComputeGraph) -> None:
    node = graph.add_node(OpDesc("t", "TransData", inputs=[DESCS["N4"]]))
    graph["w"].out_data_anchor(0).link_to(node.in_data_anchor(0))


def written_in_place_of_nothing(graph: ComputeGraph) -> None:
    desc = DESCS["N4"].replace(
        attrs={"_assign_var_name": ge_ir.AttrDef(s=b"w"), **_int("_inplace_support_input_index", 4)}
    )
    graph["a"].op_desc.update_output_desc(0, desc)


def _int(name: str, value: int) -> dict[str, ge_ir.AttrDef]:
    return {name: ge_ir.AttrDef(i=value)}


CASES: dict[str, tuple[str, Damage, dict[str, list[TransNodeInfo]], str | None, str]] = {
    "order in a circle": ("a NoOp; b NoOp; a => b; b => a", same, {}, None, "a cycle of 2 nodes"),
    "data in a circle": ("b Relu -@N4 = N4; a Relu b = N4", cycle_of_data, {}, None, "a cycle of 2 nodes"),
    "circle in a body": ("n NoOp", cycle_in_a_body, {}, None, "graph 'body'.* a cycle of 2 nodes"),
    "body that is missing": ("p PartitionedCall", missing_body, {}, "p", "there is no subgraph 'lost'"),
    "reference without producer": ("w Variable = N4; r Variable -@N4 = N4 ref:w", same, {}, "r", "has no producer"),
    "reference folded without producer": (
        "w Variable = N4; t TransData w = N5; u Relu t = N5; r Variable -@N4 = N4 ref:w",
        *(same, {}, "r", "with 0 producers; it needs one"),
    ),
    "inverse without producer": (
        "w Variable = N4; t TransData w = N5; u Relu t = N5; b TransData -@N5 = N4; r Variable b = N4 ref:w",
        *(same, {}, "b", "input 0 is not linked"),
    ),
    "assign without variable": ("c Const = N4; a Assign -@N4 c", same, {}, "a", "whose input 0 is not linked"),
    "query without variable": ("q IsVariableInitialized -@N4 = B", same, {}, "q", "asks about nothing"),
    "query of something else": ("c Const = N4; q VarIsInitializedOp c = B", same, {}, "q", "it needs one Variable"),
    "memory of an input that is missing": (
        "c Const = N4; a Relu c = N4",
        *(written_in_place_of_nothing, {}, "a", "input 4 is asked for"),
    ),
    "name that a pass needs": (
        "w Variable = N4; c Const = N4; a Assign w c; x Relu a = N4; w_TO_a_REF_0 Relu c = N4",
        *(same, {}, "w_TO_a_REF_0", "the name is taken"),
    ),
    "unknown variable": ("c Const = N4; r Variable c = N4 ref:lost", same, {}, "r", "no variable has that name"),
    "constant that is written": ("c Const = N4; a Assign c c", same, {}, "a", "let it read a variable"),
    "framework operator without type": (
        "w Variable = N4; c Const = N4; a Assign w c; f FrameworkOp a = N4",
        *(same, {}, "f", "no attribute original_type"),
    ),
    "conversion without output": ("w Variable = N4", without_output, {}, "t", "it has 0 outputs"),
    "road that starts elsewhere": ("w Variable = N4; x Relu w = N4", same, {"w": [OTHER]}, "w", "starts at"),
    "road whose steps do not fit": (
        "w Variable = N4; x Relu w = N4",
        *(same, {"w": [TO_5HD, OTHER]}, "w", "the steps of its road do not fit"),
    ),
    "road before a reference without producer": (
        "w Variable = N4; x Relu w = N4; r Variable -@N4 = N4 ref:w",
        *(same, {"w": [TO_5HD]}, "r", "input 0 is not linked"),
    ),
}


def everything(graph: ComputeGraph, vm: VarManager) -> list[object]:
    return [
        graph.to_proto().SerializeToString(deterministic=True),
        *(body.to_proto().SerializeToString(deterministic=True) for body in graph.all_subgraphs()),
        state_bytes(vm),
        {number: dict(vm.get_staged_var_descs(number)) for number in (0, 1)},
    ]


@pytest.mark.parametrize("case", CASES)
def test_passes_leave_everything_as_it_was(case: str) -> None:
    text, damage, roads, node, words = CASES[case]
    graph = compile_graph(GOOD + text)
    damage(graph)
    context = session(compile_graph(GOOD), ["good"])
    vm, control = manager_of(context), context.rebuild_control
    assert control is not None
    for name, road in roads.items():
        vm.set_trans_road(name, road)
    before = everything(graph, vm)
    with pytest.raises(GraphError, match=words) as caught:
        PassManager(compile_passes()).run(graph, context)
    assert node is None or caught.value.node == node
    assert caught.value.status is not None
    assert "\n" not in str(caught.value)
    assert everything(graph, vm) == before
    assert (control.change_counts, control.graphs_to_rebuild) == ({}, frozenset())


def add_and_compile(session: Session, graph: ComputeGraph) -> None:
    """Do both, as a graph that misses a graph is not even added."""
    session.add_graph(2, graph)
    session.compile(2)


@pytest.mark.parametrize("case", CASES)
def test_a_session_refuses_them_and_goes_on(host: HostControls, case: str) -> None:
    """Graph by graph: what is wrong with one does no harm to the variables of the others."""
    text, damage, roads, node, words = CASES[case]
    graph = compile_graph(GOOD + text)
    damage(graph)
    with Session(host_runtime()) as session:
        vm = session.var_manager
        session.add_graph(1, compile_graph("good Variable = N4; s Add good good = N4"))
        session.run(1)
        for name, road in roads.items():
            vm.set_trans_road(name, road)
        before, alive = everything(graph, vm), live_now(host)
        with pytest.raises(GraphError, match=words) as caught:
            add_and_compile(session, graph)
        assert node is None or caught.value.node == node
        assert (everything(graph, vm), live_now(host)) == (before, alive)
        control = session._graph_session().rebuild_ctrl
        assert (control.change_counts, control.graphs_to_rebuild) == ({}, frozenset())
        session.run(1)
        vm.check()


MESSAGES: dict[str, tuple[Callable[[ge_ir.GraphDef], object], str]] = {
    "name given twice": (lambda message: setattr(message.op[2], "name", "gt"), "node 'gt': the name is taken"),
    "producer that is missing": (lambda message: message.op[2].input.__setitem__(0, "x:0"), "'x:0' names a node"),
    "output that is missing": (lambda message: message.op[2].input.__setitem__(0, "gt:9"), "asks for output 9"),
    "order after nothing": (lambda message: message.op[2].input.append("x:-1"), "'x:-1' names a node"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_that_are_no_graph_are_not_added(host: HostControls, case: str) -> None:
    damage, words = MESSAGES[case]
    message = compile_graph(GOOD).to_proto()
    damage(message)
    with Session(host_runtime()) as session:
        before, text = state_bytes(session.var_manager), message.SerializeToString(deterministic=True)
        with pytest.raises(GraphError, match=words):
            session.add_graph(1, message)
        assert (state_bytes(session.var_manager), message.SerializeToString(deterministic=True)) == (before, text)
        session.add_graph(1, compile_graph("w Variable = N4; s Add w w = N4"))  # the id is free
        session.run(1)


@pytest.mark.parametrize(
    ("text", "dtype", "words"),
    [
        ("w Variable = U4; s Identity w = U4", None, "its memory has no size"),
        (
            "w Variable = N4; s Identity w = N4",
            DataType.DT_UNDEFINED,
            "its memory has no size|no element of whole bytes",
        ),
    ],
)
def test_variables_without_a_size(host: HostControls, text: str, dtype: DataType | None, words: str) -> None:
    graph = compile_graph(text)
    if dtype is not None:
        op_desc = graph["w"].op_desc
        op_desc.update_output_desc(0, op_desc.output_desc(0).replace(dtype=dtype))
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        before, alive = everything(graph, session.var_manager), live_now(host)
        with pytest.raises(GraphError, match=f"{words}|unknown dimension") as caught:
            session.compile(1)
        assert caught.value.node in ("w", "s")
        assert (everything(graph, session.var_manager), live_now(host)) == (before, alive)


@pytest.mark.parametrize("kind", ["Const", "Constant"])
@pytest.mark.parametrize("size_bytes", [None, 0, 10, 3999, 4001])
def test_constants_that_are_not_as_long_as_their_shape(host: HostControls, kind: str, size_bytes: int | None) -> None:
    """Nothing is read behind what there is, and nothing is taken for a value that nobody gave."""
    row = TensorDesc(DataType.DT_INT32, Format.FORMAT_ND, (1000,))
    graph = ComputeGraph("main")
    value = None if size_bytes is None else GeTensor(row, bytes(size_bytes))
    node = graph.add_node(OpDesc("c", kind, outputs=[row], attrs={} if value is None else {"value": value}))
    reader = graph.add_node(OpDesc("s", "Add", inputs=[row, row], outputs=[row]))
    for index in range(2):
        node.out_data_anchor(0).link_to(reader.in_data_anchor(index))
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        before, alive = everything(graph, session.var_manager), live_now(host)
        words = "no bytes are" if size_bytes is None else f"{size_bytes} B are"
        with pytest.raises(GraphError, match=f"{kind}: its description takes 4000 B, {words} given") as caught:
            session.compile(1)
        assert (caught.value.node, caught.value.status) == ("c", FAILED)
        assert (everything(graph, session.var_manager), live_now(host)) == (before, alive)
