"""The lists of what a folder of external weights holds: which content lies where, and the digests of regions.

The list of GE is `meta.json`; that of digests is in `gevar.om.weight_digests`.

::

    {"hash_to_weight_file": {hash: path}, "hash_to_weight_offset": {hash: offset, mode 2 only}}

A hash is the SHA-256 of the content. Of a path only the name of the file counts: no list leads out of its folder.

Source: GE source, base/common/file_constant_utils.
Differs: edges 34 and 35 of docs/differences.md.
"""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, TypeVar

from gevar.om.weight_digests import DIGESTS_FILE, RegionDigest, digests_text, parse_digests

if TYPE_CHECKING:
    from gevar.om.weight_folder import WeightFolder

T = TypeVar("T")
META_FILE: Final = "meta.json"
_FILES, _OFFSETS = "hash_to_weight_file", "hash_to_weight_offset"
_INDENT: Final = 4
MAX_LIST_BYTES: Final = 256 << 20
"""Longest list that is read: more than a million contents."""


@dataclass(slots=True)
class WeightList:
    """What a list says: paths of files and offsets by hash."""

    files: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """Return the entries that have the right form, whatever else is there; None where the bytes are no JSON."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return cls()
        return cls(_entries(found.get(_FILES), str), _entries(found.get(_OFFSETS), int))

    def to_bytes(self) -> bytes:
        """Return the bytes of the file; equal lists give equal bytes."""
        return json.dumps({_FILES: self.files, _OFFSETS: self.offsets}, indent=_INDENT, sort_keys=True).encode()

    def name(self, sha256: str) -> str:
        """Return the name of the file that has a content, without its folder; none where the list has no such entry."""
        return self.files.get(sha256, "").rpartition("/")[2]


class FolderLists:
    """Both lists of a folder that is locked, to be added to and written.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    OSError
        The list cannot be read, or is no regular file.
    """

    def __init__(self, folder: "WeightFolder") -> None:
        self._folder = folder
        found = WeightList.parse(folder.read(META_FILE))
        self.contents, self._is_changed = found or WeightList(), found is None
        self._digests: dict[tuple[str, int], RegionDigest] = {}

    def add(self, sha256: str, name: str, offset: int | None = None) -> None:
        """Say where a content lies; the offset is that of a file that has several."""
        self.contents.files[sha256] = str(self._folder.path / name)
        self.contents.offsets.pop(sha256, None)
        if offset is not None:
            self.contents.offsets[sha256] = offset
        self._is_changed = True

    def add_digest(self, region: RegionDigest) -> None:
        """Say what a region holds."""
        self._digests[region.file, region.offset] = region

    def write(self) -> None:
        """Write what has changed; it is taken back like other files of the folder.

        Raises
        ------
        OSError
            A list cannot be read or written, or is no regular file.
        """
        self._folder.sync()
        if self._is_changed:
            self._folder.replace(META_FILE, self.contents.to_bytes())
        known = {(one.file, one.offset): one for one in parse_digests(self._folder.read(DIGESTS_FILE))}
        if not self._digests.items() <= known.items():
            self._folder.replace(DIGESTS_FILE, digests_text([*(known | self._digests).values()]))


def _entries(found: object, cls: type[T]) -> dict[str, T]:
    """Return the entries of a JSON object whose values are of one type."""
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in items if type(value) is cls}
