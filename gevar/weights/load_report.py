"""What an upload did, and what held it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gevar.weights.load_settings import LoadSettings


class UploadReport(NamedTuple):
    """What an upload did.

    Attributes
    ----------
    size_bytes : int
        Bytes that arrived.
    elapsed_s : float
        Seconds from start to end.
    workers, block_bytes, buffers : int
        Readers, of which there are no more than blocks; most bytes of a block; most staging buffers of each reader.
    read_bytes, reads : int
        Bytes read from files, and blocks they came in: a region that goes to several places is read once.
    disk_bytes : int
        Bytes that came from a disk, as the kernel counts them; the others were in the page cache.
    read_s, staging_s, copy_s : float
        Seconds that readers, added up, spent reading, making staging buffers, and on copies or waiting for them. What
        no file has as it is counts as read while it is unpacked or turned.
    mode : str
        How files were read, and why not past the page cache where that was wanted; "" without files.
    checked : int
        Regions whose digest was compared.
    check_s : float
        Seconds that readers, added up, spent on digests.
    """

    size_bytes: int
    elapsed_s: float
    workers: int
    block_bytes: int
    buffers: int = 1
    read_bytes: int = 0
    reads: int = 0
    disk_bytes: int = 0
    read_s: float = 0.0
    staging_s: float = 0.0
    copy_s: float = 0.0
    mode: str = ""
    checked: int = 0
    check_s: float = 0.0

    @property
    def gb_per_s(self) -> float:
        """Speed in 10^9 bytes per second; 0 where nothing was moved."""
        return self.size_bytes / self.elapsed_s / 1e9 if self.size_bytes and self.elapsed_s > 0 else 0.0

    @property
    def bottleneck(self) -> str:
        """What took most of the readers' time: "disk", "read" (from elsewhere), "staging", "check" or "copy"; or ""."""
        if not self.size_bytes:
            return ""
        read = "disk" if 2 * self.disk_bytes > self.read_bytes else "read"
        times = {read: self.read_s, "staging": self.staging_s, "check": self.check_s, "copy": self.copy_s}
        return max(times, key=times.__getitem__)


@dataclass(slots=True)
class StageTimes:
    """What one reader spent; see `UploadReport`."""

    read_bytes: int = 0
    reads: int = 0
    disk_bytes: int = 0
    read_s: float = 0.0
    staging_s: float = 0.0
    copy_s: float = 0.0
    checked: int = 0
    check_s: float = 0.0


def report_of(
    size_bytes: int, elapsed_s: float, settings: LoadSettings, times: Sequence[StageTimes], modes: Sequence[str]
) -> UploadReport:
    """Return the report of an upload whose readers spent so much."""
    return UploadReport(
        size_bytes,
        elapsed_s,
        len(times),
        settings.block_bytes,
        settings.buffers,
        read_bytes=sum(one.read_bytes for one in times),
        reads=sum(one.reads for one in times),
        disk_bytes=sum(one.disk_bytes for one in times),
        read_s=sum(one.read_s for one in times),
        staging_s=sum(one.staging_s for one in times),
        copy_s=sum(one.copy_s for one in times),
        mode="; ".join(modes),
        checked=sum(one.checked for one in times),
        check_s=sum(one.check_s for one in times),
    )
