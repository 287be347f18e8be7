"""What is no conversion, cast or shape: the error names both descriptions and the rule, and nothing is written."""

import pickle

import numpy as np
import pytest

from gevar import status
from gevar.errors import FormatError
from gevar.formats import cast, infer_shape, transfer
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub

FP16, FORMAT, SHAPE, TYPE, PARAM = (
    DataType.DT_FLOAT16,
    status.ACL_ERROR_GE_FORMAT_INVALID,
    status.ACL_ERROR_GE_SHAPE_INVALID,
    status.ACL_ERROR_GE_DATATYPE_INVALID,
    status.ACL_ERROR_GE_PARAM_INVALID,
)


def desc(name: str, *shape: int, code: int = 0, sub: int = 0, dtype: DataType = FP16) -> TensorDesc:
    return TensorDesc(dtype, format_from_c0(format_from_sub(Format[f"FORMAT_{name}"], sub), code), shape)


def zeros(one: TensorDesc) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.zeros([max(dim, 0) for dim in one.shape], one.dtype.to_numpy())


@pytest.mark.parametrize(
    ("src", "dst", "wanted", "words"),
    [
        (desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), desc("FRACTAL_Z", 4, 1, 16, 16, code=5), FORMAT, "no conversion"),
        (desc("ND", 1, 3, 2, 2), desc("NCHW", 1, 3, 2, 2), FORMAT, "no conversion"),
        (desc("NCHW", 1, 3, 2, 2), desc("NCHW", 1, 3, 2, 2), FORMAT, "no conversion"),
        (desc("FRACTAL_Z", 1, 1, 16, 16, code=5), desc("ND", 3, 3), FORMAT, "no conversion"),
        (desc("NCHW", 1, 3, 2, 2), desc("NC1HWC0", 1, 1, 2, 2, 16), TYPE, "carries no C0"),
        (desc("HWCN", 2, 2, 3, 1), desc("NC1HWC0", 1, 1, 2, 2, 16), TYPE, "carries no C0"),
        (desc("NC1HWC0", 1, 1, 2, 2, 16), desc("NHWC", 1, 2, 2, 3), TYPE, "carries no C0"),
        (desc("NHWC", 1, 2, 2, 3), desc("FRACTAL_Z", 4, 1, 16, 16), TYPE, "carries no C0"),
        (desc("DHWCN", 1, 2, 2, 3, 1), desc("FRACTAL_Z_3D", 4, 1, 16, 16), TYPE, "carries no C0"),
        (desc("ND", 3, 5), desc("FRACTAL_NZ", 1, 1, 16, 16), SHAPE, "carries no C0"),
        (desc("ND", 3, 5), desc("FRACTAL_ZZ", 1, 1, 16, 16), SHAPE, "carries no C0"),
        (desc("HWCN", 1, 1, 3, 2), desc("C1HWNCoC0", 1, 1, 1, 2, 16, 16), SHAPE, "carries no C0"),
        (desc("NHWC", 1, 2, 2, 3), desc("NC1HWC0"), SHAPE, "neither the format nor"),
        (desc("NHWC", 1, 2, 2, 3), desc("NC1HWC0", 1, 1, 2, 2, 0), SHAPE, "neither the format nor"),
        (desc("NCHW", 1, 3, 2, 2), desc("NC1HWC0", 1, 1, 2, 2, 16, code=4), SHAPE, "[1, 1, 2, 2, 8]"),
        (desc("NCHW", 1, 3, 2, 2), desc("NC1HWC0", code=5), SHAPE, "and is []"),
        (desc("HWCN", 1, 1, 3, 2), desc("C1HWNCoC0", code=5), SHAPE, "and is []"),
        (desc("ND", 3, 5), desc("FRACTAL_NZ", code=5), SHAPE, "and is []"),
        (desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), desc("NCHW"), SHAPE, "scalar or has no shape"),
        (desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), desc("NCHW", 1, 17, 2, 2), SHAPE, "source shape must be"),
        (desc("FRACTAL_NZ", 1, 1, 16, 16, code=5), desc("ND", 3, 17), SHAPE, "source shape must be"),
        (desc("NCHW"), desc("NHWC"), SHAPE, "scalar or has no shape"),
        (desc("ND"), desc("FRACTAL_NZ", 1, 1, 16, 16, code=5), SHAPE, "scalar or has no shape"),
        (desc("NCHW", 1, -1, 2, 2), desc("NHWC", 1, 2, 2, 3), SHAPE, "unknown dimension"),
        (desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), desc("NCHW", 1, -2, 2, 2), SHAPE, "unknown dimension"),
        (desc("NCHW", 1, 3, 2), desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), SHAPE, "3 dimensions, and 4"),
        (desc("DHWCN", 3, 2, 2, 2), desc("FRACTAL_Z_3D", code=5), SHAPE, "4 dimensions, and 5"),
        (desc("ND", 1, 3, 5), desc("FRACTAL_Z", 1, 1, 16, 16, code=5), status.FAILED, "3 dimensions, and 2"),
        (desc("NCHW", 2, 3, 5), desc("FRACTAL_NZ", 2, 1, 1, 16, 16, code=5), SHAPE, "3 dimensions, and 4"),
        (desc("NCHW", 1, 5, 2, 2), desc("FRACTAL_Z_C04", 1, 1, 16, 16), SHAPE, "C is 5"),
        (
            desc("HWCN", 1, 2, 3, 2, dtype=DataType.DT_INT32),
            desc("C1HWNCoC0", 1, 1, 2, 2, 8, 8, code=4, dtype=DataType.DT_INT32),
            TYPE,
            "takes DT_FLOAT, DT_FLOAT16",
        ),
        (
            desc("NCHW", 1, 1, 1, 2, dtype=DataType.DT_INT4),
            desc("NHWC", 1, 1, 2, 1, dtype=DataType.DT_INT4),
            TYPE,
            "not whole bytes",
        ),
        (
            desc("NCHW", 1, 1, 1, 2),
            desc("NHWC", 1, 1, 2, 1, dtype=DataType.DT_FLOAT),
            TYPE,
            "element types differ",
        ),
        (desc("NCHW", 6, 1, 1, 1), desc("FRACTAL_Z_C04", 1, 1, 16, 16, sub=2), status.UNSUPPORTED, "no groups"),
    ],
)
def test_a_broken_rule_is_named(src: TensorDesc, dst: TensorDesc, wanted: int, words: str) -> None:
    out = np.full(64, 7, np.uint8)
    with pytest.raises(FormatError) as caught:
        transfer(zeros(src), src, dst, out=out)
    error = caught.value
    assert error.status == wanted
    assert words in error.rule
    assert str(list(src.shape)) in error.source
    assert error.destination is not None
    assert str(list(dst.shape)) in error.destination
    assert f"({src.format}" in str(error)
    assert f"({dst.format}" in str(error)
    assert "\n" not in str(error)
    assert (out == 7).all()
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status) == (str(error), wanted)


@pytest.mark.parametrize("name", ["NCHW", "NHWC", "HWCN"])
def test_groups_that_do_not_divide_n(name: str) -> None:
    shape = {"NCHW": (6, 3, 2, 2), "NHWC": (6, 2, 2, 3), "HWCN": (2, 2, 3, 6)}[name]
    src = desc(name, *shape)
    for groups in (4, 5, 7, 600):
        fmt = desc("FRACTAL_Z", code=5, sub=groups).format
        with pytest.raises(FormatError, match=f"N is 6, which {groups} groups do not divide") as caught:
            transfer(zeros(src), src, src.replace(format=fmt, shape=()))
        assert caught.value.status == status.FAILED
        with pytest.raises(FormatError, match="do not divide"):
            infer_shape(src, fmt)


def test_a_wrong_count_of_groups_gives_another_shape() -> None:
    src = desc("HWCN", 1, 1, 16, 34)
    right = src.replace(format=desc("FRACTAL_Z", code=5, sub=2).format)
    shape = infer_shape(src, right.format)
    transfer(zeros(src), src, right.replace(shape=shape))
    wrong = desc("FRACTAL_Z", *shape, code=5, sub=17)
    with pytest.raises(FormatError, match="by its format, C0 and groups"):
        transfer(zeros(src), src, wrong)


@pytest.mark.parametrize(
    ("src", "fmt", "wanted"),
    [
        (desc("NC1HWC0", 1, 1, 2, 2, 16, code=5), Format.FORMAT_NCHW, FORMAT),
        (desc("NCHW", 1, 1, 2, 2), Format.FORMAT_ND, FORMAT),
        (desc("NCHW", 1, 1, 2, 2), Format.FORMAT_FRACTAL_Z, TYPE),
        (desc("NCHW", 1, 1, 2), Format.FORMAT_NC1HWC0, SHAPE),
        (desc("NCHW", 1, -1, 2, 2), Format.FORMAT_NC1HWC0, SHAPE),
        (desc("NCHW"), Format.FORMAT_NHWC, SHAPE),
        (desc("NCHW", 1 << 20, 1 << 10, 1 << 10, 2), Format.FORMAT_NHWC, SHAPE),
        (desc("NCHW", 1 << 20, 1, 1 << 10, 1 << 9), Format.FORMAT_NC1HWC0, SHAPE),
        (desc("HWCN", 1, 1, 3, 2, dtype=DataType.DT_INT16), desc("C1HWNCoC0", code=5).format, TYPE),
        (desc("NCHW", 1, 1, 2, 2, dtype=DataType.DT_STRING), Format.FORMAT_NHWC, TYPE),
    ],
)
def test_shapes_that_cannot_be_inferred(src: TensorDesc, fmt: int, wanted: int) -> None:
    with pytest.raises(FormatError) as caught:
        infer_shape(src, fmt)
    assert caught.value.status == wanted
    assert caught.value.destination is not None


SRC, DST = desc("NCHW", 2, 3, 4, 5), desc("NHWC", 2, 4, 5, 3)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3, 4, 5), np.float32), "elements of float32"),
        (np.zeros((2, 3, 4, 5), np.int16), "elements of int16"),
        (np.zeros(240, np.uint8), "elements of uint8"),
        (np.zeros((2, 4, 5, 3), np.float16), "shape [2, 4, 5, 3]"),
        (np.zeros(119, np.float16), "238 B, the source [2, 3, 4, 5] and 240 B"),
        (np.zeros(121, np.float16), "242 B"),
        (np.zeros((2, 60), np.float16), "shape [2, 60]"),
        (np.zeros((), np.float16), "shape []"),
    ],
)
def test_data_that_is_not_as_described(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], words: str) -> None:
    out = np.full(120, 7, np.uint16)
    with pytest.raises(FormatError) as caught:
        transfer(array, SRC, DST, out=out)
    assert caught.value.status == PARAM
    assert words in caught.value.rule
    assert (out == 7).all()


def test_memory_that_does_not_fit_the_result() -> None:
    for out in (np.zeros(119, np.float16), np.zeros(60, np.float32), np.zeros(240, np.uint8)):
        with pytest.raises(FormatError, match="120 of 2 B are written"):
            transfer(zeros(SRC), SRC, DST, out=out)


def test_memory_that_cannot_be_written_in_one_piece() -> None:
    array = zeros(SRC)
    with pytest.raises(ValueError, match=r"numpy\.ascontiguousarray"):
        transfer(np.zeros((5, 4, 3, 2), np.float16).T, SRC, DST)
    fixed = np.zeros(120, np.float16)
    fixed.flags.writeable = False
    for out in (np.zeros(240, np.float16)[::2], fixed):
        with pytest.raises(ValueError, match="not contiguous or not writable"):
            transfer(array, SRC, DST, out=out)
    with pytest.raises(ValueError, match="overlaps"):
        transfer(array, SRC, DST, out=array.reshape(-1))


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (DataType.DT_FLOAT, DataType.DT_FLOAT),
        (DataType.DT_BOOL, DataType.DT_INT8),
        (DataType.DT_FLOAT, DataType.DT_DOUBLE),
        (DataType.DT_INT64, DataType.DT_FLOAT),
        (DataType.DT_HIFLOAT8, DataType.DT_BF16),
        (DataType.DT_STRING, DataType.DT_INT8),
        (DataType.DT_INT32, DataType.DT_INT4),
    ],
)
def test_casts_that_there_are_not(src: DataType, dst: DataType) -> None:
    with pytest.raises(FormatError, match=f"{src.name} to {dst.name}: there is no cast") as caught:
        cast(np.zeros(3, np.uint8), src, dst)
    assert caught.value.status == TYPE


def test_casts_of_data_that_is_not_as_described() -> None:
    to_half = DataType.DT_FLOAT, DataType.DT_FLOAT16
    with pytest.raises(FormatError, match="the array has elements of float64") as caught:
        cast(np.zeros(3), *to_half)
    assert caught.value.status == PARAM
    with pytest.raises(FormatError, match="out has elements of float32"):
        cast(np.zeros(3, np.float32), *to_half, out=np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="out has 4 elements"):
        cast(np.zeros(3, np.float32), *to_half, out=np.zeros(4, np.float16))
    both = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="overlap"):
        cast(both[:2], *to_half, out=both.view(np.float16)[:2])
    with pytest.raises(ValueError, match="not contiguous"):
        cast(np.zeros(6, np.float32)[::2], *to_half)
    with pytest.raises(ValueError, match="on_loss is 'none'"):
        cast(both, *to_half, on_loss="none")  # type: ignore[arg-type]
