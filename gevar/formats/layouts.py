"""The table of formats: the axes of each, in order, and the pairs between which data is converted.

An axis is a letter: N, C, H, W, D as in the names of formats; Y and X are row and column of a matrix, L stands for all
axes before them. A blocked axis has two parts: `C1` counts the blocks, `C0` counts inside one, `C = C1 * block + C0`.
P is the plane, H and W together. Axes in brackets are one dimension of the shape.

Source: GE source, base/formats/format_transfers; the blocks of a format are in each file's TransShape.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from types import MappingProxyType
from typing import Final

from gevar.status import ACL_ERROR_GE_DATATYPE_INVALID, ACL_ERROR_GE_SHAPE_INVALID
from gevar.types import DataType, Format

CUBE: Final = 16
"""Elements of a row block of the fractal formats (GE: kNiSize, kCubeSize)."""

C0: Final = 0
"""Block of an axis that is the format's C0."""

PLANES_OF_C0: Final = -4
"""Block of an axis that is a quarter of C0: places of the plane in a block of FRACTAL_Z_C04."""

CHANNELS_C04: Final = 4
"""Channels of FRACTAL_Z_C04, and the most that it takes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the elements of one format lie.

    Attributes
    ----------
    axes : str
        Axes from the outermost to the innermost. An axis that is named twice is filled on its diagonal.
    blocks : mapping of str to int
        Elements of a block, per axis that has blocks; `C0` and `PLANES_OF_C0` depend on the format's C0.
    status_without_c0 : int
        GE's status where the format value has no C0; 0 where C0 is told by the data type.
    infers_c0 : bool
        Whether a shape can be inferred without C0: 32 for types of one byte, else 16.
    needs_shape : bool
        Whether the shape of the destination must be given.
    dtypes : frozenset of DataType, optional
        Element types that are taken; None for all.
    """

    axes: str
    blocks: Mapping[str, int] = field(default_factory=dict)
    status_without_c0: int = ACL_ERROR_GE_DATATYPE_INVALID
    infers_c0: bool = False
    needs_shape: bool = False
    dtypes: frozenset[DataType] | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of the table: a plain format, its axes in this pair, and the format that its elements are stored in.

    Attributes
    ----------
    plain, stored : Format
        Primary formats.
    axes : str
        Axes of the plain format; `L` takes any number of dimensions, none too.
    rank : int, optional
        Dimensions of the plain shape; None where any number will do.
    back : bool
        Whether the stored format is converted back.
    addition : bool
        Whether GE does not have the pair.
    """

    plain: Format
    axes: str
    rank: int | None
    stored: Format
    back: bool = True
    addition: bool = False


PLAIN_4D: Final[Mapping[Format, str]] = MappingProxyType(
    {
        Format.FORMAT_NCHW: "N C H W",
        Format.FORMAT_NHWC: "N H W C",
        Format.FORMAT_HWCN: "H W C N",
        Format.FORMAT_CHWN: "C H W N",
    }
)

LAYOUTS: Final[Mapping[Format, Layout]] = MappingProxyType(
    {
        **{fmt: Layout(axes) for fmt, axes in PLAIN_4D.items()},
        Format.FORMAT_NC1HWC0: Layout("N C1 H W C0", {"C": C0}, infers_c0=True, needs_shape=True),
        Format.FORMAT_NDC1HWC0: Layout("N D C1 H W C0", {"C": C0}, infers_c0=True, needs_shape=True),
        Format.FORMAT_C1HWNCoC0: Layout(
            "C1 H W N C0 C0",
            {"C": C0},
            ACL_ERROR_GE_SHAPE_INVALID,
            needs_shape=True,
            dtypes=frozenset({DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_INT8, DataType.DT_BF16}),
        ),
        Format.FORMAT_FRACTAL_Z: Layout("(C1 H W) N1 N0 C0", {"C": C0, "N": CUBE}),
        Format.FORMAT_FRACTAL_Z_C04: Layout("P1 N1 N0 (P0 C0)", {"P": PLANES_OF_C0, "C": CHANNELS_C04, "N": CUBE}, 0),
        Format.FORMAT_FRACTAL_Z_3D: Layout("(D C1 H W) N1 N0 C0", {"C": C0, "N": CUBE}),
        Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE: Layout("(D N1 H W) C1 C0 N0", {"N": C0, "C": CUBE}),
        Format.FORMAT_FRACTAL_NZ: Layout(
            "L X1 Y1 Y0 X0", {"X": C0, "Y": CUBE}, ACL_ERROR_GE_SHAPE_INVALID, needs_shape=True
        ),
        Format.FORMAT_FRACTAL_ZZ: Layout(
            "L Y1 X1 Y0 X0", {"X": C0, "Y": C0}, ACL_ERROR_GE_SHAPE_INVALID, needs_shape=True
        ),
    }
)

_NCHW, _NHWC, _HWCN = Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_HWCN
_ND = Format.FORMAT_ND
_FRACTAL_Z, _C04 = Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_Z_C04
_NZ, _ZZ = Format.FORMAT_FRACTAL_NZ, Format.FORMAT_FRACTAL_ZZ

PAIRS: Final[tuple[Pair, ...]] = (
    Pair(_NCHW, PLAIN_4D[_NCHW], 4, Format.FORMAT_NC1HWC0),
    Pair(_NHWC, PLAIN_4D[_NHWC], 4, Format.FORMAT_NC1HWC0),
    Pair(_HWCN, PLAIN_4D[_HWCN], 4, Format.FORMAT_C1HWNCoC0),
    Pair(_NCHW, PLAIN_4D[_NCHW], 4, _FRACTAL_Z),
    Pair(_NHWC, PLAIN_4D[_NHWC], 4, _FRACTAL_Z),
    Pair(_HWCN, PLAIN_4D[_HWCN], 4, _FRACTAL_Z),
    Pair(_ND, "C N", 2, _FRACTAL_Z, back=False),
    Pair(_NCHW, PLAIN_4D[_NCHW], 4, _C04, back=False),
    Pair(_HWCN, PLAIN_4D[_HWCN], 4, _C04),
    Pair(_ND, "L Y X", None, _NZ),
    Pair(_NCHW, "L Y X", 4, _NZ),
    Pair(_NHWC, "L Y X", 4, _NZ),
    Pair(_ND, "L Y X", None, _ZZ),
    Pair(_NCHW, "L Y X", 4, _ZZ),
    Pair(_NHWC, "L Y X", 4, _ZZ),
    Pair(Format.FORMAT_DHWCN, "D H W C N", 5, Format.FORMAT_FRACTAL_Z_3D, back=False),
    Pair(Format.FORMAT_DHWNC, "D H W N C", 5, Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE, back=False),
    *(Pair(one, PLAIN_4D[one], 4, other, back=False) for one, other in permutations(PLAIN_4D, 2)),
    Pair(_HWCN, PLAIN_4D[_HWCN], 4, Format.FORMAT_NC1HWC0, addition=True),
    Pair(Format.FORMAT_NDHWC, "N D H W C", 5, Format.FORMAT_NDC1HWC0, addition=True),
    Pair(Format.FORMAT_NCDHW, "N C D H W", 5, Format.FORMAT_NDC1HWC0, addition=True),
    Pair(Format.FORMAT_DHWCN, "D H W C N", 5, Format.FORMAT_NDC1HWC0, addition=True),
)
"""Every pair; a transpose has a row for each direction."""

FORWARD: Final[Mapping[tuple[int, int], Pair]] = MappingProxyType({(pair.plain, pair.stored): pair for pair in PAIRS})
"""Rows by source and destination, from plain to stored."""

BACKWARD: Final[Mapping[tuple[int, int], Pair]] = MappingProxyType(
    {(pair.stored, pair.plain): pair for pair in PAIRS if pair.back}
)
"""Rows by source and destination, from stored to plain."""
