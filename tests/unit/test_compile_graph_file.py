"""Graphs from files, and graphs as lines for a person."""

import os
from pathlib import Path

import pytest
from google.protobuf import text_format

from gevar.compile.graph_file import read_graph_file
from gevar.compile.graph_lines import changed_lines, graph_lines
from gevar.errors import ModelFileError
from gevar.graph import ComputeGraph, Model
from gevar.proto import ge_ir
from tests.helpers.compile_graphs import compile_graph, run
from tests.helpers.models import small_model


def graph() -> ComputeGraph:
    found = compile_graph("w Variable = N4; c Const = N4; a Assign w c; w_ref Variable a = N4 ref:w; n NoOp; a => n")
    found.add_subgraph(found["n"], compile_graph("x Data = N4; y Relu x = N4", "body"))
    return found


def model_def() -> ge_ir.ModelDef:
    return Model("m", graph()).to_proto()


@pytest.mark.parametrize("form", ["model.pb", "model.pbtxt", "model.txt"])
def test_a_model_is_read_with_its_subgraphs(form: str, tmp_path: Path) -> None:
    path, message = tmp_path / form, model_def()
    text = text_format.MessageToString(message).encode()
    path.write_bytes(message.SerializeToString() if form.endswith("pb") else text)
    found = read_graph_file(path)
    assert found.to_proto() == graph().to_proto()
    assert found.subgraph("body").to_proto() == graph().subgraph("body").to_proto()


@pytest.mark.parametrize("form", ["graph.pb", "graph.prototxt"])
def test_a_graph_alone_is_read(form: str, tmp_path: Path) -> None:
    path, message = tmp_path / form, compile_graph("w Variable = N4; r Relu w = N4").to_proto()
    text = text_format.MessageToString(message).encode()
    path.write_bytes(message.SerializeToString() if form.endswith("pb") else text)
    assert read_graph_file(path).to_proto() == message


def test_an_om_file_is_read(tmp_path: Path) -> None:
    small_model(tmp_path / "small.om")
    assert "kernel" in read_graph_file(tmp_path / "small.om")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty.pb", b"", "no node is in it"),
        ("junk.pb", b"\xff\xff\xff", "GraphDef"),
        ("junk.txt", b"name: {", "GraphDef"),
        ("latin.txt", b"\xe9", "GraphDef"),
        ("empty.txt", b"", "no node is in it"),
        ("cut.om", b"IMOD", "header"),
        ("cut", b"IMOD", "header"),
        ("other.om", bytes(300), "not"),
        ("node.pbtxt", b'op { name: "a" type: "NoOp" } op { name: "a" type: "NoOp" }', "node 'a'"),
        ("edge.pbtxt", b'op { name: "a" type: "R" input: "b:0" input_desc { name: "" } }', "'b:0' names a node"),
        ("sub.pbtxt", b'graph { name: "g" op { name: "a" type: "If" subgraph_name: "f" } }', "'f'"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_name(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_graph_file(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_graph_file(tmp_path / "none.om")


# --- lines ------------------------------------------------------------------------------------------------------------


def test_a_line_tells_type_producers_order_and_what_is_made() -> None:
    assert list(graph_lines(graph()).values()) == [
        "w Variable -> NCHW DT_FLOAT16 [1, 3, 2, 2]",
        "c Const -> NCHW DT_FLOAT16 [1, 3, 2, 2]",
        "a Assign (w:0, c:0) -> NCHW DT_FLOAT16 [1, 3, 2, 2]",
        "w_ref Variable (a:0) -> NCHW DT_FLOAT16 [1, 3, 2, 2] [ref of w]",
        "n NoOp runs body after a",
        "body/x Data -> NCHW DT_FLOAT16 [1, 3, 2, 2]",
        "body/y Relu (x:0) -> NCHW DT_FLOAT16 [1, 3, 2, 2]",
    ]
    assert list(graph_lines(compile_graph("r Relu -@N4")).values()) == ["r Relu (-)"]


def test_changed_lines_are_those_that_differ() -> None:
    from gevar.compile.ref_deletion import VariableRefDeleteOpPass

    found = graph()
    before = graph_lines(found)
    assert changed_lines(before, before) == []
    run(found, VariableRefDeleteOpPass())
    lines = changed_lines(before, graph_lines(found))
    made = "NCHW DT_FLOAT16 [1, 3, 2, 2]"
    assert lines == [
        f"- a Assign (w:0, c:0) -> {made}",
        f"+ a Assign (w:0, c:0) -> {made} [writes w]",
        f"- w_ref Variable (a:0) -> {made} [ref of w]",
    ]
    assert changed_lines({}, {"g/x": "x NoOp"}) == ["+ x NoOp"]


@pytest.mark.parametrize("name", ["g.om", "g.pb", "g.txt"])
def test_a_pipe_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="not a regular file"):
        read_graph_file(tmp_path / name)
