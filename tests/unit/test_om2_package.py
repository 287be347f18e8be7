"""OM2 packages: what is read of them, what is listed only, and what is refused."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gevar.errors import ModelFileError
from gevar.om import open_om
from gevar.om.om2_constants import om2_constants
from gevar.om.om2_package import Om2Package, is_om2, open_om2
from gevar.session.om2_facts import om2_facts
from gevar.session.om2_variables import om2_model_variables, om2_variables
from tests.helpers import om2_builder as build
from tests.helpers.peak_memory import bounded_memory

CONFIG = "data/constants/model_0_constants_config.json"
RESOURCE = "data/variables/var_resource.json"


def opened(changes: dict[str, object] | None = None, compression: int = zipfile.ZIP_STORED) -> Om2Package:
    return Om2Package.from_bytes(build.package(changes, compression), "p.om2")


def everything(package: Om2Package) -> None:
    om2_facts(package)
    for index in range(package.model_num):
        for one in om2_constants(package, index):
            if one.file_offset is not None:
                one.data()


def test_the_manifest_and_the_entries() -> None:
    package = opened()
    assert (package.model_num, package.atc_command) == (1, "atc --model x")
    assert list(package.entries) == list(build.entries())
    assert package.entries["data/constants/constant_0"].size_bytes == len(build.WEIGHTS)
    reasons = {name: entry.not_supported for name, entry in package.entries.items() if entry.not_supported}
    assert reasons == {
        "data/model_0/runtime/main.cc": "generated sources and shared objects: not run",
        "data/kernels_npu_arch/add.o": "kernels: not run",
    }


def test_constants_lie_in_the_package_or_beside_it() -> None:
    data = build.package()
    package = Om2Package.from_bytes(data)
    first, second, third = om2_constants(package, 0)
    assert [(one.key, one.index, one.op_name) for one in (first, second)] == [
        ("k0", 0, "const_0"),
        ("k1", 1, "const_1"),
    ]
    assert bytes(first.data()) == build.WEIGHTS[:64]
    assert data[second.file_offset : second.file_offset + 32] == bytes(second.data()) == build.WEIGHTS[64:96]
    assert (third.type, third.file_name, third.offset, third.size_bytes) == ("EXTERNAL", "weight_abc", 8, 100)
    assert third.file_offset is None
    with pytest.raises(ValueError, match="weight_abc"):
        third.data()
    assert om2_constants(package, 1) == []


def test_variables_and_their_initial_bytes() -> None:
    package = opened(compression=zipfile.ZIP_DEFLATED)
    v, w = om2_variables(package)
    assert (v.var_name, v.logic_addr, v.size, v.init_data) == ("v", 128 << 30, 16, build.INIT[4:12])
    assert (w.var_key, w.init_data) == ("w2_0", None)
    graph_id, metas = om2_model_variables(package, 0)
    assert (graph_id, [meta.var_name for meta in metas]) == (3, ["w"])
    assert om2_model_variables(package, 1) is None
    assert len(om2_variables(opened({RESOURCE: None}))) == 0


def test_a_file_is_opened_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "m.om2"
    path.write_bytes(build.package())
    with open_om2(path) as package:
        assert package.path == str(path)
        everything(package)
    assert is_om2(path)
    (tmp_path / "none").write_bytes(b"IMOD")
    assert not is_om2(tmp_path / "none")
    assert not is_om2(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="open_om2, its models cannot be loaded"):
        open_om(path)
    with pytest.raises(ModelFileError, match="cannot be opened"):
        open_om2(tmp_path / "absent")


def test_facts_say_what_is_not_supported() -> None:
    facts: Any = om2_facts(opened())
    json.dumps(facts)
    assert facts["dialect"] == "OM2"
    assert [one["name"] for one in facts["variables"]] == ["v", "w"]
    assert [one["size"] for one in facts["models"][0]["consts"]] == [64, 32, 100]
    assert "not loaded" in facts["not_supported"]["loading"]
    assert any("not run" in reason for reason in facts["not_supported"])


def manifest(**changes: object) -> dict[str, object]:
    return {"manifest.json": {"om2_version": "0", "model_num": 1, "atc_command": "", **changes}}


def config(consts: object, **fields: object) -> dict[str, object]:
    return {CONFIG: {"internal_weight_size": len(build.WEIGHTS), "consts": consts, **fields}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"manifest.json": None}, "not in the package"),
        ({"manifest.json": b"{"}, "no JSON"),
        ({"manifest.json": b"[" * 100_000}, "no JSON"),
        ({"manifest.json": b"[]"}, "must be of type dict"),
        (manifest(om2_version="1"), "made by version '1'"),
        (manifest(om2_version=0), "must be of type str"),
        (manifest(model_num=-1), "-1 models"),
        (manifest(model_num=10**9), "1000000000 models"),
        (manifest(model_num=True), "must be of type int"),
        (manifest(atc_command=5), "must be of type str"),
        (config({"k": build.const(0, 500, 13)}), "13 B at 500 leave the 512 B"),
        (config({"k": build.const(0, -1, 13)}), "count from 0"),
        (config({"k": build.const(0, 2**70, 1)}), "leave"),
        (config({"k": {"index": 0}}), "consts.k.offset"),
        (config([]), "consts"),
        (config({}, internal_weight_size=511), "511 B for data/constants/constant_0, 512 B are there"),
        ({"data/constants/constant_0": None}, "512 B for data/constants/constant_0, 0 B are there"),
        ({RESOURCE: {"entries": {"v": {}}}}, "entries.v"),
        ({RESOURCE: b"\xff"}, "no JSON"),
        ({"data/variables/model_0_variables_config.json": {"graph_id": 1}}, "var_metas"),
    ],
    ids=range(20),
)
def test_what_is_not_as_it_should_be(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        everything(opened(changes))
    assert "p.om2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_packed_constants_are_refused() -> None:
    with pytest.raises(ModelFileError, match="it is packed"):
        om2_constants(opened(compression=zipfile.ZIP_DEFLATED), 0)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(compression: int) -> None:
    with pytest.raises(ModelFileError, match="in another way than DEFLATE"):
        opened(compression=compression)


def test_an_entry_that_comes_twice() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("manifest.json", "{}")
    with pytest.raises(ModelFileError, match="twice"):
        Om2Package.from_bytes(out.getvalue())


def test_what_is_unpacked_is_limited_before_it_is_unpacked() -> None:
    huge = b" " * (40 << 20)
    data = build.package({RESOURCE: huge}, zipfile.ZIP_DEFLATED)
    assert len(data) < 1 << 20
    with pytest.raises(ModelFileError, match=r"41943040 B unpacked, \d+ B are left"):
        om2_variables(Om2Package.from_bytes(data))


def test_a_list_of_files_is_limited_before_it_is_read() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(150):
            info = zipfile.ZipInfo(f"entry {number}")
            info.comment = b"c" * 60_000  # in the list of files alone
            archive.writestr(info, b"")
    data = stream.getvalue()
    with (
        bounded_memory(len(data)),
        pytest.raises(ModelFileError, match=r"a list of files of 9\d{6} B, 8388608 B are read"),
    ):
        Om2Package.from_bytes(data)


@pytest.mark.parametrize("value", [b"[],", b"{},", b'{"a":1},', b"1,", b'"",', b"12345,", b"[0],"])
def test_values_are_limited_before_they_are_made(value: bytes) -> None:
    text = b'{"entries":[' + value * ((8 << 20) // len(value)) + b"0]}"
    data = build.package({RESOURCE: text}, zipfile.ZIP_DEFLATED)
    with bounded_memory(len(data)), pytest.raises(ModelFileError, match="its values take"):
        om2_variables(Om2Package.from_bytes(data))


def test_reading_again_and_again_is_limited_too() -> None:
    package = opened({"data/x": b" " * (20 << 20)}, zipfile.ZIP_DEFLATED)
    package.read("data/x")
    with pytest.raises(ModelFileError, match="are left"):
        package.read("data/x")


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04", b"IMOD" * 100, b"PK\x03\x04" + bytes(100)])
def test_what_is_no_package(data: bytes) -> None:
    with pytest.raises(ModelFileError):
        Om2Package.from_bytes(data)


def damaged(data: bytes, number: random.Random) -> bytes:
    changes: tuple[Callable[[int], bytes], ...] = (
        lambda at: data[:at],
        lambda at: data[:at] + bytes([number.randrange(256)]) + data[at + 1 :],
        lambda at: data[:at] + number.randbytes(number.randrange(1, 9)) + data[at:],
        lambda at: data[:at] + data[at + number.randrange(1, 40) :],
        lambda at: data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :],
    )
    return number.choice(changes)(number.randrange(len(data)))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_packages_are_read_or_refused(compression: int) -> None:
    number, data = random.Random(compression), build.package(compression=compression)
    refused = 0
    for _ in range(400):
        changed = damaged(data, number)
        try:
            everything(Om2Package.from_bytes(changed))
        except ModelFileError:
            refused += 1
    assert refused > 100
