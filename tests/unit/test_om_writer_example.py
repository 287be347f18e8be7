"""The example model: what is in it, and that it is the same every time."""

import subprocess
import sys
from pathlib import Path

import pytest

from gevar.om import open_om
from gevar.om.model import OmModel
from gevar.types import DataType, Format
from gevar.types.format import primary_format, sub_format
from tests.helpers.shared import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "build_model.py"


def build(path: Path) -> Path:
    subprocess.run([sys.executable, str(SCRIPT), str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("example") / "example.om")


@pytest.fixture
def model(example: Path) -> OmModel:
    with open_om(example) as om:
        (model,) = om.models
        list(model.nodes())
        return model


def test_every_run_gives_the_same_file(example: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "again.om").read_bytes() == example.read_bytes()


def test_it_has_some_mebibytes(example: Path) -> None:
    assert 8 << 20 < example.stat().st_size < 32 << 20


def test_kinds(model: OmModel) -> None:
    kinds = [node.type for node in model.nodes()]
    assert kinds.count("Const") > 5
    assert kinds.count("Constant") > 3
    inits = [node.output_descs[0].init_value is not None for node in model.nodes() if node.type == "Variable"]
    assert set(inits) == {True, False}


def test_types_and_formats(model: OmModel) -> None:
    lasting = [node.output_descs[0] for node in model.nodes() if node.type in ("Const", "Constant", "Variable")]
    assert {desc.dtype for desc in lasting} == {
        DataType.DT_FLOAT,
        DataType.DT_FLOAT16,
        DataType.DT_BF16,
        DataType.DT_INT8,
        DataType.DT_INT32,
        DataType.DT_INT64,
        DataType.DT_BOOL,
        DataType.DT_DOUBLE,
    }
    assert {(primary_format(desc.format), sub_format(desc.format)) for desc in lasting} == {
        (Format.FORMAT_ND, 0),
        (Format.FORMAT_NCHW, 0),
        (Format.FORMAT_NC1HWC0, 0),
        (Format.FORMAT_FRACTAL_Z, 2),
        (Format.FORMAT_FRACTAL_NZ, 0),
    }


def test_equal_constants_share(model: OmModel) -> None:
    addresses = [node.output_i[0] for node in model.nodes() if node.type == "Constant"]
    assert len(addresses) - len(set(addresses)) == 2


def test_a_missing_path_is_an_error() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert result.returncode != 0
