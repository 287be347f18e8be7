"""Files of the model cache: the lock of a graph key, its index, and the names of entries.

All files of a key are written under its lock, each one complete or not at all, and the index last: an entry that the
index names is whole. A killed process leaves at most a draft, which the next holder of the lock removes, and files that
no index names. What the index names lies in the directory of the cache; no link in there leads out of it.

Source: GE source, compiler/graph/build/model_cache.cc.
"""

import fcntl
import json
import os
import re
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from gevar.errors import ModelFileError
from gevar.om.atomic_file import write_atomically
from gevar.om.regular_file import open_inside, open_regular, path_inside, read_whole
from gevar.status import FAILED, PARAM_INVALID

GRAPH_COMPILER_CACHE_DIR: Final = "ge.graph_compiler_cache_dir"
"""Option: directory of the cache, which exists."""
GRAPH_KEY: Final = "ge.graph_key"
"""Option: name of a graph in the cache, first part of the names of its files."""

MAX_JSON_BYTES: Final = 256 << 20
"""Longest index or configuration that is read: more than a million entries."""

_KEY: Final = re.compile(r"[A-Za-z0-9_\-]{1,128}")
_INDENT: Final = 4
_LIST, _ENTRY_KEY, _MODEL, _DESCS = "cache_file_list", "graph_key", "cache_file_name", "var_desc_file_name"
_MODEL_SUFFIX, _DESCS_SUFFIX, _INDEX_SUFFIX = ".om", ".rdcpkt", ".idx"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cached model: its file, and that of the descriptions of variables; None where there were no variables."""

    model: Path
    var_descs: Path | None = None


def cache_error(file: Path, field: str, reason: str, *, status: int = FAILED) -> ModelFileError:
    """Make the error for a file of the cache."""
    return ModelFileError(file, None, field, reason, status=status)


class CacheFiles:
    """The files of one graph key, held under an exclusive lock until `close`.

    Parameters
    ----------
    folder
        The cache directory.
    graph_key
        The key.

    Attributes
    ----------
    debug_mode, manual_check : bool
        What `cache.conf` says: whether nothing is saved, and a mark that nothing here reads.
    entries : list of CacheEntry
        What may be loaded, in the order of the index.

    Raises
    ------
    ModelFileError
        The directory is not there, or the key is no part of a file name (status PARAM_INVALID); configuration, index or
        lock cannot be read, or are not what they should be, or a file of an entry leads out of the directory, or its
        model is missing (status FAILED).

    After failure: nothing is locked.
    Thread safety: one object belongs to one thread. Others that want the key wait, in other processes too; so does this
    thread, for ever, if it has the key already.
    """

    def __init__(self, folder: Path, graph_key: str) -> None:
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib raises for names that no directory can have
            reason = "is no directory; make it (E13026)"
            raise cache_error(folder, GRAPH_COMPILER_CACHE_DIR, reason, status=PARAM_INVALID)
        self._folder = folder = Path(os.path.realpath(folder))
        conf = _read_conf(folder / "cache.conf")
        self.manual_check, self.debug_mode = conf["cache_manual_check"], conf["cache_debug_mode"]
        if not _KEY.fullmatch(graph_key):
            reason = f"{graph_key!r} cannot begin a file name; give 1 to 128 letters, digits, - and _"
            raise ModelFileError(None, None, GRAPH_KEY, reason, status=PARAM_INVALID)
        self._key = graph_key
        self._created = datetime.now()
        self._unlock = weakref.finalize(self, _unlock, _lock(folder / f"{graph_key}.lock"), os.getpid())
        try:
            self._remove_drafts()
            self.entries = self._read_entries()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the lock back; a second call does nothing, and an object that is dropped does it itself."""
        self._unlock()

    def save(self, write_model: Callable[[BinaryIO], None], var_descs: bytes | None) -> CacheEntry:
        """Add an entry behind those of the index.

        Parameters
        ----------
        write_model
            Writes the model to an empty file.
        var_descs
            Descriptions of variables; None where there are none.

        Raises
        ------
        ModelFileError
            A file cannot be written, or the index is not what it should be. What `write_model` raises but for `OSError`
            goes through.

        After failure: the cache is as before.
        """
        entry = self._new_entry(has_descs=var_descs is not None)
        rows = _read_rows(self._index)
        row = {_ENTRY_KEY: self._key, _MODEL: entry.model.name}
        made: list[Path] = []
        try:
            self._write(entry.model, write_model, made)
            if var_descs is not None and entry.var_descs is not None:
                row[_DESCS] = entry.var_descs.name
                self._write(entry.var_descs, lambda file: _write_bytes(file, var_descs), made)
            self._sync()
            text = json.dumps({_LIST: [*rows, row]}, indent=_INDENT)
            self._write(self._index, lambda file: _write_bytes(file, text.encode()), [])
        except BaseException:
            for path in made:
                path.unlink(missing_ok=True)
            raise
        return entry

    @property
    def _index(self) -> Path:
        return self._folder / f"{self._key}{_INDEX_SUFFIX}"

    def _read_entries(self) -> list[CacheEntry]:
        if not os.path.lexists(self._index):
            only = f"{self._key}{_MODEL_SUFFIX}"
            return [CacheEntry(self.inside(only, _MODEL))] if os.path.lexists(self._folder / only) else []
        found = []
        for row in _read_rows(self._index):
            if row[_ENTRY_KEY] != self._key:
                continue
            model = self.inside(row[_MODEL], _MODEL)
            if not os.path.isfile(model):  # noqa: PTH113 - pathlib raises for a name that is too long
                raise cache_error(self._index, _MODEL, f"{model.name!r} is not there; take the entry out of the index")
            descs = row.get(_DESCS)
            found.append(CacheEntry(model, self.inside(descs, _DESCS) if descs else None))
        return found

    def inside(self, name: str, field: str) -> Path:
        """Return the real path of what lies in the cache under a name.

        Raises
        ------
        ModelFileError
            It leads out, or is a link to nothing (status FAILED).
        """
        try:
            found = path_inside(self._folder, name)
        except OSError as error:
            raise cache_error(self._index, field, f"{name!r} {error.strerror}") from error
        if not os.path.lexists(found) and os.path.lexists(self._folder / name):
            raise cache_error(self._folder / name, field, "cannot be read: it is a link to nothing; remove it")
        return found

    def _new_entry(self, *, has_descs: bool) -> CacheEntry:
        """Names that are free, from the second in which the key was locked on: an entry is never written over."""
        time = self._created
        while True:
            stem = f"{self._key}_{time:%Y%m%d%H%M%S}"
            model, descs = (self._folder / f"{stem}{suffix}" for suffix in (_MODEL_SUFFIX, _DESCS_SUFFIX))
            if not os.path.lexists(model) and not os.path.lexists(descs):
                return CacheEntry(model, descs if has_descs else None)
            time += timedelta(seconds=1)

    def _draft_name(self, suffix: str) -> str:
        return f".{self._key}{suffix}.tmp"

    def _remove_drafts(self) -> None:
        """Remove what a killed process has begun."""
        for suffix in (_MODEL_SUFFIX, _DESCS_SUFFIX, _INDEX_SUFFIX):
            with suppress(OSError):  # such as in a cache that may only be read; writing will say so
                (self._folder / self._draft_name(suffix)).unlink(missing_ok=True)

    def _write(self, path: Path, write: Callable[[BinaryIO], None], made: list[Path]) -> None:
        try:
            write_atomically(path, write, draft_name=self._draft_name(path.suffix))
        except OSError as error:
            raise cache_error(path, "model cache", f"cannot be written: {error}") from error
        made.append(path)

    def _sync(self) -> None:
        """Bring the names of an entry's files to the disk, before the index names them."""
        try:
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise cache_error(self._folder, "model cache", f"cannot be written: {error}") from error


def _write_bytes(file: BinaryIO, data: bytes) -> None:
    file.write(data)


def _lock(path: Path) -> int:
    """Open a lock file, wait until it is free, and return its descriptor."""
    fd = -1
    try:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        raise cache_error(path, "lock", f"cannot be locked: {error}") from error
    except BaseException:  # the wait was interrupted
        if fd >= 0:
            os.close(fd)
        raise
    return fd


def _unlock(fd: int, pid: int) -> None:
    """Free a lock file and close it; a forked child has the file open too, and only closes it."""
    if os.getpid() == pid:
        with suppress(OSError):  # a file that cannot be unlocked is unlocked by being closed
            fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _read_json(path: Path, field: str) -> dict[str, object]:
    """The object in a file; empty where there is no file."""
    try:
        fd = open_inside(path.parent, path_inside(path.parent, path.name))
        document = json.loads(read_whole(fd, MAX_JSON_BYTES, path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise cache_error(path, field, f"cannot be read: {error}; mend or remove it") from error
    if not isinstance(document, dict):
        raise cache_error(path, field, f"is a JSON {type(document).__name__}, not an object; mend or remove it")
    return document


def _read_conf(path: Path) -> dict[str, bool]:
    document, found = _read_json(path, "configuration"), {}
    for name in ("cache_manual_check", "cache_debug_mode"):
        value = document.get(name, False)
        if not isinstance(value, bool):
            raise cache_error(path, name, f"is {value!r}; give true or false")
        found[name] = value
    return found


def _read_rows(path: Path) -> list[dict[str, str]]:
    """The entries of an index, of every key; none where there is no file."""
    document = _read_json(path, "index")
    rows = document.get(_LIST, [] if not document else None)
    if not isinstance(rows, list):
        raise cache_error(path, _LIST, "is no list; mend or remove the index")
    for number, row in enumerate(rows):
        field = f"{_LIST}[{number}]"
        if not isinstance(row, dict):
            raise cache_error(path, field, "is no object; mend or remove the index")
        for name in (_ENTRY_KEY, _MODEL, _DESCS):
            value = row.get(name, "" if name == _DESCS else None)
            if not isinstance(value, str) or (name == _MODEL and not value) or "\0" in value:
                raise cache_error(path, f"{field}.{name}", f"is {value!r}; give a name")
    return rows
