"""Tensor descriptions as passes see them: the description of a place, attributes of it, and its words in a message."""

from gevar.graph import Node
from gevar.proto.ge_ir import AttrDef
from gevar.types import TensorDesc
from gevar.types.format import c0, format_to_serial


def int_attr(desc: TensorDesc, name: str) -> int | None:
    """Return an integer attribute of a description, None where there is none."""
    attr = desc.attrs.get(name)
    return attr.i if attr is not None and attr.WhichOneof("value") == "i" else None


def str_attr(desc: TensorDesc, name: str) -> str | None:
    """Return a text attribute of a description, None where there is none."""
    attr = desc.attrs.get(name)
    return attr.s.decode(errors="surrogateescape") if attr is not None and attr.WhichOneof("value") == "s" else None


def ints_attr(desc: TensorDesc, name: str) -> tuple[int, ...]:
    """Return an attribute of a description that is a list of integers; empty where there is none."""
    attr = desc.attrs.get(name)
    return tuple(attr.list.i) if attr is not None and attr.WhichOneof("value") == "list" else ()


def with_str_attr(desc: TensorDesc, name: str, text: str) -> TensorDesc:
    """Return a description with a text attribute."""
    return desc.replace(attrs={**desc.attrs, name: AttrDef(s=text.encode(errors="surrogateescape"))})


def variable_desc(node: Node) -> TensorDesc:
    """Return the description of a variable, which is its output 0.

    Raises
    ------
    GraphError
        The node has no output.
    """
    return node.op_desc.output_desc(0)


def format_text(fmt: int) -> str:
    """Return a format for a person: its name, group count and C0."""
    size = c0(fmt)
    return format_to_serial(fmt) + (f" C0={size}" if size > 0 else "")


def desc_text(desc: TensorDesc) -> str:
    """Return format, data type and shape for a person.

    Examples
    --------
    >>> from gevar.types import DataType, Format
    >>> desc_text(TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (1, 3)))
    'NCHW DT_FLOAT [1, 3]'
    """
    return f"{format_text(desc.format)} {desc.dtype.name} {list(desc.shape)}"
