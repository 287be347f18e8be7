"""Many copies in one call: what each is, and the C arrays that describe them."""

from collections.abc import Sequence
from dataclasses import dataclass

from acl_shim.api_types import Cell, IntArray, MemcpyBatchAttrArray
from acl_shim.codes import MemcpyKind, MemLocationType
from acl_shim.errors import Argument
from acl_shim.structs import new_batch_attrs
from acl_shim.table import new_array, new_cell

_HOST = MemLocationType.ACL_MEM_LOCATION_TYPE_HOST, 0
_NONE = 2**64 - 1  # number of the failed copy where the runtime names none
_DEVICE = MemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE


@dataclass(frozen=True, slots=True)
class BatchCopy:
    """One copy of a batch.

    Attributes
    ----------
    dst, src
        Addresses.
    dst_max_bytes
        Room at `dst` in bytes.
    count_bytes
        How many bytes.
    """

    dst: int
    dst_max_bytes: int
    src: int
    count_bytes: int


class BatchArguments:
    """Arguments of `aclrtMemcpyBatch` for copies in one direction; its arrays live as long as it does.

    Attributes
    ----------
    arrays
        Every argument up to the last cell.
    fail_index
        The cell that gets the number of the first copy that failed.
    """

    arrays: tuple[IntArray, IntArray, IntArray, IntArray, int, MemcpyBatchAttrArray, IntArray, int]
    fail_index: Cell

    def __init__(self, copies: Sequence[BatchCopy], kind: int, device_id: int) -> None:
        if kind not in (MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE, MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST):
            raise ValueError(f"kind of a batch is {kind}: give ACL_MEMCPY_HOST_TO_DEVICE or ACL_MEMCPY_DEVICE_TO_HOST")
        device = _DEVICE, device_id
        dst, src = (device, _HOST) if kind == MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE else (_HOST, device)
        self._copies = copies
        self.fail_index = new_cell("size_t *", _NONE)
        self.arrays = (
            new_array("uintptr_t[]", (copy.dst for copy in copies)),
            new_array("size_t[]", (copy.dst_max_bytes for copy in copies)),
            new_array("uintptr_t[]", (copy.src for copy in copies)),
            new_array("size_t[]", (copy.count_bytes for copy in copies)),
            len(copies),
            new_batch_attrs(dst, src),
            new_array("size_t[]", [0]),  # the attributes hold from the first copy on
            1,
        )

    def error_arguments(self) -> dict[str, Argument]:
        """Return the arguments for an error: how many copies, and the first that failed."""
        index = self.fail_index[0]
        if index >= len(self._copies):
            return {"copies": len(self._copies)}
        copy = self._copies[index]
        return {
            "copies": len(self._copies),
            "failed": index,
            "dst": copy.dst,
            "dst_max_bytes": copy.dst_max_bytes,
            "src": copy.src,
            "count_bytes": copy.count_bytes,
        }
