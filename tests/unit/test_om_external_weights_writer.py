"""External weights on the way out: names, places, the list of a folder, and what is left after a failure."""

import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import xxhash

from gevar.errors import ModelFileError
from gevar.om import OmBuilder, SparseBytes, StreamedBytes, open_om
from gevar.om.attr_value import plain_value
from gevar.om.external_weights_writer import ExternalWeightMode, ExternalWeightsWriter
from gevar.om.node import OmNode
from gevar.om.weight_digests import read_digests
from gevar.proto import ge_ir
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_rules import check_file
from tests.helpers.shared import shared_path

ND = Format.FORMAT_ND
OCTETS = DataType.DT_UINT8


def octets(size: int, first: int = 1) -> bytes:
    return bytes((first + index) % 251 for index in range(size))


def net(**weights: bytes) -> OmBuilder:
    builder = OmBuilder("net")
    for name, data in weights.items():
        builder.const(name, data, TensorDesc(OCTETS, ND, (len(data),)))
    return builder


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def places(path: Path) -> dict[str, tuple[object, object, object]]:
    """Return location, offset and length of each external weight, by the name without the digest."""
    with open_om(path) as om:
        found = {}
        for node in om.models[0].variable_nodes():
            values = tuple(plain_value(node.attrs[name]) for name in ("location", "offset", "length"))
            found[node.name[:-65]] = values
        return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_each_content_has_a_file(tmp_path: Path) -> None:
    one, two = octets(100), octets(700, 2)
    net(a=one, b=two, c=one).write(tmp_path / "m.om", external_weight=1)
    assert places(tmp_path / "m.om") == {
        "a": (f"weight_{digest(one)}", 0, 100),
        "b": (f"weight_{digest(two)}", 0, 700),
        "c": (f"weight_{digest(one)}", 0, 100),
    }
    found = files(tmp_path / "weight")
    meta = json.loads(found.pop("meta.json"))
    found.pop("digests.json")
    assert found == {f"weight_{digest(data)}": data for data in (one, two)}
    assert meta["hash_to_weight_file"] == {
        digest(data): str(tmp_path / "weight" / f"weight_{digest(data)}") for data in (one, two)
    }
    assert meta["hash_to_weight_offset"] == {}


def test_one_file_has_all_contents_in_the_order_of_names(tmp_path: Path) -> None:
    pieces = {"c": octets(1), "b": octets(511), "a": octets(513), "d": octets(513)}
    net(**pieces).write(tmp_path / "m.v1.om", external_weight=2)
    name = "m.v1_weight_combined"
    assert places(tmp_path / "m.v1.om") == {
        "a": (name, 0, 513),
        "b": (name, 1024, 511),
        "c": (name, 1536, 1),
        "d": (name, 0, 513),
    }
    combined = (tmp_path / "weight" / name).read_bytes()
    assert combined == octets(513) + bytes(511) + octets(511) + bytes(1) + octets(1) + bytes(511)
    meta = json.loads((tmp_path / "weight" / "meta.json").read_text())
    assert meta["hash_to_weight_offset"] == {digest(octets(513)): 0, digest(octets(511)): 1024, digest(octets(1)): 1536}


def test_equal_places_share_an_address(tmp_path: Path) -> None:
    net(a=octets(9), b=octets(10), c=octets(9)).write(tmp_path / "m.om", external_weight=2)
    with open_om(tmp_path / "m.om") as om:
        addrs = {node.name[0]: node.output_i for node in om.models[0].variable_nodes()}
    assert addrs["a"] == addrs["c"] == (128 << 30,)
    assert addrs["b"] == ((128 << 30) + 1536,)


def test_variables_and_empty_constants_stay(tmp_path: Path) -> None:
    builder = net(a=b"")
    builder.variable("v", TensorDesc(OCTETS, ND, (2,)), init=b"ab")
    builder.write(tmp_path / "m.om", external_weight=1)
    assert [path.name for path in tmp_path.iterdir()] == ["m.om"]
    builder.constant("k", b"xyz", TensorDesc(OCTETS, ND, (3,)))
    builder.write(tmp_path / "m.om", external_weight=1)
    with open_om(tmp_path / "m.om") as om:
        kinds = {node.name.partition("_")[0]: node.type for node in om.models[0].nodes()}
    assert kinds == {"a": "Const", "v": "Variable", "k": "FileConstant"}


@pytest.mark.parametrize("mode", [1, 2])
def test_the_same_weights_again_touch_nothing(tmp_path: Path, mode: ExternalWeightMode) -> None:
    net(a=octets(9), b=octets(2000)).write(tmp_path / "m.om", external_weight=mode)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "weight").iterdir()}
    net(x=octets(2000), y=octets(9)).write(tmp_path / "m.om", external_weight=mode)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "weight").iterdir()} == before
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")


def test_new_weights_are_appended(tmp_path: Path) -> None:
    net(a=octets(9)).write(tmp_path / "m.om", external_weight=2)
    first = (tmp_path / "weight" / "m_weight_combined").read_bytes()
    net(a=octets(10), b=octets(9)).write(tmp_path / "m.om", external_weight=2)
    second = (tmp_path / "weight" / "m_weight_combined").read_bytes()
    assert second == first + octets(10) + bytes(502)
    assert places(tmp_path / "m.om") == {"a": ("m_weight_combined", 512, 10), "b": ("m_weight_combined", 0, 9)}


def test_models_use_what_another_has_in_one_file(tmp_path: Path) -> None:
    """However often they are written, content that is listed is not written again."""
    for _ in range(2):
        net(a=octets(9), both=octets(600)).write(tmp_path / "m.om", external_weight=2)
        net(b=octets(10), both=octets(600)).write(tmp_path / "n.om", external_weight=2)
    assert places(tmp_path / "m.om") == {"a": ("m_weight_combined", 0, 9), "both": ("m_weight_combined", 512, 600)}
    assert places(tmp_path / "n.om") == {"b": ("n_weight_combined", 0, 10), "both": ("m_weight_combined", 512, 600)}
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "weight").glob("*_weight_combined")}
    assert sizes == {"m_weight_combined": 1536, "n_weight_combined": 512}


@pytest.mark.parametrize("path", ["other", "sub/", "x_weight_combined\0", "\ud800_weight_combined", "weight_combined"])
@pytest.mark.parametrize("offset", [0, 1, 512, 1 << 80])
def test_only_a_place_that_an_export_makes_is_used_again(tmp_path: Path, path: str, offset: int) -> None:
    """Not one in a file of another name, which may be anything, nor one between two pieces."""
    folder = tmp_path / "weight"
    folder.mkdir()
    for name in ("other", "weight_combined"):
        (folder / name).write_bytes(bytes(2000))
    sha256 = digest(bytes(9))
    lists = {"hash_to_weight_file": {sha256: path}, "hash_to_weight_offset": {sha256: offset}}
    (folder / "meta.json").write_text(json.dumps(lists))
    net(a=bytes(9)).write(tmp_path / "m.om", external_weight=2)
    is_used = path == "weight_combined" and offset in (0, 512)
    expected = (path, offset, 9) if is_used else ("m_weight_combined", 0, 9)
    assert places(tmp_path / "m.om") == {"a": expected}


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("damage", ["gone", "short", "other bytes"])
def test_a_weight_that_is_gone_is_written_again(tmp_path: Path, mode: ExternalWeightMode, damage: str) -> None:
    net(a=octets(600), b=octets(9)).write(tmp_path / "m.om", external_weight=mode)
    for path in (tmp_path / "weight").glob("*weight_*"):
        if damage == "gone":
            path.unlink()
        elif damage == "short":
            os.truncate(path, 5)
        else:
            path.write_bytes(bytes(path.stat().st_size))
    net(a=octets(600), b=octets(9)).write(tmp_path / "m.om", external_weight=mode)
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")


@pytest.mark.parametrize("modes", [(1, 2), (2, 1), (1, 2, 1)])
def test_modes_may_follow_each_other_in_one_folder(tmp_path: Path, modes: tuple[ExternalWeightMode, ...]) -> None:
    for number, mode in enumerate(modes):
        net(a=octets(600), b=octets(9)).write(tmp_path / f"m{number}.om", external_weight=mode)
    for number in range(len(modes)):
        check_file((tmp_path / f"m{number}.om").read_bytes(), tmp_path / "weight")


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"{",
        b"[]",
        b'{"hash_to_weight_file": 5, "hash_to_weight_offset": []}',
        b'{"hash_to_weight_file": {"HASH": 5}, "hash_to_weight_offset": {"HASH": "x"}}',
        b'{"hash_to_weight_file": {"HASH": "../../secret"}, "hash_to_weight_offset": {"HASH": 0}, "__class__": 1}',
        b'{"hash_to_weight_file": {"HASH": "m_weight_combined"}, "hash_to_weight_offset": {"HASH": -512}}',
        b'{"hash_to_weight_file": {"HASH": "m_weight_combined"}, "hash_to_weight_offset": {"HASH": true}}',
    ],
)
@pytest.mark.parametrize("mode", [1, 2])
def test_a_wrong_list_leads_nowhere(tmp_path: Path, meta: bytes, mode: ExternalWeightMode) -> None:
    folder = tmp_path / "models" / "weight"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_bytes(meta.replace(b"HASH", digest(octets(9)).encode()))
    (tmp_path / "secret").write_bytes(b"secret")
    net(a=octets(9)).write(folder.parent / "m.om", external_weight=mode)
    check_file((folder.parent / "m.om").read_bytes(), folder)
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert digest(octets(9)) in json.loads((folder / "meta.json").read_text())["hash_to_weight_file"]


def failing(size: int) -> StreamedBytes:
    def read() -> Iterator[bytes]:
        yield bytes(size // 2)
        raise OSError("the disk is gone")

    return StreamedBytes(size, read)


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("reads", [1, 2])
def test_a_failure_leaves_nothing(tmp_path: Path, mode: ExternalWeightMode, reads: int) -> None:
    """The first reading is for the digest, the second writes."""
    left = [reads]

    def read() -> Iterator[bytes]:
        left[0] -= 1
        yield octets(300)
        if not left[0]:
            raise OSError("the disk is gone")
        yield octets(300)

    builder = net(a=octets(9))
    builder.const("b", StreamedBytes(600, read), TensorDesc(OCTETS, ND, (600,)))
    with pytest.raises(OSError, match="the disk is gone"):
        builder.write(tmp_path / "m.om", external_weight=mode)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [1, 2])
def test_a_failure_leaves_a_folder_as_it_was(tmp_path: Path, mode: ExternalWeightMode) -> None:
    net(a=octets(9), b=octets(700)).write(tmp_path / "m.om", external_weight=mode)
    before = files(tmp_path)
    (tmp_path / "taken.om").mkdir()
    with pytest.raises(OSError, match="directory"):
        net(c=octets(10), d=octets(800)).write(tmp_path / "taken.om", external_weight=mode)
    assert files(tmp_path) == before
    builder = net(c=octets(10))
    builder.const("e", failing(100), TensorDesc(OCTETS, ND, (100,)))
    with pytest.raises(OSError, match="the disk is gone"):
        builder.write(tmp_path / "m.om", external_weight=mode)
    assert files(tmp_path) == before


def test_sparse_data_are_refused(tmp_path: Path) -> None:
    builder = OmBuilder("net")
    builder.const("hole", SparseBytes(8), TensorDesc(OCTETS, ND, (8,)))
    with pytest.raises(ValueError, match="'hole' has sparse data"):
        builder.write(tmp_path / "m.om", external_weight=1)
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode is 3"):
        net(a=b"x").write(tmp_path / "m.om", external_weight=3)  # type: ignore[arg-type]
    for mode in (3, -1, "1", None):
        with pytest.raises(ValueError, match="give 0, 1 or 2"):
            net().write(tmp_path / "m.om", external_weight=mode)  # type: ignore[arg-type]
    for prefix in ("../up", "a\0b", "\udcff"):
        with pytest.raises(ValueError, match="no part of a file name"):
            ExternalWeightsWriter(tmp_path, 2, prefix=prefix)
    with pytest.raises(FileNotFoundError):
        net(a=b"x").write(tmp_path / "m.om", external_weight=1, weight_dir=tmp_path / "no" / "folder")


def test_a_name_that_a_model_cannot_tell(tmp_path: Path) -> None:
    """The name of the model counts in mode 2 only."""
    path = tmp_path / os.fsdecode(b"\xff.om")
    with pytest.raises(ValueError, match="UTF-8"):
        net(a=octets(9)).write(path, external_weight=2)
    assert list(tmp_path.iterdir()) == []
    net(a=octets(9)).write(path, external_weight=1)
    check_file(path.read_bytes(), tmp_path / "weight")


def test_a_node_that_has_the_name_of_another_then(tmp_path: Path) -> None:
    builder = net(a=octets(9))
    builder.data(f"a_{digest(octets(9))}", TensorDesc(OCTETS, ND, (9,)))
    with pytest.raises(ValueError, match=r"constant 'a' would be named 'a_\w+', and another node is"):
        builder.write(tmp_path / "m.om", external_weight=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["meta.json", "digests.json", f"weight_{digest(octets(9))}"])
def test_a_model_does_not_replace_its_own_weights(tmp_path: Path, name: str) -> None:
    """Its folder may be that of the weights, through a link, too."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    with pytest.raises(ValueError, match=f"{name}' is one of the files of its external weights"):
        net(a=octets(9)).write(tmp_path / "link" / name, external_weight=1, weight_dir=tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []
    net(a=octets(9)).write(tmp_path / name, external_weight=1, weight_dir=tmp_path / "in")
    check_file((tmp_path / name).read_bytes(), tmp_path / "in")


def test_a_folder_may_be_given(tmp_path: Path) -> None:
    net(a=octets(9)).write(tmp_path / "m.om", external_weight=2, weight_dir=tmp_path / "elsewhere")
    assert sorted(files(tmp_path / "elsewhere")) == ["digests.json", "m_weight_combined", "meta.json"]
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "elsewhere")


def test_the_list_is_for_its_owner_only(tmp_path: Path) -> None:
    net(a=b"x").write(tmp_path / "m.om", external_weight=1)
    assert stat.S_IMODE((tmp_path / "weight" / "meta.json").stat().st_mode) == 0o600
    with ExternalWeightsWriter(tmp_path / "w", 1, prefix="m"):
        assert stat.S_IMODE((tmp_path / "w" / "meta.json").stat().st_mode) == 0o600
    assert not (tmp_path / "w").exists(), "nothing was committed"


@pytest.mark.parametrize("mode", [1, 2])
def test_writers_of_one_folder_wait_for_each_other(tmp_path: Path, mode: ExternalWeightMode) -> None:
    rounds = 4
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for index in range(rounds):
                weights = {"common": octets(999), "own": octets(50 + number * rounds + index)}
                net(**weights).write(
                    tmp_path / f"m{number}{index}.om", external_weight=mode, weight_dir=tmp_path / "weight"
                )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for path in tmp_path.glob("*.om"):
        check_file(path.read_bytes(), tmp_path / "weight")


def own_attrs(node: OmNode) -> dict[str, ge_ir.AttrDef]:
    """Return the attributes of a node without the name of its output, which the graph's maker chose."""
    return {name: attr for name, attr in node.attrs.items() if name != "_output_name_key"}


def test_a_writer_that_waits_survives_one_that_takes_everything_back(tmp_path: Path) -> None:
    """The folder and the list that the second waits for are gone when its turn comes."""
    folder = tmp_path / "weight"
    waiting = threading.Thread(target=lambda: net(a=octets(9)).write(tmp_path / "m.om", external_weight=1))
    with ExternalWeightsWriter(folder, 1, prefix="m") as first:
        first.move_out(net(b=octets(10)).build())
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    check_file((tmp_path / "m.om").read_bytes(), folder)
    assert sorted(files(folder)) == ["digests.json", "meta.json", f"weight_{digest(octets(9))}"]


def test_names_and_places_are_those_of_ge(tmp_path: Path) -> None:
    """The same constants as in files of GE: equal names, locations, offsets, lengths, addresses and bytes."""
    for file, mode in (("file_constants_each", 1), ("placeholders_and_combined", 2)):
        theirs = shared_path(f"data/om_vars/{file}.om")
        builder = OmBuilder("ours")
        expected = {}
        with open_om(theirs) as om:
            model = om.models[0]
            base = min(node.output_i[0] for node in model.variable_nodes() if node.type == "FileConstant")
            for node in model.variable_nodes():
                if node.type != "FileConstant":
                    continue
                location, offset, length = (plain_value(node.attrs[key]) for key in ("location", "offset", "length"))
                assert isinstance(location, str)
                assert isinstance(offset, int)
                assert isinstance(length, int)
                data = (theirs.parent / "weight" / location).read_bytes()[offset : offset + length]
                builder.const(node.name[:-65], data, node.output_descs[0])
                expected[node.name] = (location, offset, length, node.output_i[0] - base, own_attrs(node))
        builder.write(tmp_path / "ph_graph.om", external_weight=mode)
        with open_om(tmp_path / "ph_graph.om") as om:
            for node in om.models[0].variable_nodes():
                location, offset, length, addr, attrs = expected.pop(node.name)
                assert own_attrs(node) == attrs
                assert node.output_i[0] - (128 << 30) == addr
                ours = (tmp_path / "weight" / location).read_bytes()
                assert ours == (theirs.parent / "weight" / location).read_bytes()
        assert expected == {}


def test_large_weights_are_streamed(tmp_path: Path) -> None:
    """Chunks that were read are dropped before the next ones come."""
    chunk = np.arange(1 << 20, dtype=np.uint8).tobytes()
    live, most = [0], [0]

    class Chunk(bytes):
        def __del__(self) -> None:
            live[0] -= 1

    def read() -> Iterator[bytes]:
        for _ in range(16):
            live[0] += 1
            most[0] = max(most[0], live[0])
            yield Chunk(chunk)

    data = StreamedBytes(16 << 20, read)
    for mode in (0, 1, 2):
        builder = OmBuilder("net")
        builder.const("w", data, TensorDesc(OCTETS, ND, (16 << 20,)))
        builder.write(tmp_path / "m.om", external_weight=mode)
    assert most[0] <= 4


@pytest.mark.parametrize("mode", [1, 2])
def test_digests_tell_what_each_region_holds(tmp_path: Path, mode: ExternalWeightMode) -> None:
    data = {"a": octets(9), "b": octets(2000)}
    net(**data).write(tmp_path / "m.om", external_weight=mode)
    net(c=octets(50)).write(tmp_path / "n.om", external_weight=mode)
    found = read_digests(tmp_path / "weight" / "digests.json")
    hexes = {xxhash.xxh3_128_hexdigest(one) for one in (*data.values(), octets(50))}
    assert {one.digest for one in found} == hexes
    for one in found:
        place = slice(one.offset, one.offset + one.length)
        assert xxhash.xxh3_128_hexdigest((tmp_path / "weight" / one.file).read_bytes()[place]) == one.digest


@pytest.mark.parametrize("mode", [1, 2])
def test_every_file_is_for_its_owner_only(tmp_path: Path, mode: ExternalWeightMode) -> None:
    net(a=octets(9)).write(tmp_path / "m.om", external_weight=mode)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "weight").iterdir()} == {0o600}


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("mode", [1, 2])
def test_links_lead_nothing_out_of_the_folder(
    tmp_path: Path, mode: ExternalWeightMode, link: Callable[[Path, Path], None]
) -> None:
    """A file of one content is replaced, the name alone; a file that grows is refused."""
    (tmp_path / "weight").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    name = f"weight_{digest(octets(9))}" if mode == 1 else "m_weight_combined"
    link(tmp_path / "secret", tmp_path / "weight" / name)
    if mode == 1:
        net(a=octets(9)).write(tmp_path / "m.om", external_weight=mode)
        assert (tmp_path / "weight" / name).read_bytes() == octets(9)
        assert not (tmp_path / "weight" / name).is_symlink()
    else:
        with pytest.raises(OSError, match=r"hard links|symbolic link"):
            net(a=octets(9)).write(tmp_path / "m.om", external_weight=mode)
        assert not (tmp_path / "m.om").exists()
    assert (tmp_path / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize("name", ["meta.json", "digests.json", "m_weight_combined"])
def test_pipes_are_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "weight").mkdir()
    os.mkfifo(tmp_path / "weight" / name)
    with pytest.raises(OSError, match="not a regular file"):
        net(a=octets(9)).write(tmp_path / "m.om", external_weight=2)
    assert sorted(path.name for path in (tmp_path / "weight").iterdir()) in ([name], sorted({name, "meta.json"}))


def test_what_a_killed_writer_had_begun_is_removed(tmp_path: Path) -> None:
    (tmp_path / "weight").mkdir()
    for name in (".gevar-0123456789abcdef.tmp", ".gevar-fedcba9876543210.tmp", "other.tmp"):
        (tmp_path / "weight" / name).write_bytes(b"half")
    net(a=octets(9)).write(tmp_path / "m.om", external_weight=1)
    assert [path.name for path in (tmp_path / "weight").glob("*.tmp")] == ["other.tmp"]


def test_a_list_is_never_empty(tmp_path: Path) -> None:
    with ExternalWeightsWriter(tmp_path / "weight", 2, prefix="m"):
        assert json.loads((tmp_path / "weight" / "meta.json").read_bytes()) == {
            "hash_to_weight_file": {},
            "hash_to_weight_offset": {},
        }


def test_the_lock_holds_after_the_list_was_replaced(tmp_path: Path) -> None:
    """Who comes when the new list has its name waits, too, until the first is done."""
    waiting = threading.Thread(target=lambda: net(a=octets(9)).write(tmp_path / "m.om", external_weight=1))
    with ExternalWeightsWriter(tmp_path / "weight", 1, prefix="m") as first:
        first.move_out(net(b=octets(10)).build())
        first.write_meta()
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        first.commit()
    waiting.join(10)
    assert not waiting.is_alive()
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")
    assert (tmp_path / "weight" / f"weight_{digest(octets(10))}").exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no list"),
        (b"[]", "no list"),
        (b'{"xxh3_128": [1]}', "only 0 regions"),
        (b'{"xxh3_128": [{"file": "../w", "offset": 0, "length": 1, "digest": "00"}]}', "only 0 regions"),
        (b'{"xxh3_128": [{"file": "w", "offset": -1, "length": 1, "digest": "00"}]}', "only 0 regions"),
        (b'{"xxh3_128": [{"file": "w", "offset": true, "length": 1, "digest": "00"}]}', "only 0 regions"),
    ],
)
def test_damaged_digests_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "digests.json").write_bytes(data)
    with pytest.raises(ModelFileError, match=reason):
        read_digests(tmp_path / "digests.json")
