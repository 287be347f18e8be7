"""Weights with names, whatever they lie in: the one face that commands take them by."""

from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from gevar.om.named_tensor import NamedTensor, read_tensors


class WeightSource(Protocol):
    """Something that has tensors with names; use it with `with`: large tensors are read from it while it is open."""

    @property
    def path(self) -> Path:
        """The file that names the tensors."""

    def tensors(self) -> list[NamedTensor]:
        """Return the tensors that have bytes, by names that differ.

        Raises
        ------
        ModelFileError, VariableError, LoadError
            What it lies in is damaged, missing, or leads out of its folder.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class TensorFile:
    """A safetensors file, an index of several, an npz, npy or ONNX file, or a file of external weights.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ModelFileError, ValueError, ModuleNotFoundError
        As `gevar.om.named_tensor.read_tensors`.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._tensors = read_tensors(path)

    def tensors(self) -> list[NamedTensor]:
        """Return the tensors of the file; their bytes are read when they are used."""
        return list(self._tensors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tensors = []
