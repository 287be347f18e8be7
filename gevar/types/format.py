"""Storage formats: GE's numbers, the 32-bit value that carries a format, and its serial text.

The 32-bit value, from the low end: bits 0..7 the primary format, 8..23 the sub-format (for example a group count),
24..27 the C0 code c with C0 = 2**(c-1), 28..31 reserved. The text is `NAME` or `NAME:sub` and never holds C0.

Source: metadef source, inc/external/graph/types.h, Format, GetPrimaryFormat, GetSubFormat, GetFormatFromSub,
GetFormatFromC0, GetC0Value; base/utils/type_utils_impl.cc.
"""

import re
from enum import IntEnum


class Format(IntEnum):
    """Primary storage format.

    Source: metadef source, inc/external/graph/types.h, Format. (The Python enum that GE ships stops at 51 and gives
    52 another meaning; these are the numbers of the header.)

    Examples
    --------
    >>> Format.FORMAT_NC1HWC0, Format(29).name
    (<Format.FORMAT_NC1HWC0: 3>, 'FORMAT_FRACTAL_NZ')
    """

    FORMAT_NCHW = 0
    FORMAT_NHWC = 1
    FORMAT_ND = 2
    FORMAT_NC1HWC0 = 3
    FORMAT_FRACTAL_Z = 4
    FORMAT_NC1C0HWPAD = 5
    FORMAT_NHWC1C0 = 6
    FORMAT_FSR_NCHW = 7
    FORMAT_FRACTAL_DECONV = 8
    FORMAT_C1HWNC0 = 9
    FORMAT_FRACTAL_DECONV_TRANSPOSE = 10
    FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS = 11
    FORMAT_NC1HWC0_C04 = 12
    FORMAT_FRACTAL_Z_C04 = 13
    FORMAT_CHWN = 14
    FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS = 15
    FORMAT_HWCN = 16
    FORMAT_NC1KHKWHWC0 = 17
    FORMAT_BN_WEIGHT = 18
    FORMAT_FILTER_HWCK = 19
    FORMAT_HASHTABLE_LOOKUP_LOOKUPS = 20
    FORMAT_HASHTABLE_LOOKUP_KEYS = 21
    FORMAT_HASHTABLE_LOOKUP_VALUE = 22
    FORMAT_HASHTABLE_LOOKUP_OUTPUT = 23
    FORMAT_HASHTABLE_LOOKUP_HITS = 24
    FORMAT_C1HWNCoC0 = 25
    FORMAT_MD = 26
    FORMAT_NDHWC = 27
    FORMAT_FRACTAL_ZZ = 28
    FORMAT_FRACTAL_NZ = 29
    FORMAT_NCDHW = 30
    FORMAT_DHWCN = 31
    FORMAT_NDC1HWC0 = 32
    FORMAT_FRACTAL_Z_3D = 33
    FORMAT_CN = 34
    FORMAT_NC = 35
    FORMAT_DHWNC = 36
    FORMAT_FRACTAL_Z_3D_TRANSPOSE = 37
    FORMAT_FRACTAL_ZN_LSTM = 38
    FORMAT_FRACTAL_Z_G = 39
    FORMAT_RESERVED = 40
    FORMAT_ALL = 41
    FORMAT_NULL = 42
    FORMAT_ND_RNN_BIAS = 43
    FORMAT_FRACTAL_ZN_RNN = 44
    FORMAT_NYUV = 45
    FORMAT_NYUV_A = 46
    FORMAT_NCL = 47
    FORMAT_FRACTAL_Z_WINO = 48
    FORMAT_C1HWC0 = 49
    FORMAT_FRACTAL_NZ_C0_16 = 50
    FORMAT_FRACTAL_NZ_C0_32 = 51
    FORMAT_FRACTAL_NZ_C0_2 = 52
    FORMAT_FRACTAL_NZ_C0_4 = 53
    FORMAT_FRACTAL_NZ_C0_8 = 54
    FORMAT_END = 55
    FORMAT_MAX = 0xFF


_UNNAMED = {Format.FORMAT_FRACTAL_ZZ, Format.FORMAT_END, Format.FORMAT_MAX}
"""Formats without a serial name; they print as RESERVED, as numbers without a format do."""

_SERIAL_NAMES = {
    int(fmt): fmt.name.removeprefix("FORMAT_").removeprefix("HASHTABLE_") for fmt in Format if fmt not in _UNNAMED
} | {
    int(Format.FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS): "DECONV_SP_STRIDE8_TRANS",
    int(Format.FORMAT_RESERVED): "FORMAT_RESERVED",
}
_BY_SERIAL_NAME = {name: number for number, name in _SERIAL_NAMES.items()} | {
    "RESERVED": int(Format.FORMAT_RESERVED),
    "UNDEFINED": int(Format.FORMAT_RESERVED),
}
_SUB_FORMAT = re.compile("[0-9]{1,5}")


def primary_format(value: int) -> int:
    """Return bits 0..7 of a format value, a number of `Format` where GE knows it."""
    return value & 0xFF


def sub_format(value: int) -> int:
    """Return the sub-format of a format value (bits 8..23); 0 means none."""
    return (value & 0xFFFF00) >> 8


def c0_code(value: int) -> int:
    """Return the C0 code of a format value (bits 24..27); 0 means none."""
    return (value >> 24) & 0xF


def c0(value: int) -> int:
    """Return C0 in elements: 2**(code - 1), or -1 when the value holds no C0 code.

    Source: metadef source, inc/external/graph/types.h, GetC0Value.
    """
    code = c0_code(value)
    return 1 << (code - 1) if code else -1


def format_from_sub(primary: int, sub: int) -> int:
    """Return the value of a primary format with a sub-format; its C0 code is 0.

    Source: metadef source, inc/external/graph/types.h, GetFormatFromSub.

    Examples
    --------
    >>> format_from_sub(Format.FORMAT_FRACTAL_Z, 2)
    516
    """
    return primary_format(primary) | (sub & 0xFFFF) << 8


def format_from_c0(value: int, code: int) -> int:
    """Return a format value with its C0 code replaced; primary and sub-format stay.

    Source: metadef source, inc/external/graph/types.h, GetFormatFromC0.

    Examples
    --------
    >>> c0(format_from_c0(516, 5)), format_from_c0(516, 5)
    (16, 83886596)
    """
    return (value & 0xFFFFFF) | (code & 0xF) << 24


def format_to_serial(value: int) -> str:
    """Return the serial text of a format value: `NAME` or `NAME:sub`, without C0.

    A primary format without a name (`FORMAT_FRACTAL_ZZ`, unknown numbers) prints as `RESERVED`.

    Source: metadef source, base/utils/type_utils_impl.cc, FormatToSerialString.
    """
    name = _SERIAL_NAMES.get(primary_format(value), "RESERVED")
    sub = sub_format(value)
    return f"{name}:{sub}" if sub else name


def format_from_serial(text: str) -> int:
    """Return the format value of a serial text; `FORMAT_RESERVED` when the text is none.

    Source: metadef source, base/utils/type_utils_impl.cc, SerialStringToFormat.

    Examples
    --------
    >>> format_from_serial("FRACTAL_Z:2")
    516
    """
    name, colon, digits = text.partition(":")
    primary = _BY_SERIAL_NAME.get(name)
    if primary is None:
        return int(Format.FORMAT_RESERVED)
    if not colon:
        return primary
    if not _SUB_FORMAT.fullmatch(digits) or int(digits) > 0xFFFF:
        return int(Format.FORMAT_RESERVED)
    return format_from_sub(primary, int(digits))
