"""External weights: what a FileConstant says about its bytes, and the file that has them.

A node names its file in one of three ways, the first that is there counts: `location`, with `offset` and `length`; the
path `file_path`; a `file_id`, whose path is in the option ``ge.exec.value_bins``. The directory in a `location` does
not count: the file lies in the weight directory. No name leads out of the directories that are allowed.

Source: GE source, base/common/file_constant_utils/file_constant_utils.cc.
Differs: edges 31 and 32 of docs/differences.md.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gevar.errors import FormatError, LoadError, SizeOverflowError, VariableError
from gevar.status import FAILED, PARAM_INVALID
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var import VarOp
from gevar.weights.file_region import FileRegion

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
        Stored size of the output, padding included.
    tensor_bytes : int
        Bytes of the tensor; the stored size where shape and type do not tell.
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
            The length is larger than the output (status PARAM_INVALID).
        LoadError
            The file ends before the bytes do.
        """
        if self.length > self.size_bytes:
            reason = f"its length of {self.length} B is larger than its output of {self.size_bytes} B"
            raise VariableError(self.name, reason, status=PARAM_INVALID)
        self.check_room(file.path, file.size_bytes)
        rest = file.size_bytes - self.offset
        return FileRegion(file.path, self.offset, self.length or min(self.size_bytes, max(rest, 0)))

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


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file of weights, as it was when it was looked at.

    Attributes
    ----------
    path : Path
        Its real path.
    size_bytes : int
        Its size.
    state : tuple of int
        Device, number and time of change: another state is another file.
    """

    path: Path
    size_bytes: int
    state: tuple[int, int, int]


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
        It names no file, or one that the option does not have (status FAILED); or an attribute has the wrong type, or
        offset or length is negative (status PARAM_INVALID).
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
    desc = op.output_desc[0]
    try:
        tensor_bytes = calc_tensor_mem_size(desc.shape, desc.format, desc.dtype)
    except (FormatError, SizeOverflowError):
        tensor_bytes = -1
    return FileConstantInfo(
        op.name, named_by, file, offset, length, desc.size, desc.size if tensor_bytes < 0 else tensor_bytes
    )


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


class WeightDirectory:
    """Where the files of a model's weights may lie.

    Parameters
    ----------
    given
        Directory that the caller names; None for the folder `weight` beside the model.
    model_path
        File of the model; None when its bytes are in memory.

    Raises
    ------
    LoadError
        The directory that was given is not there.
    """

    def __init__(self, given: str | os.PathLike[str] | None, model_path: Path | None) -> None:
        model_dir = None if model_path is None else Path(os.path.realpath(model_path)).parent
        self.path: Path | None = None if model_dir is None else Path(os.path.realpath(model_dir / "weight"))
        if given is not None:
            self.path = Path(os.path.realpath(given))
            if not self.path.is_dir():
                raise LoadError(os.fspath(given), 0, 0, 0, "the weight directory is not there", status=FAILED)
        self._allowed = [folder for folder in (self.path, model_dir) if folder is not None]
        self._found: dict[tuple[str, str], WeightFile] = {}

    def find(self, info: FileConstantInfo) -> WeightFile:
        """Return the file of a weight; each file is looked at once.

        Raises
        ------
        LoadError
            The file leads out of the directories that are allowed, is not there, is no regular file, or no weight
            directory is known (status FAILED). Nothing was opened.
        """
        key = (info.named_by, info.file)
        if key not in self._found:
            self._found[key] = self._look_at(info)
        return self._found[key]

    def _look_at(self, info: FileConstantInfo) -> WeightFile:
        path = self._path(info)
        try:
            real = Path(os.path.realpath(path))
            found = real.stat()
        except (OSError, ValueError) as error:
            raise _refused(info, path, f"cannot be opened: {error}") from error
        if info.named_by != FILE_ID and not any(real.is_relative_to(folder) for folder in self._folders(info)):
            raise _refused(info, path, f"leads to {real}, outside the directories of the weights; copy it there")
        if not stat.S_ISREG(found.st_mode):
            raise _refused(info, path, "is no regular file")
        return WeightFile(real, found.st_size, (found.st_dev, found.st_ino, found.st_mtime_ns))

    def _path(self, info: FileConstantInfo) -> Path:
        if info.named_by == FILE_ID:
            return Path(info.file)
        if ".." in info.file.split("/") or "\0" in info.file:
            raise _refused(info, info.file, "leads out of the directory of the weights")
        if info.named_by == FILE_PATH:
            return Path(info.file)
        if self.path is None:
            raise _refused(info, info.file, "no directory is known for a model from memory; give weight_dir")
        if info.base_name in ("", "."):
            raise _refused(info, info.file, "names no file")
        return self.path / info.base_name

    def _folders(self, info: FileConstantInfo) -> list[Path]:
        """Directories that a file may lie in: a path counts from the working directory, too."""
        return self._allowed[:1] if info.named_by == LOCATION else [*self._allowed, Path(os.path.realpath("."))]


def _refused(info: FileConstantInfo, path: Path | str, reason: str) -> LoadError:
    text = f"the file of weight {info.name} {reason}"
    return LoadError(path, info.offset, info.needed_bytes, 0, text, status=FAILED)
