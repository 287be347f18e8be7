"""The side file of digests: what a folder of weights should hold, so that damage is seen before bytes are used.

The file is `digests.json` in the folder of the weights, a JSON object of one list::

    {"xxh3_128": [{"file": name, "offset": bytes, "length": bytes, "digest": hex}, ...]}

Regions are in the order of file and offset. A file is named without a directory: it lies beside the side file.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from gevar.errors import ModelFileError
from gevar.om.json_fields import strict_json
from gevar.om.source import ByteSource

DIGESTS_FILE: Final = "digests.json"
MAX_DIGESTS_BYTES: Final = 256 << 20
"""Longest side file that is read: more than a million regions."""
MAX_VALUES_BYTES: Final = 1 << 30
"""Most bytes of memory that the values of a list may take: those of more than a million regions, or contents."""
_LIST: Final = "xxh3_128"


@dataclass(frozen=True, slots=True)
class RegionDigest:
    """What a region of a file should hold: `length` bytes at `offset` with this xxh3 digest of 128 bits, in hex."""

    file: str
    offset: int
    length: int
    digest: str


def digests_text(digests: Iterable[RegionDigest]) -> bytes:
    """Return the bytes of a side file; equal regions give equal bytes."""
    rows = [asdict(one) for one in sorted(digests, key=lambda one: (one.file, one.offset, one.length))]
    return json.dumps({_LIST: rows}, indent=1).encode()


def parse_digests(data: bytes) -> list[RegionDigest]:
    """Return the regions of a side file, each once; what has another form is left out, and so are two that contradict.

    A name that has a directory in it is left out as well: nothing outside the folder is ever named. Of a text that
    `read_digests` refuses there are none.
    """
    try:
        rows = _rows(strict_json(data, MAX_VALUES_BYTES)) or []
    except ValueError:
        return []
    found = set(_regions(rows))
    digests = Counter((one.file, one.offset, one.length) for one in found)
    return [one for one in found if digests[one.file, one.offset, one.length] == 1]


def _rows(parsed: object) -> list[object] | None:
    """Return the list of a side file; None where it has none."""
    rows = parsed.get(_LIST) if isinstance(parsed, dict) else None
    return rows if isinstance(rows, list) else None


def _regions(rows: list[object]) -> list[RegionDigest]:
    """Return the rows that have the right form."""
    return [one for row in rows if (one := _region(row)) is not None]


def _region(row: object) -> RegionDigest | None:
    if not isinstance(row, dict):
        return None
    file, offset, length, digest = (row.get(name) for name in ("file", "offset", "length", "digest"))
    is_name = isinstance(file, str) and file not in ("", ".", "..") and "/" not in file and "\0" not in file
    if not is_name or not isinstance(digest, str) or type(offset) is not int or type(length) is not int:
        return None
    return RegionDigest(str(file), offset, length, digest.lower()) if offset >= 0 and length >= 0 else None


def read_digests(path: str | Path, folder: Path | None = None) -> list[RegionDigest]:
    """Return the regions of a side file, each once, in the order of file and offset; all must have the right form.

    Parameters
    ----------
    path
        The file.
    folder
        Folder that no link leads out of; None where the file may be a link.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is longer than 256 MiB, is no side file, a region in it has another form, or there
        are two digests for one region.
    """
    source = ByteSource.of_file(path) if folder is None else ByteSource.of_file_in(folder, Path(path))
    try:
        if source.size_bytes > MAX_DIGESTS_BYTES:
            raise source.error(0, "digests", f"takes {source.size_bytes} B, {MAX_DIGESTS_BYTES} B at most are read")
        data = source.read(0, source.size_bytes, "digests")
    finally:
        source.close()
    try:
        rows = _rows(strict_json(data, MAX_VALUES_BYTES))
    except ValueError as error:
        raise ModelFileError(Path(path), 0, "digests", f"is no list of {_LIST} digests: {error}") from error
    if rows is None:
        raise ModelFileError(Path(path), 0, "digests", f"is no list of {_LIST} digests; export the weights again")
    found = _regions(rows)
    if len(found) < len(rows):
        reason = f"only {len(found)} regions in it have the right form, of {len(rows)}; export the weights again"
        raise ModelFileError(Path(path), 0, "digests", reason)
    ordered = sorted(set(found), key=lambda one: (one.file, one.offset, one.length))
    for one, other in pairwise(ordered):
        if (one.file, one.offset, one.length) == (other.file, other.offset, other.length):
            reason = f"there are two digests for {one.length} B at {one.offset} of {one.file:.60}; export it again"
            raise ModelFileError(Path(path), 0, "digests", reason)
    return ordered
