"""Keys of variables."""

import pytest

from gevar.types import DataType, Format
from gevar.types.format import format_from_c0, format_from_sub
from gevar.var import VarKey


@pytest.mark.parametrize(
    ("name", "fmt", "dtype", "text"),
    [
        ("A", Format.FORMAT_ND, DataType.DT_FLOAT, "A_2_0"),
        ("A", Format.FORMAT_NC1HWC0, DataType.DT_FLOAT, "A_3_0"),
        ("w", format_from_sub(Format.FORMAT_FRACTAL_Z, 2), DataType.DT_FLOAT, "w_516_0"),
        ("w", format_from_c0(format_from_sub(Format.FORMAT_FRACTAL_Z, 2), 5), DataType.DT_FLOAT, "w_83886596_0"),
        ("", Format.FORMAT_ND, DataType.DT_BF16, "_2_27"),
        ("a/b:0", Format.FORMAT_NHWC, DataType.DT_INT4, "a/b:0_1_29"),
    ],
)
def test_text_has_name_full_format_and_type(name: str, fmt: int, dtype: DataType, text: str) -> None:
    assert str(VarKey(name, fmt, dtype)) == text


def test_names_that_end_in_digits_stay_apart() -> None:
    first, second = VarKey("w", 12, DataType.DT_FLOAT), VarKey("w1", 2, DataType.DT_FLOAT)
    assert first != second
    assert len({first: 1, second: 2}) == 2
    assert str(first) != str(second)


def test_a_format_member_and_its_number_are_one_key() -> None:
    assert VarKey("w", Format.FORMAT_ND, DataType.DT_INT8) == VarKey("w", 2, DataType(2))
    assert hash(VarKey("w", Format.FORMAT_ND, DataType.DT_INT8)) == hash(VarKey("w", 2, DataType(2)))
    assert str(VarKey("w", Format.FORMAT_ND, DataType.DT_INT8)) == str(VarKey("w", 2, DataType(2)))
