"""Random tensors of every pair against formulas that go element by element, there and back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.errors import FormatError
from gevar.formats import infer_shape, transfer
from gevar.formats.layouts import LAYOUTS, PAIRS, Pair
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub
from tests.golden.formats_reference import places, stored_shape, to_plain, to_stored

Array = npt.NDArray[np.generic]
Case = tuple[Array, TensorDesc, int, int, int]
Draw = Callable[[st.SearchStrategy[Any]], Any]

WHOLE = [dtype for dtype in DataType if dtype.element_bits is not None and not dtype.is_packed]
EXAMPLES = settings(max_examples=12, deadline=None, derandomize=True)
GROUPED = [pair for pair in PAIRS if pair.stored == Format.FORMAT_FRACTAL_Z]


def name_of(pair: Pair) -> str:
    return f"{pair.plain.name[7:]}-{pair.stored.name[7:]}"


def short(fmt: int) -> str:
    return Format(fmt).name.removeprefix("FORMAT_")


@st.composite
def cases(draw: Draw, pair: Pair) -> Case:
    """A plain array with its description, the destination format, its C0 and its groups."""
    taken = LAYOUTS[pair.stored].dtypes
    dtype = draw(st.sampled_from(WHOLE if taken is None else sorted(taken)))
    code = draw(st.sampled_from([1, 2, 3, 4, 5, 6]))
    if pair.rank is None:
        shape = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    else:
        shape = draw(st.lists(st.integers(1, 4), min_size=pair.rank, max_size=pair.rank))
        shape[draw(st.integers(0, pair.rank - 1))] = draw(st.integers(1, 36))
    groups = 1
    letters = pair.axes.split()
    if pair.stored == Format.FORMAT_FRACTAL_Z_C04:
        code = 0
        shape[letters.index("C")] = draw(st.integers(1, 4))
    fmt = format_from_c0(pair.stored, code)
    if pair in GROUPED and draw(st.booleans()):
        groups = draw(st.integers(2, 7))
        shape[letters.index("N")] = groups * draw(st.integers(1, 5))
        fmt = format_from_c0(format_from_sub(pair.stored, groups), code)
    return random_array(dtype, shape), TensorDesc(dtype, pair.plain, shape), fmt, cube_of(dtype, code), groups


def random_array(dtype: DataType, shape: list[int]) -> Array:
    """Random bytes; bool holds 0 and 1 only."""
    element = dtype.to_numpy()
    count = int(np.prod(shape))
    rng = np.random.default_rng(count)
    data = rng.integers(1, 2 if dtype is DataType.DT_BOOL else 256, count * element.itemsize, np.uint8)
    return data.view(element).reshape(shape)


def cube_of(dtype: DataType, code: int) -> int:
    """C0 of a code; 0 is that of FRACTAL_Z_C04, which the data type tells."""
    return 1 << code - 1 if code else 32 if dtype.size_code == 1 else 16


def same_bytes(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def convert(case: Case) -> tuple[Array, TensorDesc]:
    array, src, fmt, _, _ = case
    dst = src.replace(format=fmt, shape=infer_shape(src, fmt))
    return transfer(array, src, dst), dst


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
@EXAMPLES
@given(data=st.data())
def test_every_pair_is_as_the_formulas_say(pair: Pair, data: st.DataObject) -> None:
    case = data.draw(cases(pair))
    array, _, _, cube, groups = case
    result, dst = convert(case)
    assert dst.shape == stored_shape(short(pair.plain), array.shape, short(pair.stored), cube, groups)
    assert same_bytes(result, to_stored(array, short(pair.plain), short(pair.stored), cube, groups))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.back], ids=name_of)
@EXAMPLES
@given(data=st.data())
def test_the_way_back_passes_over_padding_and_gives_the_same(pair: Pair, data: st.DataObject) -> None:
    case = data.draw(cases(pair))
    array, src, _, cube, groups = case
    result, dst = convert(case)
    assert same_bytes(transfer(result, dst, src), array)
    dirty = random_array(src.dtype, [*dst.shape])
    expected = to_plain(dirty, short(pair.plain), src.shape, short(pair.stored), cube, groups)
    assert same_bytes(transfer(dirty, dst, src), expected)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if LAYOUTS[pair.stored].blocks], ids=name_of)
@EXAMPLES
@given(data=st.data())
def test_padding_is_zero_in_memory_that_was_used(pair: Pair, data: st.DataObject) -> None:
    case = data.draw(cases(pair))
    array, src, fmt, cube, groups = case
    dst = src.replace(format=fmt, shape=infer_shape(src, fmt))
    out = np.full(int(np.prod(dst.shape)) * array.itemsize, 0xA5, np.uint8).view(array.dtype).reshape(dst.shape)
    assert transfer(array, src, dst, out=out) is out
    reached = np.zeros(dst.shape, bool)
    for _, place in places(short(pair.plain), array.shape, short(pair.stored), cube, groups):
        assert not reached[place]
        reached[place] = True
    assert not np.frombuffer(out[~reached].tobytes(), np.uint8).any()
    assert same_bytes(out, convert(case)[0])


@pytest.mark.parametrize("pair", GROUPED, ids=name_of)
@EXAMPLES
@given(
    groups=st.integers(2, 40),
    outputs=st.integers(1, 20),
    channels=st.integers(1, 20),
    plane=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    code=st.integers(1, 7),
)
def test_grouped_filters_are_as_the_formulas_say(
    pair: Pair, groups: int, outputs: int, channels: int, plane: tuple[int, int], code: int
) -> None:
    sizes = {"N": groups * outputs, "C": channels, "H": plane[0], "W": plane[1]}
    shape = [sizes[letter] for letter in pair.axes.split()]
    array = random_array(DataType.DT_INT16, shape)
    src = TensorDesc(DataType.DT_INT16, pair.plain, shape)
    case = array, src, format_from_c0(format_from_sub(pair.stored, groups), code), 1 << code - 1, groups
    result, dst = convert(case)
    assert same_bytes(result, to_stored(array, short(pair.plain), "FRACTAL_Z", 1 << code - 1, groups))
    if pair.back:
        assert same_bytes(transfer(result, dst, src), array)


@EXAMPLES
@given(
    shape=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    order=st.permutations(
        [Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_HWCN, Format.FORMAT_CHWN, Format.FORMAT_NCHW]
    ),
)
def test_a_road_of_transposes_comes_back(shape: list[int], order: list[Format]) -> None:
    road = [fmt for number, fmt in enumerate(order) if number == 0 or fmt != order[number - 1]]
    array = random_array(DataType.DT_FLOAT16, shape)
    desc = TensorDesc(DataType.DT_FLOAT16, road[0], shape)
    here, there = array, desc
    for fmt in [*road[1:], *road[-2::-1]]:
        following = there.replace(format=fmt, shape=infer_shape(there, fmt))
        here, there = transfer(here, there, following), following
    assert there == desc
    assert same_bytes(here, array)


@EXAMPLES
@given(
    src=st.sampled_from(sorted(Format)),
    dst=st.sampled_from(sorted(Format)),
    dtype=st.sampled_from(sorted(DataType)),
    src_shape=st.lists(st.integers(-1, 5), max_size=7),
    dst_shape=st.lists(st.integers(-1, 5), max_size=7),
    codes=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    subs=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_descriptions_at_random_convert_or_are_refused(
    src: Format,
    dst: Format,
    dtype: DataType,
    src_shape: list[int],
    dst_shape: list[int],
    codes: tuple[int, int],
    subs: tuple[int, int],
) -> None:
    one = TensorDesc(dtype, format_from_c0(format_from_sub(src, subs[0]), codes[0]), src_shape)
    other = TensorDesc(dtype, format_from_c0(format_from_sub(dst, subs[1]), codes[1]), dst_shape)
    count = int(np.prod([max(dim, 0) for dim in src_shape]))
    problem, result = attempt(np.zeros(count * 16, np.uint8), one, other, np.zeros(0, np.uint8))
    if problem is None:
        assert result is not None
        assert result.size == 0
    else:
        assert problem.status is not None
        assert "\n" not in str(problem)


def attempt(array: Array, src: TensorDesc, dst: TensorDesc, out: Array) -> tuple[FormatError | None, Array | None]:
    try:
        return None, transfer(array, src, dst, out=out)
    except FormatError as error:
        return error, None
