"""Damaged forms of small files of every dialect: read soundly, or refused in one way, with little memory."""

import tracemalloc

import pytest

from gevar.om.om_file import Kind
from tests.helpers import om_builder as build
from tests.helpers.om_mutations import layout_of, mutations, outcome

ORDINARY = build.small_partitions()
NESTED = build.g3(ORDINARY)
FILES: dict[str, tuple[bytes, Kind]] = {
    "g1": (build.g1(ORDINARY), "model"),
    "g2": (build.g2(ORDINARY), "model"),
    "g3": (NESTED, "model"),
    "compressed": (build.g3(build.small_partitions(**build.compression(["value", "x"]))), "model"),
    "mobile": (build.mobile(ORDINARY), "model"),
    "mobile 4": (build.mobile(ORDINARY[:3], modeltype=4), "model"),
    "dynamic": (build.dynamic([ORDINARY[1:2], ORDINARY[1:], ORDINARY[1:3]]), "model"),
    "flow": (build.flow(build.model_def("r", []), [("a", "NPU", NESTED), ("b", "HOST_CPU", NESTED)]), "model"),
    "bundle": (build.bundle([NESTED, NESTED]), "bundle"),
    "so": (build.g3([(5, build.so_store([("a.so", "v", 1, b"12")])), *ORDINARY[1:3]]), "model"),
}
MAX_TRACED_BYTES = 4 << 20
MUST_BE_REFUSED = ("cut at", "one byte added", "magic", "version + 1000", "encrypted", "num at")


@pytest.mark.parametrize("name", FILES)
def test_undamaged_file_is_read(name: str) -> None:
    assert outcome(*FILES[name]) is None


@pytest.mark.parametrize("name", FILES)
def test_damaged_forms(name: str) -> None:
    data, kind = FILES[name]
    refused = 0
    labels = []
    for label, damaged in mutations(data):
        tracemalloc.start()
        try:
            error = outcome(damaged, kind)
            peak = tracemalloc.get_traced_memory()[1]
        except Exception as problem:
            raise AssertionError(f"{name}: {label}: {problem!r}") from problem
        finally:
            tracemalloc.stop()
        assert peak < MAX_TRACED_BYTES, (name, label)
        if label.startswith(MUST_BE_REFUSED) and not (kind == "bundle" and label.startswith("magic")):
            assert error is not None, (name, label)
        refused += error is not None
        labels.append(label)
    assert len(labels) == len(set(labels)) > 50
    assert refused > len(labels) / 3


@pytest.mark.parametrize("name", FILES)
def test_length_field_in_use_is_checked(name: str) -> None:
    data, kind = FILES[name]
    in_use = "length field at 184" if layout_of(data).wide else "length field at 76"
    damaged = [(label, form) for label, form in mutations(data) if label.startswith(in_use)]
    kept = [label for label, form in damaged if outcome(form, kind) is None]
    assert len(damaged) >= 3
    assert kept == []


def test_mutations_reach_every_table_and_entry() -> None:
    data = FILES["dynamic"][0]
    layout = layout_of(data)
    assert len(layout.tables) == 3
    assert len(layout.entries) == 1 + 4 + 2
    assert len(layout.model_defs) == 3
    assert max(layout.boundaries) == len(data)
    assert all(damaged != data for _, damaged in mutations(data))
