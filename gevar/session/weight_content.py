"""The bytes of a weight before they are on a device: a region of a file, memory or a stream, read in chunks."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from acl_shim import Device
from gevar.om.regular_file import FileState
from gevar.om.stored_bytes import CHUNK_BYTES, Content, StreamedBytes, chunks_of
from gevar.runtime.weight_bytes import region_parts
from gevar.types import DevAddr
from gevar.weights import FileRegion, WeightFile, WeightSlice

WeightContent = FileRegion | memoryview | StreamedBytes
"""Bytes of a weight; a region of a file is read with `pread`."""


HEAD_BYTES: Final = 256 << 10
"""Bytes by which equal weights are looked for; then all are compared."""
_memory_ids = itertools.count()


def content_of(data: Content, real_paths: dict[str, Path]) -> WeightContent:
    """Return bytes that lie in a file as they are as a region of it, others as they were given.

    Parameters
    ----------
    data
        The bytes.
    real_paths
        Real paths of files by their names, as far as they were asked for; filled in.
    """
    if isinstance(data, memoryview) or data.source is None or data.source.state is None:
        return data
    source = data.source
    if source.name not in real_paths:
        real_paths[source.name] = Path(os.path.realpath(source.name))
    return FileRegion(real_paths[source.name], source.base + data.offset, data.nbytes, source.state)


def slice_of(content: WeightContent, file: WeightFile | None, name: str) -> WeightSlice:
    """Return what bytes are known by: their place in a file; else that file and their name in it.

    Without a file they are like no others.
    """
    size_bytes = content_bytes(content)
    if isinstance(content, FileRegion) and content.state is not None:
        return WeightSlice(WeightFile(content.path, content.state), content.offset, size_bytes)
    if file is not None:
        return WeightSlice(file, 0, size_bytes, name)
    unique = f"{name}, in memory {next(_memory_ids)}"
    return WeightSlice(
        WeightFile(Path(name), FileState(0, 0, size_bytes, mtime_ns=0, ctime_ns=0)), 0, size_bytes, unique
    )


def content_bytes(content: WeightContent) -> int:
    """Return how many bytes there are."""
    return content.size_bytes if isinstance(content, FileRegion) else content.nbytes


def content_chunks(content: WeightContent) -> Iterator[memoryview]:
    """Yield the bytes in chunks; one is good until the next is asked for.

    Raises
    ------
    LoadError
        A file cannot be read, ends early, or is not the one that was looked at.
    ModelFileError, ValueError
        As `chunks_of`.
    """
    if not isinstance(content, FileRegion):
        yield from chunks_of(content)
        return
    for _, part in region_parts(content):
        yield part


def head_digest(content: WeightContent) -> bytes:
    """Return the xxh3 digest of 128 bits of the first `HEAD_BYTES`; raises as `content_chunks`."""
    digest, missing = xxhash.xxh3_128(), HEAD_BYTES
    if isinstance(content, FileRegion):
        content = replace(content, size_bytes=min(content.size_bytes, missing))
    for chunk in content_chunks(content):
        digest.update(chunk[:missing])
        missing -= chunk.nbytes
        if missing <= 0:
            break
    return digest.digest()


def device_chunks(device: Device, dev_addr: DevAddr, size_bytes: int) -> Iterator[memoryview]:
    """Yield the bytes of device memory in chunks, as `content_chunks`; raises `AclError`."""
    chunk = np.empty(min(CHUNK_BYTES, size_bytes), np.uint8)
    for done in range(0, size_bytes, CHUNK_BYTES):
        part = chunk[: min(CHUNK_BYTES, size_bytes - done)]
        device.memcpy_out(part, dev_addr + done)
        yield part.data


def device_digest(device: Device, dev_addr: DevAddr, size_bytes: int) -> bytes:
    """Return the digest of device memory, as `content_digest`; raises `AclError`."""
    digest = xxhash.xxh3_128()
    for chunk in device_chunks(device, dev_addr, size_bytes):
        digest.update(chunk)
    return digest.digest()


def first_difference(content: WeightContent, device: Device, dev_addr: DevAddr) -> tuple[int, int, int] | None:
    """Compare bytes with device memory; return place and both values of the first that differs.

    Raises
    ------
    LoadError, ModelFileError, ValueError
        As `content_chunks`.
    AclError
        A copy from the device was refused.
    """
    done = 0
    for chunk in content_chunks(content):
        actual = np.empty(chunk.nbytes, np.uint8)
        device.memcpy_out(actual, dev_addr + done)
        expected = np.frombuffer(chunk, np.uint8)
        unequal = np.flatnonzero(expected != actual)
        if unequal.size:
            at = int(unequal[0])
            return done + at, int(expected[at]), int(actual[at])
        done += chunk.nbytes
    return None
