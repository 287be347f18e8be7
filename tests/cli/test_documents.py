"""README and docs: their Python runs, their links lead somewhere, and what they name is there."""

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from benchmarks.rows import BENCHMARKS
from gevar import Session
from gevar.cli.commands import commands
from gevar.om import OmBuilder
from gevar.om.composed_model import bundle
from gevar.runtime import LoweringGlobalData, ModelExecutor, lowering_variable
from gevar.types import DataType, DeviceId, Format, TensorDesc
from gevar.var import SessionVersion, VarManager, VarOp
from tests.helpers import training_graphs
from tests.helpers.campaigns import CAMPAIGNS
from tests.helpers.compile_graphs import compile_graph
from tests.helpers.models import small_model
from tests.helpers.shared import REPOSITORY

DOCUMENTS = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
TEXTS = {path: path.read_text(encoding="utf-8") for path in (*DOCUMENTS, REPOSITORY / "CHANGELOG.md")}
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Names = dict[str, object]


def _readme() -> Iterator[Names]:
    script = REPOSITORY / "scripts" / "build_model.py"
    Path("build").mkdir()
    subprocess.run([sys.executable, str(script), "build/example.om"], check=True, timeout=60)
    yield {}


def _manager() -> VarManager:
    manager = VarManager(0)
    manager.init(SessionVersion.CLOUD_VERSION, session_id=0)
    return manager


def _compiling() -> Iterator[Names]:
    graph = compile_graph("w Variable = N4; t1 TransData w = N5; r1 Relu t1 = N5")
    yield {"graph": graph, "var_manager": _manager(), "options": {}}


def _passes() -> Iterator[Names]:
    for names in _compiling():
        Path("graph.pbtxt").write_text(str(names["graph"].to_proto()), encoding="utf-8")  # type: ignore[attr-defined]
        yield names


def _model(name: str = "model.om") -> Iterator[Names]:
    small_model(Path(name))
    yield {}


def _two_models() -> Iterator[Names]:
    for name in ("prefill.om", "decode.om"):
        builder = OmBuilder(name)
        builder.output(builder.const("layer_0/weight", np.ones((2, 3), np.float32)))
        builder.write(name)
    yield {}


def _builders() -> Iterator[Names]:
    found: Names = {"Path": Path, "bundle": bundle}
    for name in ("one", "two"):
        found[name] = builder = OmBuilder(name)
        builder.output(builder.const(f"{name}/kernel", np.ones(3, np.float32)))
    yield from _written(found)


def _written(found: Names) -> Iterator[Names]:
    from gevar.om import write_om

    yield {**found, "write_om": write_om}


def _placing() -> Iterator[Names]:
    from gevar.graph import ComputeGraph, GeTensor, Model, OpDesc

    kernel, graph = np.arange(3, dtype=np.float32), ComputeGraph("mine")
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (3,))
    node = OpDesc("kernel", "Const", outputs=[desc], attrs={"value": GeTensor(desc, b"")})
    graph.set_outputs([graph.add_node(node).out_data_anchor(0)])
    yield {"Model": Model, "graph": graph, "kernel": kernel}


def _execution() -> Iterator[Names]:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (3,), size=12)
    node = VarOp("w", "Variable", (desc,), (1 << 37,))
    with Session() as session:
        session.rt_var_manager.init(DeviceId(0), 1 << 37, 1 << 20)
        session.rt_var_manager.restore_device_variables([node], DeviceId(0))
        yield {
            "LoweringGlobalData": LoweringGlobalData,
            "ModelExecutor": ModelExecutor,
            "lowering_variable": lowering_variable,
            "DeviceId": DeviceId,
            "node": node,
            "session": session,
        }


def _training() -> Iterator[Names]:
    rng = np.random.default_rng(1)
    Path("cache").mkdir()
    predict = training_graphs.predict()
    yield {
        "predict": training_graphs.outputs(predict, predict["y"]),
        "update": training_graphs.update(["NC1HWC0"]),
        "start": rng.random(training_graphs.SHAPE, np.float32),
        "batches": [rng.random((2, training_graphs.FEATURES), np.float32)] * 2,
        "gradient_of": lambda y: np.full(training_graphs.SHAPE, y.mean(), np.float32),
        "Format": Format,
    }


PYTHON = {
    ("README.md", 0): _readme,
    ("compile.md", 0): _compiling,
    ("formats.md", 0): lambda: iter([{}]),
    ("graph.md", 0): _model,
    ("memory.md", 0): lambda: iter([{}]),
    ("om.md", 0): _model,
    ("om.md", 1): _two_models,
    ("om_writing.md", 0): _builders,
    ("om_writing.md", 1): _model,
    ("om_writing.md", 2): _placing,
    ("om_writing.md", 3): _builders,
    ("passes.md", 0): _passes,
    ("runtime.md", 0): _execution,
    ("training.md", 0): _training,
}
"""What each block of Python takes as given, by document and number: a generator of names."""


def _blocks(path: Path, *languages: str) -> list[str]:
    return [text for language, text in _FENCED.findall(TEXTS[path]) if language in languages]


def test_every_block_of_python_is_known() -> None:
    found = {(path.name, number) for path in DOCUMENTS for number in range(len(_blocks(path, "python")))}
    assert found == set(PYTHON)


@pytest.mark.parametrize("key", PYTHON, ids=lambda key: f"{key[0]}-{key[1]}")
def test_python_runs(key: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, number = key
    (path,) = (path for path in DOCUMENTS if path.name == name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEVAR_ACL", "host")
    code = compile(_blocks(path, "python")[number], f"{name}, block {number}", "exec")
    for names in PYTHON[key]():
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)


def _anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", _FENCED.sub("", TEXTS[path])):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), target
        assert not anchor or anchor in _anchors(TEXTS[file]), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path: Path) -> None:
    found = re.findall(r"(?<![\w/.-])(?:tests|gevar|acl_shim|native|scripts|docs|benchmarks)/[\w/.*-]+", TEXTS[path])
    for name in {one.rstrip("./") for one in found}:
        assert list(REPOSITORY.glob(name)), name


def _source() -> str:
    folders = ("gevar", "acl_shim", "scripts", "tests/helpers", "native")
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    plain = [path for path in files if path.suffix in {".py", ".c", ".h", ".sh", ""}]
    return "\n".join(path.read_text(encoding="utf-8") for path in plain) + "".join(
        (REPOSITORY / "scripts" / name).read_text(encoding="utf-8") for name in ("run", "test")
    )


def test_variables_of_the_environment_are_read() -> None:
    source = _source()
    for path, text in TEXTS.items():
        for name in re.findall(r"\bGEVAR_[A-Z]+(?:_[A-Z]+)*\b(?!_)", text):
            assert name in source, (path.name, name)


def _first_cells(path: Path) -> list[set[str]]:
    """First cells of the tables of a document."""
    tables = re.findall(r"(?:^\|.*\n)+", TEXTS[path], re.MULTILINE)
    return [set(re.findall(r"^\| `?([\w-]+)`? \|", table, re.MULTILINE)) for table in tables]


def test_every_campaign_and_every_row_of_benchmarks_is_told() -> None:
    what, last = _first_cells(REPOSITORY / "docs" / "campaigns.md")
    assert what - {"campaign"} == last - {"campaign"} == set(CAMPAIGNS)
    assert {name for name in CAMPAIGNS if f"`{name}`" not in TEXTS[REPOSITORY / "CONTRIBUTING.md"]} == {"om"}
    what, last = _first_cells(REPOSITORY / "docs" / "benchmarks.md")
    assert what - {"row"} == last - {"row"} == set(BENCHMARKS)


def _command_lines() -> Iterator[tuple[str, list[str]]]:
    for path in DOCUMENTS:
        code = [*_blocks(path, "bash", "sh", ""), *re.findall(r"`([^`\n]+)`", _FENCED.sub("", TEXTS[path]))]
        for line in "\n".join(code).splitlines():
            words = line.split("#")[0].removeprefix("$ ").removeprefix("./scripts/run ").split()
            if len(words) > 1 and words[0] == "gevar" and words[1].isalpha() and words[1].islower():
                yield f"{path.name}: {line}", words[1:]


def test_commands_take_the_options_that_are_named() -> None:
    lines = list(_command_lines())
    assert len(lines) > 20
    with click.Context(commands) as context:
        for where, words in lines:
            for name in words[0].split("|"):
                command = commands.get_command(context, name)
                assert command is not None, where
                if isinstance(command, click.Group):
                    continue
                known = {option for one in command.params for option in one.opts} | {"--help"}
                assert {word for word in words if word.startswith("-") and len(word) > 1} <= known, where
