"""External weights: what a FileConstant says about its bytes.

A node names its file in one of three ways, the first that is there counts: `location`, with `offset` and `length`; the
path `file_path`; a `file_id`, whose path is in the option ``ge.exec.value_bins``. The directory in a `location` does
not count: the file lies in the weight directory, see `gevar.weights.weight_directory`.

Source: GE source, base/common/file_constant_utils/file_constant_utils.cc.
Differs: edges 31 and 32 of docs/differences.md.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gevar.align import INT64_MAX
from gevar.errors import FormatError, LoadError, SizeOverflowError, VariableError
from gevar.status import FAILED, PARAM_INVALID
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var import VarOp
from gevar.weights.file_region import FileRegion

if TYPE_CHECKING:
    from gevar.weights.weight_directory import WeightFile

LOCATION: Final = "location"
FILE_PATH: Final = "file_path"
FILE_ID: Final = "file_id"
"""Attributes of a FileConstant that name its file, in the order in which they count."""


@dataclass(frozen=True, slots=True)
class FileConstantInfo:
    """What a FileConstant says about its bytes.

    Attributes
    ----------
    name : str
        Name of the node.
    named_by : str
        Attribute that names the file: `LOCATION`, `FILE_PATH` or `FILE_ID`.
    file : str
        The file as it is named; for `FILE_ID` its path in the option.
    offset, length : int
        Place of the bytes in the file; a length of 0 means as many as the tensor has.
    size_bytes : int
        Stored size of the output, padding included; the bytes of the tensor where none is stored.
    tensor_bytes : int
        Bytes of the tensor; the stored size where shape, format and type do not tell.
    """

    name: str
    named_by: str
    file: str
    offset: int
    length: int
    size_bytes: int
    tensor_bytes: int

    @property
    def base_name(self) -> str:
        """Name of the file without its directory."""
        return self.file.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Directory of the file as it is named; "" where it has none."""
        folder = posixpath.normpath(posixpath.dirname(self.file))
        return "" if folder == "." else folder

    @property
    def alloc_bytes(self) -> int:
        """Device memory for a block of its own."""
        return max(self.size_bytes, self.tensor_bytes, self.length)

    @property
    def needed_bytes(self) -> int:
        """Bytes that the file must have from the offset on."""
        return self.length or min(self.tensor_bytes, self.size_bytes)

    def region(self, file: "WeightFile") -> FileRegion:
        """Return the bytes that a block of its own is filled with.

        Without a length that is the stored size as far as the file goes, as in GE; it must have the tensor.

        Raises
        ------
        VariableError
            The length is larger than the output; or it, or the output where there is none, is smaller than the tensor,
            whose end would be what was in memory before (status PARAM_INVALID).
        LoadError
            The file ends before the bytes do.
        """
        if self.length > self.size_bytes:
            reason = f"its length of {self.length} B is larger than its output of {self.size_bytes} B"
            raise VariableError(self.name, reason, status=PARAM_INVALID)
        self.check_room(file.path, file.size_bytes)
        asked_bytes = self.length or self.size_bytes
        if asked_bytes < self.tensor_bytes:
            what = f"{'length' if self.length else 'output'} of {asked_bytes} B at {self.offset} of {file.path}"
            reason = f"its {what} is smaller than its tensor of {self.tensor_bytes} B"
            raise VariableError(self.name, reason, status=PARAM_INVALID)
        rest = file.size_bytes - self.offset
        return FileRegion(file.path, self.offset, self.length or min(self.size_bytes, max(rest, 0)), file.state)

    def check_room(self, where: Path | str, present_bytes: int) -> None:
        """Refuse a file, or memory in its place, that ends before the bytes do.

        Raises
        ------
        LoadError
            It does; names file, offset, length and size.
        """
        if self.needed_bytes and self.offset + self.needed_bytes > present_bytes:
            got = max(0, present_bytes - self.offset)
            reason = f"weight {self.name} passes the end, there are {present_bytes} B"
            raise LoadError(where, self.offset, self.needed_bytes, got, reason)


def file_constant_info(op: VarOp, paths_by_id: Mapping[str, str]) -> FileConstantInfo:
    """Return what a FileConstant says about its bytes.

    Parameters
    ----------
    op
        The node, with its output.
    paths_by_id
        Files by `file_id`, see `value_bins`.

    Raises
    ------
    VariableError
        It names no file, or one that the option does not have (status FAILED); or an attribute has the wrong type,
        offset, length or stored size is negative, or the tensor has more than 2**63 - 1 bytes (status PARAM_INVALID).
    """
    named_by, file = _file_name(op, paths_by_id)
    offset = length = 0
    if named_by == LOCATION:
        try:
            offset, length = op.int_attr("offset", 0), op.int_attr("length", 0)
        except ValueError as error:
            raise VariableError(op.name, str(error), status=PARAM_INVALID) from error
    if offset < 0 or length < 0:
        reason = f"its bytes are {length} B at {offset} of {file}: give numbers from 0"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    stored_bytes = op.output_desc[0].size
    if stored_bytes < 0:
        reason = f"the stored size of its output is {stored_bytes} B: give a number from 0"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    tensor_bytes = _tensor_bytes(op, stored_bytes)
    return FileConstantInfo(op.name, named_by, file, offset, length, stored_bytes or tensor_bytes, tensor_bytes)


def _tensor_bytes(op: VarOp, stored_bytes: int) -> int:
    """Bytes of the tensor; the stored size where a dimension is unknown, or format or type has no bytes to count."""
    desc = op.output_desc[0]
    try:
        tensor_bytes = calc_tensor_mem_size(desc.shape, desc.format, desc.dtype)
    except FormatError:
        return stored_bytes
    except SizeOverflowError as error:
        raise VariableError(op.name, str(error), status=PARAM_INVALID) from error
    if tensor_bytes >= 0:
        return tensor_bytes
    if desc.dtype.element_bits is not None and min(desc.shape, default=0) >= 0:
        reason = f"{desc.dtype.name} of shape {list(desc.shape)} has more than {INT64_MAX} B"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    return stored_bytes


def _file_name(op: VarOp, paths_by_id: Mapping[str, str]) -> tuple[str, str]:
    for attr in (LOCATION, FILE_PATH, FILE_ID):
        value = op.attrs.get(attr, "")
        if not isinstance(value, str):
            raise VariableError(op.name, f"attribute {attr} is {value!r:.60}: give text", status=PARAM_INVALID)
        if value and attr != FILE_ID:
            return attr, value
        if value:
            if not paths_by_id.get(value):
                reason = f"option ge.exec.value_bins has no file for its file_id {value!r}"
                raise VariableError(op.name, reason, status=FAILED)
            return attr, paths_by_id[value]
    raise VariableError(op.name, f"it names no file: none of {LOCATION}, {FILE_PATH}, {FILE_ID}", status=FAILED)
