"""The 256-byte header of an OM file: its layout in the four dialects, reading with checks, and packing.

The first 156 bytes are the same everywhere; what follows depends on the version::

      0  magic, headsize, version: u32 each      version 1.0                  version 2.0
     12  checksum[64]                            156 platform_version[20]     156 model_num: u32
     76  length: u32                             176 platform_type: u8        160 platform_version[20]
     80  is_encrypt, is_checksum,                in dialect M also            180 platform_type: u8
         modeltype, genmode: u8 each             177 heterogeneous_tuning: u8 184 model_length: u64
     84  name[32]                                180 custom_data_length: u32  192 need_check_os_cpu_info: u8
    116  ops: u32                                184 shape_gears: u32         193 is_unknow_model: u8
    120  userdefineinfo[32]                      188 library_info[16]
    152  om_ir_version: u32

Source: GE source, inc/framework/common/framework_types_internal.h, ModelFileHeader.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Self

from gevar.om.source import ByteSource
from gevar.status import ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID as _SIZE
from gevar.status import PARAM_INVALID

MODEL_FILE_MAGIC = 0x444F4D49
"""The bytes "IMOD" as a little-endian number."""
OM2_MAGIC = b"PK\x03\x04"
"""First bytes of an OM2 package, which is a ZIP archive."""
HEADER_BYTES = 256
VERSION_1 = 0x10000000
VERSION_2 = 0x20000000
NAME_MAX_BYTES = 31
"""Longest model name in the header; the 32nd byte is NUL."""

_COMMON = struct.Struct("<III64sI4B32sI32sI")
_COMMON_FIELDS = (
    *("magic", "headsize", "version", "checksum", "length", "is_encrypt", "is_checksum", "modeltype", "genmode"),
    *("name", "ops", "userdefineinfo", "om_ir_version"),
)
_TAIL_1 = struct.Struct("<20sBB2xII16s52x")
_TAIL_1_FIELDS = (
    *("platform_version", "platform_type", "heterogeneous_tuning", "custom_data_length", "shape_gears"),
    "library_info",
)
_TAIL_2 = struct.Struct("<I20sB3xQBB62x")
_TAIL_2_FIELDS = (
    *("model_num", "platform_version", "platform_type", "model_length", "need_check_os_cpu_info", "is_unknow_model"),
)
_TEXT_FIELDS = {"name": 32, "platform_version": 20}
_AT = {"magic": 0, "headsize": 4, "version": 8, "length": 76, "is_encrypt": 80, "modeltype": 82, "model_length": 184}

_PLATFORM_TYPE_LITE = 0
_MOBILE_PLATFORM_VERSION = "3."


class ModelType(IntEnum):
    """What the body of the file holds.

    In dialect M the number 3 means "standard IR graph" and 4 "pre-compiled partition model".

    Source: GE source, inc/framework/common/framework_types_internal.h, ModelType.
    """

    MODEL_TYPE_IR_MODEL = 0
    MODEL_TYPE_STANDARD_MODEL = 1
    MODEL_TYPE_OM_TINY_MODEL = 2
    MODEL_TYPE_FLOW_MODEL = 3
    MODEL_TYPE_LITE_MODEL = 4
    MODEL_TYPE_BUNDLE_MODEL = 5
    MODEL_TYPE_RESERVED = 6


class Dialect(StrEnum):
    """Form of header and table: G1, G2 and G3 are the server's, oldest first; M is the mobile one."""

    G1 = "G1"
    G2 = "G2"
    G3 = "G3"
    M = "M"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFileHeader:
    """Every field of the header by GE's name; a field that the version does not have keeps its default.

    Lengths are bytes. `name` and `platform_version` end at the first NUL byte; bytes that are not UTF-8 stay as
    surrogate escapes.

    Source: GE source, inc/framework/common/framework_types_internal.h, ModelFileHeader; the last four fields:
    base/common/helper/mobile.
    """

    magic: int = MODEL_FILE_MAGIC
    headsize: int = HEADER_BYTES
    version: int = VERSION_2
    checksum: bytes = field(default=bytes(64), repr=False)
    length: int = 0
    is_encrypt: int = 0
    is_checksum: int = 0
    modeltype: int = 0
    genmode: int = 0
    name: str = ""
    ops: int = 0
    userdefineinfo: bytes = field(default=bytes(32), repr=False)
    om_ir_version: int = 0
    model_num: int = 1
    platform_version: str = ""
    platform_type: int = 0
    model_length: int = 0
    need_check_os_cpu_info: int = 0
    is_unknow_model: int = 0
    heterogeneous_tuning: int = 0
    custom_data_length: int = 0
    shape_gears: int = 0
    library_info: bytes = field(default=bytes(16), repr=False)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Decode 256 bytes without judging them.

        Raises
        ------
        struct.error
            `data` is not 256 bytes long.
        """
        values = dict(zip(_COMMON_FIELDS, _COMMON.unpack(data[: _COMMON.size]), strict=True))
        tail, names = _tail(values["version"])
        values.update(zip(names, tail.unpack(data[_COMMON.size :]), strict=True))
        for name in _TEXT_FIELDS:
            values[name] = values[name].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        return cls(**values)

    def pack(self) -> bytes:
        """Encode the header as 256 bytes.

        Raises
        ------
        ValueError
            `name` (31 bytes at most) or `platform_version` (19) is too long, or a number does not fit its field.
        """
        values = {name: getattr(self, name) for name in (*_COMMON_FIELDS, *_tail(self.version)[1])}
        for name, size_bytes in _TEXT_FIELDS.items():
            values[name] = values[name].encode("utf-8", "surrogateescape")
            if len(values[name]) >= size_bytes:
                raise ValueError(f"header {name} takes {len(values[name])} bytes, at most {size_bytes - 1} fit")
        tail, names = _tail(self.version)
        try:
            return _COMMON.pack(*(values[n] for n in _COMMON_FIELDS)) + tail.pack(*(values[n] for n in names))
        except struct.error as error:
            raise ValueError(f"header of model {self.name!r} has a number that does not fit: {error}") from error

    @property
    def dialect(self) -> Dialect:
        """Which of the four forms this is.

        Version 1.0 is M where the model type is not 0 or platform type and version are those of a mobile (LITE) chip.
        """
        if self.version == VERSION_1:
            lite = self.platform_type == _PLATFORM_TYPE_LITE
            mobile = lite and self.platform_version.startswith(_MOBILE_PLATFORM_VERSION)
            return Dialect.M if self.modeltype != ModelType.MODEL_TYPE_IR_MODEL or mobile else Dialect.G1
        return Dialect.G3 if self.model_length else Dialect.G2

    @property
    def body_bytes(self) -> int:
        """Declared bytes after the header (for a bundle: of the whole file)."""
        return self.model_length or self.length

    @property
    def is_flow(self) -> bool:
        """Whether the body is a flow model; dialect M uses the same number for something else."""
        return self.version >= VERSION_2 and self.modeltype == ModelType.MODEL_TYPE_FLOW_MODEL

    @property
    def is_bundle(self) -> bool:
        """Whether the body is a bundle, which GE writes with magic, headsize and version 0."""
        plausible = self.magic in (0, MODEL_FILE_MAGIC) and self.version in (0, VERSION_2)
        return plausible and self.modeltype == ModelType.MODEL_TYPE_BUNDLE_MODEL

    @property
    def is_dynamic(self) -> bool:
        """Whether the body is a sequence of `model_num` models rather than one static model."""
        return self.version >= VERSION_2 and (self.model_num > 1 or self.is_unknow_model == 1)

    @property
    def has_wide_table(self) -> bool:
        """Whether partition tables have 24-byte entries.

        Source: GE source, base/common/helper/om_file_helper.cc.
        """
        return self.is_flow or self.is_bundle or self.model_length != 0


def _tail(version: int) -> tuple[struct.Struct, tuple[str, ...]]:
    return (_TAIL_1, _TAIL_1_FIELDS) if version == VERSION_1 else (_TAIL_2, _TAIL_2_FIELDS)


def read_header(source: ByteSource, *, bundle: bool = False) -> ModelFileHeader:
    """Read the header of an OM file, or of a bundle, and check everything that can be known from it and the file size.

    Raises
    ------
    ModelFileError
        The file is empty, an OM2 package, too short, of another kind or version, encrypted, or its declared length
        is not that of the file. Nothing is allocated by a length of the file.
    """
    if source.size_bytes == 0:
        raise source.error(0, "magic", "empty file", status=_SIZE)
    start = source.read(0, min(HEADER_BYTES, source.size_bytes), "header")
    if start.startswith(OM2_MAGIC):
        reason = "an OM2 package (ZIP archive); open it with open_om2, its models cannot be loaded"
        raise source.error(0, "magic", reason)
    if len(start) < HEADER_BYTES:
        reason = f"not a model: {len(start)} B, shorter than the {HEADER_BYTES}-byte header"
        raise source.error(0, "header", reason, status=_SIZE)
    header = ModelFileHeader.unpack(start)
    if bundle:
        _check_bundle(source, header)
    else:
        _check_model(source, header)
    return header


def _check_bundle(source: ByteSource, header: ModelFileHeader) -> None:
    if not header.is_bundle:
        found = f"magic {header.magic:#010x}, model type {header.modeltype}"
        reason = f"not a bundle: {found}; open it with kind='model' (without --bundle)"
        raise source.error(_AT["modeltype"], "modeltype", reason)
    _check_plain(source, header)
    if header.model_length != source.size_bytes:
        reason = f"a bundle of {header.model_length} B is declared, the file has {source.size_bytes} B"
        raise source.error(_AT["model_length"], "model_length", reason, status=_SIZE)


def _check_model(source: ByteSource, header: ModelFileHeader) -> None:
    if header.is_bundle and (header.magic or header.model_length == source.size_bytes):
        reason = f"a bundle of {header.model_num} models; open it with kind='bundle' (--bundle)"
        raise source.error(_AT["modeltype"], "modeltype", reason, status=PARAM_INVALID)
    if header.magic != MODEL_FILE_MAGIC:
        reason = f"not an OM file: {MODEL_FILE_MAGIC:#010x} (IMOD) expected, {header.magic:#010x} found"
        raise source.error(_AT["magic"], "magic", reason, status=_SIZE)
    if header.headsize != HEADER_BYTES:
        reason = f"not an OM file: a header of {HEADER_BYTES} B expected, {header.headsize} B declared"
        raise source.error(_AT["headsize"], "headsize", reason)
    if header.version not in (VERSION_1, VERSION_2):
        known = f"{VERSION_1:#010x} (1.0) and {VERSION_2:#010x} (2.0)"
        reason = f"made by format version {header.version:#010x}, this reader knows {known}"
        raise source.error(_AT["version"], "version", reason)
    _check_plain(source, header)
    name = "model_length" if header.model_length else "length"
    present = source.size_bytes - HEADER_BYTES
    if header.body_bytes != present:
        reason = f"{header.body_bytes} B after the header are declared, the file has {present} B"
        raise source.error(_AT[name], name, reason, status=_SIZE)


def _check_plain(source: ByteSource, header: ModelFileHeader) -> None:
    if header.is_encrypt:
        reason = f"the model is encrypted (is_encrypt {header.is_encrypt}); decrypt it before reading"
        raise source.error(_AT["is_encrypt"], "is_encrypt", reason)
