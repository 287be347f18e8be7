"""What regions of weight files should hold, by the side files beside them; see `gevar.om.weight_digests`."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from acl_shim import Device
from gevar.errors import LoadError
from gevar.om.weight_digests import DIGESTS_FILE, read_digests
from gevar.session.weight_content import WeightContent, device_digest
from gevar.types import DevAddr
from gevar.weights import FileRegion

_Listed = Sequence[tuple[int, int, bytes]]
"""Offset, length and digest of regions of a file, by rising offset, none running into the next."""


class ListedDigests:
    """The side files of the folders that weights are loaded from; each is read once.

    Thread safety: none; one object belongs to one load.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, dict[str, _Listed]] = {}

    def pieces(self, region: FileRegion) -> list[tuple[FileRegion, bytes | None]]:
        """Cut a region so that each part with a digest is by itself; the digest is None for what lies between.

        Raises
        ------
        LoadError
            There is no side file, or it lists no region inside this one.
        ModelFileError
            The side file is damaged.
        """
        found: list[tuple[FileRegion, bytes | None]] = []
        at, end = region.offset, region.offset + region.size_bytes
        for offset, length, digest in self._from(region, at):
            if offset + length > end:
                break
            if offset > at:
                found.append((FileRegion(region.path, at, offset - at, region.state), None))
            found.append((FileRegion(region.path, offset, length, region.state), digest))
            at = offset + length
        if region.size_bytes and not found:
            raise _unlisted(region)
        if at < end:
            found.append((FileRegion(region.path, at, end - at, region.state), None))
        return found

    def check_listed(self, region: FileRegion, brought: FileRegion) -> None:
        """Refuse a region of which a byte lies in no listed one that is inside what is brought of its file.

        What is brought is compared with these; one that begins before it, or ends behind it, cannot be. Raises as
        `pieces`.
        """
        at, end = region.offset, region.offset + region.size_bytes
        for offset, length, _ in self._from(region, at, -1):
            if at >= end or offset > at:
                break
            if offset >= brought.offset and offset + length <= brought.offset + brought.size_bytes:
                at = max(at, offset + length)
        if at < end:
            raise _unlisted(region)

    def check_device(self, content: WeightContent, device: Device, dev_addr: DevAddr) -> None:
        """Compare bytes that are on a device already with the digests of the region they are from.

        Raises
        ------
        LoadError
            A digest differs; or as `pieces`.
        ModelFileError
            As `pieces`.
        AclError
            A copy from the device was refused.
        """
        if not isinstance(content, FileRegion):
            return
        for piece, digest in self.pieces(content):
            if digest is None:
                continue
            got = device_digest(device, DevAddr(dev_addr + piece.offset - content.offset), piece.size_bytes)
            if got != digest:
                reason = f"its digest on the device is {got.hex()}, not {digest.hex()}: the bytes are damaged"
                raise LoadError(piece.path, piece.offset, piece.size_bytes, piece.size_bytes, reason)

    def _from(self, region: FileRegion, offset: int, step: int = 0) -> Iterator[tuple[int, int, bytes]]:
        """Yield what is listed of the file of a region, from the first that begins at an offset or behind it on.

        A step of -1 begins with the one before that.
        """
        listed = self._of_file(region)
        start = bisect_left(listed, offset, key=lambda one: one[0])
        yield from (listed[index] for index in range(max(start + step, 0), len(listed)))

    def _of_file(self, region: FileRegion) -> _Listed:
        folder = region.path.parent
        if folder not in self._folders:
            self._folders[folder] = _read(folder, region)
        return self._folders[folder].get(region.path.name, ())


def _read(folder: Path, region: FileRegion) -> dict[str, _Listed]:
    """Return the regions that the side file of a folder lists, by file."""
    side = folder / DIGESTS_FILE
    if not side.exists():
        raise LoadError(side, 0, 0, 0, f"there are no digests of {region.path.name}; export writes them")
    files: dict[str, list[tuple[int, int, bytes]]] = {}
    for one in sorted(read_digests(side, folder), key=lambda one: (one.offset, -one.length)):
        listed = files.setdefault(one.file, [])
        end = listed[-1][0] + listed[-1][1] if listed else 0
        if one.length and one.offset >= end:
            listed.append((one.offset, one.length, _digest(side, one.digest)))
    return dict(files)


def _digest(side: Path, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise LoadError(side, 0, 0, 0, f"{text!r:.40} is no digest in hex") from error


def _unlisted(region: FileRegion) -> LoadError:
    reason = f"{DIGESTS_FILE} beside it lists no digest for these bytes; export the weights again"
    return LoadError(region.path, region.offset, region.size_bytes, 0, reason)
