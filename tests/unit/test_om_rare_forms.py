"""Forms that the format has and few files show: they are read, written again for every reader equal, and inspected."""

import json
import struct
from pathlib import Path

import pytest

from gevar.om import GeRootModel, OmFile, write_om
from gevar.om.facts import om_facts
from gevar.om.om_file import Kind
from tests.helpers import om_builder as build
from tests.helpers.om_builder import field, message
from tests.helpers.om_fields import fields
from tests.helpers.om_rules import check_bundle, check_file
from tests.helpers.om_tree import Tree, file_trees, message_tree, without_tables

NOT_UTF8 = b"\xff\xfe\x80text\0"
F32 = struct.pack("<f", 1.5)
UNKNOWN = field(901, b"later") + field(902, 7) + bytes([0xBD, 0x38]) + b"four" + bytes([0xC1, 0x38]) + b"eightbyt"
"""Fields of later versions, of each wire type: numbers 901, 902, 903 and 904."""


def fixed32(number: int, data: bytes) -> bytes:
    return build.varint(number << 3 | 5) + data


DESC = build.tensor_desc((2, -1, -2), 27, "FRACTAL_Z", size=96, attrs={"_inner_offset": build.attr_i(-8)}) + UNKNOWN
TENSOR = build.tensor(build.tensor_desc((3,), 4), b"\1\2\3") + UNKNOWN
NAMED = field(1, "function") + field(2, field(1, "axis") + field(2, build.attr_i(-1))) + UNKNOWN
INNER_GRAPH = build.graph("inner", [build.op("y", "Relu", {"deep": build.attr_s(NOT_UTF8)})]) + UNKNOWN
LISTS = {
    "s": field(2, NOT_UTF8) + field(2, b"") + field(2, "ok"),
    "i": field(3, build.varint(-1) + build.varint(1 << 62)),
    "i unpacked": field(3, 5) + field(3, -6),
    "f": field(4, F32 * 3),
    "f unpacked": fixed32(4, F32) * 2,
    "b": field(5, bytes([1, 0, 1])),
    "bt": field(7, NOT_UTF8) + field(7, b""),
    "td": field(8, DESC) + field(8, b""),
    "t": field(9, TENSOR) + field(9, b""),
    "g": field(10, INNER_GRAPH) + field(10, b""),
    "na": field(11, NAMED) + field(11, b""),
    "dt": field(12, bytes([1, 27, 41])),
    "later": field(30, b"later"),
}
VAL_TYPES = dict(zip(("s", "i", "f", "b", "bt", "td", "t", "g", "na", "dt"), range(1, 11), strict=True))
ATTRS = {
    "list": field(1, b""),
    **{f"list {name}": field(1, items) for name, items in LISTS.items()},
    **{f"typed list {name}": field(1, LISTS[name] + field(20, number)) for name, number in VAL_TYPES.items()},
    **{f"empty list {number}": field(1, field(20, number)) for number in (*range(11), 99)},
    "s": field(2, NOT_UTF8),
    "empty s": field(2, b""),
    "i": field(3, -(1 << 63)),
    "zero": field(3, 0),
    "f": fixed32(4, F32),
    "b": field(5, 0),
    "bt": field(7, NOT_UTF8),
    "func": field(10, NAMED),
    "td": field(11, DESC),
    "t": field(12, TENSOR),
    "g": field(13, INNER_GRAPH),
    "list_list_int": field(14, field(1, field(1, build.varint(-3) + b"\1")) + field(1, b"") + field(1, field(1, 7))),
    "dt": field(15, 27),
    "list_list_float": field(16, field(1, field(1, F32 * 2)) + field(1, b"")),
    "expression": field(17, NOT_UTF8),
    "nothing": b"",
    "unknown": UNKNOWN,
    "of two kinds": field(3, 4) + field(2, "counts") + UNKNOWN,
}
GROUPS = field(1, field(9, "other")) + field(2, field(3, field(1, b""))) + field(2, field(4, b"")) + UNKNOWN


def rich_graphs() -> list[bytes]:
    """A root and a subgraph with every field of operators, descriptions and attributes."""
    lists = b"".join(
        [
            *(field(23, "x"), field(24, ""), field(25, -1), field(26, "to"), field(27, 3)),
            *(field(28, build.varint(-512) + build.varint(1 << 40)), field(30, build.varint(1 << 33)), field(31, 4096)),
        ]
    )
    numbers = message((20, 1), (21, 17), (22, -1))
    first = build.op(
        "first",
        "Custom",
        ATTRS,
        [DESC + field(12, 1) + field(13, 1) + field(14, "NPU") + field(15, 1) + field(16, -2) + field(17, 3)],
        [DESC + field(19, 5) + field(20, "tab") + field(21, 9) + field(6, GROUPS) + field(1, "named")],
        [1 << 40],
        ["body", "not there"],
        ["data:0"],
        is_input_const=[False],
    )
    data = build.op("data", "Data", {"index": build.attr_i(0)}, [build.tensor_desc((-1, 4))], producers=[""])
    weight, late = build.const("weight", 512, 64), build.const("nothing", 512, 0)
    last = build.op("last", "NetOutput", None, [], [DESC, DESC, DESC], producers=["first:0", "", "weight:0", "data:-1"])
    root = build.graph("root", [data, first + lists + numbers + field(11, GROUPS) + UNKNOWN, weight, late, last])
    ends = field(4, "data:0") + field(5, "first:0") + field(11, field(1, "g") + field(2, build.attr_i(1)))
    body = build.graph("body", [build.op("inside", "Relu", {"a": ATTRS["g"]}), build.const("bias", 1024, 4)])
    return [root + ends + field(12, GROUPS) + UNKNOWN, body + UNKNOWN]


def rich_model(**attrs: bytes) -> bytes:
    tables = {"om_info_list": build.attr_ints([1, 2, 3, 4, 5]), "variable_size": build.attr_i(0), **attrs}
    parts = build.model_def("rich", rich_graphs(), {**ATTRS, **tables}) + field(3, "1.11.z.0") + field(12, GROUPS)
    return parts + UNKNOWN


THREE_SO = build.so_store([("a.so", "vendor", 0, b"1"), ("b.so", "", 3, b"22"), ("c\xfc.so", "v", 9, b"333")])
KERNELS = build.kernel_item("one", b"\x90" * 7) + build.kernel_item("", b"") + build.kernel_item("two", b"x")
INOUT = build.record(0, struct.pack("<I", 1) + build.tensor_info("data", 0, (-1, 4), (1, 8, 4, 4)))
INOUT += build.record(2, struct.pack("<IQQ", 2, 1, 8)) + build.record(3, struct.pack("<IIQQ", 1, 2, 224, 320))
INOUT += build.record(4, struct.pack("<IIIQ", 2, 1, 0, 9)) + build.record(5, struct.pack("<II", 1, 3) + b"1,2")
INOUT += build.record(6, struct.pack("<II", 1, 4) + NOT_UTF8[:4])
PARTS = [(8, INOUT), (0, rich_model()), (1, build.WEIGHTS), (3, KERNELS), (2, build.task_def(2))]
EVERY_PART = [(5, THREE_SO), (26, build.kernel_item("op", b"so", 0x4B43534B)), (12, b"tiling"), *PARTS[1:4]]
EVERY_PART += [(4, KERNELS), (2, build.task_def(1))]
OWN = build.compression(["mode", "\0\1"], [False, True], ["plain", "kept"])
ROOT = build.compression(["root_name", "other"], [True, False], [NOT_UTF8.decode("latin-1"), "text"])


def numbered(name: str, *attrs: tuple[str, bytes]) -> bytes:
    return build.graph(name, [build.op("x", "Relu", dict(attrs), [build.tensor_desc((1,), attrs=dict(attrs))])])


TWICE = [
    [(0, build.model_def("root", [numbered("root", ("\0\1", build.attr_i(1)), ("\0\2", build.attr_i(5)))], ROOT))],
    [(0, build.model_def("one", [numbered("one", ("\0\1", build.attr_i(9)), ("plain", build.attr_i(1)))], OWN))],
    [(0, build.model_def("two", [numbered("two", ("\0\1", build.attr_ints([1, 0, 1])))]))],
    [(0, build.model_def("three", [numbered("three")], build.compression([])))],
]
FORMS: dict[str, tuple[bytes, Kind]] = {
    "static": (build.g3(PARTS), "model"),
    "of 2022": (build.g2(PARTS[1:]), "model"),
    "of 2020": (build.g1(PARTS[1:]), "model"),
    "with shared objects and eight partitions": (build.g3(EVERY_PART), "model"),
    "weights of no bytes": (build.g3([(0, build.model_def("m", [build.graph("g", [])])), (1, b"")]), "model"),
    "two partitions of one type": (build.g3([*PARTS, (3, build.kernel_item("again", b""))]), "model"),
    "one partition": (build.g3([(0, build.model_def("m", [build.graph("g", [])]))]), "model"),
    "no graph": (build.g3([(0, build.model_def("m", [])), (1, bytes(1024))]), "model"),
    "of several versions": (build.dynamic([[(0, rich_model())], PARTS[1:4], PARTS[1:3]]), "model"),
    "numbered once, twice, by the root and not at all": (build.dynamic(TWICE), "model"),
}


def bare(trees: list[tuple[Tree, list[tuple[int, bytes]]]]) -> list[tuple[Tree, list[tuple[int, bytes]]]]:
    """Return models without what the writer brings up to date, parts in any order."""
    return [(without_tables(tree), sorted(part for part in parts if part[1])) for tree, parts in trees]


def rewritten(data: bytes, path: Path, kind: Kind = "model", *, compress: bool | None = None) -> bytes:
    with OmFile.from_bytes(data, kind=kind) as om:
        root = GeRootModel.from_om(om)
        root.is_compressed = root.is_compressed if compress is None else compress
        write_om(path, root)
    return path.read_bytes()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_written_again_a_file_is_equal_for_every_reader(tmp_path: Path, form: str, compress: bool) -> None:
    data, kind = FORMS[form]
    again = rewritten(data, tmp_path / "again.om", kind, compress=compress)
    assert bare(file_trees(again)) == bare(file_trees(data))
    check_file(again, places=False)
    assert rewritten(again, tmp_path / "third.om", kind) == again, "what is written stays as it is"


@pytest.mark.parametrize("form", FORMS)
def test_everything_is_told_as_json(form: str) -> None:
    data, kind = FORMS[form]
    with OmFile.from_bytes(data, kind=kind) as om:
        facts = om_facts(om, deep=True)
        assert json.loads(json.dumps(facts, ensure_ascii=True)) is not None
        for model in om.models:
            assert model.so_items() or all(kind != 5 for kind, _ in file_trees(data)[model.index][1])


def test_unknown_fields_are_counted_at_every_level() -> None:
    with OmFile.from_bytes(build.g3(PARTS)) as om:
        found = om_facts(om, deep=True)["models"]
    assert isinstance(found, list)
    tree = message_tree(rich_model(), "ModelDef")
    assert len(tree["?"]) == 4
    assert found[0]["model_def"]["unknown_fields"] >= 4 * 12


def test_names_through_two_tables() -> None:
    with OmFile.from_bytes(build.dynamic(TWICE)) as om:
        root, one, two, three = (next(model.nodes()) for model in om.models)
        assert [dict(node.attrs)["root_name"].s for node in (root,)] == [b"text"]
        assert root.attrs["other"].i == 5
        assert (one.attrs["mode"].i, one.attrs["plain"].i) == (9, 1)
        latin = NOT_UTF8.decode("latin-1").encode()
        assert list(two.attrs["root_name"].list.s) == [b"text", latin, b"text"]
        assert [model.attr_name_rounds() for model in om.models] == [1, 1, 1, 0]
        assert dict(three.attrs) == {}


def test_files_of_every_dialect_inside_others(tmp_path: Path) -> None:
    inner = [build.g1(PARTS[1:]), build.g2(PARTS), build.g3(EVERY_PART), build.dynamic(TWICE), b""]
    data = build.flow(rich_model(), [(f"sub {index}", "NPU", om) for index, om in enumerate(inner)])
    again = rewritten(data, tmp_path / "again.om")
    assert [om and bare(file_trees(om)) for om in nested_of(again)] == [om and bare(file_trees(om)) for om in inner]
    for om in nested_of(again):
        if om:
            check_file(om, places=False)
    with OmFile.from_bytes(again) as om:
        assert [sub.name for sub in om.submodels] == [f"sub {index}" for index in range(5)]
    bundled = build.bundle([om for om in inner if om], variable_size=7 << 33)
    again = rewritten(bundled, tmp_path / "bundle.om", "bundle")
    check_bundle(again, places=False)
    with OmFile.from_bytes(again, kind="bundle") as om:
        assert om.bundle_variable_size == 7 << 33
        assert [len(sub.om.models) for sub in om.submodels if sub.om is not None] == [1, 1, 1, 4]


def nested_of(data: bytes) -> list[bytes]:
    """The OM files inside a flow model."""
    ((_, parts),) = file_trees(data)
    return [dict(fields(content)).get(3, b"") for kind, content in parts if kind == 7]
