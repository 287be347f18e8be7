"""Files made by ATC and GE, read into parsed form and written again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gevar.errors import ModelFileError
from gevar.om import GeRootModel, OmFile, open_om, write_om
from gevar.om.header import Dialect
from gevar.om.om_file import Kind
from tests.helpers.om_rules import check_bundle, check_file
from tests.helpers.om_tree import Tree, file_trees, without_tables
from tests.helpers.shared import shared_files, shared_path

SIZES = {"length", "model_length", "version", "checksum"}
"""Header fields that the writer computes."""


def whole_files() -> Iterator[tuple[Path, Kind]]:
    """Yield the readable files, with how to open each."""
    shared_path("data/om")  # skips
    for path in shared_files("data/om*/*.om"):
        for kind in ("model", "bundle"):
            try:
                open_om(path, kind=kind).close()
            except ModelFileError:
                continue
            yield path, kind


def contents(om: OmFile) -> list[dict[str, object]]:
    """Return everything that a file holds, in decoded form, without places in the file."""
    found: list[dict[str, object]] = []
    for model in om.models:
        message = model.model_def()
        for name in ("om_compress_version", "attr_name_enum", "attr_value_enum", "attrs_use_string_value"):
            message.attr.pop(name, None)
        parts = [
            (part.type, om.source.read(part.file_offset, part.mem_size, "part"))
            for part in model.partitions
            if part.type not in (0, 7) and part.mem_size
        ]
        found.append({"model": message, "parts": parts, "name": model.name, "compressed": model.is_compressed})
    for nested in om.submodels:
        inner = None if nested.om is None else contents(nested.om)
        found.append({"nested": (nested.name, nested.model_type, nested.om_data_file_path), "inner": inner})
    found.append({"bundle": om.bundle_variable_size})
    return found


def header_facts(om: OmFile) -> dict[str, object]:
    fields = type(om.header).__dataclass_fields__
    return {name: getattr(om.header, name) for name in fields if name not in SIZES}


def rewritten(om: OmFile, path: Path, kind: Kind) -> OmFile:
    write_om(path, GeRootModel.from_om(om))
    return open_om(path, kind=kind)


def test_every_file_decodes_to_an_equal_model(tmp_path: Path) -> None:
    compared = set()
    for path, kind in whole_files():
        with open_om(path, kind=kind) as om, rewritten(om, tmp_path / "again.om", kind) as again:
            assert contents(again) == contents(om), path.name
            assert again.dialect is Dialect.G3
            if om.dialect is Dialect.G3:
                assert header_facts(again) == header_facts(om), path.name
                assert [part.type for part in again.partitions] == [part.type for part in om.partitions]
        compared.add(path.name)
    assert len(compared) >= 20


def test_what_is_written_keeps_the_rules(tmp_path: Path) -> None:
    checked = 0
    for path, kind in whole_files():
        with open_om(path, kind=kind) as om:
            if om.dialect is Dialect.M:
                continue
            write_om(tmp_path / "again.om", GeRootModel.from_om(om))
        if path.name.startswith("refused"):
            continue  # their variables break the rules on purpose
        (check_bundle if kind == "bundle" else check_file)((tmp_path / "again.om").read_bytes())
        checked += 1
    assert checked >= 12


def test_the_files_of_ge_keep_the_rules_too() -> None:
    """The checks are those of the format, not of this writer."""
    checked = 0
    for path, kind in whole_files():
        with open_om(path, kind=kind) as om:
            wide = om.header.has_wide_table and not path.name.startswith("refused")
        if wide:
            (check_bundle if kind == "bundle" else check_file)(path.read_bytes())
            checked += 1
    assert checked >= 8


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    for path, kind in whole_files():
        with open_om(path, kind=kind) as om, rewritten(om, tmp_path / "one.om", kind) as again:
            write_om(tmp_path / "two.om", GeRootModel.from_om(again))
        assert (tmp_path / "two.om").read_bytes() == (tmp_path / "one.om").read_bytes(), path.name


@pytest.mark.parametrize("compress", [False, True])
def test_names_may_become_numbers_or_plain(tmp_path: Path, compress: bool) -> None:
    """What compression drops, GE does not keep either; the rest comes back."""
    for path, kind in whole_files():
        if kind == "bundle":
            continue
        with open_om(path) as om:
            root = GeRootModel.from_om(om)
            root.is_compressed = compress
            for model in root.models:
                graph = model.model.graph
                for node in () if graph is None else graph.all_nodes():
                    for name in ("_l2fusion_ToOpStruct", "_op_slice_info"):
                        node.op_desc.attrs.pop(name, None)
            write_om(tmp_path / "plain.om", root)
            root.is_compressed = not compress
            write_om(tmp_path / "other.om", root)
            with open_om(tmp_path / "plain.om") as one, open_om(tmp_path / "other.om") as other:
                assert one.models[0].is_compressed is compress
                assert other.models[0].is_compressed is not compress
                for first, second in zip(one.models, other.models, strict=True):
                    assert [graph.name for graph in first.graphs] == [graph.name for graph in second.graphs]
                    plain = [[dict(node.attrs) for node in graph.nodes] for graph in first.graphs]
                    numbered = [[dict(node.attrs) for node in graph.nodes] for graph in second.graphs]
                    assert plain == numbered, path.name


def test_a_mobile_file_with_partitions_of_its_own_is_refused(tmp_path: Path) -> None:
    path = shared_path("data/om/hiai_softmax_hcs_npucl.om")
    data = bytearray(path.read_bytes())
    data[256 + 4 + 12 * 2] = 3  # the task partition becomes TASK_GRAPH
    with OmFile.from_bytes(data, "mobile.om") as om, pytest.raises(ModelFileError, match="TASK_GRAPH"):
        GeRootModel.from_om(om)


def test_an_executable_file_is_refused() -> None:
    path = shared_path("data/om/ge_root_model.om")
    data = bytearray(path.read_bytes())
    data[256 + 8 + 24 * 2] = 9  # the task partition becomes STATIC_TASK_DESC
    with OmFile.from_bytes(data, "executable.om") as om, pytest.raises(ModelFileError, match="STATIC_TASK_DESC"):
        GeRootModel.from_om(om)


DROPPED = ("_op_slice_info", "_l2fusion_ToOpStruct")
"""Attributes that compression leaves out."""


def trees(data: bytes, *, compressed: bool = False) -> list[Tree]:
    """Return the models of a file by the tables of the format alone; as compression leaves them, on request."""
    found = [without_tables(tree) for tree, _ in file_trees(data)]
    for tree in found if compressed else ():
        for op in (op for graph in tree["graph"] for op in graph.get("op", [])):
            op["attr"] = {name: attr for name, attr in op.get("attr", {}).items() if name not in DROPPED}
            if not op["attr"]:
                del op["attr"]
    return found


def test_for_a_reader_of_its_own_nothing_changes_either(tmp_path: Path) -> None:
    """Neither gevar nor the protobuf library says what is equal here."""
    count = 0
    for path, kind in whole_files():
        data = path.read_bytes()
        for compress in (False, True) if kind == "model" else ():
            with open_om(path) as om:
                root = GeRootModel.from_om(om)
                root.is_compressed = compress
                write_om(tmp_path / "again.om", root)
            again = (tmp_path / "again.om").read_bytes()
            assert trees(again, compressed=compress) == trees(data, compressed=compress), path.name
            count += 1
    assert count > 20


def test_what_is_read_is_what_a_reader_of_its_own_reads() -> None:
    for path, kind in whole_files():
        if kind == "bundle":
            continue
        with open_om(path) as om:
            for model, (tree, parts) in zip(om.models, file_trees(path.read_bytes()), strict=True):
                assert sorted(part.type for part in model.partitions) == sorted([0, *(number for number, _ in parts)])
                for graph, wanted in zip(model.graphs, tree["graph"], strict=True):
                    assert graph.name.encode() == wanted.get("name", b"")
                    for node, op in zip(graph.nodes, wanted.get("op", []), strict=True):
                        assert (node.name.encode(), node.type.encode()) == (op.get("name", b""), op["type"])
                        assert [text.encode() for text in node.inputs] == op.get("input", [])
                        assert list(node.output_i) == op.get("output_i", [])
                        assert set(node.attrs) == set(op.get("attr", {}))
                        described = [list(desc.shape) for desc in node.output_descs]
                        assert described == [desc.get("shape", {}).get("dim", []) for desc in op.get("output_desc", [])]
