"""Conversions of a variable's data on the host, step by step along its road.

Source: GE source, runtime/v1/common, TransVarDataUtils::TransVarData.
Differs: edge 30 of docs/differences.md: types of nodes are compared whatever their case.
"""

import logging
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gevar.errors import FormatError
from gevar.formats import CastCounts, OnLoss, transfer
from gevar.formats import cast as cast_elements
from gevar.status import UNSUPPORTED
from gevar.types import TensorDesc
from gevar.var.graph_tables import DATA_UNCHANGED_TYPES, TransNodeInfo, TransRoad

_NOTHING_MOVES: Final = frozenset(map(str.lower, DATA_UNCHANGED_TYPES))
_TRANSFERS: Final = frozenset({"transdata", "transposed"})

_log = logging.getLogger("gevar.runtime")

Bytes = npt.NDArray[np.uint8]


def warn_of_losses(name: str, counts: CastCounts) -> None:
    """Tell of the elements of a variable that a cast has changed beyond rounding; nothing where there are none."""
    if counts.saturated or counts.wrapped or counts.nan:
        _log.warning("variable %r was cast: %s; GE's results stand for them", name, counts)


def moves_data(road: TransRoad) -> bool:
    """Tell whether a road has a step that changes bytes."""
    return any(step.node_type.lower() not in _NOTHING_MOVES for step in road)


def convert(data: Bytes, road: TransRoad, *, on_loss: OnLoss = "ge") -> tuple[Bytes, CastCounts]:
    """Return bytes after all steps of a road, and what casts lost.

    Parameters
    ----------
    data
        Bytes of the first step's input.
    road
        The steps.
    on_loss
        As `gevar.formats.cast`.

    Raises
    ------
    FormatError
        A step is of another type than TransData, TransposeD, Cast and those that move nothing (status UNSUPPORTED), or
        as `gevar.formats.transfer` and `gevar.formats.cast`.
    """
    counts = CastCounts()
    for step in road:
        kind = step.node_type.lower()
        if kind == "cast":
            data, lost = cast(data, step.input, step.output, on_loss=on_loss)
            counts += lost
        elif kind in _TRANSFERS:
            elements = transfer(_elements(data, step.input, step.output), step.input, step.output)
            data = elements.reshape(-1).view(np.uint8)
        elif kind not in _NOTHING_MOVES:
            raise _unsupported(step)
    return data, counts


def cast(data: Bytes, source: TensorDesc, target: TensorDesc, *, on_loss: OnLoss = "ge") -> tuple[Bytes, CastCounts]:
    """Return elements in another data type, and what was lost; the same bytes where it is the same type.

    Raises
    ------
    FormatError
        The bytes are not whole elements, or as `gevar.formats.cast`.
    """
    if source.dtype == target.dtype:
        return data, CastCounts()
    elements = _elements(data, source, target)
    values, counts = cast_elements(elements, source.dtype, target.dtype, on_loss=on_loss)
    return values.view(np.uint8), counts


def _elements(data: Bytes, source: TensorDesc, target: TensorDesc) -> npt.NDArray[Any]:
    """Bytes as elements of a description's data type."""
    if source.dtype.is_packed or source.dtype.element_bits is None:
        rule = f"{source.dtype.name} has no element of whole bytes"
        raise FormatError(_words(source), rule, destination=_words(target))
    element = source.dtype.to_numpy()
    if len(data) % element.itemsize:
        rule = f"{len(data)} B are not whole elements of {element.itemsize} B"
        raise FormatError(_words(source), rule, destination=_words(target))
    return data.view(element)


def _unsupported(step: TransNodeInfo) -> FormatError:
    rule = f"{step.node_type} is no conversion that is done here; take it off the road and convert the data before"
    return FormatError(_words(step.input), rule, destination=_words(step.output), status=UNSUPPORTED)


def _words(desc: TensorDesc) -> str:
    return f"{desc.dtype.name} {list(desc.shape)} format {desc.format}"
