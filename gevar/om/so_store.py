"""Shared objects kept inside an OM (partition SO_BINS, "so-in-om").

::

    count u32 | items: magic u32, so_name_len u16, so_type u16, vendor_len u32, bin_len u32 | so name | vendor | binary

Source: GE source, base/common/op_so_store/op_so_store.cc.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from gevar.om.source import ByteSource

SO_ITEM_MAGIC = 0x5D776EFD
SO_COUNT = struct.Struct("<I")
SO_ITEM_HEAD = struct.Struct("<IHHII")
_MAX_VENDOR_BYTES = 1 << 16
MAX_ITEMS = 1 << 16
"""Most shared objects that are read; bounds the work on a damaged store."""
_WHAT = "SO_BINS"


class SoType(IntEnum):
    """What a shared object is for."""

    SPACE_REGISTRY = 0
    OP_MASTER = 1
    AUTOFUSE = 2
    CUSTOM_OP = 3


class SoItem(NamedTuple):
    """One shared object; `so_type` is a `SoType` or a number unknown here, `file_offset` counts in the OM."""

    name: str
    vendor: str
    so_type: int
    file_offset: int
    size_bytes: int


def read_so_store(source: ByteSource, start: int, size_bytes: int) -> tuple[SoItem, ...]:
    """Read the list of shared objects; the binaries are not touched.

    Raises
    ------
    ModelFileError
        The store is cut off, an item has another magic or no binary, or the number of items is not the declared one or
        above 65536.
    """
    end = start + size_bytes
    if size_bytes < SO_COUNT.size:
        raise source.error(start, _WHAT, f"{size_bytes} B, no room for the number of items")
    (count,) = SO_COUNT.unpack(source.read(start, SO_COUNT.size, _WHAT))
    position = start + SO_COUNT.size
    if count * SO_ITEM_HEAD.size > end - position:
        raise source.error(start, _WHAT, f"{count} items are declared, {end - position} B hold fewer")
    if count > MAX_ITEMS:
        raise source.error(start, _WHAT, f"{count} items are declared, {MAX_ITEMS} at most are read")
    items = []
    for _ in range(count):
        item, position = _read_item(source, position, end)
        items.append(item)
    if end - position > SO_ITEM_HEAD.size:
        raise source.error(position, _WHAT, f"{count} items are declared, {end - position} B are behind the last one")
    return tuple(items)


def _read_item(source: ByteSource, position: int, end: int) -> tuple[SoItem, int]:
    """Return the item at a position and the position after it."""
    body = position + SO_ITEM_HEAD.size
    if body > end:
        raise source.error(position, _WHAT, f"an item starts at {position}, the store ends at {end}")
    head = SO_ITEM_HEAD.unpack(source.read(position, SO_ITEM_HEAD.size, _WHAT))
    magic, name_len, so_type, vendor_len, bin_len = head
    if magic != SO_ITEM_MAGIC:
        raise source.error(position, _WHAT, f"item magic {SO_ITEM_MAGIC:#010x} expected, {magic:#010x} found")
    binary = body + name_len + vendor_len
    if not bin_len or vendor_len > _MAX_VENDOR_BYTES or binary + bin_len > end:
        reason = (
            f"item with names of {name_len} and {vendor_len} B and a binary of {bin_len} B, {end - body} B are left"
        )
        raise source.error(position, _WHAT, reason)
    name = source.read(body, name_len, _WHAT).decode("utf-8", "backslashreplace")
    vendor = source.read(body + name_len, vendor_len, _WHAT).decode("utf-8", "backslashreplace")
    return SoItem(name, vendor, so_type, binary, bin_len), binary + bin_len
