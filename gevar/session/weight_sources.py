"""Files that have weights: files of tensors, known by their names, and OM files with all their tensors, of any name."""

from collections import Counter
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Final, Self

from gevar.errors import ModelFileError
from gevar.om import open_om
from gevar.om.named_tensor import ENDINGS, NamedTensor, is_tensor_file
from gevar.om.stored_bytes import are_equal, digest_of
from gevar.om.weight_source import TensorFile, WeightSource
from gevar.session.tensor_contents import TensorContent, tensor_contents

_OM_ENDING: Final = ".om"


class OmWeights:
    """The tensors of an OM file: constants, external ones too, and what variables start with.

    Parameters
    ----------
    path
        The file.
    weight_dir
        Folder of external weights; None for `weight` beside the file.
    bundle
        Whether the file is read as a bundle of models.

    Raises
    ------
    ModelFileError
        The file cannot be opened or is damaged.
    """

    def __init__(
        self, path: str | PathLike[str], weight_dir: str | PathLike[str] | None = None, *, bundle: bool = False
    ) -> None:
        self.path = Path(path)
        self._weight_dir = weight_dir
        self._om = open_om(path, kind="bundle" if bundle else "model")

    def tensors(self) -> list[NamedTensor]:
        """Return the tensors that have bytes, by unique names.

        A tensor that several models of the file have is there once; one that only has the name of another gets the
        name of its model in front.

        Raises
        ------
        ModelFileError, VariableError, LoadError
            As `gevar.session.tensor_contents.tensor_contents`.
        """
        found: dict[str, NamedTensor] = {}
        others: dict[tuple[str, object], NamedTensor] = {}  # by the name that was looked for and the content
        times = Counter[str]()
        for content in tensor_contents(self._om, self._weight_dir):
            if content.data is None:
                continue
            tensor = _named(content, content.name)
            first = found.setdefault(tensor.name, tensor)
            if first is tensor or _same(first, tensor):
                continue
            name = f"{content.tensor.model.name}/{tensor.name}"
            key = name, (tensor.dtype, tensor.shape, digest_of(tensor.data))
            if key in others and _same(others[key], tensor):
                continue
            unique = name
            while unique in found:
                times[name] += 1
                unique = f"{name}/{times[name]}" if times[name] > 1 else name
            found[unique] = others[key] = replace(tensor, name=unique)
        return list(found.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._om.close()


def open_weights(
    path: str | PathLike[str], weight_dir: str | PathLike[str] | None = None, *, bundle: bool = False
) -> WeightSource:
    """Open a file of tensors, known by its name, or else an OM file; use it with `with`.

    Raises
    ------
    ModelFileError
        The file cannot be opened or is damaged.
    ModuleNotFoundError
        An ONNX file needs the package onnx, which is not installed.
    """
    if is_tensor_file(path):
        return TensorFile(path)
    try:
        return OmWeights(path, weight_dir, bundle=bundle)
    except ModelFileError as error:
        if Path(path).suffix.lower() != _OM_ENDING:
            error.add_note(f"files of tensors end in {', '.join(ENDINGS)}")
        raise


def _named(content: TensorContent, name: str) -> NamedTensor:
    assert content.data is not None  # the caller looked
    desc = content.tensor.desc
    return NamedTensor(name, desc.dtype, desc.shape, content.data)


def _same(one: NamedTensor, other: NamedTensor) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and are_equal(one.data, other.data)
