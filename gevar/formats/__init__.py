"""Conversion of tensors between storage formats on the host, as GE does it."""

from gevar.formats.format_transfer import infer_shape, supported, transfer

__all__ = ["infer_shape", "supported", "transfer"]
