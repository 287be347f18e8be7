"""Files of every dialect and form, put together byte by byte, read into parsed form and written again."""

import struct
from pathlib import Path

import pytest

from gevar.errors import GraphError, ModelFileError
from gevar.om import GeRootModel, OmFile, write_om
from gevar.om.header import Dialect
from gevar.om.om_file import Kind
from tests.helpers import om_builder as made
from tests.helpers.lasting_models import BASE, lasting_model
from tests.helpers.om_fields import wire
from tests.helpers.om_mutations import mutations
from tests.helpers.om_rules import check_bundle, check_file
from tests.helpers.om_tree import file_trees

PARTS = made.small_partitions()
FORMS: dict[str, tuple[bytes, Kind]] = {
    "G1": (made.g1(PARTS[1:]), "model"),
    "G2": (made.g2(PARTS), "model"),
    "G3": (made.g3(PARTS), "model"),
    "so and tiling": (made.g3([*PARTS, (5, made.so_store([("a.so", "v", 1, b"so")])), (12, b"tiling")]), "model"),
    "mobile": (made.mobile(PARTS[1:3]), "model"),
    "mobile without weights": (
        made.mobile([(0, made.model_def("ir", [made.graph("g", [made.op("x", "Data")])]))]),
        "model",
    ),
    "dynamic": (made.dynamic([PARTS[:2], PARTS[1:], PARTS[1:]]), "model"),
    "flow": (made.flow(PARTS[1][1], [("one", "NPU", made.g3(PARTS)), ("two", "HOST_CPU", b"")]), "model"),
    "bundle": (made.bundle([made.g3(PARTS), made.g3(PARTS)]), "bundle"),
}


def contents(om: OmFile) -> list[object]:
    """Return everything in a file that is not a place or a length."""
    found: list[object] = [om.bundle_variable_size]
    if not om.is_bundle:  # its header has only three fields
        found += [om.header.name, om.header.platform_version, om.header.om_ir_version]
    for model in om.models:
        found.append(model.model_def())
        parts = [part for part in model.partitions if part.type not in (0, 7)]
        found += [(part.type, om.source.read(part.file_offset, part.mem_size, "part")) for part in parts]
    for nested in om.submodels:
        found += [nested.name, nested.model_type, [] if nested.om is None else contents(nested.om)]
    return found


def in_order_of_the_writer(found: list[object]) -> list[object]:
    """Return contents with partitions in any order."""
    return sorted(found, key=repr)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_comes_back_equal(tmp_path: Path, form: str) -> None:
    data, kind = FORMS[form]
    path = tmp_path / "again.om"
    with OmFile.from_bytes(data, kind=kind) as om:
        write_om(path, GeRootModel.from_om(om))
        written = path.read_bytes()
        with OmFile.from_bytes(written, kind=kind) as again:
            assert in_order_of_the_writer(contents(again)) == in_order_of_the_writer(contents(om))
            assert again.dialect is Dialect.G3
            assert again.header.is_dynamic == om.header.is_dynamic
            assert again.header.is_flow == om.header.is_flow
            write_om(tmp_path / "third.om", GeRootModel.from_om(again))
    assert (tmp_path / "third.om").read_bytes() == written
    (check_bundle if kind == "bundle" else check_file)(written, places=False)


def test_a_bundle_that_states_no_variable_space_is_given_one(tmp_path: Path) -> None:
    """The first bundles have models alone."""
    models = [lasting_model([made.variable("v", (300,), BASE + 4096 * place)], name=f"m{place}") for place in (0, 1)]
    entries = [(24, 0, len(models[0])), (24, 0, len(models[1]))]
    body = made.table(entries, wide=True) + b"".join(models)
    head = {"magic": 0, "headsize": 0, "version": 0, "modeltype": 5, "model_num": 2, "model_length": 256 + len(body)}
    with OmFile.from_bytes(made.header(**head) + body, kind="bundle") as om:  # type: ignore[arg-type]
        assert om.bundle_variable_size == 0
        root = GeRootModel.from_om(om)
        del root.nested[0]  # the other variable has another place
        write_om(tmp_path / "bundle.om", root)
    check_bundle((tmp_path / "bundle.om").read_bytes())
    with OmFile.from_bytes((tmp_path / "bundle.om").read_bytes(), kind="bundle") as om:
        assert om.bundle_variable_size == 4096 + 1200


def test_the_copy_of_the_tasks_is_kept(tmp_path: Path) -> None:
    parts = made.small_partitions(tasks=b"\x3a" + bytes([len(PARTS[4][1])]) + PARTS[4][1])
    with OmFile.from_bytes(made.g3(parts)) as om:
        assert "tasks" not in om.models[0].attrs
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    (model,) = check_file((tmp_path / "again.om").read_bytes(), places=False)
    assert model.attrs["tasks"] == b"\x3a" + bytes([len(PARTS[4][1])]) + PARTS[4][1]


def test_lists_of_lists_of_floats_of_a_mobile_model(tmp_path: Path) -> None:
    """Their number is 15 there, 16 in the other dialects, where 15 is a data type."""
    rows = wire(1, wire(1, struct.pack("<2f", 1.5, 2.5))) + wire(1, b"")
    attrs = {"scales": wire(15, rows), "plain": made.attr_i(5)}
    node = made.op("n", "Scale", attrs)
    with OmFile.from_bytes(made.mobile([(0, made.model_def("ir", [made.graph("g", [node])], attrs))])) as om:
        root = GeRootModel.from_om(om)
        write_om(tmp_path / "again.om", root)
    graph = root.models[0].model.graph
    assert graph is not None
    for found in (graph["n"].op_desc.attrs, root.models[0].model.attrs):
        assert found["scales"] == ((1.5, 2.5), ())
        assert found["plain"] == 5
    (model,) = check_file((tmp_path / "again.om").read_bytes())
    assert model.attrs["scales"] == struct.pack("<H", 16 << 3 | 2 | 0x100)[:2] + bytes([len(rows)]) + rows


def test_lists_of_lists_of_floats_deep_inside_a_mobile_model(tmp_path: Path) -> None:
    rows = wire(15, wire(1, wire(1, struct.pack("<2f", 1.5, 2.5))))
    inner = made.graph("inner", [made.op("y", "Scale", {"a": rows}, [made.tensor_desc(attrs={"a": rows})])])
    named = wire(1, b"f") + wire(2, wire(1, b"a") + wire(2, rows))
    values = {
        "func": wire(10, named),
        "names": wire(1, wire(11, named)),
        "graph": wire(13, inner),
        "graphs": wire(1, wire(10, inner)),
        "desc": wire(11, made.tensor_desc(attrs={"a": rows})),
        "tensors": wire(1, wire(9, made.tensor(made.tensor_desc(attrs={"a": rows})))),
    }
    data = made.mobile([(0, made.model_def("ir", [made.graph("g", [made.op("n", "Scale", values)])], values))])
    with OmFile.from_bytes(data) as om:
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    ((found, _),) = file_trees((tmp_path / "again.om").read_bytes())
    ((wanted, _),) = file_trees(data)
    assert found == wanted
    assert "list_list_float" in str(found)


@pytest.mark.parametrize("kind", [9, 10, 11, 20, 21, 22, 23])
def test_executable_files_are_refused(kind: int) -> None:
    with OmFile.from_bytes(made.g3([*PARTS, (kind, b"x")])) as om, pytest.raises(ModelFileError, match="executable OM"):
        GeRootModel.from_om(om)


@pytest.mark.parametrize("kind", [3, 4, 5, 6, 7, 8])
def test_mobile_files_with_partitions_of_their_own_are_refused(kind: int) -> None:
    om = OmFile.from_bytes(made.mobile([*PARTS[1:3], (kind, b"x")]))
    with om, pytest.raises(ModelFileError, match="the other dialects have no such partition"):
        GeRootModel.from_om(om)


def test_partitions_that_nobody_knows_go_last(tmp_path: Path) -> None:
    with OmFile.from_bytes(made.g3([(99, b"new"), *PARTS])) as om:
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    with OmFile.from_bytes((tmp_path / "again.om").read_bytes()) as again:
        assert [part.type for part in again.partitions] == [8, 0, 1, 3, 2, 99]


def test_a_signature_is_not_kept(tmp_path: Path) -> None:
    data = bytearray(made.g3(PARTS))
    data[12:76] = b"s" * 64
    with OmFile.from_bytes(bytes(data)) as om:
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    check_file((tmp_path / "again.om").read_bytes(), places=False)


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_file_is_refused_or_written_so_that_it_opens(tmp_path: Path, form: str) -> None:
    data, kind = FORMS[form]
    written = refused = 0
    for _, damaged in mutations(data):
        try:
            root = GeRootModel.from_om(OmFile.from_bytes(damaged, kind=kind))
            write_om(tmp_path / "again.om", root)
        except (ModelFileError, GraphError):
            refused += 1
            continue
        OmFile.from_bytes((tmp_path / "again.om").read_bytes(), kind=kind)
        written += 1
    assert refused > 20
    assert written > 0
