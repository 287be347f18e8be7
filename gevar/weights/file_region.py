"""What is to be moved: regions of files, or buffers, and the device addresses they go to."""

from dataclasses import dataclass
from pathlib import Path

from acl_shim import Device
from gevar.om.regular_file import FileState


@dataclass(frozen=True, slots=True)
class FileRegion:
    """A run of bytes in a file: ``size_bytes`` from ``offset`` (bytes from the start of the file).

    `state` is that of the file when it was looked at; None where nobody has.
    """

    path: Path
    offset: int
    size_bytes: int
    state: FileState | None = None

    @property
    def place(self) -> str:
        """Where the bytes begin, in words."""
        return f"the bytes from {self.offset} on of {self.path}"

    @property
    def content(self) -> str:
        """What the bytes are, in words that are others once the file has changed."""
        return self.place + ("" if self.state is None else f" (changed at {self.state.ctime_ns} ns)")


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """Bytes to put at ``dev_addr``: a region of a file or a contiguous buffer in host memory.

    Attributes
    ----------
    source : FileRegion or memoryview
        The bytes.
    dev_addr : int
        First byte on the device.
    device : Device or None
        The device; None for that of the upload.
    digest : bytes or None
        xxh3-128 that the bytes must have; None where they are not checked.
    """

    source: FileRegion | memoryview
    dev_addr: int
    device: Device | None = None
    digest: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes to move."""
        return self.source.size_bytes if isinstance(self.source, FileRegion) else self.source.nbytes
