"""A log of what a resource was asked, as lines of JSON that can be played again on another one.

Each line is an object: ``time_s`` since the log began, ``thread``, ``action`` (``allocate``, ``free``), ``result``
(``ok`` or the name of the error), ``device_id``, and ``size_bytes``, ``tag``, ``addr`` and ``code`` where they are
known. A request is written when it is answered.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from gevar.errors import AclError, GevarError
from gevar.memory.memory_resource import MemoryResource
from gevar.memory.resource_adaptor import ResourceAdaptor
from gevar.types import DevAddr


class LoggingResourceAdaptor(ResourceAdaptor):
    """Write what is asked and answered.

    Parameters
    ----------
    upstream
        The resource.
    file
        Where lines go; it is not closed here.
    clock
        Time in seconds.
    """

    def __init__(self, upstream: MemoryResource, file: TextIO, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(upstream)
        self._file = file
        self._clock = clock
        self._began_s = clock()

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`."""
        try:
            dev_addr = super().allocate(size_bytes, tag)
        except (GevarError, ValueError, TypeError) as error:
            self._write("allocate", error, size_bytes=size_bytes, tag=tag)
            raise
        self._write("allocate", None, size_bytes=size_bytes, tag=tag, addr=dev_addr)
        return dev_addr

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back; see `MemoryResource.free`.

        The line is written before the block can be handed out again, so a log names no address twice.
        """
        with self._lock:
            try:
                super().free(dev_addr)
            except GevarError as error:
                self._write("free", error, addr=dev_addr)
                raise
            self._write("free", None, addr=dev_addr)

    def _write(self, action: str, error: Exception | None, **fields: int | str) -> None:
        entry: dict[str, object] = {
            "time_s": round(self._clock() - self._began_s, 6),
            "thread": threading.get_ident(),
            "action": action,
            "result": "ok" if error is None else type(error).__name__,
            "device_id": self.device_id,
            **fields,
        }
        if isinstance(error, AclError):
            entry["code"] = error.code
        line = json.dumps(entry, default=str) + "\n"
        with self._lock:
            self._file.write(line)


@dataclass(frozen=True, slots=True)
class Replay:
    """What playing a log gave.

    Attributes
    ----------
    allocated, freed : int
        Requests that were made again and succeeded.
    refused : int
        Requests that succeeded when they were logged and failed now.
    skipped : int
        Lines of requests that had failed, and frees of blocks that were not there.
    leaked : dict
        Blocks that the log did not free: address now -> size in bytes.
    """

    allocated: int
    freed: int
    refused: int
    skipped: int
    leaked: dict[DevAddr, int]


def replay_log(lines: Iterable[str], resource: MemoryResource) -> Replay:
    """Make the requests of a log again, in its order.

    Parameters
    ----------
    lines
        The log.
    resource
        Where to make them. Blocks that the log did not free are alive afterwards.

    Raises
    ------
    ValueError
        A line is not what `LoggingResourceAdaptor` writes. No request was made.
    """
    entries = [_entry(line, number) for number, line in enumerate(lines, 1)]
    blocks: dict[int, tuple[DevAddr, int]] = {}
    allocated = freed = refused = skipped = 0
    for action, ok, size_bytes, tag, addr in entries:
        if not ok:
            skipped += 1
        elif action == "allocate":
            try:
                blocks[addr] = resource.allocate(size_bytes, tag), size_bytes
                allocated += 1
            except AclError:
                refused += 1
        elif (block := blocks.pop(addr, None)) is None:
            skipped += 1
        else:
            resource.free(block[0])
            freed += 1
    return Replay(allocated, freed, refused, skipped, dict(blocks.values()))


def _entry(line: str, number: int) -> tuple[str, bool, int, str, int]:
    """Read one line: action, whether it succeeded, size, tag, address."""
    try:
        entry = json.loads(line)
        action, ok = entry["action"], entry["result"] == "ok"
        size, tag, addr = entry.get("size_bytes", 0), str(entry.get("tag", "")), entry.get("addr", 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"line {number} of the log is no logged request ({error!r}): give the log as it was written"
        ) from error
    if action not in {"allocate", "free"} or (ok and not (isinstance(size, int) and isinstance(addr, int))):
        raise ValueError(
            f"line {number} of the log says {action!r} of {size!r} B at {addr!r}: give the log as it was written"
        )
    return action, ok, size, tag, addr
