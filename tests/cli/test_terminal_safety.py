"""Names from files and of files that would upset a terminal: no command prints one as it is, to no stream."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gevar.cli.main import main
from gevar.cli.output import print_json, show_log
from gevar.om import OmBuilder
from gevar.om.named_tensor import write_tensors
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.weight_files import named

UNSAFE = "a\x1b[2J\x9b\u202eb\nc"
SHOWN = r"a\x1b[2J\x9b\u202eb"
Gevar = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with unsafe names that hold tensors, nodes and digests with unsafe names."""
    folder = tmp_path_factory.mktemp("unsafe")
    write_tensors(folder / f"{UNSAFE}.safetensors", named({UNSAFE: np.ones(3, np.float32)}))
    builder = OmBuilder(UNSAFE)
    builder.output(builder.const(UNSAFE, np.ones(300, np.float32)))
    builder.variable(f"v{UNSAFE}", TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (3,)))
    builder.write(folder / f"{UNSAFE}.om")
    (folder / f"{UNSAFE}.pb").write_bytes(b"no graph")
    (folder / "bad.om").write_bytes((folder / f"{UNSAFE}.om").read_bytes()[:-1])
    (folder / f"{UNSAFE}.json").write_text(
        json.dumps({"xxh3_128": [{"file": UNSAFE, "offset": 0, "length": 1, "digest": "00"}]})
    )
    return folder


@pytest.fixture
def gevar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gevar:
    """Run a command in this process; return exit code, output and errors."""
    monkeypatch.setenv("GEVAR_ACL", "host")

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


OM, TENSORS, NONE = f"{UNSAFE}.om", f"{UNSAFE}.safetensors", f"none{UNSAFE}"
COMMANDS = [
    ("inspect", OM),
    ("inspect", NONE),
    ("inspect", "bad.om"),
    ("load", OM, TENSORS),
    ("load", f"{NONE}.om"),
    ("load", OM, "--weight-dir", NONE),
    ("build", TENSORS, "-o", f"out{UNSAFE}.om", "--name", UNSAFE),
    ("build", TENSORS, "-o", f"{NONE}/out.om"),
    ("extract", OM, "-o", f"out{UNSAFE}.npz"),
    ("extract", OM, "-o", f"out{UNSAFE}.txt"),
    ("relocate", OM, "-o", f"copy{UNSAFE}.om"),
    ("relocate", OM, "-o", f"{NONE}/copy.om"),
    ("diff", OM, TENSORS),
    ("diff", OM, f"{NONE}.om"),
    ("verify", OM, "--digests", f"{UNSAFE}.json"),
    ("verify", f"{NONE}.npz"),
    ("passes", OM),
    ("passes", f"{UNSAFE}.pb"),
    ("bench", "alloc", "--replay", NONE),
    ("load", OM, "--backend", f"./{NONE}"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_what_a_command_prints(folder: Path, gevar: Gevar, words: tuple[str, ...]) -> None:
    paths = [str(folder / word) if any(one in word for one in (UNSAFE, "bad")) else word for word in words]
    code, out, err = gevar(*paths)
    said = [*out.splitlines(), *err.splitlines()]
    assert said
    assert all(line.isprintable() for line in said), said
    assert SHOWN in out + err or words == ("inspect", "bad.om")
    assert len(err.splitlines()) <= 1
    assert code == 0 or err or words[0] in ("diff", "verify")


@pytest.mark.parametrize("words", [("inspect", OM), ("load", OM), ("diff", OM, TENSORS), ("passes", OM)])
def test_json_is_escaped_and_says_the_same(folder: Path, gevar: Gevar, words: tuple[str, ...]) -> None:
    _, out, _ = gevar(words[0], *(str(folder / word) for word in words[1:]), "--json")
    assert all(line.isprintable() for line in out.splitlines())
    assert r"\u001b[2J\u009b\u202e" in out
    assert json.dumps(UNSAFE)[1:-1] in json.dumps(json.loads(out))


def test_json_of_what_is_no_character(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"\ud800": "\udcff\U000e0001\x7f ü 💾"}
    print_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert r"\udcff\udb40\udc01\u007f ü 💾" in out


def test_a_traceback(folder: Path, gevar: Gevar) -> None:
    code, _, err = gevar("inspect", str(folder / f"{NONE}.om"), "--debug")
    assert code == 1
    assert "Traceback" in err
    assert all(line.isprintable() for line in err.splitlines())


def test_names_in_the_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    show_log(debug=False)
    logging.getLogger("gevar.test").warning("variable %s is odd", UNSAFE)
    assert capsys.readouterr().err == f"gevar.test: variable {SHOWN}\\nc is odd\n"
