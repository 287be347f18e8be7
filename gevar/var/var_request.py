"""What somebody who registers a variable wants, made before the lock is taken."""

from dataclasses import dataclass

from gevar.types import MemType, TensorDesc
from gevar.var.var_key import VarKey
from gevar.var.var_op import VarOp
from gevar.var.weight_index import ConstantProbe


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
