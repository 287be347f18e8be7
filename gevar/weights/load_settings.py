"""Settings of an upload: one table, an argument before the environment before what suits the machine."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Final

DEFAULT_BLOCK_BYTES: Final = 2 << 20
"""Bytes read and copied at a time: fewer cost more calls, more leave the caches of a core."""

_SMALL_BYTES: Final = 64 << 20  # below this the making of large staging buffers shows, and so do other questions
_SMALL_BLOCK_BYTES: Final = 256 << 10

_ONE_WORKER_BYTES: Final = 8 << 20  # below this a second reader costs more than it brings
_SMALL_COPY_BYTES: Final = 32 << 10  # readers with copies below this wait for each other in the runtime
_MOST_WORKERS: Final = 4  # more readers do not help on the links seen so far
_MOST_CUTS: Final = 1 << 20  # blocks that a plan has room for beside one for each request

_CARD_BUFFERS: Final = 3  # one is filled, one is copied, one waits

_LIMITS: Final = {
    "workers": ("GEVAR_LOAD_WORKERS", 1, 1024),
    "block_bytes": ("GEVAR_LOAD_BLOCK", 1, 1 << 30),
    "buffers": ("GEVAR_LOAD_BUFFERS", 1, 1024),
    "past_cache": ("GEVAR_LOAD_DIRECT", 0, 1),
}
"""Variable of each setting, and the least and most that it may be."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How an upload works.

    Attributes
    ----------
    workers : int
        Reader threads.
    block_bytes : int
        Bytes read and copied at a time, and the size of a staging buffer.
    buffers : int
        Staging buffers of each reader. With one a reader waits for each copy; with more it reads on meanwhile.
    past_cache : bool
        Whether files are read past the page cache.
    """

    workers: int
    block_bytes: int
    buffers: int
    past_cache: bool

    @classmethod
    def choose(
        cls,
        total_bytes: int,
        copies: int,
        *,
        is_card: bool,
        workers: int | None = None,
        block_bytes: int | None = None,
        buffers: int | None = None,
        past_cache: bool | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> "LoadSettings":
        """Take each setting from its argument, else from its variable, else from what suits.

        ====================  ========================  ======================================================
        setting               variable                  default
        ====================  ========================  ======================================================
        ``workers``           ``GEVAR_LOAD_WORKERS``    1 below 8 MiB, or where copies are below 32 KiB on
                                                        average; else one for each core, at most 4
        ``block_bytes``       ``GEVAR_LOAD_BLOCK``      256 KiB below 64 MiB, else 2 MiB
        ``buffers``           ``GEVAR_LOAD_BUFFERS``    3 on a card; 1 on the host runtime, whose copies take
                                                        the same cores as reading
        ``past_cache``        ``GEVAR_LOAD_DIRECT``     yes where the bytes are more than half of the memory
                                                        that is free or page cache, so that they would only
                                                        push others out
        ====================  ========================  ======================================================

        Blocks are never smaller than a part in 2^20 of all bytes, so that the plan of an upload stays small.

        Parameters
        ----------
        total_bytes
            Bytes to be moved.
        copies
            In about so many copies, where no block cuts them.
        is_card
            Whether a card is at the other end.
        workers, block_bytes, buffers, past_cache
            The settings; None for the variable or the default.
        environ
            The environment.

        Raises
        ------
        TypeError
            An argument is no integer.
        ValueError
            A variable is no integer, or a setting is out of range: 1 to 1024 readers, 1 to 1024 buffers of each, blocks
            of 1 B to 1 GiB, past the page cache 0 or 1.
        """

        def setting(name: str, given: int | None, suits: Callable[[], int]) -> int:
            value = _argument(name, given) if given is not None else _variable(name, environ)
            return suits() if value is None else value

        block = setting("block_bytes", block_bytes, lambda: _suiting_block(total_bytes))
        return cls(
            setting("workers", workers, lambda: _suiting_workers(total_bytes, copies)),
            max(block, -(-total_bytes // _MOST_CUTS)),
            setting("buffers", buffers, lambda: _CARD_BUFFERS if is_card else 1),
            bool(setting("past_cache", past_cache, lambda: _suits_past_cache(total_bytes))),
        )


def _argument(name: str, given: int) -> int:
    """Return a setting that is given."""
    try:
        return _in_range(name, name, index(given))
    except TypeError as error:
        raise TypeError(f"{name} is {given!r:.60}: give an integer") from error


def _variable(name: str, environ: Mapping[str, str]) -> int | None:
    """Return a setting by its variable; None where that is not set, or empty."""
    variable = _LIMITS[name][0]
    text = environ.get(variable, "")
    if not text:
        return None
    try:
        number = int(text)
    except ValueError as error:
        raise ValueError(f"{variable} is {text!r:.60}: give a whole number") from error
    return _in_range(name, variable, number)


def _in_range(name: str, named: str, number: int) -> int:
    _, least, most = _LIMITS[name]
    if not least <= number <= most:
        word = "or" if most == least + 1 else "to"
        raise ValueError(f"{named} is {number}: give {least} {word} {most}")
    return number


def _suiting_workers(total_bytes: int, copies: int) -> int:
    if total_bytes < max(_ONE_WORKER_BYTES, copies * _SMALL_COPY_BYTES):
        return 1
    return min(len(os.sched_getaffinity(0)), _MOST_WORKERS)


def _suiting_block(total_bytes: int) -> int:
    return _SMALL_BLOCK_BYTES if total_bytes < _SMALL_BYTES else DEFAULT_BLOCK_BYTES


def _suits_past_cache(total_bytes: int) -> bool:
    return total_bytes >= _SMALL_BYTES and total_bytes > _free_bytes() // 2


def _free_bytes() -> int:
    """Memory that programs may take at this moment, that of the page cache included."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) << 10
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
