"""Conversion of tensors on the host, as GE does it: between storage formats, and between data types.

A step of a trans road is one call: a TransData or TransposeD is `transfer(array, step.input, step.output)`, a Cast is
`cast(array, step.input.dtype, step.output.dtype)`. Both write into memory that is given, and take little beside it.
"""

from gevar.formats.cast_counts import CastCounts
from gevar.formats.data_type_cast import OnLoss, cast, cast_supported
from gevar.formats.format_transfer import infer_shape, supported, transfer

__all__ = ["CastCounts", "OnLoss", "cast", "cast_supported", "infer_shape", "supported", "transfer"]
