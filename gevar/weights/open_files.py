"""The files of an upload: opened before anything is moved, held to what they were until all of it is there."""

import os
import resource
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import RLock
from typing import Final

import numpy as np

from gevar.errors import LoadError
from gevar.weights.file_reader import PAGE_BYTES, FileReader, OpenFile, ReopeningReader, os_reason
from gevar.weights.upload_arrays import UploadArrays

_opening: Final = RLock()  # held by one load at a time, so that each counts the files of the others


def _most_open() -> int:
    """Return how many files a load keeps open: half of those that the process may open still."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    try:
        used = sum(int(number) < limit for number in os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:  # no /proc here: a guess
        used = 0
    return (limit - used) // 2


class OpenFiles:
    """Readers of the files that requests name; the stack closes them. Of very many files some are opened for each read.

    Parameters
    ----------
    arrays
        The requests.
    open_file
        Opens a file.
    past_cache
        Whether to read past the page cache where that is possible.
    stack
        Closes the files.

    Raises
    ------
    LoadError
        A file cannot be opened, is another one than when it was looked at, or is too short for a request.
    ValueError
        A reader reads at multiples of something that does not divide a page.
    """

    def __init__(self, arrays: UploadArrays, open_file: OpenFile, past_cache: bool, stack: ExitStack) -> None:
        self._arrays = arrays
        self._readers: dict[int, FileReader] = {}
        with _opening:
            self._open(open_file, past_cache, stack)
        self._check_ends()

    def _open(self, open_file: OpenFile, past_cache: bool, stack: ExitStack) -> None:
        arrays, most = self._arrays, _most_open()
        for number, source in enumerate(arrays.sources):
            if not isinstance(source, Path):
                continue
            try:
                if len(self._readers) < most:
                    reader = open_file(source, past_cache)
                else:
                    reader = ReopeningReader(source, past_cache, open_file)
            except OSError as error:
                raise self._refused(number, os_reason(error)) from error
            stack.callback(self._close, number, reader)
            if reader.align_bytes < 1 or PAGE_BYTES % reader.align_bytes:
                text = f"its reader reads at multiples of {reader.align_bytes} B"
                raise ValueError(f"{source}: {text}: give a divisor of {PAGE_BYTES}")
            if arrays.states and arrays.states[number] - {reader.state}:
                raise self._refused(number, "the file changed since it was looked at; load again")
            self._readers[number] = reader

    def _check_ends(self) -> None:
        """Refuse requests that go beyond the end of their file, before a plan is made of their numbers."""
        arrays = self._arrays
        room = np.full(len(arrays.sources), np.iinfo(np.int64).max)
        for number, reader in self._readers.items():
            room[number] = reader.state.size_bytes
        beyond = np.flatnonzero((arrays.size_bytes > 0) & (arrays.offset > room[arrays.source] - arrays.size_bytes))
        if len(beyond):
            path, offset, size = self._place(int(beyond[0]))
            got = max(int(room[arrays.source[beyond[0]]]) - offset, 0)
            raise LoadError(path, offset, size, got, "the file ends here")

    def _close(self, number: int, reader: FileReader) -> None:
        try:
            reader.close()
        except OSError as error:
            raise self._lost(number, f"it cannot be closed: {os_reason(error)}") from error

    def _place(self, request: int) -> tuple[Path, int, int]:
        arrays = self._arrays
        path = arrays.sources[arrays.source[request]]
        assert isinstance(path, Path)
        return path, int(arrays.offset[request]), int(arrays.size_bytes[request])

    def _refused(self, number: int, reason: str) -> LoadError:
        """Return the error of a file as that of the first request that names it."""
        return LoadError(*self._place(int((self._arrays.source == number).argmax())), 0, reason)

    def reader(self, number: int) -> FileReader:
        """Return the reader of a source that is a file."""
        return self._readers[number]

    @property
    def modes(self) -> Sequence[str]:
        """How files are read, each way once."""
        return tuple(dict.fromkeys(reader.mode for reader in self._readers.values()))

    def check(self) -> None:
        """Refuse files that are not what they were when they were opened.

        Raises
        ------
        LoadError
            A file was changed, or that cannot be told; as many bytes are wanted as came of it.
        """
        for number, reader in self._readers.items():
            try:
                reason = reader.change()
            except OSError as error:
                raise self._lost(number, f"what it is by now cannot be told: {os_reason(error)}") from error
            if reason:
                raise self._lost(number, reason)

    def _lost(self, number: int, reason: str) -> LoadError:
        """Return the error of a file that was read, but may not hold what it did."""
        size = int(self._arrays.size_bytes[self._arrays.source == number].sum())
        path = self._arrays.sources[number]
        assert isinstance(path, Path)
        return LoadError(path, 0, size, size, reason)
