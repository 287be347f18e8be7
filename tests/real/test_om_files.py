"""Real OM files: what the reader finds agrees with the bytes, with the format's own cross-checks, and with GE."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gevar.om import OmFile, open_om
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.header import Dialect, ModelFileHeader
from gevar.om.model import OmModel
from gevar.om.node import CONST_TYPES, FILECONSTANT, OmNode
from gevar.om.partition import NARROW_TABLE, WIDE_TABLE, PartitionType
from gevar.proto import ge_ir
from gevar.types.data_type import DataType
from tests.golden.facts import Json
from tests.helpers.shared import shared_files, shared_path

REAL = [path for path in shared_files("data/om/*.om") if path.stat().st_size >= 256]
WITH_VARIABLES = shared_files("data/om_vars/*.om")
STEM = {"ids": lambda path: path.stem}


def opened(path: Path) -> OmFile:
    head = path.read_bytes()[:256]
    return open_om(path, kind="bundle" if ModelFileHeader.unpack(head).is_bundle else "model")


def all_files(om: OmFile) -> Iterator[OmFile]:
    yield om
    for submodel in om.submodels:
        if submodel.om is not None:
            yield from all_files(submodel.om)


def all_models(om: OmFile) -> list[OmModel]:
    return [model for file in all_files(om) for model in file.models]


def sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


# --- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", REAL + WITH_VARIABLES, **STEM)
def test_header_and_tables_are_the_bytes(path: Path) -> None:
    data = path.read_bytes()
    with opened(path) as om:
        for file in all_files(om):
            part = data[file.source.base : file.source.base + file.size_bytes]
            assert file.header.pack() == part[:256]
            layout = WIDE_TABLE if file.header.has_wide_table else NARROW_TABLE
            start = 256
            for partitions in [model.partitions for model in file.models] or [file.partitions]:
                table = layout.pack([(entry.type, entry.mem_offset, entry.mem_size) for entry in partitions])
                assert part[start : start + len(table)] == table
                start = max(entry.end for entry in partitions)
            assert start == len(part)


@pytest.mark.parametrize("path", REAL + WITH_VARIABLES, **STEM)
def test_bytes_of_constants_lie_where_they_are_said_to_lie(path: Path) -> None:
    with opened(path) as om, path.open("rb") as file:
        for const in (const for model in all_models(om) for const in model.const_nodes()):
            if const.file_offset is not None:
                assert os.pread(file.fileno(), const.size_bytes, const.file_offset) == const.data()
            else:
                assert const.size_bytes == 0 or const.storage == ConstStorage.INLINE


@pytest.mark.parametrize("path", REAL + WITH_VARIABLES, **STEM)
def test_model_definition_is_what_protobuf_reads(path: Path) -> None:
    with opened(path) as om:
        for model in all_models(om):
            source = model.partition_source(PartitionType.MODEL_DEF)
            assert source is not None
            plain = ge_ir.ModelDef.FromString(source.read(0, source.size_bytes, "x"))
            plain.attr.pop("tasks", None)
            restored = model.model_def()
            if model.attr_name_rounds() == 0:
                assert restored == plain
            else:
                for before, after in zip(attr_maps(plain), attr_maps(restored), strict=True):
                    assert not any(name.startswith("\0") for name in after)
                    assert {name: attr for name, attr in before.items() if name in after}.items() <= after.items()
                    assert len(after) <= len(before)  # a name may be there in both forms
                assert any(name.startswith("\0") for attrs in attr_maps(plain) for name in attrs)


def attr_maps(message: ge_ir.ModelDef) -> list[dict[str, bytes]]:
    """Attributes, in wire form by name, of every operator and every description."""
    ops = [op for graph in message.graph for op in graph.op]
    maps = [attrs for op in ops for attrs in (op.attr, *(desc.attr for desc in (*op.input_desc, *op.output_desc)))]
    return [{name: attr.SerializeToString(deterministic=True) for name, attr in attrs.items()} for attrs in maps]


@pytest.mark.parametrize("path", REAL, **STEM)
def test_bytes_in_memory_give_the_same(path: Path) -> None:
    with open_om(path) as from_file:
        from_bytes = OmFile.from_bytes(path.read_bytes(), "m")
        assert from_bytes.header == from_file.header
        assert from_bytes.partitions == from_file.partitions
        for ours, theirs in zip(all_models(from_file), all_models(from_bytes), strict=True):
            assert [node.name for node in ours.nodes()] == [node.name for node in theirs.nodes()]
            assert [const.data() for const in ours.const_nodes()] == [const.data() for const in theirs.const_nodes()]


def test_all_dialects_are_among_the_files() -> None:
    shared_path("data/om")
    found = set()
    for path in REAL:
        with open_om(path) as om:
            found.add(om.dialect)
    assert found == set(Dialect)


# --- the format's own cross-checks --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", REAL + WITH_VARIABLES, **STEM)
def test_partition_sizes_agree_with_the_list_in_the_model(path: Path) -> None:
    kinds = ("WEIGHTS_DATA", "TBE_KERNELS", "CUST_AICPU_KERNELS", "TASK_INFO", "SO_BINS")
    with opened(path) as om:
        for model in all_models(om):
            listed = model.attr("om_info_list")
            if listed is None:
                continue
            parts = [model.partition(PartitionType[kind]) for kind in kinds]
            sizes = [0 if part is None else part.mem_size for part in parts]
            assert isinstance(listed, tuple)
            assert tuple(sizes[: len(listed)]) == listed


@pytest.mark.parametrize("path", REAL, **STEM)
def test_work_memory_adds_up(path: Path) -> None:
    with open_om(path) as om:
        for model in all_models(om):
            rows = model.attr("sub_memory_info")
            if isinstance(rows, tuple) and rows:
                sizes = [row[2] for row in rows if isinstance(row, tuple)]
                assert sum(sizes) == model.int_attr("memory_size")
                assert sizes[-1] == model.int_attr("zero_copy_memory_size")


@pytest.mark.parametrize("path", REAL + WITH_VARIABLES, **STEM)
def test_weights_layout_of_server_files(path: Path) -> None:
    with opened(path) as om:
        for model in all_models(om):
            placed = {
                (const.offset, const.size_bytes)
                for const in model.const_nodes()
                if const.storage == ConstStorage.DATA_OFFSET and const.size_bytes
            }
            end = 0
            for offset, size in sorted(place for place in placed if place[0] is not None):
                assert offset is not None
                assert offset % 512 == 0
                assert offset >= max(512, end)
                assert offset - end < 512 or end == 0
                end = offset + size
            if placed:
                assert model.weights is not None
                assert 0 <= model.weights.mem_size - end < 1024


@pytest.mark.parametrize("path", REAL, **STEM)
def test_kernel_stores_are_used_up(path: Path) -> None:
    with open_om(path) as om:
        for model in all_models(om):
            store = model.kernel_store()
            if store is not None:
                assert store.fault is None
                assert store.consumed_bytes == store.size_bytes
                assert all(item.name for item in store.items)


@pytest.mark.parametrize("path", REAL, **STEM)
def test_inputs_and_outputs_agree_with_the_graph(path: Path) -> None:
    with open_om(path) as om:
        for model in all_models(om):
            info = model.inout_info()
            if info is not None:
                data = [node.name for node in model.graphs[0].nodes if node.type == "Data"]
                assert sorted(tensor.name for tensor in info.inputs) == sorted(data)
                assert len(info.outputs) >= 1


@pytest.mark.parametrize("path", REAL, **STEM)
def test_constant_inputs_of_operators_lie_at_constants(path: Path) -> None:
    """An operator addresses the weights by its own descriptions; they must agree with those of the constants."""
    with open_om(path) as om:
        for model in all_models(om):
            offsets = {const.offset for const in model.const_nodes() if const.storage == ConstStorage.DATA_OFFSET}
            for node in model.nodes():
                if offsets and node.type not in CONST_TYPES:
                    wanted = {
                        desc.data_offset
                        for desc, is_const in zip(node.input_descs, node.is_input_const, strict=False)
                        if is_const
                    }
                    assert wanted <= offsets


# --- what GE makes of files with variables ------------------------------------------------------------------------


def truth_models(entry: dict[str, Json], om: OmFile) -> list[tuple[OmModel, Json]]:
    truth = entry["truth"]
    expected = truth.get("models") or [model for sub in truth["sub_models"] for model in sub["models"]]
    return list(zip(all_models(om), expected, strict=True))


def entries() -> list[tuple[Path, dict[str, Json]]]:
    found: list[tuple[Path, dict[str, Json]]] = []
    for path in shared_files("data/om_vars/manifest.json"):
        found += [(path.parent / entry["name"], entry) for entry in json.loads(path.read_text())["files"]]
    return found


ENTRIES = pytest.mark.parametrize(("path", "entry"), entries(), ids=lambda value: getattr(value, "stem", ""))


def described(node: OmNode) -> dict[str, Json]:
    """The facts of a variable node by their names in the truth."""
    desc = node.output_descs[0]
    found: dict[str, Json] = {
        "name": node.name,
        "type": node.type,
        "graph": node.graph_name,
        "dtype": desc.dtype.to_serial(),
        "format_int": desc.format,
        "shape": list(desc.shape),
        "size": desc.size,
        "origin_format_int": desc.origin_format,
        "output_i": list(node.output_i),
    }
    if desc.init_value is not None:
        data = desc.init_value.data
        found["init_value"] = {"bytes": len(data), "sha256": sha256(data)}
    return found


@ENTRIES
def test_variable_nodes_in_the_order_in_which_ge_restores_them(path: Path, entry: dict[str, Json]) -> None:
    with opened(path) as om:
        for model, truth in truth_models(entry, om):
            nodes = [node for node in model.variable_nodes() if node.type != FILECONSTANT]
            found = [described(node) for node in nodes]
            keys = [*found[0], "init_value"] if found else []
            assert found == [{key: fact[key] for key in keys if key in fact} for fact in truth["variables"]]
            assert model.int_attr("task_gen_variable_addr") == truth["variable_base"]
            assert model.int_attr("variable_size") == truth["variable_size"]


@ENTRIES
def test_bytes_of_constants_are_those_that_ge_loads(path: Path, entry: dict[str, Json]) -> None:
    def facts(const: ConstNode) -> dict[str, Json]:
        assert const.desc is not None
        inline = const.storage == ConstStorage.INLINE
        found: dict[str, Json] = {
            "source": "inline" if inline else "weights_partition",
            "bytes": const.size_bytes,
            "dtype": const.desc.dtype.to_serial(),
            "shape": list(const.desc.shape),
            "sha256": sha256(const.data()),
        }
        return found if inline else {**found, "data_offset": const.offset}

    with opened(path) as om:
        for model, truth in truth_models(entry, om):
            consts = model.const_nodes()
            variables = {fact["name"]: fact["weight"] for fact in truth["variables"] if "weight" in fact}
            assert {const.name: facts(const) for const in consts if const.node.type == "Constant"} == variables
            plain = {fact["name"]: {key: fact[key] for key in fact if key != "name"} for fact in truth["consts"]}
            if truth["weights_bytes"]:
                assert {const.name: facts(const) for const in consts if const.node.type == "Const"} == plain


@ENTRIES
def test_external_weights(path: Path, entry: dict[str, Json]) -> None:
    with opened(path) as om:
        nodes = [node for model in all_models(om) for node in model.variable_nodes() if node.type == FILECONSTANT]
        expected = entry["truth"].get("file_constants", [])
        assert [node.name for node in nodes] == [fact["name"] for fact in expected]
        for node, fact in zip(nodes, expected, strict=True):
            assert list(node.output_i) == fact["output_i"]
            assert node.output_descs[0].size == fact["size"]
            assert node.output_descs[0].dtype == DataType.from_serial(fact["dtype"])
            assert node.attrs["location"].s.decode() == fact["location"]
            assert node.attrs["offset"].i == fact["offset"]
            assert node.attrs["length"].i == fact["length"]


def test_placeholders() -> None:
    for path, entry in entries():
        with opened(path) as om:
            for model, truth in truth_models(entry, om):
                holders = {node.name: node for node in model.variable_nodes() if node.type == "ConstPlaceHolder"}
                facts = [fact for fact in truth["variables"] if fact["type"] == "ConstPlaceHolder"]
                assert sorted(holders) == sorted(fact["name"] for fact in facts)
                for fact in facts:
                    attrs = holders[fact["name"]].attrs
                    assert list(attrs["storage_shape"].list.i) == fact["storage_shape"]
                    assert attrs["size"].i == fact["attr_size"]
                    assert attrs["placement"].i == fact["placement"]
                    assert attrs["addr"].i == fact["device_address"]
    if not entries():
        pytest.skip("reference files data/om_vars are not here")
