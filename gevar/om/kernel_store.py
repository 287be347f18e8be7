"""Kernel stores: the items of the TBE_KERNELS, CUST_AICPU_KERNELS and CUSTOM_OPS partitions.

A store is items back to back, without count or padding::

    magic u32 | name_len u32 | bin_len u32 | name (no NUL) | binary

Only the heads and names are read. GE does not check the magic, ends with a warning at an item that runs past the end,
and ignores a tail of 12 bytes or less; here a wrong magic ends the walk as well.

Source: GE source, base/common/tbe_kernel_store.cc, kernel_store.cc.
"""

import struct
from typing import NamedTuple

from gevar.om.source import ByteSource

KERNEL_ITEM_MAGIC = 0x5D776EFD
CUSTOM_OP_ITEM_MAGIC = 0x4B43534B
KERNEL_ITEM_HEAD = struct.Struct("<III")
MAX_ITEMS = 1 << 17
"""Most items that are walked; bounds the work on a damaged store."""
MAX_NAME_BYTES = 1 << 16
"""Longest name that is read."""


class KernelItem(NamedTuple):
    """One kernel: its name, and where its binary lies, in bytes from the start of the OM."""

    name: str
    file_offset: int
    size_bytes: int


class KernelStore(NamedTuple):
    """What a walk over a store found: the items, the bytes they take, and why the walk ended early (else None)."""

    items: tuple[KernelItem, ...]
    consumed_bytes: int
    size_bytes: int
    fault: str | None


def read_kernel_store(
    source: ByteSource, start: int, size_bytes: int, what: str, *, magic: int = KERNEL_ITEM_MAGIC
) -> KernelStore:
    """Walk over a kernel store; a broken one is reported by `fault`, not by an error, as GE only warns.

    Raises
    ------
    ModelFileError
        The file became shorter while it was read.
    """
    items: list[KernelItem] = []
    position, end = start, start + size_bytes
    fault = None
    while fault is None and end - position > KERNEL_ITEM_HEAD.size:
        found, name_len, bin_len = KERNEL_ITEM_HEAD.unpack(source.read(position, KERNEL_ITEM_HEAD.size, what))
        name_at = position + KERNEL_ITEM_HEAD.size
        item_end = name_at + name_len + bin_len
        if found != magic:
            fault = f"item {len(items)} at {position} has magic {found:#010x}, {magic:#010x} expected"
        elif item_end > end:
            fault = f"item {len(items)} at {position} ends at {item_end}, the store at {end}"
        elif name_len > MAX_NAME_BYTES or len(items) == MAX_ITEMS:
            fault = f"item {len(items)} at {position} is beyond the limits: name of {name_len} B, {MAX_ITEMS} items"
        else:
            name = source.read(name_at, name_len, what).decode("utf-8", "backslashreplace")
            items.append(KernelItem(name, name_at + name_len, bin_len))
            position = item_end
    return KernelStore(tuple(items), position - start, size_bytes, fault)
