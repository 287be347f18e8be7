"""Which trans ops can become a step of a variable's road.

That are the conversions that GE has; those that `gevar.formats` has beside them would give roads that GE does not take.

Source: GE source, compiler/graph/passes/variable_optimize/variable_op_pass.cc, IsOpSupported; base/formats/;
base/common/datatype_transfer/.
"""

from gevar.compile.descriptions import desc_text, format_text
from gevar.formats.data_type_cast import CASTS
from gevar.formats.layouts import BACKWARD, FORWARD
from gevar.types.format import primary_format
from gevar.var import TransNodeInfo
from gevar.var.graph_tables import DATA_UNCHANGED_TYPES


def unsupported_reason(step: TransNodeInfo) -> str:
    """Say why a trans op cannot become a step of a road; empty where it can."""
    source, target = step.input, step.output
    if any(dim < 0 for dim in target.shape):
        return f"{step.node_type} makes {desc_text(target)}, which has an unknown dimension"
    if step.node_type in DATA_UNCHANGED_TYPES:
        return ""
    if step.node_type in ("TransData", "TransposeD"):
        words = f"{step.node_type} from {format_text(source.format)} to {format_text(target.format)}"
        return "" if is_registered(source.format, target.format) else f"{words} is no conversion that is known"
    if step.node_type == "Cast":
        words = f"Cast from {source.dtype.name} to {target.dtype.name}"
        return "" if (source.dtype, target.dtype) in CASTS else f"{words} is no conversion that is known"
    return f"{step.node_type} has no conversion of data"


def is_registered(src_format: int, dst_format: int) -> bool:
    """Tell whether GE converts data between two formats; what only gevar converts does not count.

    Examples
    --------
    >>> from gevar.types import Format
    >>> [is_registered(plain, Format.FORMAT_NC1HWC0) for plain in (Format.FORMAT_NCHW, Format.FORMAT_HWCN)]
    [True, False]
    """
    key = primary_format(src_format), primary_format(dst_format)
    pair = FORWARD.get(key) or BACKWARD.get(key)
    return pair is not None and not pair.addition
