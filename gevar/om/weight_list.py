"""The lists of what a folder of external weights holds: which content lies where, and the digests of regions.

The list of GE is `meta.json`; that of digests is in `gevar.om.weight_digests`.

::

    {"hash_to_weight_file": {hash: path}, "hash_to_weight_offset": {hash: offset, mode 2 only}}

A hash is the SHA-256 of the content. Of a path only the name of the file counts: no list leads out of its folder.

Source: GE source, base/common/file_constant_utils.
Differs: edges 34 and 35 of docs/differences.md.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, Self, TypeVar

from gevar.om.atomic_file import is_draft
from gevar.om.json_fields import values_bytes
from gevar.om.weight_digests import DIGESTS_FILE, MAX_VALUES_BYTES, RegionDigest, digests_text, parse_digests

if TYPE_CHECKING:
    from gevar.om.weight_folder import WeightFolder

T = TypeVar("T")
META_FILE: Final = "meta.json"
_FILES, _OFFSETS = "hash_to_weight_file", "hash_to_weight_offset"
_INDENT: Final = 4
LISTS: Final = (META_FILE, DIGESTS_FILE)
COMBINED: Final = "weight_combined"
_COMBINED_NAME: Final = re.compile(rf"(?:[^/\0\ud800-\udfff]*_)?{COMBINED}")
MAX_LIST_BYTES: Final = 256 << 20
"""Longest list that is read: more than a million contents."""


def is_combined_file(name: str) -> bool:
    """Tell whether a name is that of a file of several contents, which a model can name."""
    return _COMBINED_NAME.fullmatch(name) is not None


def is_own_name(name: str) -> bool:
    """Tell whether a name in a folder is for its lists, or for what is being written there."""
    return name in LISTS or is_draft(name)


@dataclass(slots=True)
class WeightList:
    """What a list says: paths of files and offsets by hash; `is_sound` tells whether all of it had the right form."""

    files: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    is_sound: bool = True

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the entries that have the right form, whatever else is there.

        There are none where the bytes are no JSON, or its values would take more than 1 GiB of memory.
        """
        if values_bytes(data) > MAX_VALUES_BYTES:
            return cls(is_sound=False)
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return cls(is_sound=False)
        if not isinstance(found, dict):
            return cls(is_sound=False)
        files, offsets = _entries(found.get(_FILES), str), _entries(found.get(_OFFSETS), int)
        return cls(files, offsets, (found.get(_FILES), found.get(_OFFSETS)) == (files, offsets))

    def to_bytes(self) -> bytes:
        """Return the bytes of the file; equal lists give equal bytes."""
        return json.dumps({_FILES: self.files, _OFFSETS: self.offsets}, indent=_INDENT, sort_keys=True).encode()

    def name(self, sha256: str) -> str:
        """Return the name of the file that has a content, without its folder; "" where the list has no such entry."""
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
        self.contents = WeightList.parse(folder.read(META_FILE))
        self._is_changed = not self.contents.is_sound
        self._added: set[str] = set()
        self._anew: dict[str, int] = {}  # from which offset on a file has other bytes than before
        self._digests: dict[str, dict[int, RegionDigest]] = {}

    def begin(self, name: str, offset: int = 0) -> None:
        """Say that a file has been written from an offset on; what was listed of it there does not hold any more."""
        self._anew.setdefault(name, offset)

    def add(self, sha256: str, name: str, offset: int | None = None) -> None:
        """Say where a content lies; the offset is that of a file that has several."""
        self.contents.files[sha256] = str(self._folder.path / name)
        self.contents.offsets.pop(sha256, None)
        if offset is not None:
            self.contents.offsets[sha256] = offset
        self._added.add(sha256)
        self._is_changed = True

    def add_digest(self, region: RegionDigest) -> None:
        """Say what a region holds; what is listed of regions that run into it does not hold any more."""
        self._digests.setdefault(region.file, {})[region.offset] = region

    def write(self) -> None:
        """Write what has changed; it is taken back like other files of the folder.

        Raises
        ------
        OSError
            A list cannot be read or written, or is no regular file.
        """
        self._folder.sync()
        self._drop_what_is_no_more()
        if self._is_changed:
            self._folder.replace(META_FILE, self.contents.to_bytes())
        before = self._folder.read(DIGESTS_FILE)
        known = parse_digests(before)
        added = {name: [regions[offset] for offset in sorted(regions)] for name, regions in self._digests.items()}
        kept = [one for one in known if self._is_kept(one) and not _runs_into(one, added.get(one.file, ()))]
        text = digests_text([*kept, *chain.from_iterable(added.values())])
        if text != before and (before or added):
            self._folder.replace(DIGESTS_FILE, text)

    def _drop_what_is_no_more(self) -> None:
        """Forget contents that were listed in a place where a file has other bytes now."""
        contents = self.contents
        for sha256 in contents.files.keys() - self._added if self._anew else ():
            start = self._anew.get(contents.name(sha256))
            if start is not None and contents.offsets.get(sha256, 0) >= start:
                del contents.files[sha256]
                contents.offsets.pop(sha256, None)

    def _is_kept(self, one: RegionDigest) -> bool:
        """Tell whether a file has the bytes of a region that was listed before still."""
        start = self._anew.get(one.file)
        return start is None or one.offset + one.length <= start


def _runs_into(one: RegionDigest, others: Sequence[RegionDigest]) -> bool:
    """Tell whether a region has a byte, or its start, in one of others, which are in order and apart."""
    at = bisect_right(others, one.offset, key=lambda other: other.offset)
    is_in_last = at > 0 and others[at - 1].offset + max(others[at - 1].length, 1) > one.offset
    return is_in_last or (at < len(others) and others[at].offset < one.offset + one.length)


def _entries(found: object, cls: type[T]) -> dict[str, T]:
    """Return the entries of a JSON object whose values are of one type."""
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in items if type(value) is cls}
