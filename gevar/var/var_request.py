"""What somebody who registers a variable wants, made before the lock is taken."""

from dataclasses import dataclass

from gevar.align import INT64_MAX
from gevar.errors import SizeOverflowError
from gevar.status import INTERNAL_ERROR
from gevar.types import MemType, TensorDesc
from gevar.var.constant_index import ConstantProbe
from gevar.var.var_key import VarKey
from gevar.var.var_op import VarOp


@dataclass(slots=True)
class VarRequest:
    """A variable that somebody wants to register.

    Attributes
    ----------
    key : VarKey
        Its key.
    desc : TensorDesc
        Its description.
    mem_type : MemType
        Kind of memory it is wanted in.
    op : VarOp or None
        Its node.
    probe : ConstantProbe or None
        Its weight, for a constant that may share by content.
    file_slice : tuple or None
        Path, offset and length in bytes of its weight, for a file constant that may share by place.
    """

    key: VarKey
    desc: TensorDesc
    mem_type: MemType
    op: VarOp | None
    probe: ConstantProbe | None
    file_slice: tuple[str, int, int] | None


def refuse_size(name: str, desc: TensorDesc) -> None:
    """Refuse a description of more bytes than a stored state can say.

    Raises
    ------
    SizeOverflowError
        The size does not fit into 63 bits (status INTERNAL_ERROR).
    """
    if desc.size > INT64_MAX:
        raise SizeOverflowError(f"the size of variable {name!r}", desc.size, INT64_MAX, status=INTERNAL_ERROR)
