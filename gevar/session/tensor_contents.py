"""The tensors of an OM file with their bytes, wherever these are: in the file, in its messages, in files of weights."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from gevar.om import OmFile, StreamedBytes
from gevar.om.node import FILECONSTANT
from gevar.om.sha256_text import SHA256_TEXT, is_sha256_text
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Content, chunks_of
from gevar.session.file_tensors import FileTensor, file_tensors
from gevar.weights import FileRegion, WeightDirectory, file_constant_info

_EXTERNAL_NAME: Final = re.compile(rf"(.+)_({SHA256_TEXT})", re.DOTALL)
"""Name of a FileConstant that was a constant: its name then, and the SHA-256 of its bytes."""


@dataclass(frozen=True, slots=True)
class TensorContent:
    """A tensor and its bytes; `data` is None for one that starts with nothing, or that the caller brings."""

    tensor: FileTensor
    data: Content | None

    @property
    def name(self) -> str:
        """Name of the tensor; without the digest in that of an external one, where it is that of the bytes.

        The bytes are read for that.
        """
        name = self.tensor.node.name
        found = _EXTERNAL_NAME.fullmatch(name) if self.tensor.node.type == FILECONSTANT else None
        if found is None or self.data is None:
            return name
        digest = hashlib.sha256()
        for chunk in chunks_of(self.data):
            digest.update(chunk)
        return found[1] if is_sha256_text(found[2], digest.digest()) else name


def tensor_contents(om: OmFile, weight_dir: str | PathLike[str] | None) -> Iterator[TensorContent]:
    """Yield the tensors of an opened file, which must stay open while their bytes are read.

    Parameters
    ----------
    om
        The file.
    weight_dir
        Folder of external weights; None for `weight` beside the file.

    Raises
    ------
    ModelFileError, VariableError, LoadError
        The file is damaged, or an external weight is missing, too short or outside its folder.
    """
    path = Path(om.path)
    folder = WeightDirectory(weight_dir, path)
    sources = {path: om.source}
    for tensor in file_tensors(om):
        if tensor.node.type == FILECONSTANT:
            info = file_constant_info(tensor.var_op(), {})
            file = folder.find(info)
            info.check_room(file.path, file.size_bytes)
            sources.setdefault(file.path, ByteSource.of_known_file(file.path, file.state))
            found: FileRegion | memoryview | None = FileRegion(file.path, info.offset, info.needed_bytes, file.state)
        else:
            found = tensor.content(path)
        if isinstance(found, FileRegion):
            source, what = sources[found.path], f"tensor {tensor.node.name}"
            yield TensorContent(tensor, StreamedBytes.of_source(source, found.offset, found.size_bytes, what))
        else:
            yield TensorContent(tensor, found)
