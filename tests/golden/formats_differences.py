"""Where gevar's answer on formats and casts differs from GE's on purpose: the rows of `docs/differences.md`.

Each row of the page has a name; the predicate of that name says which cases it speaks of, and what gevar's status is
there. A difference that no row of the page allows fails.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gevar.formats.layouts import BACKWARD, FORWARD
from gevar.status import ACL_ERROR_GE_SHAPE_INVALID, FAILED, SUCCESS
from gevar.types import DataType, Format
from gevar.types.format import c0, primary_format, sub_format
from tests.golden.formats_reference import stored_shape
from tests.helpers.shared import REPOSITORY

PAGE = REPOSITORY / "docs" / "differences.md"
HEADING = "## Formats and casts"
ROW = re.compile(r"\| `([a-z0-9-]+)` \|")


@dataclass(frozen=True)
class Case:
    """What a row may look at."""

    src_format: int
    dst_format: int
    dtype: DataType
    src_shape: tuple[int, ...]
    dst_shape: tuple[int, ...] | None
    status: int
    """GE's."""
    inference: bool = False
    """Whether only the shape is asked for."""

    @property
    def pair(self) -> tuple[int, int]:
        return primary_format(self.src_format), primary_format(self.dst_format)

    @property
    def groups(self) -> int:
        """Groups of the FRACTAL_Z side."""
        by_format = {primary_format(value): sub_format(value) for value in (self.src_format, self.dst_format)}
        return by_format.get(int(Format.FORMAT_FRACTAL_Z), 0)

    @property
    def sides(self) -> tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]:
        """Format and shape of both sides, the FRACTAL_Z side last if there is one."""
        both = (self.src_format, self.src_shape), (self.dst_format, self.dst_shape or ())
        return both if primary_format(self.src_format) != Format.FORMAT_FRACTAL_Z else both[::-1]

    @property
    def batch(self) -> int:
        """N of the plain side, -1 where the shape is not a filter's."""
        value, shape = self.sides[0]
        place = {Format.FORMAT_NCHW: 0, Format.FORMAT_NHWC: 0, Format.FORMAT_HWCN: 3, Format.FORMAT_ND: 1}
        at = place.get(Format(primary_format(value)), len(shape))
        return shape[at] if at < len(shape) in (2, 4) else -1

    def shape_by_formulas(self) -> tuple[int, ...]:
        """Shape of the FRACTAL_Z side with its groups."""
        (plain, shape), (stored, _) = self.sides
        name = Format(primary_format(plain)).name.removeprefix("FORMAT_")
        return stored_shape(name, shape, "FRACTAL_Z", c0(stored), self.groups)


def _added_pair(case: Case) -> int | None:
    row = FORWARD.get(case.pair) or BACKWARD.get(case.pair)
    return SUCCESS if row is not None and row.addition else None


def _grouped_filter(case: Case) -> int | None:
    ge_has = case.pair == (Format.FORMAT_HWCN, Format.FORMAT_FRACTAL_Z)
    ge_has |= case.inference and case.pair == (Format.FORMAT_NCHW, Format.FORMAT_FRACTAL_Z)
    if case.groups <= 1 or ge_has or case.batch < 0 or case.batch % case.groups:
        return None
    agree = case.inference or case.sides[1][1] == case.shape_by_formulas()
    return SUCCESS if agree else ACL_ERROR_GE_SHAPE_INVALID


def _uneven_groups(case: Case) -> int | None:
    return FAILED if case.groups > 1 and case.batch >= 0 and case.batch % case.groups else None


def _bf16_diagonal(case: Case) -> int | None:
    diagonal = Format.FORMAT_C1HWNCoC0 in case.pair
    return SUCCESS if diagonal and case.dtype is DataType.DT_BF16 else None


def _missing_shape(case: Case) -> int | None:
    kin = (
        Format.FORMAT_FRACTAL_Z,
        Format.FORMAT_FRACTAL_Z_3D,
        Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE,
    )
    return SUCCESS if case.dst_shape == () and case.pair[1] in kin else None


def _empty_c04(case: Case) -> int | None:
    back = case.pair == (Format.FORMAT_FRACTAL_Z_C04, Format.FORMAT_HWCN)
    return SUCCESS if back and 0 in (case.dst_shape or ()) else None


RULES: Mapping[str, Callable[[Case], int | None]] = {
    "added-pairs": _added_pair,
    "grouped-filters": _grouped_filter,
    "uneven-groups": _uneven_groups,
    "bf16-diagonal": _bf16_diagonal,
    "missing-shape": _missing_shape,
    "empty-c04": _empty_c04,
}
"""Status of gevar per row, None where the row does not speak of the case."""

UNDEFINED_CASTS = "undefined-casts"
"""Row of the values whose cast GE leaves open."""


def rows_of_page(text: str | None = None) -> list[str]:
    """Names of the rows that the page has."""
    page = PAGE.read_text(encoding="utf-8") if text is None else text
    if HEADING not in page:
        return []
    section = page.split(f"{HEADING}\n", 1)[1].split("\n## ", 1)[0]
    return ROW.findall(section)


def allowed(case: Case) -> tuple[str, int] | None:
    """Name and gevar's status of the row of the page that speaks of a case; None where there is none."""
    listed = set(rows_of_page())
    for name, rule in RULES.items():
        status = rule(case) if name in listed else None
        if status is not None:
            return name, status
    return None
