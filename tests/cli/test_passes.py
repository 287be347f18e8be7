"""`gevar passes` as a person types it."""

import json
from pathlib import Path

import pytest
from google.protobuf import text_format

from gevar.compile.graph_file import read_graph_file
from tests.cli.test_commands import gevar, refused
from tests.helpers.compile_graphs import compile_graph
from tests.helpers.models import small_model

ROAD = "NCHW DT_FLOAT16 [1, 3, 2, 2] -TransData-> NC1HWC0 C0=16 DT_FLOAT16 [1, 1, 2, 2, 16]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph.pb"
    graph = compile_graph("w Variable = N4; t TransData w = N5; r Relu t = N5; v Variable = N4; s Relu v = N4")
    path.write_bytes(graph.to_proto().SerializeToString())
    return path


def test_the_graph_is_shown_after_each_pass(path: Path) -> None:
    data = path.read_bytes()
    done = gevar("passes", path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "GRAPH main: 5 nodes"
    assert "  t TransData (w:0) -> NC1HWC0 C0=16 DT_FLOAT16 [1, 1, 2, 2, 16]" in lines
    assert "    r Relu (w:0) -> NC1HWC0 C0=16 DT_FLOAT16 [1, 1, 2, 2, 16]" in lines
    assert "    s Relu (v:0) -> NCHW DT_FLOAT16 [1, 3, 2, 2]" in lines
    assert "  refused  v: reader 's' (Relu) is no trans op" in lines
    assert lines[-2:] == ["ROADS: 1", f"  w: {ROAD}"]
    assert path.read_bytes() == data


def test_a_diff_shows_what_changed_alone(path: Path) -> None:
    done = gevar("passes", path, "--diff", "--until", "VariableOpPass")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "    - t TransData (w:0) -> NC1HWC0 C0=16 DT_FLOAT16 [1, 1, 2, 2, 16]" in lines
    assert not any("s Relu" in line for line in lines)
    assert not any(line.startswith("AssignRemovePass") for line in lines)


def test_json_has_the_same(path: Path) -> None:
    facts = json.loads(gevar("passes", path, "--json").stdout)
    steps = {step["pass"]: step for step in facts["passes"]}
    assert (facts["roads"], len(facts["graph"])) == ({"w": ROAD}, 5)
    assert steps["VariableOpPass"]["refusals"][0] == {"subject": "v", "reason": "reader 's' (Relu) is no trans op"}
    assert len(steps["VariableOpPass"]["graph"]) == 4
    assert list(steps)[-1] == "VariableRefDeleteOpPass"
    short = json.loads(gevar("passes", path, "--json", "--diff", "--until", "VariableOpPass").stdout)
    assert "graph" not in short
    assert len(short["passes"]) == 6


def test_options_of_ge_count(path: Path) -> None:
    done = gevar("passes", path, "--diff", "--option", "ge.exec.variable_acc=False")
    assert "VariableOpPass:" not in done.stdout
    assert "ROADS: 0" in done.stdout


def test_an_om_file_is_taken(tmp_path: Path) -> None:
    small_model(tmp_path / "small.om")
    done = gevar("passes", tmp_path / "small.om", "--diff")
    assert done.returncode == 0
    assert "ROADS: 0" in done.stdout


def test_a_failure_shows_how_far_it_came(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    graph = compile_graph("v Variable = N4; r Variable v = N4 ref:lost")
    path.write_bytes(graph.to_proto().SerializeToString())
    done = gevar("passes", path)
    refused(done, 1, "node 'r'", "VariableRefDeleteOpPass", "no variable has that name")
    assert "RefIdentityDeleteOpPass: 0 lines differ" in done.stdout
    assert gevar("passes", path, "--json").stdout == ""


def test_bad_input(path: Path, tmp_path: Path) -> None:
    cycle = tmp_path / "cycle.pb"
    graph = compile_graph("a NoOp; b NoOp; a => b; b => a")
    cycle.write_bytes(graph.to_proto().SerializeToString())
    refused(gevar("passes", cycle), 1, "a cycle of 2 nodes")
    refused(gevar("passes", tmp_path / "none"), 1, "none")
    both = ("--option", "ge.exec.variable_acc=True", "--option", "ge.AllowMultiGraphParallelCompile=1")
    refused(gevar("passes", path, *both), 1, "E10001")
    off = ("--option", "ge.exec.variable_acc=False")
    for words, why in (
        (("--until", "Nothing"), "no pass 'Nothing'; these run: Split"),
        (("--until", "variableop"), "no pass 'variableop', VariableOpPass is near; these run"),
        ((*off, "--until", "VariableOpPass"), "VariableOpPass is switched off by the options; these run"),
        (("--option", "novalue"), "'novalue' has no value; give NAME=VALUE"),
    ):
        done = gevar("passes", path, *words)
        assert (done.returncode, why in done.stderr) == (2, True)


def test_the_form_is_found_whatever_the_name_says(path: Path, tmp_path: Path) -> None:
    message = read_graph_file(path).to_proto()
    shown = json.loads(gevar("passes", path, "--json").stdout)["graph"]
    for name, data in (
        ("text.pb", text_format.MessageToString(message).encode()),
        ("wire.pbtxt", message.SerializeToString()),
        ("text.prototxt", text_format.MessageToString(message).encode()),
    ):
        (tmp_path / name).write_bytes(data)
        assert json.loads(gevar("passes", tmp_path / name, "--json").stdout)["graph"] == shown


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('input: "t:0"', 'input: "lost:0"', ("node 'r'", "'lost:0' names a node that is not there")),
        ('input: "t:0"', 'input: "t:3"', ("node 'r'", "asks for output 3, 't' has 1")),
        ('name: "r"', 'name: "t"', ("node 't'", "the name is taken")),
        ('type: "Relu"', 'kind: "Relu"', ("no field named", "kind", "as text")),
        ('type: "Relu"', 'type: "Relu" subgraph_name: "body"', ("node 'r'", "there is no subgraph 'body'")),
    ],
)
def test_a_wrong_graph_is_refused_by_file_and_node(
    path: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    wrong = tmp_path / "wrong.pbtxt"
    text = text_format.MessageToString(read_graph_file(path).to_proto())
    assert old in text
    wrong.write_text(text.replace(old, new, 1))
    refused(gevar("passes", wrong), 1, *words)
