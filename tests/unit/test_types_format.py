"""Formats: the table against the facts of GE's headers, packing of the 32-bit value, serial text."""

import pytest

from gevar.types.format import (
    Format,
    c0,
    c0_code,
    format_from_c0,
    format_from_serial,
    format_from_sub,
    format_to_serial,
    primary_format,
    sub_format,
)

# The formats in the order of metadef's types.h, from 0 on.
NAMES_TEXT = """
NCHW NHWC ND NC1HWC0 FRACTAL_Z NC1C0HWPAD NHWC1C0 FSR_NCHW FRACTAL_DECONV C1HWNC0
FRACTAL_DECONV_TRANSPOSE FRACTAL_DECONV_SP_STRIDE_TRANS NC1HWC0_C04 FRACTAL_Z_C04 CHWN FRACTAL_DECONV_SP_STRIDE8_TRANS
HWCN NC1KHKWHWC0 BN_WEIGHT FILTER_HWCK
HASHTABLE_LOOKUP_LOOKUPS HASHTABLE_LOOKUP_KEYS HASHTABLE_LOOKUP_VALUE HASHTABLE_LOOKUP_OUTPUT HASHTABLE_LOOKUP_HITS
C1HWNCoC0 MD NDHWC FRACTAL_ZZ FRACTAL_NZ
NCDHW DHWCN NDC1HWC0 FRACTAL_Z_3D CN NC DHWNC FRACTAL_Z_3D_TRANSPOSE FRACTAL_ZN_LSTM FRACTAL_Z_G
RESERVED ALL NULL ND_RNN_BIAS FRACTAL_ZN_RNN NYUV NYUV_A NCL FRACTAL_Z_WINO C1HWC0
FRACTAL_NZ_C0_16 FRACTAL_NZ_C0_32 FRACTAL_NZ_C0_2 FRACTAL_NZ_C0_4 FRACTAL_NZ_C0_8 END
"""
NAMES = NAMES_TEXT.split()
OTHER_TEXT = {
    15: "DECONV_SP_STRIDE8_TRANS",
    20: "LOOKUP_LOOKUPS",
    21: "LOOKUP_KEYS",
    22: "LOOKUP_VALUE",
    23: "LOOKUP_OUTPUT",
    24: "LOOKUP_HITS",
    28: "RESERVED",
    40: "FORMAT_RESERVED",
    55: "RESERVED",
}
"""Formats whose text is not their name."""


def test_the_table_is_that_of_the_header() -> None:
    expected = [(f"FORMAT_{name}", number) for number, name in enumerate(NAMES)]
    assert [(f.name, int(f)) for f in Format] == [*expected, ("FORMAT_MAX", 255)]


@pytest.mark.parametrize("number", range(56))
def test_serial_text_of_every_format(number: int) -> None:
    assert format_to_serial(number) == OTHER_TEXT.get(number, NAMES[number])


def test_serial_texts_are_unique() -> None:
    named = [format_to_serial(number) for number in range(55) if number != 28]
    assert len(set(named)) == len(named) == 54
    assert "RESERVED" not in named


@pytest.mark.parametrize("number", [number for number in range(55) if number != 28])
def test_a_serial_text_comes_back(number: int) -> None:
    assert format_from_serial(format_to_serial(number)) == number


@pytest.mark.parametrize("number", [28, 55, 56, 200, 255])
def test_formats_without_a_text_come_back_as_reserved(number: int) -> None:
    assert format_to_serial(number) == "RESERVED"
    assert format_from_serial(format_to_serial(number)) == Format.FORMAT_RESERVED


@pytest.mark.parametrize("text", ["RESERVED", "UNDEFINED", "FORMAT_RESERVED"])
def test_all_texts_of_reserved(text: str) -> None:
    assert format_from_serial(text) == Format.FORMAT_RESERVED == 40


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":2",
        "nchw",
        "FORMAT_NCHW",
        " ND",
        "FRACTAL_ZZ",
        "FRACTAL_Z:",
        "FRACTAL_Z:x",
        "FRACTAL_Z:-2",
        "FRACTAL_Z: 2",
        "FRACTAL_Z:2:3",
        "FRACTAL_Z:65536",
        "FRACTAL_Z:99999999999",
        "FRACTAL_Z:" + "9" * 5000,
        "FRACTAL_Z:²",
        "FRACTAL_Z:٢",
        "HASHTABLE_LOOKUP_KEYS",
    ],
)
def test_a_text_that_names_nothing_is_reserved(text: str) -> None:
    assert format_from_serial(text) == 40


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (516, "FRACTAL_Z:2"),
        (83886596, "FRACTAL_Z:2"),
        (83886083, "NC1HWC0"),
        (61444, "FRACTAL_Z:240"),
        (4 | 0xFFFF << 8, "FRACTAL_Z:65535"),
        (40 | 7 << 8, "FORMAT_RESERVED:7"),
        (28 | 7 << 8, "RESERVED:7"),
    ],
)
def test_text_with_a_sub_format(value: int, text: str) -> None:
    assert format_to_serial(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("FRACTAL_Z:2", 516), ("FRACTAL_Z:0", 4), ("FRACTAL_Z:00002", 516), ("FORMAT_RESERVED:7", 1832), ("ND:1", 258)],
)
def test_reading_a_text_with_a_sub_format(text: str, value: int) -> None:
    assert format_from_serial(text) == value


def test_packing_of_the_value() -> None:
    value = 0xF5ABCD04
    assert primary_format(value) == Format.FORMAT_FRACTAL_Z
    assert sub_format(value) == 0xABCD
    assert c0_code(value) == 5
    assert c0(value) == 16


def test_worked_example_of_a_grouped_filter() -> None:
    grouped = format_from_sub(Format.FORMAT_FRACTAL_Z, 2)
    assert grouped == 516
    blocked = format_from_c0(grouped, 5)
    assert blocked == 83886596
    assert (c0(grouped), c0(blocked)) == (-1, 16)


@pytest.mark.parametrize(
    ("code", "expected"), [(0, -1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (15, 1 << 14)]
)
def test_c0_of_every_kind_of_code(code: int, expected: int) -> None:
    assert c0(format_from_c0(Format.FORMAT_NC1HWC0, code)) == expected


def test_from_sub_clears_c0_and_from_c0_keeps_the_sub_format() -> None:
    value = format_from_c0(format_from_sub(Format.FORMAT_FRACTAL_Z, 7), 5)
    assert format_from_sub(value, 3) == 4 | 3 << 8
    assert sub_format(format_from_c0(value, 1)) == 7
    assert c0_code(format_from_c0(value, 0)) == 0


def test_fields_out_of_range_are_cut() -> None:
    assert format_from_sub(0x104, 0x1_0002) == 516
    assert format_from_c0(0xFF00_0004, 0x15) == 4 | 5 << 24
    assert primary_format(-1) == 0xFF
