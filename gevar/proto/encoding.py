"""Numbers, text and map entries in wire form, for maps so large that protobuf's own objects would take too long.

A byte is a character of Latin-1 here: Python puts text together from parts several times faster than bytes. Who has all
parts encodes them once, `encode("latin-1")`.

Source: protobuf encoding, https://protobuf.dev/programming-guides/encoding/ (format, not code).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gevar.align import UINT64_MAX

_GROUP_BITS: Final = 14
_GROUP: Final = 1 << _GROUP_BITS
_LOWEST: Final = _GROUP - 1
_SHORT: Final = [chr(n) for n in range(128)] + [chr(n & 127 | 128) + chr(n >> 7) for n in range(128, _GROUP)]
_LOW: Final = [chr(n & 127 | 128) + chr(n >> 7 | 128) for n in range(_GROUP)]  # two bytes after which others follow
_HIGH_LIMIT: Final = 1 << 16
_high: dict[int, str] = {}  # what follows: neighbouring addresses have it in common


def varint(value: int) -> str:
    """Return an unsigned 64-bit number in wire form.

    Raises
    ------
    ValueError
        The number is negative or has more bits.

    Examples
    --------
    >>> varint(300).encode("latin-1"), varint(1 << 40).encode("latin-1")
    (b'\\xac\\x02', b'\\x80\\x80\\x80\\x80\\x80 ')
    """
    if 0 <= value < _GROUP:
        return _SHORT[value]
    high = _high.get(value >> _GROUP_BITS) or _remember(value)
    return _LOW[value & _LOWEST] + high


def varints(values: Iterable[int]) -> list[str]:
    """Return many numbers in wire form; see `varint`."""
    low, short, texts, top, high = _LOW, _SHORT, [], 0, ""
    for value in values:
        if value >> _GROUP_BITS != top:  # neighbours often have it in common
            top = value >> _GROUP_BITS
            high = (_high.get(top) or _remember(value)) if top else ""
        texts.append(low[value & _LOWEST] + high if top else short[value])
    return texts


def _remember(value: int) -> str:
    """What a number has in wire form after its lowest bits."""
    if not 0 <= value <= UINT64_MAX:
        raise ValueError(f"{value} is no unsigned 64-bit number")
    if len(_high) >= _HIGH_LIMIT:
        _high.clear()
    high = _high[value >> _GROUP_BITS] = varint(value >> _GROUP_BITS)
    return high


class _Lengths(dict[int, str]):
    def __missing__(self, value: int) -> str:
        return varint(value)


LENGTHS: Final = _Lengths(enumerate(_SHORT))
"""The same as `varint`, faster for numbers below 2**14."""


def wire_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return many texts in wire form; see `wire_text`."""
    return texts if "".join(texts).isascii() else [wire_text(text) for text in texts]


def wire_text(text: str) -> str:
    """Return text as UTF-8, a character for each byte.

    Raises
    ------
    ValueError
        It has half a surrogate pair, which UTF-8 has no bytes for.

    Examples
    --------
    >>> wire_text("é").encode("latin-1")
    b'\\xc3\\xa9'
    """
    return text if text.isascii() else text.encode().decode("latin-1")
