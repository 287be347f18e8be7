"""The list of what a folder of external weights holds, `meta.json`: which content lies in which file, and where.

::

    {"hash_to_weight_file": {hash: path}, "hash_to_weight_offset": {hash: offset, mode 2 only}}

A hash is the SHA-256 of the content. Of a path only the name of the file counts: no list leads out of its folder.

Source: GE source, base/common/file_constant_utils.
Differs: edges 34 and 35 of docs/differences.md.
"""

import json
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

T = TypeVar("T")
META_FILE: Final = "meta.json"
_FILES, _OFFSETS = "hash_to_weight_file", "hash_to_weight_offset"
_INDENT: Final = 4


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


def _entries(found: object, cls: type[T]) -> dict[str, T]:
    """Return the entries of a JSON object whose values are of one type."""
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in items if type(value) is cls}
