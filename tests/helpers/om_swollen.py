"""Parts of model definitions that are small in a file and large in memory, in any place that has room for them."""

import random
import struct
from collections.abc import Callable

from tests.helpers import om_builder as build

BASE = 0x20_0000_0000
DESC = build.tensor_desc((4,), size=16)


def _listed(content: bytes, val_type: int) -> bytes:
    return build.field(1, content + build.message((20, val_type)))


def _nested(attr: bytes, depth: int) -> bytes:
    """The attribute inside functions and graphs, one in the other."""
    for level in range(depth):
        entry = build.attr_map(2, {"a": attr})
        graph = build.graph("g", [build.op("n", "T", {"a": attr})])
        attr = build.field(10, build.field(1, "f") + entry) if level % 2 else build.field(13, graph)
    return attr


ATTRS: dict[str, Callable[[int], bytes]] = {
    "packed ints": lambda size: _listed(build.field(3, b"\1" * size), 2),
    "long packed ints": lambda size: _listed(build.field(3, (b"\xff" * 9 + b"\1") * (size // 10)), 2),
    "unpacked ints": lambda size: _listed(b"\x18\1" * (size // 2), 2),
    "packed floats": lambda size: _listed(build.field(4, struct.pack("<f", 1.5) * (size // 4)), 3),
    "packed bools": lambda size: _listed(build.field(5, b"\1" * size), 4),
    "empty texts": lambda size: _listed(b"\x12\0" * (size // 2), 1),
    "short texts": lambda size: _listed(b"\x12\2ab" * (size // 4), 1),
    "long texts": lambda size: _listed(build.field(2, b"x" * 1000) * (size // 1003), 1),
    "one text": lambda size: build.field(2, b"x" * size),
    "empty lists": lambda size: build.field(14, b"\x0a\0" * (size // 2)),
    "lists of one": lambda size: build.field(14, b"\x0a\3\x0a\1\1" * (size // 5)),
    "lists of floats": lambda size: build.field(16, build.field(1, build.field(1, bytes(4))) * (size // 8)),
    "empty descriptions": lambda size: _listed(b"\x42\0" * (size // 2), 6),
    "a long shape": lambda size: _listed(build.field(8, build.field(3, build.field(1, b"\1" * size))), 6),
    "empty tensors": lambda size: _listed(b"\x4a\0" * (size // 2), 7),
    "empty graphs": lambda size: _listed(b"\x52\0" * (size // 2), 8),
    "empty functions": lambda size: _listed(b"\x5a\0" * (size // 2), 9),
    "named": lambda size: build.field(10, build.attr_map(2, {f"{n:x}": build.attr_i(1) for n in range(size // 14)})),
    "a graph": lambda size: build.field(13, build.graph("g", (build.field(1, f"{n:x}") for n in range(size // 9)))),
}
FIELDS: dict[str, bytes] = {
    "inputs": build.field(5, b""),
    "offsets": build.field(28, b"\1" * 100),
    "names": build.field(23, b""),
    "subgraphs": build.field(35, b""),
    "inputs without bytes": build.field(33, b""),
    "outputs without bytes": build.field(34, b""),
    "symbols": build.field(11, build.field(2, build.field(3, build.field(1, b"") * 40))),
    "unknown": b"\xa0\x06\1",
}
"""Fields of an operator that may come often."""


def swollen_file(seed: int, size: int) -> bytes:
    """Return a model of about so many bytes, nearly all of them in one attribute, one operator, or many operators."""
    chance = random.Random(seed)
    place = chance.choice(("operator", "value", "output", "graph", "model", "field", "operators", "tiny", "table"))
    attr = _nested(ATTRS[chance.choice(list(ATTRS))](size), chance.choice((0, 0, 0, 1, 9)))
    kind = chance.choice(("Variable", "Const", "FileConstant", "Relu"))
    op, tail, attrs = build.op("x", kind, None, [DESC], output_i=[BASE]), b"", {}
    if place == "operator":
        op = build.op("x", kind, {chance.choice(("location", "a")): attr}, [DESC], output_i=[BASE])
    elif place == "value":
        op = build.op("x", "Const", {chance.choice(("value", "is_input_const")): attr}, [DESC])
    elif place == "output":
        op = build.op("x", kind, None, [build.tensor_desc((4,), size=16, attrs={"a": attr})], output_i=[BASE])
    elif place == "graph":
        tail = build.attr_map(11, {"a": attr})
    elif place == "model":
        attrs = {"a": attr}
    elif place == "field":
        item = FIELDS[chance.choice(list(FIELDS))]
        op += item * (size // len(item))
    elif place == "table":
        attrs = build.compression([f"{n:x}" for n in range(size // 8)])
    graph = build.graph("g", [op]) + tail
    if place == "operators":
        small = ATTRS[chance.choice(list(ATTRS))](chance.choice((100, 5000, 30_000)))
        ops = [
            build.op(f"x{n}", kind, {"a": small}, [DESC], output_i=[BASE + 512 * n])
            for n in range(size // (len(small) + 60))
        ]
        graph = build.graph("g", ops)
    elif place == "tiny":
        graph = build.graph("g", (build.field(1, f"{n:x}") + build.field(2, kind) for n in range(size // 20)))
    space = {"task_gen_variable_addr": build.attr_i(BASE), "variable_size": build.attr_i(1 << 30)}
    return build.g3([(0, build.model_def("m", [graph], space | attrs)), (1, build.WEIGHTS)])
