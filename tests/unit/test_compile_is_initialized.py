"""Queries whether a variable has a value, answered at compile time."""

import pytest

from gevar.compile import PassContext
from gevar.compile.var_is_initialized_op_pass import VarIsInitializedOpPass
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, GeTensor, OpDesc
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from tests.helpers.compile_graphs import DESCS, changes, compile_graph, run, session
from tests.helpers.graphs import edges

ASKED = "w Variable = N4; v Variable = N4; c Const = N4; a Assign w c; q VarIsInitializedOp w = B; r Relu q@B = B"


def answer(graph: ComputeGraph, name: str = "q") -> bool:
    constant = graph[name]
    value = constant.op_desc.attrs["value"]
    assert isinstance(value, GeTensor)
    assert constant.type == "Const"
    assert (constant.op_desc.input_descs, constant.op_desc.output_descs) == ((), (DESCS["B"],))
    assert value.desc == DESCS["B"]
    assert value.data in (b"\0", b"\1")
    return value.data == b"\1"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", False),
        ("a => q", True),
        ("n NoOp; a => n; n => q", True),
        ("n Relu a = N4; n => q", True),
        ("q => a", False),
        ("b Assign v c; b => q", False),
        ("b AssignAdd w c; b => q", False),
        ("b Assign w:0 v; m Merge b c = N4 N4; m => q", True),
    ],
)
def test_an_assign_counts_where_a_path_leads_from_it(more: str, expected: bool) -> None:
    graph = compile_graph(f"{ASKED}; {more}")
    run(graph, VarIsInitializedOpPass())
    assert answer(graph) is expected
    assert {"w => q", "q:0 -> r:0"} <= edges(graph)
    assert "w:0 -> q:0" not in edges(graph)


def test_a_variable_that_the_manager_knows_has_a_value() -> None:
    graph = compile_graph(ASKED + "; p IsVariableInitialized v = B")
    context = run(graph, VarIsInitializedOpPass(), context=session(graph, ["w"]))
    assert (answer(graph, "q"), answer(graph, "p")) == (True, False)
    assert changes(context) == [
        "'q' is True for 'w': the manager knows it",
        "'p' is False for 'v': nothing writes it before",
    ]


def test_edges_of_order_stay_and_lead_on() -> None:
    graph = compile_graph(ASKED + "; a => q; z NoOp; q => z; p VarIsInitializedOp w = B; z => p")
    run(graph, VarIsInitializedOpPass())
    assert {"a => q", "q => z", "z => p"} <= edges(graph)
    assert answer(graph, "p") is True


def test_many_queries_each_see_their_own_variable() -> None:
    lines, orders = ["c Const = N4"], []
    for number in range(70):
        lines += [f"v{number} Variable = N4", f"q{number} VarIsInitializedOp v{number} = B"]
        if number % 3 == 0:
            lines.append(f"a{number} Assign v{number} c")
            orders.append(f"a{number} => q{(number + number % 2) % 70}")
    graph = compile_graph(";".join(lines + orders))
    run(graph, VarIsInitializedOpPass())
    for number in range(70):
        assert answer(graph, f"q{number}") is (number % 6 == 0)


def test_subgraphs_are_answered_by_themselves() -> None:
    graph = compile_graph("w Variable = N4; c Const = N4; a Assign w c; p PartitionedCall a = N4")
    body = compile_graph("w Variable = N4; q VarIsInitializedOp w = B; c Const = N4; b Assign w c; b => q", "body")
    graph.add_subgraph(graph["p"], body)
    run(graph, VarIsInitializedOpPass())
    assert answer(body) is True


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("c Const = N4; q VarIsInitializedOp c = B", FAILED, r"'q': .*asks about 'c' \(Const\)"),
        ("v VariableV2 = N4; q VarIsInitializedOp v = B", FAILED, r"'v' \(VariableV2\)"),
        ("q VarIsInitializedOp -@N4 = B", FAILED, "asks about nothing"),
        ("w Variable = N4; q VarIsInitializedOp w w = B", FAILED, "'w' .*'w' "),
        ("w Variable = N4; q VarIsInitializedOp w -@N4 = B", FAILED, "has 2 inputs and 1 outputs"),
        ("w Variable = N4; q VarIsInitializedOp w", FAILED, "has 1 inputs and 0 outputs"),
        ("c Const = N4; a Assign -@N4 c", PARAM_INVALID, "'a': .*input 0 is not linked"),
    ],
)
def test_wrong_queries_fail(text: str, status: int, words: str) -> None:
    graph = compile_graph(text + "; x Variable = N4; y VarIsInitializedOp x = B")
    before = graph.to_proto()
    with pytest.raises(GraphError, match=words) as caught:
        run(graph, VarIsInitializedOpPass())
    assert caught.value.status == status
    assert graph.to_proto() == before


def test_an_assign_without_inputs_fails() -> None:
    graph = compile_graph("w Variable = N4")
    graph.add_node(OpDesc("a", "Assign"))
    with pytest.raises(GraphError, match="'a'"):
        run(graph, VarIsInitializedOpPass())


def test_a_query_needs_the_manager() -> None:
    graph = compile_graph(ASKED)
    with pytest.raises(GraphError, match="there is no variable manager") as caught:
        run(graph, VarIsInitializedOpPass(), context=PassContext())
    assert caught.value.status == INTERNAL_ERROR
