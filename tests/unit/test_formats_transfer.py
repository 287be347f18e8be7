"""Transfers, shape inference and the table: what is taken, what comes back, what memory it needs."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from gevar.errors import FormatError
from gevar.formats import infer_shape, supported, transfer
from gevar.formats.layouts import BACKWARD, FORWARD, LAYOUTS, PAIRS
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub
from tests.helpers.shared import REPOSITORY

NC1HWC0_16 = format_from_c0(Format.FORMAT_NC1HWC0, 5)
NCHW = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (2, 17, 3, 4))
STORED = NCHW.replace(format=NC1HWC0_16, shape=(2, 2, 3, 4, 16))


def values(desc: TensorDesc) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    count = int(np.prod(desc.shape))
    return (np.arange(count) % 120 + 1).astype(desc.dtype.to_numpy()).reshape(desc.shape)


def test_ge_has_42_pairs_and_the_others_are_marked() -> None:
    ours = {*FORWARD, *BACKWARD}
    added = {key for key in ours if (FORWARD.get(key) or BACKWARD[key]).addition}
    assert len(ours - added) == 42
    assert {(Format(src).name[7:], Format(dst).name[7:]) for src, dst in added} == {
        ("HWCN", "NC1HWC0"),
        ("NC1HWC0", "HWCN"),
        ("NDHWC", "NDC1HWC0"),
        ("NDC1HWC0", "NDHWC"),
        ("NCDHW", "NDC1HWC0"),
        ("NDC1HWC0", "NCDHW"),
        ("DHWCN", "NDC1HWC0"),
        ("NDC1HWC0", "DHWCN"),
    }


def test_no_pair_is_declared_twice() -> None:
    assert len(FORWARD) == len(PAIRS)
    assert not FORWARD.keys() & BACKWARD.keys()


def test_supported_is_the_table_whatever_c0_and_sub_format() -> None:
    for src, dst in product(Format, Format):
        wanted = (src, dst) in FORWARD or (src, dst) in BACKWARD
        assert supported(src, dst) is wanted
        assert supported(format_from_c0(format_from_sub(src, 3), 5), format_from_c0(dst, 4)) is wanted


def test_a_tensor_goes_there_and_back() -> None:
    array = values(NCHW)
    stored = transfer(array, NCHW, STORED)
    assert stored.shape == STORED.shape
    assert stored.dtype == np.float16
    assert stored[1, 1, 2, 3, 0] == array[1, 16, 2, 3]
    assert not stored[:, 1, :, :, 1:].any()
    assert (transfer(stored, STORED, NCHW) == array).all()


def test_the_source_is_left_alone_and_the_result_is_new() -> None:
    array = values(NCHW)
    before = array.copy()
    result = transfer(array, NCHW, NCHW.replace(format=Format.FORMAT_NHWC, shape=(2, 3, 4, 17)))
    result[:] = 0
    assert (array == before).all()


@pytest.mark.parametrize("raw", [np.uint16, np.float16, "V2"])
def test_raw_patterns_and_one_dimension_are_taken(raw: str) -> None:
    array = values(NCHW).reshape(-1).view(raw)
    result = transfer(array, NCHW, STORED)
    assert result.dtype == np.dtype(raw)
    assert result.tobytes() == transfer(values(NCHW), NCHW, STORED).tobytes()


def test_bfloat16_works_everywhere() -> None:
    bf16 = np.dtype(DataType.DT_BF16.to_numpy())
    for pair in PAIRS:
        shape = tuple(range(2, 2 + (pair.rank or 3)))
        src = TensorDesc(DataType.DT_BF16, pair.plain, shape)
        dst = src.replace(format=format_from_c0(pair.stored, 5), shape=infer_shape(src, format_from_c0(pair.stored, 5)))
        array = values(src)
        stored = transfer(array, src, dst)
        assert stored.dtype == bf16
        patterns = transfer(array.view(np.uint16), src, dst)
        assert stored.tobytes() == patterns.tobytes()
        assert np.sort(stored[stored != 0].astype(np.float32)).tolist() == np.sort(array.reshape(-1)).tolist()


def test_elements_of_odd_widths() -> None:
    for dtype in (DataType.DT_DUAL, DataType.DT_COMPLEX128, DataType.DT_INT64):
        src = TensorDesc(dtype, Format.FORMAT_ND, (5, 20))
        dst = src.replace(format=format_from_c0(Format.FORMAT_FRACTAL_NZ, 4), shape=(3, 1, 16, 8))
        data = np.random.default_rng(0).integers(1, 255, 100 * dtype.size_code, np.uint8).view(dtype.to_numpy())
        stored = transfer(data, src, dst)
        assert stored.nbytes == 3 * 16 * 8 * dtype.size_code
        assert transfer(stored, dst, src).tobytes() == data.tobytes()


@pytest.mark.parametrize("dst_format", [Format.FORMAT_HWCN, Format.FORMAT_CHWN, Format.FORMAT_NCHW])
def test_a_transpose_ignores_c0_and_sub_format(dst_format: Format) -> None:
    src = NCHW.replace(format=Format.FORMAT_NHWC)
    plain = transfer(values(src), src, src.replace(format=dst_format, shape=()))
    odd = format_from_c0(format_from_sub(dst_format, 7), 9)
    assert transfer(values(src), src, src.replace(format=odd, shape=())).tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("src_format", "rank", "dst_format"),
    [
        (Format.FORMAT_NCHW, 4, Format.FORMAT_FRACTAL_Z),
        (Format.FORMAT_NHWC, 4, Format.FORMAT_FRACTAL_Z),
        (Format.FORMAT_HWCN, 4, Format.FORMAT_FRACTAL_Z),
        (Format.FORMAT_ND, 2, Format.FORMAT_FRACTAL_Z),
        (Format.FORMAT_NCHW, 4, Format.FORMAT_FRACTAL_Z_C04),
        (Format.FORMAT_HWCN, 4, Format.FORMAT_FRACTAL_Z_C04),
        (Format.FORMAT_DHWCN, 5, Format.FORMAT_FRACTAL_Z_3D),
        (Format.FORMAT_DHWNC, 5, Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE),
        (Format.FORMAT_NCHW, 4, Format.FORMAT_HWCN),
    ],
)
def test_the_destination_shape_may_be_missing(src_format: Format, rank: int, dst_format: Format) -> None:
    src = TensorDesc(DataType.DT_FLOAT16, src_format, (3,) * rank)
    missing = src.replace(format=format_from_c0(dst_format, 5), shape=())
    given = missing.replace(shape=infer_shape(src, missing.format))
    result = transfer(values(src), src, missing)
    assert result.shape == given.shape
    assert result.tobytes() == transfer(values(src), src, given).tobytes()


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.rank], ids=lambda p: f"{p.plain.name}-{p.stored.name}")
def test_tensors_without_elements(pair: object) -> None:
    row = next(one for one in PAIRS if one is pair)
    for zero in range(row.rank or 0):
        shape = [3] * (row.rank or 0)
        shape[zero] = 0
        src = TensorDesc(DataType.DT_FLOAT16, row.plain, shape)
        fmt = format_from_c0(row.stored, 5)
        dst = src.replace(format=fmt, shape=infer_shape(src, fmt))
        result = transfer(np.empty(shape, np.float16), src, dst)
        assert result.shape == dst.shape
        assert not result.any()
        if row.back:
            assert transfer(result, dst, src).shape == src.shape


def test_c0_comes_from_the_given_shape_for_nhwc() -> None:
    src = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NHWC, (1, 2, 2, 3))
    for cube in (3, 8, 16):
        dst = src.replace(format=Format.FORMAT_NC1HWC0, shape=(1, 1, 2, 2, cube))
        assert transfer(values(src), src, dst)[0, 0, 1, 1, :3].tolist() == [10, 11, 12]


def test_a_shape_that_does_not_follow_from_the_source_is_refused() -> None:
    for shape in ((2, 2, 3, 4, 8), (2, 1, 3, 4, 16), (2, 2, 3, 4, 16, 1), (2, 2, 3, 4)):
        with pytest.raises(FormatError, match=r"must be \[2, 2, 3, 4, 16\]"):
            transfer(values(NCHW), NCHW, STORED.replace(shape=shape))


@pytest.mark.parametrize(
    ("dtype", "cube"),
    [(DataType.DT_INT8, 32), (DataType.DT_FLOAT16, 16), (DataType.DT_FLOAT, 16), (DataType.DT_INT64, 16)],
)
@pytest.mark.parametrize("stored", [Format.FORMAT_NC1HWC0, Format.FORMAT_NDC1HWC0])
def test_c0_of_an_inferred_shape_follows_from_the_type(dtype: DataType, cube: int, stored: Format) -> None:
    plain, shape = (
        (Format.FORMAT_NCHW, (1, 20, 2, 2))
        if stored is Format.FORMAT_NC1HWC0
        else (
            Format.FORMAT_NCDHW,
            (1, 20, 1, 2, 2),
        )
    )
    assert infer_shape(TensorDesc(dtype, plain, shape), stored)[-1] == cube


def test_out_is_written_and_returned() -> None:
    out = np.full(STORED.shape, np.nan, np.float16)
    assert transfer(values(NCHW), NCHW, STORED, out=out) is out
    assert (out == transfer(values(NCHW), NCHW, STORED)).all()
    flat = np.full(out.size, 7, np.uint16)
    transfer(values(NCHW), NCHW, STORED, out=flat)
    assert flat.tobytes() == out.tobytes()


@pytest.mark.parametrize("stored", [Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_NZ])
def test_little_memory_is_taken_beside_the_result(stored: Format) -> None:
    src = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (64, 100, 33, 33))
    fmt = format_from_c0(stored, 5)
    dst = src.replace(format=fmt, shape=infer_shape(src, fmt))
    array, out = values(src), np.empty(infer_shape(src, fmt), np.float16)
    for data, one, other, target in ((array, src, dst, out), (out, dst, src, array)):
        tracemalloc.start()
        transfer(data, one, other, out=target)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20


def test_every_format_of_a_pair_has_a_layout() -> None:
    assert {pair.stored for pair in PAIRS} == LAYOUTS.keys()
    for layout in LAYOUTS.values():
        for axis in layout.blocks:
            assert f"{axis}0" in layout.axes


def test_the_example_of_the_page_works() -> None:
    page = (REPOSITORY / "docs" / "formats.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    stored, back, half = (np.asarray(names[name]) for name in ("stored", "back", "half"))
    assert stored.shape == (64, 1, 7, 7, 16)
    assert back.tolist() == half.tolist()
