"""Changes inside the model definitions of OM files that leave the messages whole: other numbers, texts, fields."""

import random
import struct

from tests.helpers import om_builder as build
from tests.helpers.om_fields import fields
from tests.helpers.om_mutations import AT_LENGTH, AT_MODEL_LENGTH, HEADER_BYTES, Layout
from tests.helpers.om_tree import ATTR, MESSAGES

NUMBERS = (
    *(0, 1, -1, 2, 7, 8, 27, 29, 41, 99, 255, 512, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 62, (1 << 63) - 1, -1 << 63),
    *(32 << 30, 128 << 30, (128 << 30) + 512),
)
TEXTS = (
    *(b"", b"a", b"a:0", b":0", b"x:-1", b"\0\1", b"\0\x7f\x7f\x7f", b"../../x", b"/", b"\xff", b"\n", b"a" * 300),
    *(b"Variable", b"Constant", b"FileConstant", b"ConstPlaceHolder", b"Const", b"NCHW", b"FRACTAL_Z"),
    *(b"location", b"value", b"_init_value", b"host", b"om_compress_version"),
)
TABLES = {**MESSAGES, "AttrDef": ATTR, "Entry": {1: ("key", "text"), 2: ("value", "AttrDef")}}
MANY = 6
"""Most changes of one file."""


def edit_model_defs(data: bytes, layout: Layout, seed: int) -> bytes:
    """Return an undamaged file with changed model definitions; its tables and lengths fit them."""
    chance, whole = random.Random(seed), b""
    for start in layout.tables:
        parts = [(kind, data[begin:end]) for kind, begin, end in _parts(data, layout, start)]
        for index, (kind, content) in enumerate(parts):
            for _ in range(chance.randrange(MANY) if kind == 0 else 0):
                content = edit_message(content, "ModelDef", chance)
            parts[index] = kind, content
        whole += build.body(parts, layout.wide)
    at, code = (AT_MODEL_LENGTH, "<Q") if layout.wide else (AT_LENGTH, "<I")
    head = bytearray(data[:HEADER_BYTES])
    struct.pack_into(code, head, at, len(whole))
    return bytes(head) + whole


def _parts(data: bytes, layout: Layout, start: int) -> list[tuple[int, int, int]]:
    """Type and place of each partition of a table."""
    (num,) = struct.unpack_from("<I", data, start)
    first = layout.entries.index(start + (8 if layout.wide else 4))
    kinds = [struct.unpack_from("<I", data, entry)[0] for entry in layout.entries[first : first + num]]
    return [(kind, *place) for kind, place in zip(kinds, layout.places[first : first + num], strict=True)]


def edit_message(data: bytes, kind: str, chance: random.Random) -> bytes:
    """Return a message with one field changed, in it or in a message inside."""
    try:
        found = list(fields(data))
    except (AssertionError, IndexError, KeyError):  # a text where a message should be
        return data
    if not found or chance.random() < 0.08:
        number = chance.choice(list(TABLES[kind]))
        found.insert(chance.randrange(len(found) + 1), (number, _new(_inner(kind, number), chance)))
        return _joined(found)
    index = chance.randrange(len(found))
    number, value = found[index]
    inner, draw = _inner(kind, number), chance.random()
    if draw < 0.06:
        del found[index]
    elif draw < 0.12:
        found.insert(chance.randrange(len(found) + 1), found[index])
    elif isinstance(value, int):
        found[index] = number, chance.choice(NUMBERS) if draw < 0.7 else value + chance.choice((-1, 1, 512, -512))
    elif inner in TABLES and draw < 0.95:
        found[index] = number, edit_message(value, inner, chance)
    else:
        found[index] = number, _new(inner, chance)
    return _joined(found)


def _inner(kind: str, number: int) -> str:
    """What a field holds: a message by its kind, "int", "float", "text", or "" where nobody knows."""
    form = TABLES[kind].get(number, ("", ""))[1].lstrip("*")
    return "Entry" if form == "map" else form


def _new(form: str, chance: random.Random) -> int | bytes:
    if form == "int" and chance.random() < 0.7:
        return chance.choice(NUMBERS)
    if form == "int":
        return b"".join(build.varint(chance.choice(NUMBERS)) for _ in range(chance.randrange(4)))
    return b"" if form in TABLES else chance.choice(TEXTS)


def _joined(found: list[tuple[int, int | bytes]]) -> bytes:
    """Numbers of fixed width become bytes with a length, which no field of theirs takes."""
    return b"".join(build.field(number, value) for number, value in found)
