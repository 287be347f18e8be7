"""Place holders: constants whose device memory the caller owns and names in the node.

Source: GE source, base/common/const_place_holder_utils/const_place_holder_utils.cc.
"""

from typing import Final

from gevar.errors import AddressError, FormatError, SizeOverflowError
from gevar.types import DevAddr, Format
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var.var_block import VarBlock
from gevar.var.var_op import VarOp

PLACEMENT_DEVICE: Final = 1
"""Value of the attribute `placement` for device memory."""


def read_place_holder(op: VarOp) -> tuple[DevAddr, int]:
    """Return address and size in bytes of the caller's memory, from the attributes of the node.

    Raises
    ------
    ValueError
        `storage_shape`, `dtype`, `size`, `placement` or `addr` is missing, the memory is not on a device, the address
        is 0, or the memory is too small for the shape.
    """
    shape, dtype = op.ints_attr("storage_shape"), op.dtype_attr("dtype")
    size_bytes, placement, addr = op.int_attr("size"), op.int_attr("placement"), op.int_attr("addr")
    if placement != PLACEMENT_DEVICE:
        raise ValueError(f"op {op.name!r}: placement is {placement}; give {PLACEMENT_DEVICE}, device memory")
    if addr <= 0:
        raise ValueError(f"op {op.name!r}: addr is {addr}; give the address of device memory")
    try:
        needed = calc_tensor_mem_size(shape, Format.FORMAT_ND, dtype)
    except (FormatError, SizeOverflowError) as error:
        raise ValueError(f"op {op.name!r}: storage_shape {shape} has no size: {error}") from error
    if needed < 0:
        raise ValueError(f"op {op.name!r}: {dtype.name} of shape {shape} has no size; give every dimension and a type")
    if needed > size_bytes:
        raise ValueError(f"op {op.name!r}: {dtype.name} of shape {shape} needs {needed} B, size is {size_bytes} B")
    return DevAddr(addr), size_bytes


def place_holder_addr(block: VarBlock, extern_addr: DevAddr, logic_addr: int) -> DevAddr:
    """Return the device address that a logical address in a place holder's block stands for.

    Raises
    ------
    AddressError
        The address lies behind the caller's memory.

    Differs: edge 15 of docs/differences.md.
    """
    inner = logic_addr - block.logic_addr
    if inner and inner >= block.extern_size_bytes:
        reason = f"{inner} B into place holder {block.key}, whose memory has {block.extern_size_bytes} B"
        raise AddressError(logic_addr, reason, nearest=(block.logic_addr, block.extern_size_bytes))
    return DevAddr(extern_addr + inner)
