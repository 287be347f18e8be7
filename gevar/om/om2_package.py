"""OM2 packages: ZIP archives with the constants and variables of models, and with code that is not run here.

Read are `manifest.json`, the constants of each model, and the texts and initial bytes of variables. Generated sources,
shared objects, kernels and custom operators are listed only. Nothing is ever unpacked to a file, and what is read is
limited before it is unpacked.

Source: GE source, base/common/helper/om2.
"""

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Final, Self

from gevar.errors import ModelFileError
from gevar.om.archive_stream import ARCHIVE_ERRORS, ArchiveStream
from gevar.om.header import OM2_MAGIC
from gevar.om.json_fields import JsonObject, get_field, optional_field, parsed, values_bytes
from gevar.om.regular_file import open_named
from gevar.om.source import ByteSource

MANIFEST: Final = "manifest.json"
VERSION: Final = "0"
"""Version of packages that are read."""

MAX_MODELS: Final = 4096
"""Most models of a package; bounds the work on a damaged one."""

UNPACKED_FACTOR: Final = 4
UNPACKED_BYTES: Final = 32 << 20
"""Together, what is unpacked may have so many times the bytes of the package, and so many more."""

NOT_SUPPORTED: Final = {
    "runtime": "generated sources and shared objects: not run",
    "debug": "files for debugging: not read",
    "data/kernels_npu_arch": "kernels: not run",
    "data/custom_ops": "custom operators: not run",
}
"""What a package has beside constants and variables, by a part of its name, and what becomes of it."""

_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_ENCRYPTED: Final = 1


@dataclass(frozen=True, slots=True)
class Om2Entry:
    """A file of a package: its name, its bytes when unpacked, and whether it is stored as it is."""

    name: str
    size_bytes: int
    is_stored: bool

    @property
    def not_supported(self) -> str:
        """Why its content is not used; "" where it is."""
        parts = f"/{self.name}/"
        return next((reason for part, reason in NOT_SUPPORTED.items() if f"/{part}" in parts), "")


class Om2Package:
    """An opened package; close it with `close`, `with`, or by dropping it.

    Attributes
    ----------
    source : ByteSource
        Its bytes.
    entries : mapping of str to Om2Entry
        Its files by name, in the order of the archive.
    model_num : int
        Number of models.
    atc_command : str
        How it was made.

    Raises
    ------
    ModelFileError
        The bytes are no archive, it is damaged, or its manifest is missing, wrong or of another version.

    Thread safety: one thread at a time reads.
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        if not source.size_bytes or source.read(0, min(4, source.size_bytes), "magic") != OM2_MAGIC:
            raise source.error(0, "magic", "not an OM2 package: it is no ZIP archive")
        try:
            stream = ArchiveStream(source)
            self._archive = zipfile.ZipFile(stream)
        except ARCHIVE_ERRORS as error:
            raise _as_file_error(source, "archive", error) from error
        stream.most_bytes = source.size_bytes
        self._budget = UNPACKED_FACTOR * source.size_bytes + UNPACKED_BYTES
        self.entries: Mapping[str, Om2Entry] = self._list_entries()
        manifest = self.json(MANIFEST)
        file = self.file_of(MANIFEST)
        version = get_field(file, manifest, "om2_version", str)
        if version != VERSION:
            reason = f"made by version {version!r:.20} of OM2, this reader knows {VERSION!r}"
            raise ModelFileError(file, None, "om2_version", reason)
        self.model_num = get_field(file, manifest, "model_num", int)
        if not 0 <= self.model_num <= MAX_MODELS:
            raise ModelFileError(file, None, "model_num", f"{self.model_num} models, 0 to {MAX_MODELS} are read")
        self.atc_command = optional_field(file, manifest, "atc_command", str) or ""

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, name: str = "<bytes>") -> Self:
        """Open a package that lies in memory, without a copy.

        Raises
        ------
        ModelFileError
            As `open_om2`; `name` stands for the file.
        """
        return cls(ByteSource.of_bytes(data, name))

    @property
    def path(self) -> str:
        """Path of the package, or the name of the bytes."""
        return self.source.name

    def read(self, name: str) -> bytes:
        """Return the unpacked content of an entry.

        Raises
        ------
        ModelFileError
            There is no such entry, it is encrypted or damaged, or together with what was read before it is larger than
            the package allows; or a text holds more values than that.
        """
        entry = self._entry(name)
        if entry.size_bytes > self._budget:
            reason = f"{entry.size_bytes} B unpacked, {self._budget} B are left for a package of this size"
            raise self.source.error(0, name, reason)
        if self._archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.source.error(0, name, "it is packed in another way than DEFLATE")
        self._budget -= entry.size_bytes
        try:
            with self._archive.open(name) as stream:
                data = stream.read(entry.size_bytes + 1)
        except ARCHIVE_ERRORS as error:
            raise _as_file_error(self.source, name, error) from error
        if len(data) != entry.size_bytes:
            raise self.source.error(0, name, f"{entry.size_bytes} B are declared, {len(data)} B are there")
        if name.endswith(".json"):
            self._check_values(name, data)
        return data

    def _check_values(self, name: str, text: bytes) -> None:
        """Refuse a text of more values than a package of this size may have in memory."""
        needed_bytes, most_bytes = values_bytes(text), UNPACKED_FACTOR * self.source.size_bytes + UNPACKED_BYTES
        if needed_bytes > most_bytes:
            reason = f"its values take {needed_bytes} B, {most_bytes} B at most are read of a package of this size"
            raise self.source.error(0, name, reason)

    def json(self, name: str) -> JsonObject:
        """Return the object in a text of the package.

        Raises
        ------
        ModelFileError
            As `read`; or it is no JSON object.
        """
        return parsed(self.file_of(name), self.read(name))

    def file_of(self, name: str) -> str:
        """Return how errors name an entry."""
        return f"{self.path}: {name}"

    def stored(self, name: str) -> ByteSource:
        """Return the place of an entry that is stored as it is, for reading without unpacking.

        Raises
        ------
        ModelFileError
            There is no such entry, it is packed or encrypted, or it does not lie inside the package.
        """
        entry, info = self._entry(name), self._archive.getinfo(name)
        if not entry.is_stored:
            raise self.source.error(info.header_offset, name, "it is packed; such entries are stored as they are")
        if info.flag_bits & _ENCRYPTED:
            raise self.source.error(info.header_offset, name, "it is encrypted; decrypt it before reading")
        head = self.source.read(info.header_offset, _LOCAL_HEADER.size, name)
        magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(head)
        if magic != OM2_MAGIC:
            raise self.source.error(info.header_offset, name, "its place in the archive holds something else")
        start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
        return self.source.range(start, entry.size_bytes, name)

    def _entry(self, name: str) -> Om2Entry:
        if name not in self.entries:
            raise self.source.error(0, name, "not in the package")
        return self.entries[name]

    def _list_entries(self) -> dict[str, Om2Entry]:
        found: dict[str, Om2Entry] = {}
        for info in self._archive.infolist():
            if info.filename in found:
                raise self.source.error(info.header_offset, info.filename, "the package has it twice")
            is_stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
            found[info.filename] = Om2Entry(info.filename, info.file_size, is_stored)
        return found

    def close(self) -> None:
        """Close the package; a second call does nothing. Views of data stay usable."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_om2(path: str | PathLike[str]) -> Om2Package:
    """Open an OM2 package for reading.

    Raises
    ------
    ModelFileError
        The path cannot be opened, or the file is no such package, of another version, or damaged. Nothing stays open.
    """
    source = ByteSource.of_file(path)
    try:
        return Om2Package(source)
    except BaseException:
        source.close()
        raise


def is_om2(path: str | PathLike[str]) -> bool:
    """Tell whether a file starts like an OM2 package; False for one that cannot be opened.

    Source: GE source, which looks at four bytes before anything else.
    """
    try:
        with open_named(path) as file:
            return file.read(len(OM2_MAGIC)) == OM2_MAGIC
    except (OSError, ValueError):
        return False


def _as_file_error(source: ByteSource, field: str, error: Exception) -> ModelFileError:
    if isinstance(error, ModelFileError):
        return error
    return source.error(0, field, f"a damaged archive: {error or type(error).__name__}")
