"""Weights that no file has as they are: unpacked or turned while they are read, and copied a chunk at a time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from acl_shim import Device
from gevar.errors import StateError
from gevar.om.stored_bytes import StreamedBytes, chunks_of
from gevar.types import DevAddr
from gevar.weights import UploadReport, UploadRequest, upload
from gevar.weights.file_reader import OpenFile

OnProgress = Callable[[int, int], None]


class Stream(NamedTuple):
    """Bytes that are made while they are read, and the device address they go to."""

    data: StreamedBytes
    dev_addr: DevAddr


def upload_all(
    device: Device,
    requests: Sequence[UploadRequest],
    streams: Sequence[Stream],
    *,
    workers: int | None,
    on_progress: OnProgress | None,
    cancel: threading.Event | None,
    open_file: OpenFile,
) -> UploadReport:
    """Bring regions and buffers by `gevar.weights.upload`, then streams, by the calling thread.

    Parameters
    ----------
    device
        The device.
    requests, streams
        What to bring.
    workers, on_progress, cancel, open_file
        As `upload`; the progress counts both.

    Raises
    ------
    LoadError, ModelFileError, AclError
        As `upload`; or a stream cannot be read to its end.
    StateError
        The upload was cancelled.

    After failure: device memory holds an unknown part of the bytes.
    """
    streamed = sum(stream.data.nbytes for stream in streams)
    total = sum(request.size_bytes for request in requests) + streamed

    def tell(done: int, _: int) -> None:
        if on_progress is not None:
            on_progress(done, total)

    begin = time.perf_counter()
    report = upload(device, requests, workers=workers, on_progress=tell, cancel=cancel, open_file=open_file)
    done, read_s, copy_s = report.size_bytes, report.read_s, report.copy_s
    for stream in streams:
        addr, start = int(stream.dev_addr), time.perf_counter()
        for chunk in chunks_of(stream.data):
            read = time.perf_counter()
            if cancel is not None and cancel.is_set():
                raise StateError(f"the upload was cancelled after {done} B of {total} B")
            device.memcpy_in(addr, chunk.nbytes, chunk)
            addr, done = addr + chunk.nbytes, done + chunk.nbytes
            read_s, copy_s = read_s + read - start, copy_s + time.perf_counter() - read
            tell(done, total)
            start = time.perf_counter()
        read_s += time.perf_counter() - start
    if not streamed:
        return report
    return report._replace(size_bytes=done, elapsed_s=time.perf_counter() - begin, read_s=read_s, copy_s=copy_s)
