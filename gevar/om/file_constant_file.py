"""Files of external weights by themselves, as export writes them for the FileConstants of models.

A file of one content, `weight_<SHA-256>`, is one tensor. A combined file, `<prefix>_weight_combined`, has a tensor for
each region that `digests.json` beside it lists, named by its offset, and its length where several begin there; it is
one tensor where nothing is listed. Types and shapes are with
the models, so each tensor is a row of bytes. Bytes that are read to the end are compared with the SHA-256 in the name
of the file, or with the digest that is listed.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Final, Protocol

import xxhash

from gevar.om.named_tensor import NamedTensor
from gevar.om.sha256_text import SHA256_TEXT, is_sha256_text
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import StreamedBytes
from gevar.om.weight_digests import DIGESTS_FILE, read_digests
from gevar.om.weight_list import is_combined_file
from gevar.types.data_type import DataType

_INDIVIDUAL: Final = re.compile(rf"weight_({SHA256_TEXT})")


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


def is_file_constant_file(path: str | PathLike[str]) -> bool:
    """Tell whether a name is that of a file of external weights."""
    name = Path(path).name
    return _INDIVIDUAL.fullmatch(name) is not None or is_combined_file(name)


def read_file_constant_file(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the tensors of a file, in the order of their bytes.

    Raises
    ------
    ModelFileError
        The file cannot be opened, the list beside it is damaged, or a region of the list leaves the file.
    """
    source, name = ByteSource.of_file(path), Path(path).name
    found = _INDIVIDUAL.fullmatch(name)
    if found is not None:
        return [_tensor(name, source, 0, source.size_bytes, hashlib.sha256, found[1], is_sha256_text)]
    folder = Path(os.path.realpath(path)).parent
    side = folder / DIGESTS_FILE
    listed = read_digests(side, folder) if os.path.lexists(side) else []
    regions = [one for one in listed if one.file == name]
    at = Counter(one.offset for one in regions)
    tensors = [
        _tensor(
            f"{name}@{one.offset}" + (f"+{one.length}" if at[one.offset] > 1 else ""),
            source,
            one.offset,
            one.length,
            xxhash.xxh3_128,
            one.digest,
            _is_hex,
        )
        for one in regions
    ]
    return tensors or [_tensor(name, source, 0, source.size_bytes, None, "", _is_hex)]


def _is_hex(text: str, digest: bytes) -> bool:
    return text == digest.hex()


def _tensor(
    name: str,
    source: ByteSource,
    offset: int,
    size_bytes: int,
    new_hash: Callable[[], _Hash] | None,
    wanted: str,
    is_text_of: Callable[[str, bytes], bool],
) -> NamedTensor:
    what = f"weight {name}"
    plain = StreamedBytes.of_source(source.range(offset, size_bytes, what), 0, size_bytes, what)

    def read() -> Iterator[bytes]:
        if new_hash is None:
            yield from plain.open()
            return
        digest = new_hash()
        for chunk in plain.open():
            digest.update(chunk)
            yield chunk
        if not is_text_of(wanted, digest.digest()):
            raise source.error(offset, what, f"has the digest {digest.digest().hex()}, not {wanted}: it is damaged")

    data = StreamedBytes(size_bytes, read, plain.source, plain.offset)
    return NamedTensor(name, DataType.DT_UINT8, (size_bytes,), data)
