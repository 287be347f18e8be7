"""Any model that a file can hold, in any dialect: written again, it is equal for a reader that shares nothing."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gevar.om import GeRootModel, OmFile, write_om
from tests.helpers import om_builder as build
from tests.helpers.om_builder import field
from tests.helpers.om_rules import check_file
from tests.helpers.om_tree import Tree, file_trees, without_tables

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
KNOWN = st.sampled_from(
    ["value", "index", "origin_format", "origin_shape", "_input_name_key", "_ir_attr_names", "format_for_int", "x", "y"]
)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3)
BLOBS = st.binary(max_size=5)
UNKNOWN = st.sampled_from([b"", field(900, 3), field(901, b"later"), build.varint(902 << 3 | 5) + b"four"])
FLOATS = st.floats(width=32, allow_nan=False).map(lambda value: struct.pack("<f", value))


def packed(number: int) -> st.SearchStrategy[bytes]:
    """A list of integers, in one field or in many."""
    lists = st.lists(NUMBERS, max_size=4)
    many = lists.map(lambda found: b"".join(field(number, value) for value in found))
    return many | lists.map(lambda found: field(number, b"".join(map(build.varint, found))) if found else b"")


def repeated(number: int, items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(items, max_size=3).map(lambda found: b"".join(field(number, item) for item in found))


def joined(*parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(*parts).map(b"".join)


def attr_maps(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[dict[str, bytes]]:
    return st.dictionaries(KNOWN | NAMES, values, max_size=4)


def descs(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    shapes = st.lists(st.integers(-2, 9), max_size=3)
    layouts = st.sampled_from(["ND", "NCHW", "FRACTAL_Z", "", "later"])
    made = st.builds(build.tensor_desc, shapes, st.integers(0, 45), layouts, NUMBERS, attrs=attr_maps(values))
    return joined(made, UNKNOWN)


def lists_of(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    items = st.one_of(
        *(repeated(2, BLOBS), packed(3), repeated(7, BLOBS), packed(12), repeated(8, descs(values))),
        st.lists(FLOATS, max_size=3).map(lambda found: field(4, b"".join(found)) if found else b""),
        st.lists(st.booleans(), max_size=3).map(lambda found: field(5, bytes(found)) if found else b""),
        repeated(11, named(values)),
    )
    return joined(items, st.integers(0, 12).map(lambda number: field(20, number) if number else b""), UNKNOWN)


def named(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(NAMES, attr_maps(values)).map(lambda found: field(1, found[0]) + build.attr_map(2, found[1]))


def attr_values(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    rows = repeated(1, packed(1))
    kinds = st.one_of(
        *(BLOBS.map(build.attr_s), NUMBERS.map(build.attr_i), BLOBS.map(lambda data: field(7, data)), st.just(b"")),
        FLOATS.map(lambda data: build.varint(4 << 3 | 5) + data),
        lists_of(inner).map(lambda data: field(1, data)),
        *(named(inner).map(lambda data: field(10, data)), descs(inner).map(lambda data: field(11, data))),
        st.tuples(descs(inner), BLOBS).map(lambda found: build.attr_t(build.tensor(*found))),
        *(rows.map(lambda data: field(14, data)), st.integers(0, 41).map(lambda number: field(15, number))),
        BLOBS.map(lambda data: field(17, data)),
        repeated(6, st.just(build.op("inside", "Relu")))
        .filter(lambda data: len(data) < 30)
        .map(lambda data: field(13, field(1, "g") + data)),
    )
    return joined(kinds, UNKNOWN)


VALUES = attr_values(attr_values(NUMBERS.map(build.attr_i)))


@st.composite
def graphs(draw: st.DrawFn, name: str, others: list[str]) -> bytes:
    """A graph of operators that read each other, some with subgraphs that are there or not."""
    ops: list[bytes] = []
    outputs: dict[str, int] = {}
    for op_name in draw(st.lists(NAMES, unique=True, max_size=4)):
        made = [draw(descs(VALUES)) for _ in range(draw(st.integers(0, 2)))]
        ends = [""] + [f"{known}:{index}" for known, count in outputs.items() for index in range(count)]
        linked = draw(st.lists(st.sampled_from(ends), max_size=3))
        read = [draw(descs(VALUES)) for _ in linked]
        controls = (
            [f"{known}:-1" for known in draw(st.lists(st.sampled_from([*outputs]), max_size=2))] if outputs else []
        )
        runs = draw(st.lists(st.sampled_from([*others, "elsewhere"]), unique=True, max_size=2))
        kind, attrs = draw(st.sampled_from(["Const", "Data", "Variable", "Relu"])), draw(attr_maps(VALUES))
        offsets = draw(st.lists(NUMBERS, max_size=2))
        producers = linked + controls
        ops.append(build.op(op_name, kind, attrs, made, read, offsets, runs, producers, offsets) + draw(UNKNOWN))
        outputs[op_name] = len(made)
    return build.graph(name, ops) + build.attr_map(11, draw(attr_maps(VALUES))) + draw(UNKNOWN)


@st.composite
def model_defs(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(NAMES, unique=True, max_size=3))
    made = [draw(graphs(name, names[1:])) for name in names]
    return build.model_def(draw(NAMES), made, draw(attr_maps(VALUES)), draw(st.integers(1, 9))) + draw(UNKNOWN)


def bare(trees: list[tuple[Tree, list[tuple[int, bytes]]]]) -> list[tuple[Tree, list[tuple[int, bytes]]]]:
    return [(without_tables(tree), sorted(parts)) for tree, parts in trees]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("again") / "again.om"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    models=st.lists(model_defs(), min_size=1, max_size=3),
    dialect=st.sampled_from([build.g1, build.g2, build.g3]),
    compress=st.booleans(),
)
def test_written_again_any_model_is_equal(path: Path, models: list[bytes], dialect: object, compress: bool) -> None:
    parts = [[(0, model), (1, build.WEIGHTS)] for model in models]
    data = dialect(parts[0]) if callable(dialect) and len(models) == 1 else build.dynamic(parts)
    with OmFile.from_bytes(data) as om:
        for model in om.models:
            assert sum(1 for _ in model.nodes()) == sum(len(graph.nodes) for graph in model.graphs)
        root = GeRootModel.from_om(om)
        root.is_compressed = compress
        write_om(path, root)
    again = path.read_bytes()
    assert bare(file_trees(again)) == bare(file_trees(data))
    check_file(again, places=False)
