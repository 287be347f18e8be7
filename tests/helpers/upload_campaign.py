"""Random uploads against plain numpy: what must lie on the devices, what is told meanwhile, what a fault leaves."""

import errno
import random
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from acl_shim import Device, DeviceBuffer
from gevar.errors import LoadError, StateError
from gevar.weights import FileRegion, PreadReader, Upload, UploadArrays, UploadRequest, upload
from gevar.weights.file_reader import OpenFile, ReopeningReader
from gevar.weights.upload_arrays import arrays_of
from tests.helpers.open_files import open_files
from tests.helpers.runtime import controls, host_runtime

FULL_UPLOADS: Final = 5000
UNTOUCHED: Final = 0xA5
BLOCKS: Final = (1, 7, 512, 4096, 4097, 32_768, 1 << 20)
FAULTS: Final = ("error", "end", "cancel", "digest", "progress", "reader")


@dataclass
class Campaign:
    """What a campaign saw: uploads by kind and outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)


class Stopped(Exception):
    """What an `on_progress` raises here."""


@dataclass
class Case:
    """One upload: files, requests, how it is done, and what must be on each device afterwards."""

    chance: random.Random
    folder: Path
    devices: list[Device]
    stack: ExitStack
    files: list[tuple[Path, np.ndarray]] = field(default_factory=list)
    requests: list[UploadRequest] = field(default_factory=list)
    blocks: list[DeviceBuffer] = field(default_factory=list)
    wanted: list[np.ndarray] = field(default_factory=list)

    def make(self) -> None:
        """Make files, memory and requests."""
        chance = self.chance
        self.block_bytes, self.has_digests = chance.choice(BLOCKS), chance.random() < 0.6
        self.most = min(200_000, 500 * self.block_bytes)
        for number in range(chance.randrange(1, 4)):
            data = self._bytes(chance.choice((0, 1, self.most // 3, self.most)))
            path = self.folder / f"{number}.bin"
            path.write_bytes(data.tobytes())
            self.files.append((path, data))
        sizes = [self._size() for _ in range(chance.choice((0, 1, 2, 30, 300)))]
        places = [(size, chance.randrange(len(self.devices)), chance.choice((0, 0, 1, 600))) for size in sizes]
        ends = [0] * len(self.devices)
        for size, device, gap in places:
            ends[device] += gap + size
        for device, end in zip(self.devices, ends, strict=True):
            block = self.stack.enter_context(device.malloc(end + 1))
            device.memset(block.addr, end + 1, UNTOUCHED, end + 1)
            self.blocks.append(block)
            self.wanted.append(np.full(end + 1, UNTOUCHED, np.uint8))
        at, before = [0] * len(self.devices), 0
        for size, device, gap in places:
            at[device] += gap
            before = self._request(size, device, at[device], before)
            at[device] += size
        if chance.random() < 0.7:
            chance.shuffle(self.requests)

    def _bytes(self, size: int) -> np.ndarray:
        return np.frombuffer(self.chance.randbytes(size), np.uint8)

    def _size(self) -> int:
        near = self.block_bytes * self.chance.choice((1, 1, 2, 5)) + self.chance.choice((-1, 0, 1))
        return min(self.chance.choice((0, 1, near, self.chance.randrange(1, 700))), self.most // 3)

    def _request(self, size: int, device: int, at: int, before: int) -> int:
        """Ask for bytes of a file, often those behind the ones before, or of a buffer; return where they end."""
        chance, addr = self.chance, self.blocks[device].addr + at
        other = self.devices[device] if device or chance.random() < 0.5 else None
        path, data = chance.choice(self.files[:1] * 3 + self.files)
        if chance.random() < 0.15:
            part = self._bytes(size)
            self.requests.append(UploadRequest(memoryview(self._shaped(part)), addr, other, self._digest(part)))
        else:
            size = min(size, data.size)
            start = before if chance.random() < 0.6 and before + size <= data.size else None
            start = chance.randrange(data.size - size + 1) if start is None else start
            part, before = data[start : start + size], start + size
            self.requests.append(UploadRequest(FileRegion(path, start, size), addr, other, self._digest(part)))
        self.wanted[device][at : at + part.size] = part
        return before

    def _digest(self, part: np.ndarray) -> bytes | None:
        is_given = self.has_digests and self.chance.random() < 0.5
        return xxhash.xxh3_128(part.tobytes()).digest() if is_given else None

    def _shaped(self, part: np.ndarray) -> np.ndarray:
        if part.size % 4 or not part.size or self.chance.random() < 0.5:
            return part
        return part.view(np.float16).reshape(2, -1)

    def settings(self) -> dict[str, int]:
        """Choose settings."""
        chance = self.chance
        return {"workers": chance.choice((1, 2, 3, 5)), "buffers": chance.choice((1, 1, 2, 4))}

    def given(self) -> list[UploadRequest] | UploadArrays:
        return arrays_of(self.requests) if self.chance.random() < 0.3 else self.requests


def reader(case: Case, fault: str = "", act: threading.Event | None = None) -> OpenFile:
    """Return what opens files: plainly, by calls, in short reads, anew for each read; or with a fault in some read."""
    chance = case.chance
    most, at_call = chance.choice((1, 3000, 1 << 30)), chance.choice((0, 0, 1, 2, 5))
    calls, lock = 0, threading.Lock()
    most = max(most, case.block_bytes // 8)

    class Calls(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            nonlocal calls
            with lock:
                calls += 1
                is_now = calls > at_call
            if is_now and fault == "error":
                raise OSError(errno.EIO, "it broke")
            if is_now and fault == "reader":
                raise RuntimeError("a fault of the reader")
            if is_now and act is not None:
                act.set()
            return 0 if is_now and fault == "end" else super().read_into(offset, view[:most])

    if fault in ("error", "reader", "end", "cancel"):
        return Calls
    return chance.choice((PreadReader, PreadReader, Calls, lambda path, cache: ReopeningReader(path, cache, Calls)))


def check_good(case: Case) -> None:
    """Upload, and compare everything that is told and brought with what was asked for."""
    total, told = sum(request.size_bytes for request in case.requests), list[tuple[int, int]]()
    settings, given = case.settings(), case.given()
    arguments = {"block_bytes": case.block_bytes, "open_file": reader(case), **settings}
    arguments["past_cache"] = arguments["open_file"] is PreadReader and case.chance.random() < 0.4
    if case.chance.random() < 0.5:
        report = upload(case.devices[0], given, on_progress=lambda *place: told.append(place), **arguments)
    else:
        with Upload(case.devices[0], given, on_progress=lambda *place: told.append(place), **arguments) as run:
            arrived = list(run)
            report = run.wait()
        key = sorted((request.dev_addr, request.size_bytes) for request in case.requests)
        assert sorted((request.dev_addr, request.size_bytes) for request in arrived) == key
    for block, wanted in zip(case.blocks, case.wanted, strict=True):
        assert np.array_equal(np.frombuffer(block.read(), np.uint8), wanted)
    assert told == sorted(set(told))
    assert {last for _, last in told} <= {total}
    assert not total or told[-1] == (total, total)
    assert report.size_bytes == total
    assert (report.block_bytes, report.buffers) == (case.block_bytes, settings["buffers"])
    assert 1 <= report.workers <= settings["workers"]
    assert report.checked == sum(1 for request in case.requests if request.digest and request.size_bytes)
    assert _needed_bytes(case) <= report.read_bytes <= sum(data.size for _, data in case.files)


def _needed_bytes(case: Case) -> int:
    """Return how many bytes of files somebody asked for."""
    used = {path: np.zeros(data.size, np.bool_) for path, data in case.files}
    for request in case.requests:
        if isinstance(request.source, FileRegion):
            region = request.source
            used[region.path][region.offset : region.offset + region.size_bytes] = True
    return sum(int(flags.sum()) for flags in used.values())


def check_bad(case: Case, fault: str) -> str:
    """Upload with a fault; return what came of it. What no request is for stays as it was."""
    cancel, told = threading.Event(), 0

    def on_progress(done: int, total: int) -> None:
        nonlocal told
        assert not told, "told after it raised"
        told += 1
        raise Stopped

    requests = [_spoilt(request) for request in case.requests] if fault == "digest" else case.requests
    try:
        upload(
            case.devices[0],
            requests,
            block_bytes=case.block_bytes,
            on_progress=on_progress if fault == "progress" else None,
            cancel=cancel if fault == "cancel" else None,
            open_file=reader(case, fault, cancel),
            **case.settings(),
        )
        outcome = "passed"
    except (LoadError, StateError, Stopped, RuntimeError) as error:
        _check_error(case, error, fault)
        outcome = type(error).__name__
    for block, wanted in zip(case.blocks, case.wanted, strict=True):
        found = np.frombuffer(block.read(), np.uint8)
        assert np.array_equal(found[wanted == UNTOUCHED] == UNTOUCHED, np.ones((wanted == UNTOUCHED).sum(), np.bool_))
        assert outcome != "passed" or np.array_equal(found, wanted)
        assert (found == wanted)[found != UNTOUCHED].all()
    return outcome


def _check_error(case: Case, error: Exception, fault: str) -> None:
    wanted = {"cancel": StateError, "progress": Stopped, "reader": RuntimeError}.get(fault, LoadError)
    assert isinstance(error, wanted), error
    if not isinstance(error, LoadError):
        return
    sizes = {str(path): data.size for path, data in case.files}
    size = sizes[error.path] if error.path in sizes else int(error.path.removeprefix("buffer of ").removesuffix(" B"))
    assert 0 <= error.offset < error.offset + error.wanted <= size
    assert error.got == error.wanted if fault == "digest" else 0 <= error.got < error.wanted
    if fault != "digest":
        assert error.wanted <= case.block_bytes


def _spoilt(request: UploadRequest) -> UploadRequest:
    """Return a request with a digest that its bytes do not have, where it had one."""
    if request.digest is None or not request.size_bytes:
        return request
    digest = bytes([request.digest[0] ^ 1]) + request.digest[1:]
    return UploadRequest(request.source, request.dev_addr, request.device, digest)


def run(count: int, seed: int) -> Campaign:
    """Make so many uploads.

    Raises
    ------
    AssertionError
        Something is not as it should be, or was left behind.
    Exception
        Whatever was raised that is not the error for such a fault.
    """
    seen, chance = Campaign(), random.Random(seed)
    memory = Path("/dev/shm")  # where files need no disk, if there is such a place
    devices = [host_runtime().device(number) for number in range(min(2, host_runtime().device_count()))]
    for device in devices:
        device.mem_info()  # opens it, with what it keeps open
    before = (open_files(), threading.active_count())
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder, ExitStack() as stack:
            case = Case(random.Random(chance.randrange(2**32)), Path(folder), devices, stack)
            case.make()
            seen.outcomes[_try(case)] += 1
            live = controls().live()
            assert (live.host_blocks, live.streams, live.tasks) == (0, 0, 0)
    assert (open_files(), threading.active_count()) == before
    return seen


def _try(case: Case) -> str:
    """Upload as it should be, or with a fault; return the kind and what came of it."""
    if case.chance.random() < 0.6:
        check_good(case)
        return "good"
    fault = case.chance.choice(FAULTS)
    return f"{fault}: {check_bad(case, fault)}"
