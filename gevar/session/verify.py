"""Compare what is on the device with the file, both read anew."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acl_shim import Device
from gevar.errors import ModelFileError
from gevar.om.om_file import Kind
from gevar.session.file_tensors import ModelSource, file_tensors, open_model
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.placing_models import PlacedTensor
from gevar.session.weight_content import WeightContent, content_bytes, first_difference


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte of a tensor that differs, counted from the tensor's start."""

    name: str
    offset: int
    in_file: int
    on_device: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of a comparison.

    Attributes
    ----------
    tensors, size_bytes
        How many tensors were compared, and their bytes.
    differences
        The first difference of each tensor that has one.
    """

    tensors: int
    size_bytes: int
    differences: tuple[Difference, ...]


def verify_tensors(model: ModelSource, kind: Kind, placed: Sequence[PlacedTensor], device: Device) -> VerifyReport:
    """Open a model again, read the bytes of each tensor with `pread`, and compare them with the device's.

    External weights are read from their files.

    Raises
    ------
    ModelFileError
        The model has other tensors than `placed`.
    LoadError
        The file cannot be read, or became shorter.
    AclError
        A copy from the device was refused.
    """
    om, path = open_model(model, kind)
    with om:
        found = list(file_tensors(om))
        if [tensor.node.name for tensor in found] != [one.row.name for one in placed]:
            raise ModelFileError(om.path, None, "tensors", "not those that were loaded; load the file again")
        contents = ((one.row, one.region or tensor.content(path)) for tensor, one in zip(found, placed, strict=True))
        return compare_tensors(contents, device)


def compare_tensors(pairs: Iterable[tuple[LoadedTensor, WeightContent | None]], device: Device) -> VerifyReport:
    """Compare tensors with what the device has; one without content, or without bytes on the device, is passed over.

    Raises
    ------
    LoadError, ModelFileError
        The bytes of one cannot be read.
    AclError
        A copy from the device was refused.
    """
    tensors = size_bytes = 0
    differences: list[Difference] = []
    for row, content in pairs:
        if content is None or not row.size_bytes or row.dev_addr is None:
            continue
        tensors += 1
        size_bytes += content_bytes(content)
        difference = first_difference(content, device, row.dev_addr)
        if difference is not None:
            differences.append(Difference(row.name, *difference))
    return VerifyReport(tensors, size_bytes, tuple(differences))
