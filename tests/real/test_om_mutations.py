"""Damaged forms of the real files: read soundly, or refused in one way, with little memory."""

import tracemalloc
from pathlib import Path

import pytest

from gevar.errors import ModelFileError
from gevar.om.om_file import Kind, OmFile
from tests.helpers.om_mutations import BUNDLE, FLOW, VERSION_1, layout_of, mutations, outcome
from tests.helpers.shared import shared_files, shared_path

MODELS = [path for path in shared_files("data/om*/*.om") if path.stat().st_size >= 256]
TRACED_FILE_BYTES = 700_000
"""Memory is not traced for larger files, where it only takes time."""
MAX_TRACED_BYTES = 4 << 20


def kind_of(data: bytes) -> Kind:
    return "bundle" if data[82] == BUNDLE else "model"


def test_the_files_are_here() -> None:
    shared_path("data/om")
    assert len(MODELS) > 20


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_damaged_forms(path: Path) -> None:
    data = path.read_bytes()
    kind = kind_of(data)
    assert outcome(data, kind) is None
    count = refused = 0
    for label, damaged in mutations(data):
        traced = len(data) < TRACED_FILE_BYTES
        if traced:
            tracemalloc.start()
        try:
            error = outcome(damaged, kind)
            peak = tracemalloc.get_traced_memory()[1] if traced else 0
        except Exception as problem:
            raise AssertionError(f"{label}: {problem!r}") from problem
        finally:
            tracemalloc.stop()
        assert peak < MAX_TRACED_BYTES, label
        count += 1
        refused += error is not None
    assert refused > count / 3


def mobile_flow_models() -> list[Path]:
    """Files of dialect M whose model type is that of a flow model in the other dialects."""
    found = [path for path in MODELS if path.read_bytes()[82] == FLOW]
    return [path for path in found if layout_of(path.read_bytes()).version == VERSION_1]


@pytest.mark.parametrize("path", mobile_flow_models(), ids=lambda path: path.stem)
def test_mobile_file_with_version_2_is_refused_as_a_flow_model(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:12] = (0x20000000).to_bytes(4, "little")
    with pytest.raises(ModelFileError):
        OmFile.from_bytes(bytes(data), "m.om")
