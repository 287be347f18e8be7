"""What a conversion between two descriptions is: its row of the table, the sizes of its axes, both shapes.

Source: GE source, base/formats/format_transfers, each file's CheckArgsForTrans and TransShape; base/formats/utils.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Final

from gevar.errors import FormatError
from gevar.formats.layouts import (
    BACKWARD,
    C0,
    CHANNELS_C04,
    CUBE,
    FORWARD,
    LAYOUTS,
    PLANES_OF_C0,
    Layout,
    Pair,
)
from gevar.status import (
    ACL_ERROR_GE_DATATYPE_INVALID,
    ACL_ERROR_GE_FORMAT_INVALID,
    ACL_ERROR_GE_SHAPE_INVALID,
    FAILED,
    UNSUPPORTED,
)
from gevar.types import Format, TensorDesc
from gevar.types.format import c0, format_to_serial, primary_format, sub_format

MAX_ELEMENTS: Final = 1 << 40
"""Most elements of a tensor that is converted (GE: kShapeItemNumMAX)."""

_TOKEN: Final = re.compile(r"\([^)]*\)|\S+")


@dataclass(frozen=True, slots=True)
class Groups:
    """How the groups of a grouped FRACTAL_Z lie: `side_by_side` of them in one block diagonal, `rows` diagonals.

    Attributes
    ----------
    count, side_by_side, rows : int
        Groups in all, groups on one diagonal, and diagonals.
    channels, batch : int
        Channels and output channels of one group.

    Source: GE source, base/formats/format_transfers/format_transfer_fractal_z.cc, GetFracZGroupedShape.
    """

    count: int
    side_by_side: int
    rows: int
    channels: int
    batch: int


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion, with everything that its shapes decide.

    Attributes
    ----------
    pair : Pair
        Row of the table.
    layout : Layout
        Layout of the stored side.
    sizes : mapping of str to int
        Elements along each axis of the plain side; P is H times W, axes that are not there have 1.
    blocks : mapping of str to int
        Elements of a block along the axes of the stored side that have blocks.
    plain_shape, stored_shape : tuple of int
        Shapes of both sides.
    groups : Groups, optional
        Where the filter has more than one group.
    """

    pair: Pair
    layout: Layout
    sizes: Mapping[str, int]
    blocks: Mapping[str, int]
    plain_shape: tuple[int, ...]
    stored_shape: tuple[int, ...]
    groups: Groups | None


class Rules:
    """The two descriptions of a conversion, checked against GE's rules; what breaks one is a `FormatError`."""

    def __init__(self, src: TensorDesc, dst: TensorDesc | None, dst_format: int) -> None:
        self.src, self.dst, self.dst_format = src, dst, dst_format

    def forward(self) -> Conversion:
        """Return the conversion from the plain source to the stored destination.

        Raises
        ------
        FormatError
            The pair has no shape inference, or the source breaks a rule.
        """
        pair = FORWARD.get((primary_format(self.src.format), primary_format(self.dst_format)))
        if pair is None:
            raise self.error(
                "the shape of this pair cannot be inferred; give a plain source format", ACL_ERROR_GE_FORMAT_INVALID
            )
        return self._conversion(pair, self.src.shape, self.dst_format, "source")

    def complete(self) -> tuple[Conversion, bool]:
        """Return the conversion, and whether it goes from plain to stored; both shapes agree.

        Raises
        ------
        FormatError
            There is no such pair, or a description breaks a rule.
        """
        assert self.dst is not None
        key = primary_format(self.src.format), primary_format(self.dst_format)
        if self.src.dtype != self.dst.dtype:
            raise self.error("the element types differ; cast before or after", ACL_ERROR_GE_DATATYPE_INVALID)
        if key in FORWARD:
            conversion = self._conversion(FORWARD[key], self.src.shape, self.dst_format, "source")
            if self.dst.shape or conversion.layout.needs_shape:
                self._check_stored(self.dst.shape, conversion.stored_shape, "destination")
            return conversion, True
        if key in BACKWARD:
            conversion = self._conversion(BACKWARD[key], self.dst.shape, self.src.format, "destination")
            self._check_stored(self.src.shape, conversion.stored_shape, "source")
            return conversion, False
        raise self.error("there is no conversion between these formats", ACL_ERROR_GE_FORMAT_INVALID)

    def error(self, rule: str, status: int) -> FormatError:
        """Return the error that names both descriptions and the rule that is broken."""
        target = format_words(self.dst_format) if self.dst is None else desc_words(self.dst)
        return FormatError(desc_words(self.src), rule, destination=target, status=status)

    def _conversion(self, pair: Pair, plain_shape: Sequence[int], stored_format: int, side: str) -> Conversion:
        layout = LAYOUTS[pair.stored]
        self._check_type(layout)
        self._check_shape(pair, plain_shape, side)
        sizes, lead = _sizes(pair.axes, plain_shape)
        blocks = self._blocks(pair, layout, stored_format)
        if pair.stored == Format.FORMAT_FRACTAL_Z_C04 and sizes["C"] > CHANNELS_C04:
            rule = f"C is {sizes['C']}, and FRACTAL_Z_C04 takes at most {CHANNELS_C04}"
            raise self.error(rule, ACL_ERROR_GE_SHAPE_INVALID)
        groups = self._groups(pair, sizes, blocks, stored_format)
        shape = _stored_shape(layout, sizes, lead, blocks, groups)
        if prod(shape) > MAX_ELEMENTS:
            raise self.error(
                f"shape {list(shape)} has more than 2**40 elements; use a smaller one", ACL_ERROR_GE_SHAPE_INVALID
            )
        return Conversion(pair, layout, sizes, blocks, tuple(plain_shape), shape, groups)

    def _check_type(self, layout: Layout) -> None:
        dtype = self.src.dtype
        if dtype.element_bits is None or dtype.is_packed:
            raise self.error(
                f"elements of {dtype.name} are not whole bytes of a fixed number; unpack them first",
                ACL_ERROR_GE_DATATYPE_INVALID,
            )
        if layout.dtypes is not None and dtype not in layout.dtypes:
            taken = ", ".join(one.name for one in sorted(layout.dtypes))
            raise self.error(f"the format takes {taken} only", ACL_ERROR_GE_DATATYPE_INVALID)

    def _check_shape(self, pair: Pair, shape: Sequence[int], side: str) -> None:
        rule = None
        if not shape:
            rule = f"the {side} is a scalar or has no shape; give its dimensions"
        elif any(dim < 0 for dim in shape):
            rule = f"the {side} has an unknown dimension; give every one"
        elif prod(shape) > MAX_ELEMENTS:
            rule = f"the {side} has more than 2**40 elements; use a smaller one"
        if rule is not None:
            raise self.error(rule, ACL_ERROR_GE_SHAPE_INVALID)
        if pair.rank is not None and len(shape) != pair.rank:
            status = FAILED if pair.plain == Format.FORMAT_ND else ACL_ERROR_GE_SHAPE_INVALID
            raise self.error(f"the {side} has {len(shape)} dimensions, and {pair.rank} are needed", status)

    def _check_stored(self, shape: Sequence[int], wanted: Sequence[int], side: str) -> None:
        if tuple(shape) != tuple(wanted):
            rule = f"the {side} shape must be {list(wanted)} by its format, C0 and groups, and is {list(shape)}"
            raise self.error(rule, ACL_ERROR_GE_SHAPE_INVALID)

    def _blocks(self, pair: Pair, layout: Layout, stored_format: int) -> dict[str, int]:
        """Elements of a block per axis, with C0 from the format, the data type or the given shape, as GE takes it."""
        if not layout.blocks:
            return {}
        cube = c0(stored_format)
        by_type = 32 if self.src.dtype.size_code == 1 else CUBE
        if layout.status_without_c0 == 0 or (cube < 0 and layout.infers_c0 and self.dst is None):
            cube = by_type
        elif cube < 0 and pair.plain == Format.FORMAT_NHWC and layout.infers_c0:
            cube = self._c0_of_shape()
        if cube < 0:
            raise self.error("the stored format carries no C0; set bits 24 to 27", layout.status_without_c0)
        sized = {C0: cube, PLANES_OF_C0: cube // CHANNELS_C04}
        return {axis: sized.get(block, block) for axis, block in layout.blocks.items()}

    def _c0_of_shape(self) -> int:
        """C0 of NHWC to NC1HWC0 without a C0 in the format: the last dimension given; -1 on the way back."""
        assert self.dst is not None
        if primary_format(self.dst_format) != Format.FORMAT_NC1HWC0:
            return -1
        if len(self.dst.shape) != 5 or self.dst.shape[-1] <= 0:
            raise self.error(
                "neither the format nor the destination shape tells C0; set bits 24 to 27", ACL_ERROR_GE_SHAPE_INVALID
            )
        return self.dst.shape[-1]

    def _groups(
        self, pair: Pair, sizes: Mapping[str, int], blocks: Mapping[str, int], stored_format: int
    ) -> Groups | None:
        count = sub_format(stored_format)
        if count <= 1 or pair.stored not in (Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_Z_C04):
            return None
        if pair.stored == Format.FORMAT_FRACTAL_Z_C04:
            raise self.error(f"FRACTAL_Z_C04 has no groups, and {count} are asked for", UNSUPPORTED)
        channels, batch = sizes["C"], sizes["N"] // count
        if batch == 0 or sizes["N"] % count:
            raise self.error(f"N is {sizes['N']}, which {count} groups do not divide; give a count that does", FAILED)
        wide = lcm(channels, blocks["C"]) // channels if channels else 1
        side_by_side = min(lcm(wide, lcm(batch, CUBE) // batch), count)
        return Groups(count, side_by_side, -(-count // side_by_side), channels, batch)


def desc_words(desc: TensorDesc) -> str:
    """Return a description in words: element type, shape, format with its C0."""
    return f"{desc.dtype.name} {list(desc.shape)} in {format_words(desc.format)}"


def format_words(value: int) -> str:
    """Return a format value in words, with its number and its C0."""
    cube = c0(value)
    name = "FRACTAL_ZZ" if primary_format(value) == Format.FORMAT_FRACTAL_ZZ else format_to_serial(value)
    return f"{name} ({value}{f', C0 {cube}' if cube > 0 else ''})"


def _sizes(axes: str, shape: Sequence[int]) -> tuple[dict[str, int], tuple[int, ...]]:
    """Elements per axis, and the dimensions that `L` stands for."""
    sizes = dict.fromkeys("NCHWD", 1)
    letters = axes.split()
    lead: tuple[int, ...] = ()
    if letters[0] == "L":
        *rest, row, column = shape if len(shape) > 1 else (1, *shape)
        lead = tuple(rest)
        sizes |= {"L": prod(lead), "Y": row, "X": column}
    else:
        sizes |= dict(zip(letters, shape, strict=True))
    return sizes | {"P": sizes["H"] * sizes["W"]}, lead


def _stored_shape(
    layout: Layout,
    sizes: Mapping[str, int],
    lead: tuple[int, ...],
    blocks: Mapping[str, int],
    groups: Groups | None,
) -> tuple[int, ...]:
    """Shape of the stored side."""
    if groups is not None:
        sizes = {**sizes, "C": groups.side_by_side * groups.channels, "N": groups.side_by_side * groups.batch}
    shape: list[int] = []
    for token in _TOKEN.findall(layout.axes):
        parts = token.strip("()").split()
        shape.extend(lead if parts == ["L"] else [prod(axis_size(part, sizes, blocks) for part in parts)])
    if groups is not None:
        shape[0] *= groups.rows
    return tuple(shape)


def axis_size(axis: str, sizes: Mapping[str, int], blocks: Mapping[str, int]) -> int:
    """Return the elements along an axis, or a part of one, of a stored format."""
    letter, part = axis[0], axis[1:]
    if not part:
        return sizes[letter]
    return blocks[letter] if part == "0" else -(-sizes[letter] // blocks[letter])
