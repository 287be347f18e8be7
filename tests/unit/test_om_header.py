"""The header of an OM file: every field in every dialect, and every reason to refuse one."""

import struct

import pytest

from gevar.errors import ModelFileError
from gevar.om.header import HEADER_BYTES, Dialect, ModelFileHeader, read_header
from gevar.om.source import ByteSource
from tests.helpers import om_builder as build

COMMON = {
    "magic": (0, "<I"),
    "headsize": (4, "<I"),
    "version": (8, "<I"),
    "checksum": (12, "64s"),
    "length": (76, "<I"),
    "is_encrypt": (80, "B"),
    "is_checksum": (81, "B"),
    "modeltype": (82, "B"),
    "genmode": (83, "B"),
    "name": (84, "32s"),
    "ops": (116, "<I"),
    "userdefineinfo": (120, "32s"),
    "om_ir_version": (152, "<I"),
}
VERSION_2_ONLY = {
    "model_num": (156, "<I"),
    "platform_version": (160, "20s"),
    "platform_type": (180, "B"),
    "model_length": (184, "<Q"),
    "need_check_os_cpu_info": (192, "B"),
    "is_unknow_model": (193, "B"),
}
VERSION_1_ONLY = {
    "platform_version": (156, "20s"),
    "platform_type": (176, "B"),
    "heterogeneous_tuning": (177, "B"),
    "custom_data_length": (180, "<I"),
    "shape_gears": (184, "<I"),
    "library_info": (188, "16s"),
}
TEXTS = ("name", "platform_version")


def distinct_values(version: int) -> tuple[dict[str, tuple[int, str]], dict[str, int | bytes | str]]:
    """Return the places of all fields of a version and a value for each that differs from its neighbours."""
    places = {**COMMON, **(VERSION_1_ONLY if version == build.VERSION_1 else VERSION_2_ONLY)}
    values: dict[str, int | bytes | str] = {}
    for number, (name, (_, code)) in enumerate(places.items(), start=1):
        width = struct.calcsize(code)
        if name in TEXTS:
            values[name] = f"text {number}"
        else:
            values[name] = bytes([number]) * width if code.endswith("s") else 256 ** (width - 1) * number
    return places, {**values, "version": version}


def read(data: bytes, *, bundle: bool = False) -> ModelFileHeader:
    return read_header(ByteSource.of_bytes(data, "m.om"), bundle=bundle)


def refusal(data: bytes, *, bundle: bool = False) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read(data, bundle=bundle)
    assert caught.value.file == "m.om"
    return caught.value


@pytest.mark.parametrize("version", [build.VERSION_1, build.VERSION_2])
def test_every_field_is_at_its_place(version: int) -> None:
    places, values = distinct_values(version)
    data = bytearray(HEADER_BYTES)
    for name, (at, code) in places.items():
        value = values[name]
        struct.pack_into(code, data, at, value.encode() if isinstance(value, str) else value)
    header = ModelFileHeader.unpack(bytes(data))
    assert {name: getattr(header, name) for name in places} == values
    assert header.pack() == bytes(data)


def test_fields_of_the_other_version_keep_their_defaults() -> None:
    header = ModelFileHeader.unpack(build.header(build.VERSION_1, length=5))
    assert (header.model_num, header.model_length, header.is_unknow_model) == (1, 0, 0)
    assert ModelFileHeader.unpack(build.header()).custom_data_length == 0


def test_text_ends_at_the_first_nul_and_other_bytes_survive() -> None:
    data = bytearray(build.header(name="x"))
    data[84:90] = b"\xffab\0cd"
    header = ModelFileHeader.unpack(bytes(data))
    assert header.name.encode("utf-8", "surrogateescape") == b"\xffab"
    assert header.pack()[84:88] == b"\xffab\0"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "n" * 32}, "name takes 32 bytes, at most 31"),
        ({"name": "é" * 16}, "name takes 32 bytes"),
        ({"platform_version": "9" * 20}, "platform_version takes 20 bytes, at most 19"),
        ({"length": 1 << 32}, "does not fit"),
        ({"modeltype": 256}, "does not fit"),
    ],
)
def test_pack_refuses_what_does_not_fit(fields: dict[str, int | str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelFileHeader(**fields).pack()  # type: ignore[arg-type]


def test_longest_texts_fit() -> None:
    header = ModelFileHeader(name="n" * 31, platform_version="9" * 19)
    assert ModelFileHeader.unpack(header.pack()) == header


@pytest.mark.parametrize(
    ("data", "dialect", "wide"),
    [
        (build.g1([(0, b"x")]), Dialect.G1, False),
        (build.g1([(0, b"x")], platform_type=0), Dialect.G1, False),
        (build.g2([(0, b"x")]), Dialect.G2, False),
        (build.g3([(0, b"x")]), Dialect.G3, True),
        (build.mobile([(0, b"x")], modeltype=3), Dialect.M, False),
        (build.mobile([(0, b"x")], modeltype=4), Dialect.M, False),
        (build.mobile([(0, b"x")], modeltype=0), Dialect.M, False),
    ],
)
def test_dialect_and_table(data: bytes, dialect: Dialect, wide: bool) -> None:
    header = read(data)
    assert header.dialect == dialect
    assert header.has_wide_table is wide
    assert header.body_bytes == len(data) - HEADER_BYTES


def test_modeltype_3_is_a_flow_model_only_in_version_2() -> None:
    assert not read(build.mobile([(0, b"x")], modeltype=3)).is_flow
    flow = read(build.g2([(0, b"x")], modeltype=3))
    assert flow.is_flow
    assert flow.has_wide_table  # whatever the length field


@pytest.mark.parametrize(
    ("model_num", "unknow", "dynamic"), [(0, 0, False), (1, 0, False), (2, 0, True), (1, 1, True), (0, 1, True)]
)
def test_dynamic_rule(model_num: int, unknow: int, dynamic: bool) -> None:
    assert read(build.g3([(0, b"x")], model_num=model_num, is_unknow_model=unknow)).is_dynamic is dynamic


def test_version_1_is_never_dynamic() -> None:
    # 1.0 has text where 2.0 has the number of models
    assert not read(build.g1([(0, b"x")])).is_dynamic


@pytest.mark.parametrize(
    ("data", "field", "offset", "words"),
    [
        (b"", "magic", 0, "empty file"),
        (b"PK\x03\x04" + bytes(400), "magic", 0, "OM2 package"),
        (b"PK\x03\x04", "magic", 0, "OM2 package"),
        (b"a text under this name", "header", 0, "22 B, shorter than the 256-byte header"),
        (build.g3([(0, b"x")])[:255], "header", 0, "255 B, shorter"),
        (build.header(magic=0x31323334) + b"x", "magic", 0, "0x444f4d49 (IMOD) expected, 0x31323334 found"),
        (b"IMODV1.2" + bytes(300), "headsize", 4, "header of 256 B expected, 841888086 B declared"),
        (build.header(version=0x20000000 + 1000, length=1) + b"x", "version", 8, "0x200003e8"),
        (build.header(version=0, length=1) + b"x", "version", 8, "this reader knows 0x10000000 (1.0) and 0x20000000"),
        (build.header(length=1, is_encrypt=1) + b"x", "is_encrypt", 80, "encrypted"),
        (build.header(length=2) + b"x", "length", 76, "2 B after the header are declared, the file has 1 B"),
        (build.header(length=2**31 + 10) + b"x", "length", 76, "2147483658 B after the header"),
        (build.header(length=1, model_length=2) + b"x", "model_length", 184, "2 B after the header"),
        (build.header(model_length=2**64 - 1) + b"x", "model_length", 184, "18446744073709551615 B after"),
        (build.header(model_length=1) + b"xy", "model_length", 184, "the file has 2 B"),
        (build.bundle([b"x"]), "modeltype", 82, "a bundle of 1 models; open it with kind='bundle'"),
        (build.bundle([b"x"], magic=build.MAGIC), "modeltype", 82, "open it with kind='bundle'"),
        (build.bundle([b"x"], magic=build.MAGIC, version=build.VERSION_2), "modeltype", 82, "kind='bundle'"),
    ],
)
def test_refused_with_file_offset_and_field(data: bytes, field: str, offset: int, words: str) -> None:
    error = refusal(data)
    assert (error.field, error.offset) == (field, offset)
    assert words in str(error)


@pytest.mark.parametrize("at", range(4))
def test_each_byte_of_the_magic_counts(at: int) -> None:
    data = bytearray(build.g3([(0, b"x")]))
    data[at] ^= 1
    assert refusal(bytes(data)).field == "magic"


def test_model_length_wins_over_length() -> None:
    data = build.g3([(0, b"x")], length=12345)
    assert read(data).body_bytes == len(data) - HEADER_BYTES


@pytest.mark.parametrize("magic", [0, build.MAGIC])
@pytest.mark.parametrize("version", [0, build.VERSION_2])
def test_bundle_when_asked_for(magic: int, version: int) -> None:
    data = build.bundle([b"one", b"two"], magic=magic, version=version)
    header = read(data, bundle=True)
    assert header.is_bundle
    assert (header.model_num, header.model_length) == (2, len(data))


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        (build.g3([(0, b"x")]), "modeltype", "not a bundle: magic 0x444f4d49, model type 0; open it with kind='model'"),
        (build.bundle([b"x"], magic=7), "modeltype", "not a bundle: magic 0x00000007"),
        (build.bundle([b"x"], version=build.VERSION_1), "modeltype", "not a bundle"),
        (build.bundle([b"x"], is_encrypt=1), "is_encrypt", "encrypted"),
        (build.bundle([b"x"]) + b"y", "model_length", "is declared, the file has"),
    ],
)
def test_bundle_refused(data: bytes, field: str, words: str) -> None:
    error = refusal(data, bundle=True)
    assert error.field == field
    assert words in str(error)


def test_zeros_are_not_taken_for_a_bundle() -> None:
    data = bytearray(400)
    data[82] = 5
    assert "not an OM file" in str(refusal(bytes(data)))
