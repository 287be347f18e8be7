"""Tensors with names, from the files that people keep weights in: safetensors, npz, npy, ONNX, external weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from gevar.align import INT64_MAX
from gevar.om.stored_bytes import Content
from gevar.types.data_type import DataType

_SHOWN_DIMS: Final = 8
ENDINGS: Final = (".safetensors", ".safetensors.index.json", ".npz", ".npy", ".onnx")
"""How the names of files of tensors end; those of external weights are known as a whole."""


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor of a file: its name, element type, shape and bytes. `data` of a large one is read when it is used."""

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    data: Content

    def fills(self, element_bytes: int) -> bool:
        """Tell whether the bytes are those of the shape, of elements of so many bytes."""
        try:
            return declared_bytes(self.shape, element_bytes) == self.data.nbytes
        except ValueError:
            return False


def declared_bytes(shape: Sequence[object], element_bytes: int) -> int:
    """Return how many bytes a tensor takes by the shape that a file states, which may be any.

    Raises
    ------
    ValueError
        A dimension is no number from 0 to 2^63 - 1, or the bytes are no such number.
    """
    size_bytes, is_empty = element_bytes, False
    for dim in shape:
        if type(dim) is not int or not 0 <= dim <= INT64_MAX:
            raise ValueError(f"a dimension of its shape is {dim!r:.60}, no number from 0 to {INT64_MAX}")
        is_empty |= dim == 0
        size_bytes = min(size_bytes * (dim or 1), INT64_MAX + 1)
    if size_bytes > INT64_MAX and not is_empty:
        raise ValueError(f"its shape takes more than {INT64_MAX} B")
    return 0 if is_empty else size_bytes


def shown_shape(shape: Sequence[int]) -> str:
    """Return a shape for a message, cut where it is long."""
    shown = ", ".join(map(str, shape[:_SHOWN_DIMS]))
    return f"[{shown}]" if len(shape) <= _SHOWN_DIMS else f"[{shown}, …] of {len(shape)} dimensions"


def read_tensors(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the tensors of a safetensors, npz, npy or ONNX file, by the ending of its name.

    Of an index (`.safetensors.index.json`) those of all files that it names, which lie beside it. A file of external
    weights is known by its name, see `gevar.om.file_constant_file`.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, or has a tensor of a type that GE does not know.
    ValueError
        The name ends otherwise.
    ModuleNotFoundError
        An ONNX file needs the package onnx, which is not installed.
    """
    from gevar.om.file_constant_file import is_file_constant_file, read_file_constant_file
    from gevar.om.npz_file import read_npy, read_npz
    from gevar.om.onnx_file import read_onnx
    from gevar.om.safetensors_file import read_safetensors, read_safetensors_index

    readers = (read_safetensors, read_safetensors_index, read_npz, read_npy, read_onnx)
    for ending, reader in zip(ENDINGS, readers, strict=True):
        if Path(path).name.lower().endswith(ending):
            return reader(path)
    if is_file_constant_file(path):
        return read_file_constant_file(path)
    raise ValueError(f"{Path(path).name!r} is none of {', '.join(ENDINGS)}; convert it to one of these")


def is_tensor_file(path: str | PathLike[str]) -> bool:
    """Tell whether a name is like that of a file that `read_tensors` reads."""
    from gevar.om.file_constant_file import is_file_constant_file

    return Path(path).name.lower().endswith(ENDINGS) or is_file_constant_file(path)


def write_tensors(path: str | PathLike[str], tensors: list[NamedTensor]) -> dict[str, NamedTensor]:
    """Write tensors as a safetensors or npz file, by the ending of its name.

    A type that such a file does not have is written as raw bytes (one dimension of 8-bit integers); a safetensors
    file says the type and shape in its metadata.

    Parameters
    ----------
    path
        The file; one that exists is replaced.
    tensors
        What to write; names must differ.

    Returns
    -------
    dict
        The tensors that were written as raw bytes, by name.

    Raises
    ------
    ValueError
        The name ends otherwise; two tensors have one name.
    OSError, ModelFileError
        The file cannot be written, or the bytes of a tensor cannot be read.

    After failure: `path` is as it was before; nothing else is left.
    """
    from gevar.om.npz_file import write_npz
    from gevar.om.safetensors_file import write_safetensors

    twice = [name for name, times in Counter(tensor.name for tensor in tensors).items() if times > 1]
    if twice:
        raise ValueError(f"two tensors are named {twice[0]!r:.60}; give each a name of its own")
    suffix = Path(path).suffix.lower()
    if suffix == ".safetensors":
        return write_safetensors(Path(path), tensors)
    if suffix == ".npz":
        return write_npz(Path(path), tensors)
    raise ValueError(f"{Path(path).name!r} is neither .safetensors nor .npz; give it one of these endings")
