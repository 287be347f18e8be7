"""Models with variables and external weights for tests, byte by byte."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.helpers import om_builder as build

BASE = 128 << 30
SPACE_BYTES = 1 << 20
FLOAT_BYTES = 4


def file_constant(
    name: str,
    address: int,
    floats: int,
    *,
    location: str = "",
    offset: int = 0,
    length: int = 0,
    size: int | None = None,
    **attrs: bytes,
) -> bytes:
    """A FileConstant of so many floats; its stored size is padded as GE pads it."""
    desc = build.tensor_desc((floats,), size=-(-(FLOAT_BYTES * floats + 32) // 32) * 32 if size is None else size)
    found: dict[str, bytes] = {"offset": build.attr_i(offset), "length": build.attr_i(length), **attrs}
    if location:
        found["location"] = build.attr_s(location)
    return build.op(name, "FileConstant", found, [desc], output_i=[address])


def place_holder(name: str, address: int, floats: int, memory: int, **attrs: bytes) -> bytes:
    """A ConstPlaceHolder for so many floats in memory of the caller's."""
    numbers = {"size": FLOAT_BYTES * floats, "placement": 1, "addr": memory, "dtype": 0}
    found = {name: build.attr_i(number) for name, number in numbers.items()}
    found["storage_shape"] = build.attr_ints([floats])
    desc = build.tensor_desc((floats,), size=FLOAT_BYTES * floats)
    return build.op(name, "ConstPlaceHolder", {**found, **attrs}, [desc], output_i=[address])


def lasting_model(
    ops: Sequence[bytes],
    *,
    name: str = "m",
    base: int = BASE,
    size: int = SPACE_BYTES,
    weights: bytes | None = None,
    attrs: Mapping[str, bytes] | None = None,
) -> bytes:
    """An OM file of dialect G3 with these operators in its one graph."""
    numbers = {"task_gen_variable_addr": base, "variable_size": size}
    found = {name: build.attr_i(number) for name, number in numbers.items()} | dict(attrs or {})
    partitions = [(0, build.model_def(name, [build.graph(f"{name}_graph", ops)], found))]
    return build.g3(partitions if weights is None else [*partitions, (1, weights)])


def write_model(folder: Path, ops: Sequence[bytes], files: Mapping[str, bytes], **options: int) -> Path:
    """Write a model with its weight files to a folder; return its path."""
    (folder / "weight").mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (folder / "weight" / file).write_bytes(data)
    path = folder / "model.om"
    path.write_bytes(lasting_model(ops, **options))
    return path
