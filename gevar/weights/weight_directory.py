"""Where the files of external weights may lie, and what they were when they were looked at.

No name leads out of the directories that are allowed: neither by its text, nor by a symbolic or hard link, nor by one
that comes in its place while it is looked at. The file is opened once, each folder on the way by its descriptor, and
what is told is of the open file; whoever reads it later compares.

Source: GE source, base/common/file_constant_utils/file_constant_utils.cc.
Differs: rows climbing-location, any-path, hard-link and same-name of docs/differences.md.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gevar.errors import LoadError, VariableError
from gevar.om.regular_file import FileState, file_state, open_inside, open_regular
from gevar.status import FAILED, PARAM_INVALID
from gevar.weights.file_constant import FILE_ID, FILE_PATH, LOCATION, FileConstantInfo

WEIGHT_FOLDER: Final = "weight"
"""Name of the folder beside a model that its external weights lie in."""


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file of weights, as it was when it was looked at.

    Attributes
    ----------
    path : Path
        Its real path.
    state : FileState
        What it was: another state is another file.
    """

    path: Path
    state: FileState

    @property
    def size_bytes(self) -> int:
        """Its size."""
        return self.state.size_bytes


class WeightDirectory:
    """Where the files of a model's weights may lie.

    Parameters
    ----------
    given
        Directory that the caller names; None for the folder `weight` beside the model, which is no link that leads out
        of the model's directory. Of a model in the root of the file system, that folder alone is allowed.
    model_path
        File of the model; None when its bytes are in memory.

    Attributes
    ----------
    path : Path or None
        The directory; None where none is known.

    Raises
    ------
    LoadError
        The directory that was given is not there.
    """

    def __init__(self, given: str | os.PathLike[str] | None, model_path: Path | None) -> None:
        model_dir = None if model_path is None else Path(os.path.realpath(model_path)).parent
        self.path: Path | None = None if model_dir is None else model_dir / WEIGHT_FOLDER
        if model_dir is not None and _has_every_file(model_dir):
            model_dir = self.path
        self._root = model_dir
        if given is not None:
            self.path = self._root = _real_directory(given)
        self._allowed = [folder for folder in (self._root, model_dir) if folder is not None]
        self._found: dict[tuple[str, str], WeightFile] = {}
        self._folders_by_name: dict[str, str] = {}
        self._given: dict[tuple[str, str], tuple[Path | None, str]] = {}

    def find(self, info: FileConstantInfo) -> WeightFile:
        """Return the file of a weight; each file is looked at once.

        Raises
        ------
        LoadError
            The file leads out of the directories that are allowed, is not there, or is no regular file; the model names
            another one that would be the same in the weight directory; or no weight directory is known (status FAILED).
        """
        key = (info.named_by, info.file)
        if key not in self._found:
            self._found[key] = self._look_at(info)
        return self._found[key]

    def check_given(self, info: FileConstantInfo) -> None:
        """Note that memory of the caller's holds the file of a weight; such memory goes by the file's name alone.

        Raises
        ------
        VariableError
            Another weight names another file of that name (status PARAM_INVALID).
        """
        path: Path | None = Path(os.path.normpath(Path.cwd() / info.file))
        places = [(FILE_PATH, path, info.folder or "the working directory")]
        if info.named_by == LOCATION:  # its folder does not count, but tells two files from each other
            places = [(LOCATION, path, info.folder)] if info.folder else []
            path = None if self.path is None else self.path / info.base_name
            places.append((FILE_PATH, path, "the weight directory"))
        for named_by, place, folder in places:
            known, known_folder = self._given.setdefault((named_by, info.base_name), (place, folder))
            if known != place:
                both = f"in {known_folder} and in {folder}"
                reason = f"memory is given for {info.base_name}, and there are two such files, {both}"
                raise VariableError(info.name, reason, status=PARAM_INVALID)

    def forget(self) -> None:
        """Look at every file anew from now on."""
        self._found.clear()
        self._folders_by_name.clear()
        self._given.clear()

    def _look_at(self, info: FileConstantInfo) -> WeightFile:
        path = self._path(info)
        try:
            real = Path(os.path.realpath(path))
            fd = open_regular(real, os.O_RDONLY) if info.named_by == FILE_ID else self._open(info, path, real)
        except (OSError, ValueError) as error:
            if isinstance(error, LoadError):
                raise
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise _refused(info, path, f"cannot be opened: {reason}") from error
        try:
            return WeightFile(real, file_state(os.fstat(fd)))
        finally:
            os.close(fd)

    def _open(self, info: FileConstantInfo, path: Path, real: Path) -> int:
        for root in self._roots(info):
            if real.is_relative_to(root):
                return open_inside(root, real)
        raise _refused(info, path, f"leads to {real}, outside the directories of the weights; copy it there")

    def _path(self, info: FileConstantInfo) -> Path:
        if info.named_by == FILE_ID:
            return Path(info.file)
        if ".." in info.file.split("/") or "\0" in info.file:
            raise _refused(info, info.file, "leads out of the directory of the weights")
        if info.named_by == FILE_PATH:
            return Path(info.file)
        if self.path is None:
            reason = "no directory is known for a model from memory; give weight_dir, or a graph ge.externalWeightDir"
            raise _refused(info, info.file, reason)
        if info.base_name in ("", "."):
            raise _refused(info, info.file, "names no file")
        if info.folder and (known := self._folders_by_name.setdefault(info.base_name, info.folder)) != info.folder:
            reason = f"has the name of one in {known}, and the weight directory has one file of it; give it another"
            raise _refused(info, info.file, reason)
        return self.path / info.base_name

    def _roots(self, info: FileConstantInfo) -> list[Path]:
        """Directories that a file may lie in; for a path also the working directory, unless every file is in there."""
        if info.named_by == LOCATION:
            return self._allowed[:1]
        here = Path(os.path.realpath("."))
        return self._allowed if _has_every_file(here) else [*self._allowed, here]


def _real_directory(given: str | os.PathLike[str]) -> Path:
    """Return the real path of a directory that the caller names."""
    name = os.fspath(given)
    if not os.path.isdir(name):  # noqa: PTH112 - pathlib raises for names that no directory can have
        raise LoadError(name, 0, 0, 0, "the weight directory is not there", status=FAILED)
    return Path(os.path.realpath(name))


def _has_every_file(folder: Path) -> bool:
    """Tell whether a folder is the root of the file system, in which nothing is outside."""
    return folder == folder.parent


def _refused(info: FileConstantInfo, path: Path | str, reason: str) -> LoadError:
    text = f"the file of weight {info.name} {reason}"
    return LoadError(path, info.offset, info.needed_bytes, 0, text, status=FAILED)
