"""Models that move with their external weights: to another folder, or with the bytes inside."""

import hashlib
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from gevar import Session, load_model
from gevar.errors import GevarError, GraphError, LoadError, ModelFileError
from gevar.om import GeRootModel, OmBuilder, open_om, write_om
from gevar.om.attr_value import plain_value
from gevar.om.composed_model import bundle
from gevar.om.external_weights_writer import ExternalWeightMode, ExternalWeightsWriter
from gevar.om.partition import PartitionType
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Blob
from gevar.om.weight_digests import read_digests
from gevar.om.weight_folder import WeightFolder
from gevar.proto import task
from gevar.session.relocation import ExternalWeightKind, relocate_model
from gevar.session.weight_sources import open_weights
from gevar.types import DataType, Format, TensorDesc
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, write_model
from tests.helpers.om_rules import check_file
from tests.helpers.shared import shared_path

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (300,))
BYTES = bytes(range(256)) * 8


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    arrays = {name: rng.random(300, np.float32) for name in ("a", "b")}
    return arrays | {"twin": arrays["a"], "half": rng.random(7).astype(np.float16)}


def net(name: str = "net") -> OmBuilder:
    """A model with constants that an operator reads, one of them an output, too."""
    builder = OmBuilder(name)
    x = builder.data("x", ROW)
    nodes = [builder.const(name, array) for name, array in values().items()]
    builder.output(builder.node("AddN", "sum", inputs=[nodes[0], x, nodes[1], nodes[2]], outputs=[ROW]))
    builder.output(nodes[3])
    return builder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    return tmp_path


def write(folder: Path, mode: ExternalWeightMode) -> Path:
    net().write(folder / "old" / "m.om", external_weight=mode)
    return folder / "old" / "m.om"


def tensors(path: Path, *, is_bundle: bool = False) -> dict[str, bytes]:
    with open_weights(path, bundle=is_bundle) as source:
        found = {
            one.name: b"".join(one.data.open()) if hasattr(one.data, "open") else bytes(one.data)
            for one in source.tensors()
        }
    return {name.partition("_")[0]: data for name, data in found.items()}


def expected() -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in values().items()}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- files in another folder ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [1, 2])
def test_a_model_and_its_files_go_to_another_folder(session: Session, folder: Path, mode: ExternalWeightMode) -> None:
    source, target = write(folder, mode), folder / "new" / "n.om"
    before = files(folder / "old")
    done = relocate_model(source, target)
    assert files(folder / "old") == before
    assert done.nodes == 4
    assert {path.parent for path in done.files} == {folder / "new" / "weight"}
    assert done.size_bytes == sum(path.stat().st_size for path in done.files)
    for name in before.keys() - {"m.om", "weight/meta.json"}:
        assert (folder / "new" / name).read_bytes() == before[name]
    check_file(target.read_bytes(), folder / "new" / "weight")
    for path in (folder / "old" / "weight").iterdir():
        path.unlink()
    assert tensors(target) == expected()
    with load_model(target, session=session) as loaded:
        assert loaded.verify(target).differences == ()


@pytest.mark.parametrize("mode", [1, 2])
def test_lists_go_along_and_an_export_uses_them(folder: Path, mode: ExternalWeightMode) -> None:
    source, target = write(folder, mode), folder / "new" / "m.om"
    relocate_model(source, target)
    old, new = (json.loads((folder / where / "weight" / "meta.json").read_bytes()) for where in ("old", "new"))
    assert new["hash_to_weight_offset"] == old["hash_to_weight_offset"]
    names = {
        hash_: str(folder / "new" / "weight" / Path(file).name) for hash_, file in old["hash_to_weight_file"].items()
    }
    assert new["hash_to_weight_file"] == names
    digests = [read_digests(folder / where / "weight" / "digests.json") for where in ("old", "new")]
    assert digests[0] == digests[1] != []
    before = files(folder / "new" / "weight")
    net().write(target, external_weight=mode)
    assert files(folder / "new" / "weight") == before


def test_every_way_to_name_a_file_becomes_a_location(session: Session, folder: Path) -> None:
    far = folder / "far.bin"
    far.write_bytes(BYTES[100:132])
    ops = [
        file_constant("deep", BASE, 8, location="/made/elsewhere/a.bin", offset=4, length=32),
        file_constant("path", BASE + 2048, 8, file_path=build.attr_s(str(folder / "old" / "p.bin"))),
        file_constant("id", BASE + 4096, 8, file_id=build.attr_s("far")),
    ]
    source = write_model(folder / "old", ops, {"a.bin": BYTES[:100]})
    (folder / "old" / "p.bin").write_bytes(BYTES[200:232])
    target = folder / "new" / "m.om"
    relocate_model(source, target, paths_by_id={"far": str(far)})
    with open_om(target) as om:
        places = {
            node.name: {name: plain_value(attr) for name, attr in node.attrs.items() if name in PLACE}
            for node in om.models[0].variable_nodes()
        }
    assert places == {
        "deep": {"location": "a.bin", "offset": 4, "length": 32},
        "path": {"location": "p.bin", "offset": 0, "length": 0},
        "id": {"location": "far.bin", "offset": 0, "length": 0},
    }
    far.unlink()
    with load_model(target, session=session) as loaded:
        assert loaded.read("deep").tobytes() == BYTES[4:36]
        assert loaded.read("path").tobytes() == BYTES[200:232]
        assert loaded.read("id").tobytes() == BYTES[100:132]


PLACE = {"location", "offset", "length", "file_path", "file_id"}


def test_folders_may_be_given(folder: Path) -> None:
    net().write(folder / "old" / "m.om", external_weight=1, weight_dir=folder / "w1")
    relocate_model(
        folder / "old" / "m.om", folder / "new" / "m.om", weight_dir=folder / "w1", target_weight_dir=folder / "w2"
    )
    assert not (folder / "new" / "weight").exists()
    check_file((folder / "new" / "m.om").read_bytes(), folder / "w2")


def test_a_model_may_be_written_over_itself(folder: Path) -> None:
    net().write(folder / "old" / "m.om", external_weight=2, weight_dir=folder / "w")
    relocate_model(folder / "old" / "m.om", folder / "old" / "m.om", weight_dir=folder / "w")
    assert tensors(folder / "old" / "m.om") == expected()


def test_again_changes_nothing(folder: Path) -> None:
    source, target = write(folder, 1), folder / "new" / "m.om"
    relocate_model(source, target)
    before = {path: path.stat().st_mtime_ns for path in (folder / "new" / "weight").iterdir()}
    relocate_model(source, target)
    assert {path: path.stat().st_mtime_ns for path in (folder / "new" / "weight").iterdir()} == before


def test_a_model_without_external_weights_is_written_anew(folder: Path) -> None:
    net().write(folder / "old" / "m.om")
    assert relocate_model(folder / "old" / "m.om", folder / "new" / "m.om").nodes == 0
    assert list((folder / "new").iterdir()) == [folder / "new" / "m.om"]
    assert tensors(folder / "new" / "m.om") == expected()


def test_a_bundle(folder: Path) -> None:
    with ExternalWeightsWriter(folder / "old" / "weight", 2, prefix="b") as weights:
        models = [weights.move_out(net(name).build()) for name in ("one", "two")]
        write_om(folder / "old" / "b.om", bundle(models))
        weights.write_meta()
        weights.commit()
    relocate_model(folder / "old" / "b.om", folder / "new" / "b.om", as_bundle=True)
    assert tensors(folder / "new" / "b.om", is_bundle=True) == expected()


def test_files_of_ge(folder: Path) -> None:
    """Models that GE wrote keep every byte of every weight."""
    for name in ("file_constants_each", "placeholders_and_combined"):
        source = shared_path(f"data/om_vars/{name}.om")
        with open_om(source) as om:
            places = {node.name: dict(node.attrs) for node in om.models[0].variable_nodes()}
        relocate_model(source, folder / "new" / f"{name}.om")
        with open_om(folder / "new" / f"{name}.om") as om:
            assert {node.name: dict(node.attrs) for node in om.models[0].variable_nodes()} == places
        check_file((folder / "new" / f"{name}.om").read_bytes(), folder / "new" / "weight")


# --- what is refused --------------------------------------------------------------------------------------------------


def test_two_files_of_one_name(folder: Path) -> None:
    ops = [
        file_constant("a", BASE, 8, location="a.bin", length=32),
        file_constant("b", BASE + 2048, 8, file_path=build.attr_s(str(folder / "old" / "a.bin"))),
    ]
    source = write_model(folder / "old", ops, {"a.bin": BYTES[:32]})
    (folder / "old" / "a.bin").write_bytes(BYTES[32:64])
    with pytest.raises(LoadError, match="weight b has a file of the same name"):
        relocate_model(source, folder / "new" / "m.om")
    assert list((folder / "new").iterdir()) == []


@pytest.mark.parametrize("name", ["meta.json", "digests.json", ".gevar-0123456789abcdef.tmp"])
def test_a_file_with_a_name_that_is_taken(folder: Path, name: str) -> None:
    """What an export writes or removes under such a name would be the weights."""
    source = write_model(folder / "old", [file_constant("a", BASE, 16, location=name)], {name: BYTES})
    with pytest.raises(LoadError, match=f"{name}.* weight a is in a file with a name that gevar uses itself"):
        relocate_model(source, folder / "new" / "m.om")
    assert files(folder / "new") == {}


@pytest.mark.parametrize("name", ["m_weight_combined", "meta.json", "digests.json"])
def test_a_target_among_the_weights(folder: Path, name: str) -> None:
    write(folder, 2)
    with pytest.raises(ValueError, match="is one of the files of its external weights"):
        relocate_model(folder / "old" / "m.om", folder / "new" / name, target_weight_dir=folder / "new")
    assert files(folder / "new") == {}


def test_lists_are_read_once_whatever_the_number_of_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = OmBuilder("net")
    for number in range(20):
        builder.const(f"w{number}", np.full(4, number, np.int32))
    builder.write(folder / "old" / "m.om", external_weight=1)
    read, real_read = list[str](), ByteSource.read

    def counted(source: ByteSource, offset: int, size_bytes: int, what: str) -> bytes:
        read.append(what)
        return real_read(source, offset, size_bytes, what)

    monkeypatch.setattr(ByteSource, "read", counted)
    assert len(relocate_model(folder / "old" / "m.om", folder / "new" / "m.om").files) == 20
    assert (read.count("meta.json"), read.count("digests")) == (1, 1)


def test_what_the_target_lists_of_a_file_that_is_gone(folder: Path) -> None:
    """The lists of the target speak of the new file then, and only of it."""
    old, new = folder / "old" / "weight", folder / "new" / "weight"
    builder = OmBuilder("net")
    for name in ("a", "b"):
        builder.const(name, np.full(300, ord(name), np.int32))
    builder.write(folder / "new" / "m.om", external_weight=2)
    (new / "m_weight_combined").unlink()
    write(folder, 2)
    relocate_model(folder / "old" / "m.om", folder / "new" / "m.om")
    assert read_digests(new / "digests.json") == read_digests(old / "digests.json")
    lists = [json.loads((side / "meta.json").read_bytes()) for side in (old, new)]
    assert lists[0]["hash_to_weight_offset"] == lists[1]["hash_to_weight_offset"]
    relocate_model(folder / "new" / "m.om", folder / "again.om")
    assert tensors(folder / "again.om") == expected()


@pytest.mark.parametrize("mode", [1, 2])
def test_an_interrupt_after_the_model_has_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: ExternalWeightMode
) -> None:
    write(folder, mode)

    def replace(source: str, target: str, **folders: int) -> None:
        real_replace(source, target, **folders)
        if target == "n.om":
            raise KeyboardInterrupt

    real_replace = os.replace
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        relocate_model(folder / "old" / "m.om", folder / "new" / "n.om")
    assert tensors(folder / "new" / "n.om") == expected()
    assert not [*folder.rglob(".gevar-*")]


@pytest.mark.parametrize("mode", [1, 2])
def test_damaged_bytes_do_not_move(folder: Path, mode: ExternalWeightMode) -> None:
    source = write(folder, mode)
    for path in (folder / "old" / "weight").glob("*weight_*"):
        data = bytearray(path.read_bytes())
        data[5] ^= 1
        path.write_bytes(data)
    with pytest.raises(LoadError, match=r"xxh3 .* is listed: the bytes are damaged"):
        relocate_model(source, folder / "new" / "m.om")
    assert list((folder / "new").iterdir()) == []


def test_a_listed_region_behind_the_end_of_its_file(folder: Path) -> None:
    source = write(folder, 2)
    digests = folder / "old" / "weight" / "digests.json"
    rows = json.loads(digests.read_bytes())
    rows["xxh3_128"][0]["length"] = 1 << 62
    digests.write_text(json.dumps(rows))
    with pytest.raises(LoadError, match="the file is too short"):
        relocate_model(source, folder / "new" / "m.om")


def test_other_bytes_under_a_name_stay(folder: Path) -> None:
    source = write(folder, 2)
    (folder / "new" / "weight").mkdir()
    taken = folder / "new" / "weight" / "m_weight_combined"
    taken.write_bytes(b"other")
    before = files(folder / "new")
    with pytest.raises(FileExistsError, match="other bytes"):
        relocate_model(source, folder / "new" / "m.om")
    assert files(folder / "new") == before


@pytest.mark.parametrize("fault", ["gone", "short", "link"])
def test_a_file_that_is_not_what_it_should_be(folder: Path, fault: str) -> None:
    source = write(folder, 2)
    path = folder / "old" / "weight" / "m_weight_combined"
    if fault == "short":
        os.truncate(path, 100)
    else:
        path.rename(folder / "elsewhere")
        if fault == "link":
            path.symlink_to(folder / "elsewhere")
    with pytest.raises(LoadError, match="weight"):
        relocate_model(source, folder / "new" / "m.om")
    assert list((folder / "new").iterdir()) == []


def test_a_side_file_that_is_a_link_out(folder: Path) -> None:
    source = write(folder, 2)
    side = folder / "old" / "weight" / "digests.json"
    side.rename(folder / "elsewhere")
    side.symlink_to(folder / "elsewhere")
    with pytest.raises((OSError, GevarError), match="link"):
        relocate_model(source, folder / "new" / "m.om")


@pytest.mark.parametrize("moment", ["open", "write_new"])
def test_a_file_that_is_written_meanwhile(folder: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(folder, 2)
    path, real = folder / "old" / "weight" / "m_weight_combined", getattr(WeightFolder, moment)

    def change_first(*arguments: object) -> None:
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        real(*arguments)

    monkeypatch.setattr(WeightFolder, moment, change_first)
    with pytest.raises(ModelFileError, match="changed since it was looked at"):
        relocate_model(source, folder / "new" / "m.om")
    assert list((folder / "new").iterdir()) == []


@pytest.mark.parametrize("name", ["taken.om", "no/folder.om"])
def test_a_target_that_cannot_be_written_leaves_nothing(folder: Path, name: str) -> None:
    source = write(folder, 1)
    (folder / "new" / "taken.om").mkdir()
    with pytest.raises(OSError, match=r"directory|not there|No such file"):
        relocate_model(source, folder / "new" / name)
    assert [path.name for path in (folder / "new").iterdir()] == ["taken.om"]


# --- bytes inside the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("kind", ["const", "constant"])
def test_weights_go_back_into_the_model(
    session: Session, folder: Path, mode: ExternalWeightMode, kind: ExternalWeightKind
) -> None:
    source, target = write(folder, mode), folder / "new" / "m.om"
    relocate_model(source, target, kind=kind)
    assert list((folder / "new").iterdir()) == [target]
    with open_om(target) as om:
        types = {node.name.partition("_")[0]: node.type for node in om.models[0].nodes()}
        nodes = {node.name.partition("_")[0]: node for node in om.models[0].nodes()}
        assert not [name for name in nodes["a"].attrs if name in PLACE | {"dtype", "shape", "original_shape"}]
    assert {types[name] for name in values()} == {"Const" if kind == "const" else "Constant"}
    assert tensors(target) == expected()
    check_file(target.read_bytes(), None)
    with load_model(target, session=session) as loaded:
        for name, array in values().items():
            full = f"{name}_{hashlib.sha256(array.tobytes()).hexdigest()}"
            assert np.array_equal(loaded.read(full), array)
        assert loaded.verify(target).differences == ()


def test_a_const_is_where_a_model_with_constants_has_it(folder: Path) -> None:
    """Back in the model, the weights lie as if they had never been outside, and their readers say so."""
    relocate_model(write(folder, 2), folder / "new" / "m.om", kind="const")
    net().write(folder / "plain.om")
    found = []
    for path in (folder / "new" / "m.om", folder / "plain.om"):
        with open_om(path) as om:
            nodes = list(om.models[0].nodes())
            (reader,) = (node for node in nodes if node.type == "AddN")
            offsets = [desc.data_offset for desc in reader.input_descs]
            found.append(
                (reader.input_i, offsets, reader.is_input_const, [one.output_i for one in nodes if one.type == "Const"])
            )
    (inputs, *rest), (plain_inputs, *plain_rest) = found
    assert rest == plain_rest
    assert [inputs[i] for i in (0, 2, 3)] == [plain_inputs[i] for i in (0, 2, 3)]


def test_a_constant_keeps_its_address(folder: Path) -> None:
    source = write(folder, 1)
    relocate_model(source, folder / "new" / "m.om", kind="constant")
    found = []
    for path in (source, folder / "new" / "m.om"):
        with open_om(path) as om:
            found.append({node.name: node.output_i for node in om.models[0].variable_nodes()})
    assert found[0] == found[1]


def with_tasks(path: Path, target: Path) -> None:
    with open_om(path) as om:
        root = GeRootModel.from_om(om)
        data = task.ModelTaskDef(task=[task.TaskDef()]).SerializeToString()
        parts = root.models[0].partitions
        index = [kind for kind, _ in parts].index(PartitionType.TASK_INFO)
        parts[index] = (PartitionType.TASK_INFO, Blob.of(data))
        write_om(target, root)


def test_a_model_with_tasks_gets_constants_only(folder: Path) -> None:
    source = write(folder, 1)
    with_tasks(source, source)
    with pytest.raises(ValueError, match="has tasks, which hold the addresses"):
        relocate_model(source, folder / "new" / "m.om", kind="const")
    assert list((folder / "new").iterdir()) == []
    relocate_model(source, folder / "new" / "m.om", kind="constant")
    assert tensors(folder / "new" / "m.om") == expected()


def test_bytes_that_are_not_as_many_as_the_shape_says(folder: Path) -> None:
    source = write_model(
        folder / "old", [file_constant("a", BASE, 8, location="a.bin", length=40)], {"a.bin": BYTES[:40]}
    )
    for kind in ("const", "constant"):
        with pytest.raises((GraphError, ModelFileError, ValueError), match="32 B, 40 B"):
            relocate_model(source, folder / "new" / "m.om", kind=kind)
    assert list((folder / "new").iterdir()) == []


def test_more_bytes_than_a_message_holds(folder: Path) -> None:
    """Refused by the numbers, before a byte is read: the files are holes."""
    count = 1 << 29
    ops = [file_constant("a", BASE, count, location="a.bin", length=4 * count)]
    source = write_model(folder / "old", ops, {"a.bin": b""})
    os.truncate(folder / "old" / "weight" / "a.bin", 4 * count)
    with pytest.raises(ValueError, match="2147483648 B of external weights would lie inside a message"):
        relocate_model(source, folder / "new" / "m.om", kind="constant")


@pytest.mark.parametrize("kind", ["file", "const", "constant"])
def test_more_files_than_a_process_may_open(folder: Path, kind: ExternalWeightKind) -> None:
    builder = OmBuilder("net")
    for number in range(80):
        builder.output(builder.const(f"c{number}", np.full(4, number, np.float32)))
    builder.write(folder / "old" / "m.om", external_weight=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 20, hard))
    try:
        relocate_model(folder / "old" / "m.om", folder / "new" / "m.om", kind=kind)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(tensors(folder / "new" / "m.om")) == 80
