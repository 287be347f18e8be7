"""Keys of variables in messages."""

import pytest

from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub
from gevar.var import VarKey
from gevar.var.wire_key import name_of_wire_key, wire_key

ND = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, ())
FRACTAL_Z_2 = format_from_sub(Format.FORMAT_FRACTAL_Z, 2)


@pytest.mark.parametrize(
    ("name", "fmt", "dtype", "text"),
    [
        ("A", Format.FORMAT_ND, DataType.DT_FLOAT, "A2_0"),
        ("A", Format.FORMAT_NC1HWC0, DataType.DT_FLOAT, "A3_0"),
        ("w", FRACTAL_Z_2, DataType.DT_FLOAT, "w516_0"),
        ("w", format_from_c0(FRACTAL_Z_2, 5), DataType.DT_FLOAT, "w83886596_0"),
        ("", Format.FORMAT_ND, DataType.DT_HIFLOAT4, "2_42"),
        ("w", -5, DataType.DT_INT8, "w-5_2"),
    ],
)
def test_keys_in_ges_form(name: str, fmt: int, dtype: DataType, text: str) -> None:
    assert wire_key(VarKey(name, fmt, dtype)) == text
    assert name_of_wire_key(text, TensorDesc(dtype, fmt, ()), [name]) == name


@pytest.mark.parametrize(
    ("text", "names", "name"),
    [
        ("w2_0", [], "w"),
        ("w2_0", ["w"], "w"),
        ("w_2_0", ["w"], "w"),
        ("w_2_0", ["w_"], "w_"),
        ("w_2_0", ["w", "w_"], "w_"),
        ("w_2_0", [], "w_"),
        ("w__2_0", ["w_"], "w_"),
        ("12_0", ["1"], "1"),
        ("w12_0", ["w", "w1"], "w1"),
        ("w32_0", [], "w3"),
        ("2_0", [], ""),
        ("_2_0", [""], ""),
    ],
)
def test_both_forms_are_read(text: str, names: list[str], name: str) -> None:
    assert name_of_wire_key(text, ND, names) == name


@pytest.mark.parametrize("text", ["", "w", "w3_0", "w2_1", "w2_00", "w2_0 ", "_0"])
def test_a_key_of_another_form_has_no_name(text: str) -> None:
    assert name_of_wire_key(text, ND, ["w"]) is None
