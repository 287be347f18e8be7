"""Place holders: constants whose device memory the caller owns and names in the node.

Source: GE source, base/common/const_place_holder_utils/const_place_holder_utils.cc.
"""

from typing import Final

from gevar.align import UINT64_MAX
from gevar.errors import AddressError, FormatError, SizeOverflowError
from gevar.types import DevAddr, Format
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var.var_block import ExternMemory, VarBlock
from gevar.var.var_op import VarOp

PLACEMENT_DEVICE: Final = 1
"""Value of the attribute `placement` for device memory."""


def read_place_holder(op: VarOp) -> ExternMemory:
    """Return the caller's memory that the attributes of a node name.

    Raises
    ------
    ValueError
        `storage_shape`, `dtype`, `size`, `placement` or `addr` is missing, the memory is not on a device, the address
        is 0, or the memory is too small for the shape or ends behind 64 bits.
    """
    shape, dtype = op.ints_attr("storage_shape"), op.dtype_attr("dtype")
    size_bytes, placement, addr = op.int_attr("size"), op.int_attr("placement"), op.int_attr("addr")
    if placement != PLACEMENT_DEVICE:
        raise ValueError(f"op {op.name!r}: placement is {placement}; give {PLACEMENT_DEVICE}, device memory")
    addr %= UINT64_MAX + 1  # attributes are signed
    if not addr or addr + size_bytes > UINT64_MAX:
        raise ValueError(f"op {op.name!r}: addr is {addr}, size {size_bytes} B; give the address of device memory")
    try:
        needed = calc_tensor_mem_size(shape, Format.FORMAT_ND, dtype)
    except (FormatError, SizeOverflowError) as error:
        raise ValueError(f"op {op.name!r}: storage_shape {shape} has no size: {error}") from error
    if needed < 0:
        raise ValueError(f"op {op.name!r}: {dtype.name} of shape {shape} has no size; give every dimension and a type")
    if needed > size_bytes:
        raise ValueError(f"op {op.name!r}: {dtype.name} of shape {shape} needs {needed} B, size is {size_bytes} B")
    return ExternMemory(DevAddr(addr), size_bytes)


def place_holder_addr(block: VarBlock, memory: ExternMemory, logic_addr: int) -> DevAddr:
    """Return the device address that a logical address in a place holder's block stands for.

    Raises
    ------
    AddressError
        The address lies behind the caller's memory, or the memory is that of another process.

    Differs: edges 15 and 24 of docs/differences.md.
    """
    if not memory.live:
        reason = f"the memory of place holder {block.key} is that of another process; assign it again"
        raise AddressError(logic_addr, reason)
    inner = logic_addr - block.logic_addr
    if inner and inner >= memory.size_bytes:
        reason = f"{inner} B into place holder {block.key}, whose memory has {memory.size_bytes} B"
        raise AddressError(logic_addr, reason, nearest=(block.logic_addr, memory.size_bytes))
    return DevAddr(memory.dev_addr + inner)
