"""Compare what is on the device with the file, both read anew."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acl_shim import Device
from gevar.errors import ModelFileError
from gevar.om.om_file import Kind
from gevar.session.file_tensors import ModelSource, file_tensors, open_model
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.placing_models import PlacedTensor
from gevar.weights import FileRegion, open_region, read_region

BLOCK_BYTES = 4 << 20
"""Bytes compared at a time."""


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
    tensors = size_bytes = 0
    differences: list[Difference] = []
    om, path = open_model(model, kind)
    with om, ExitStack() as stack:
        files: dict[Path, int] = {}
        found = list(file_tensors(om))
        if [tensor.node.name for tensor in found] != [one.row.name for one in placed]:
            raise ModelFileError(om.path, None, "tensors", "not those that were loaded; load the file again")
        for tensor, one in zip(found, placed, strict=True):
            content = one.region or tensor.content(path)
            if content is None or not one.row.size_bytes or one.row.dev_addr is None:
                continue
            if isinstance(content, FileRegion) and content.path not in files:
                files[content.path] = open_region(content, stack)
            difference = _compare(content, files, device, one.row)
            tensors += 1
            size_bytes += content.size_bytes if isinstance(content, FileRegion) else content.nbytes
            if difference is not None:
                differences.append(difference)
    return VerifyReport(tensors, size_bytes, tuple(differences))


def _compare(
    content: FileRegion | memoryview, files: Mapping[Path, int], device: Device, row: LoadedTensor
) -> Difference | None:
    """Return the first difference between a tensor in the file and on the device."""
    assert row.dev_addr is not None
    total = content.size_bytes if isinstance(content, FileRegion) else content.nbytes
    expected, actual = np.empty(min(total, BLOCK_BYTES), np.uint8), np.empty(min(total, BLOCK_BYTES), np.uint8)
    for start in range(0, total, BLOCK_BYTES):
        size = min(BLOCK_BYTES, total - start)
        if isinstance(content, FileRegion):
            read_region(files[content.path], content.path, content.offset + start, expected[:size].data)
        else:
            expected[:size] = np.frombuffer(content, np.uint8)[start : start + size]
        device.memcpy_out(actual[:size], row.dev_addr + start)
        unequal = np.flatnonzero(expected[:size] != actual[:size])
        if unequal.size:
            at = int(unequal[0])
            return Difference(row.name, start + at, int(expected[at]), int(actual[at]))
    return None
