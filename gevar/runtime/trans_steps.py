"""Conversions of a variable's data on the host: steps that move nothing, and casts.

Source: GE source, runtime/v1/common, TransAllVarData.
Differs: edge 30 of docs/differences.md: types of nodes are compared whatever their case.
"""

from typing import Final

import numpy as np

from gevar.errors import FormatError
from gevar.status import UNSUPPORTED
from gevar.types import TensorDesc
from gevar.var.graph_tables import TransNodeInfo, TransRoad

_NOTHING_MOVES: Final = frozenset({"reshape", "reformat", "squeezev2", "unsqueezev2"})


def moves_data(road: TransRoad) -> bool:
    """Tell whether a road has a step that changes bytes."""
    return any(step.node_type.lower() not in _NOTHING_MOVES for step in road)


def convert(data: bytes, road: TransRoad) -> bytes:
    """Return bytes after all steps of a road.

    Raises
    ------
    FormatError
        A step is no cast and moves bytes (status UNSUPPORTED), or the bytes are not whole elements.
    """
    for step in road:
        kind = step.node_type.lower()
        if kind == "cast":
            data = cast(data, step.input, step.output)
        elif kind not in _NOTHING_MOVES:
            raise _unsupported(step)
    return data


def cast(data: bytes, source: TensorDesc, target: TensorDesc) -> bytes:
    """Return elements in another data type, as numpy converts them; the same bytes where it is the same type.

    Raises
    ------
    FormatError
        A type has no element of whole bytes, or the bytes are not whole elements.
    """
    if source.dtype == target.dtype:
        return data
    for dtype in (source.dtype, target.dtype):
        if dtype.is_packed or dtype.element_bits is None:
            raise FormatError(_words(source), f"{dtype.name} has no element of whole bytes", destination=_words(target))
    element = source.dtype.to_numpy()
    if len(data) % element.itemsize:
        rule = f"{len(data)} B are not whole elements of {element.itemsize} B"
        raise FormatError(_words(source), rule, destination=_words(target))
    with np.errstate(all="ignore"):
        return np.frombuffer(data, element).astype(target.dtype.to_numpy()).tobytes()


def _unsupported(step: TransNodeInfo) -> FormatError:
    rule = f"{step.node_type} is neither a Cast nor a step that moves nothing; convert the data before"
    return FormatError(_words(step.input), rule, destination=_words(step.output), status=UNSUPPORTED)


def _words(desc: TensorDesc) -> str:
    return f"{desc.dtype.name} {list(desc.shape)} format {desc.format}"
