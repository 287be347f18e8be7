"""`gevar build`, `extract` and `diff` as a person types them."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from gevar.cli.main import main
from gevar.om import GeRootModel, OmBuilder, open_om, write_om
from gevar.om.composed_model import bundle, dynamic
from gevar.om.model_spec import OmModelSpec
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.types import DataType, Format, TensorDesc
from tests.cli.test_commands import gevar as gevar_process
from tests.cli.test_commands import refused
from tests.helpers.models import small_model
from tests.helpers.om_rules import check_file
from tests.helpers.real_weights import real_weights

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,))


def gevar(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which is quicker than in one of its own."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(list(map(str, words)))
    code = stop.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture
def weights(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    arrays = {"kernel": rng.random((30, 40), np.float32), "bias": rng.random(40).astype(np.float16)}
    arrays |= {"tied": arrays["kernel"], "mask": np.array([True, False, True])}
    np.savez(tmp_path / "w.npz", **arrays)
    return tmp_path / "w.npz", arrays


def same(path: Path, expected: dict[str, np.ndarray]) -> None:
    with np.load(path) as found:
        assert set(found) == set(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


@pytest.mark.parametrize(
    ("mode", "kind"), [("0", "const"), ("0", "constant"), ("0", "variable"), ("1", "const"), ("2", "constant")]
)
def test_there_and_back(weights: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, mode: str, kind: str) -> None:
    source, arrays = weights
    out = tmp_path / "m.om"
    done = gevar("build", source, "-o", out, "--external-weight", mode, "--as", kind, "--compress")
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 tensors" in done.stdout
    (model,) = check_file(out.read_bytes(), tmp_path / "weight")
    assert model.name == "w"
    assert (tmp_path / "weight").exists() is (mode != "0")
    done = gevar("extract", out, "-o", tmp_path / "back.npz")
    assert (done.returncode, done.stderr) == (0, "")
    same(tmp_path / "back.npz", arrays)


def test_build_in_json_and_by_name(weights: tuple[Path, dict[str, np.ndarray]], tmp_path: Path) -> None:
    source, _ = weights
    facts = json.loads(gevar("build", source, "-o", tmp_path / "m.om", "--name", "mine", "--json").stdout)
    assert facts["tensors"][0] == {"name": "kernel", "dtype": "DT_FLOAT", "shape": [30, 40], "size_bytes": 4800}
    assert facts["size_bytes"] == (tmp_path / "m.om").stat().st_size
    facts = json.loads(gevar("extract", tmp_path / "m.om", "-o", tmp_path / "b.safetensors", "--json").stdout)
    assert [row["raw"] for row in facts["tensors"]] == [False] * 4
    with open_om(tmp_path / "m.om") as om:
        assert om.models[0].name == om.header.name == "mine"


def test_build_refusals(tmp_path: Path) -> None:
    np.savez(tmp_path / "none.npz")
    (tmp_path / "w.pt").write_bytes(b"")
    refused(gevar("build", tmp_path / "missing.npz", "-o", tmp_path / "m.om"), 1, "missing.npz", "No such file")
    refused(gevar("build", tmp_path / "w.pt", "-o", tmp_path / "m.om"), 1, "w.pt", ".safetensors")
    refused(gevar("build", tmp_path / "none.npz", "-o", tmp_path / "m.om"), 1, "no tensor")
    done = gevar("build", tmp_path / "none.npz")
    assert done.returncode == 2
    assert "--output" in done.stderr
    assert not (tmp_path / "m.om").exists()


def test_build_from_onnx_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = gevar("build", tmp_path / "w.onnx", "-o", tmp_path / "m.om")
    assert done.returncode == 2
    assert "install gevar[models]" in done.stderr


def test_extract_refusals(tmp_path: Path) -> None:
    small_model(tmp_path / "m.om")
    refused(gevar("extract", tmp_path / "m.om", "-o", tmp_path / "w.bin"), 1, "w.bin", ".npz")
    refused(gevar("extract", tmp_path / "no.om", "-o", tmp_path / "w.npz"), 1, "no.om")
    builder = OmBuilder("m")
    builder.const("w", np.ones(4, np.float32))
    builder.write(tmp_path / "e.om", external_weight=1)
    next((tmp_path / "weight").glob("weight_*")).unlink()
    refused(gevar("extract", tmp_path / "e.om", "-o", tmp_path / "w.npz"), 1, "weight_")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.om", "m.om", "weight"]


def test_extract_names_of_several_models(tmp_path: Path) -> None:
    models = []
    for name, value in (("one", 1), ("two", 2)):
        builder = OmBuilder(name)
        builder.const("own", np.full(4, value, np.float32))
        builder.variable("shared", ROW, init=np.zeros(4, np.float32))
        builder.variable("empty", ROW)
        models.append(builder.build())
    write_om(tmp_path / "b.om", bundle(models))
    done = gevar("extract", "--bundle", tmp_path / "b.om", "-o", tmp_path / "w.npz")
    assert (done.returncode, done.stderr) == (0, "")
    same(
        tmp_path / "w.npz",
        {"own": np.full(4, 1, np.float32), "two/own": np.full(4, 2, np.float32), "shared": np.zeros(4, np.float32)},
    )


def test_extract_says_what_is_raw(tmp_path: Path) -> None:
    builder = OmBuilder("m")
    builder.const("half", np.ones((2, 2), ml_dtypes.bfloat16))
    builder.write(tmp_path / "m.om")
    done = gevar("extract", tmp_path / "m.om", "-o", tmp_path / "w.npz")
    assert "raw      half: bytes of DT_BF16 2x2" in done.stdout
    assert "half" not in gevar("extract", tmp_path / "m.om", "-o", tmp_path / "w.safetensors").stdout


def test_diff_of_equal_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.om", tmp_path / "two.om"
    small_model(one)
    with open_om(one) as om:
        root = GeRootModel.from_om(om)
        root.is_compressed = True
        write_om(two, root)
    assert one.read_bytes() != two.read_bytes()
    done = gevar("diff", one, two)
    assert (done.returncode, done.stdout, done.stderr) == (0, "equal\n", "")


def test_diff_says_what_changed(tmp_path: Path) -> None:
    def build(name: str, *, bias: float, extra: bool, mode: str) -> Path:
        builder = OmBuilder("net")
        weight = builder.const("bias", np.full(4, bias, np.float32))
        if extra:
            builder.variable("first", ROW)
        state = builder.variable("state", ROW, init=np.full(4, bias, np.float32))
        builder.output(builder.node("Add", "add", [weight, state], [ROW], attrs={"mode": mode}))
        builder.write(tmp_path / name)
        return tmp_path / name

    one = build("one.om", bias=1, extra=False, mode="SAME")
    two = build("two.om", bias=2, extra=True, mode="VALID")
    done = gevar("diff", one, two, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    facts = json.loads(done.stdout)
    assert facts["equal"] is False
    changes = {(row["what"], row["how"], row["name"]): (row["before"], row["after"]) for row in facts["changes"]}
    assert changes["node", "added", "net_0/first"] == ("", "Variable")
    assert changes["node", "changed", "net_0/add: mode"] == ("'SAME'", "'VALID'")
    assert changes["address", "changed", "net_0/state"] == ("0x2000000000", "0x2000000600")
    assert changes["weight", "added", "first"] == ("", "DT_FLOAT 4, no bytes")
    before, after = changes["weight", "changed", "bias"]
    assert before.startswith("DT_FLOAT 4, 16 B, xxh3 ")
    assert before != after
    assert ("weight", "changed", "state") in changes
    assert len(changes) == 6
    lines = gevar("diff", one, two).stdout.splitlines()
    assert "+ node      net: net_0/first: Variable" in lines
    assert lines[-1] == "6 changes"
    assert sum(line.startswith("-") for line in gevar("diff", two, one).stdout.splitlines()) == 2


def test_diff_says_which_fields_of_descriptions_changed(tmp_path: Path) -> None:
    for name, desc, reads in (("one", ROW, 1), ("two", ROW.replace(shape=(2, 2), origin_format=Format.FORMAT_NCHW), 2)):
        builder = OmBuilder("net")
        state = builder.variable("state", desc)
        builder.output(builder.node("Add", "add", [state] * reads, [ROW]))
        builder.write(tmp_path / f"{name}.om")
    lines = gevar("diff", tmp_path / "one.om", tmp_path / "two.om").stdout.splitlines()
    for where in ("state: output 0", "add: input 0"):
        assert f"~ node      net: net_0/{where} shape: (4,) -> (2, 2)" in lines
        assert f"~ node      net: net_0/{where} origin_format: ND -> NCHW" in lines
    assert "+ node      net: net_0/add: input 1 dtype: DT_FLOAT" in lines
    assert not any("DT_UNDEFINED: " in line for line in lines)


def test_diff_shows_where_long_texts_begin_to_differ(tmp_path: Path) -> None:
    paths = []
    for end in ("one", "other", ""):
        builder = OmBuilder("net")
        builder.output(
            builder.node("Relu", "relu", [builder.variable("v", ROW)], [ROW], attrs={"mode": "m" * 200 + end})
        )
        builder.write(tmp_path / f"{end or 'none'}.om")
        paths.append(tmp_path / f"{end or 'none'}.om")
    line = gevar("diff", *paths[:2]).stdout.splitlines()[0]
    assert line == f"~ node      net: net_0/relu: mode: …{'m' * 19}one' -> …{'m' * 19}other'"
    line = gevar("diff", paths[0], paths[2]).stdout.splitlines()[0]
    assert line.endswith("one' -> …" + "m" * 20 + "'")


def test_diff_of_files_of_several_models(tmp_path: Path) -> None:
    def model(name: str, *variables: str) -> OmModelSpec:
        builder = OmBuilder(name)
        for variable in variables:
            builder.variable(variable, ROW)
        return builder.build()

    paths = [tmp_path / f"{number}.om" for number in range(4)]
    write_om(paths[0], dynamic("root", [model("a", "v"), model("b")]))
    write_om(paths[1], dynamic("root", [model("a", "v"), model("c", "w"), model("d")]))
    facts = json.loads(gevar("diff", paths[0], paths[1], "--json").stdout)
    changes = {(row["what"], row["how"], row["model"], row["name"]) for row in facts["changes"]}
    assert ("model", "added", "d", "d") in changes
    assert ("model", "changed", "b", "name") in changes
    assert ("node", "added", "root", "c/w") in changes
    assert ("node", "added", "b", "b/w") in changes, "roots belong together whatever their names"
    write_om(paths[2], bundle([model("a", "v")]))
    write_om(paths[3], bundle([model("a", "v", "w")]))
    done = gevar("diff", "--bundle", paths[2], paths[3])
    assert done.returncode == 1
    assert "bundle_variable_size: 1536 -> 3072" in done.stdout
    assert gevar("diff", paths[2], paths[3]).returncode == 2


def test_diff_sees_other_partitions(tmp_path: Path) -> None:
    for name, kernels in (("none", {}), ("one", {"k": b"1"}), ("two", {"k": b"2"})):
        builder = OmBuilder("net")
        for kernel, data in kernels.items():
            builder.kernel(kernel, data)
        builder.write(tmp_path / f"{name}.om")
    none, one, two = (tmp_path / f"{name}.om" for name in ("none", "one", "two"))
    assert "~ partition net: TBE_KERNELS: 14 B, xxh3 " in gevar("diff", one, two).stdout
    assert "+ partition net: TBE_KERNELS: 14 B, xxh3 " in gevar("diff", none, one).stdout
    assert "- partition net: TBE_KERNELS: 14 B, xxh3 " in gevar("diff", one, none).stdout


def test_diff_in_trouble(tmp_path: Path) -> None:
    small_model(tmp_path / "m.om")
    (tmp_path / "text.om").write_text("no model " * 100)
    refused(gevar("diff", tmp_path / "m.om", tmp_path / "missing.om"), 2, "missing.om")
    refused(gevar("diff", tmp_path / "text.om", tmp_path / "m.om"), 2, "text.om")
    assert gevar("diff", tmp_path / "m.om").returncode == 2


def test_real_weights_through_all_three(tmp_path: Path) -> None:
    """Each command in a process of its own."""
    source = real_weights("silero_vad_16k.safetensors")
    done = gevar_process("build", source, "-o", tmp_path / "a.om", "--external-weight", "2")
    assert (done.returncode, done.stderr) == (0, "")
    done = gevar_process("extract", tmp_path / "a.om", "-o", tmp_path / "a.safetensors")
    assert (done.returncode, done.stderr) == (0, "")
    gevar("build", tmp_path / "a.safetensors", "-o", tmp_path / "b.om", "--external-weight", "1")
    done = gevar_process("diff", tmp_path / "a.om", tmp_path / "b.om")
    assert (done.returncode, done.stderr) == (1, "")
    assert "location" in done.stdout
    assert "weight " not in done.stdout, "the bytes lie elsewhere, they are the same"


def test_packed_weights_stay_packed(tmp_path: Path) -> None:
    packed = NamedTensor("w", DataType.DT_INT4, (3,), memoryview(b"\x21\x03"))
    assert set(write_tensors(tmp_path / "w.safetensors", [packed])) == {"w"}
    assert gevar("build", tmp_path / "w.safetensors", "-o", tmp_path / "m.om").returncode == 0
    with open_om(tmp_path / "m.om") as om:
        (const,) = om.models[0].const_nodes()
        assert bytes(const.data()) == b"\x21\x03"
