"""Random exports into one folder, damaged and filled in between, each held against `tests.helpers.export_rules`.

What was exported to folders that nobody damaged goes to other folders, and back into the model, and must be the same.
"""

import os
import random
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gevar.om import OmBuilder, StreamedBytes
from gevar.om.stored_bytes import read_all
from gevar.session.relocation import relocate_model
from gevar.session.weight_sources import open_weights
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.export_rules import META, SIDE, Weight, check_folder, check_model, exported, read_folder
from tests.helpers.om_tree import file_trees

FULL_EXPORTS = 2500
EXPORTS_PER_FOLDER = 8
PREFIXES = ("a", "b.c", "weight", "é x")
NAMES = ("w", "a/b/w", "../../w", "/w", "w_", "ünï", "a b\n", "meta.json", "w" * 300, "-0", "{}", "\\")
TYPES = (
    *(DataType.DT_FLOAT, DataType.DT_BOOL, DataType.DT_INT4, DataType.DT_UINT1, DataType.DT_FLOAT6_E3M2),
    *(DataType.DT_STRING, DataType.DT_COMPLEX128, DataType.DT_BF16, DataType.DT_DUAL, DataType.DT_INT64),
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (0,), (3,), (2, 0, 4), (127,), (128,), (129,), (17, 30), (2, 3, 4))
BIG_BYTES = 5 << 20
"""More than is written at once."""


def weight(chance: random.Random, name: str) -> Weight:
    """Return a constant of any type and shape; few contents, so that several have one."""
    op_type, dtype, shape = chance.choice(("Const", "Const", "Constant")), chance.choice(TYPES), chance.choice(SHAPES)
    if chance.random() < 0.03:
        dtype, shape = DataType.DT_INT8, (BIG_BYTES,)
    count = int(np.prod(shape, dtype=int))
    bits = dtype.element_bits
    size_bytes = chance.randrange(40) if bits is None else -(-count * bits // 8)
    piece = chance.choice((b"\0", b"a", b"ab\xff", b"\1\2\3\4"))
    origin = chance.choice(((), (), shape, (count, 1)))
    return Weight(name, op_type, (piece * size_bytes)[:size_bytes], int(dtype), shape, origin)


def build(weights: list[Weight], chance: random.Random) -> OmBuilder:
    """Return a model of these constants, each of them an output; their bytes come in every form."""
    builder = OmBuilder("net")
    for one in weights:
        origin = one.origin_shape or None
        desc = TensorDesc(DataType(one.dtype), Format.FORMAT_ND, one.shape, origin_shape=origin)
        add = builder.const if one.op_type == "Const" else builder.constant
        builder.output(add(one.name, chance.choice(FORMS)(one.data), desc))
    return builder


def _strided(data: bytes) -> np.ndarray:
    wide = np.full((len(data), 2), 7, np.uint8)
    wide[:, 0] = np.frombuffer(data, np.uint8)
    return wide[:, 0]


def _streamed(data: bytes) -> StreamedBytes:
    def read() -> Iterator[bytes]:
        yield from (data[at : at + (4 << 20)] for at in range(0, len(data), 4 << 20))

    return StreamedBytes(len(data), read)


FORMS: tuple[Callable[[bytes], np.ndarray | bytes | memoryview | StreamedBytes], ...] = (
    *(bytes, memoryview, _strided, lambda data: memoryview(_strided(data)), _streamed),
)


def run(count: int, seed: int) -> Counter[str]:
    """Export as often, and return how the exports ended.

    Raises
    ------
    AssertionError
        A model or folder is not what the rules say; or an export that failed changed something.
    """
    chance, seen = random.Random(seed), Counter[str]()
    while seen.total() < count:
        with tempfile.TemporaryDirectory() as root:
            damage_share = chance.choice((0, 0.5))
            for _ in range(min(EXPORTS_PER_FOLDER, count - seen.total())):
                seen[_export(Path(root), chance, damage_share)] += 1
    return seen


def _export(root: Path, chance: random.Random, damage_share: float) -> str:
    """Damage a folder, perhaps, and export into it, perhaps onto a disk that fills; return how that ended."""
    folder = root / "weight"
    if folder.exists() and chance.random() < damage_share:
        chance.choice(DAMAGES)(folder, chance)
    names = chance.sample(NAMES, chance.randrange(len(NAMES)))
    weights = [weight(chance, name) for name in names]
    model, mode, prefix = build(weights, chance), chance.choice((0, 1, 1, 2, 2, 2)), chance.choice(PREFIXES)
    before, tree = read_folder(folder), _tree(root)
    room = chance.choice((None, None, None, chance.randrange(3000)))
    target, is_compressed = root / f"{prefix}.om", chance.random() < 0.3
    try:
        with _room(room):
            model.write(target, external_weight=mode, compress=is_compressed)  # type: ignore[arg-type]
    except OSError:
        assert room is not None
        assert _tree(root) == tree, "an export that failed changed something"
        return "without room"
    after, places = exported(before, weights, mode, prefix)
    check_folder(after, places, weights)
    check_model(target, weights, places)
    assert not [*root.rglob(".gevar-*")]
    if not places:
        assert _tree(root) | {str(target): b""} == tree | {str(target): b""}
    if not damage_share:
        _move(target, weights)
    return f"in mode {mode}" if places else "with nothing to move"


def _move(path: Path, weights: list[Weight]) -> None:
    """Relocate a model, whose tensors must stay the same."""
    plain = {one.name: (one.dtype, one.shape, one.data) for one in weights}
    assert tensors(path) == plain
    with tempfile.TemporaryDirectory() as other:
        relocate_model(path, Path(other) / "file.om")
        assert tensors(Path(other) / "file.om") == plain
        named = {node: plain[name] for node, name in zip(tensor_nodes(path), plain, strict=True)}
        for kind in ("const", "constant"):
            relocate_model(path, Path(other) / f"{kind}.om", kind=kind)  # type: ignore[arg-type]
            assert tensors(Path(other) / f"{kind}.om") == named, "nodes keep the names of external weights"


def tensors(path: Path) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    """Return type, shape and bytes of the tensors of a model."""
    with open_weights(path) as source:
        return {one.name: (int(one.dtype), tuple(one.shape), read_all(one.data)) for one in source.tensors()}


def tensor_nodes(path: Path) -> list[str]:
    """Return the names of the nodes of a model that have tensors, in their order."""
    kinds = (b"Const", b"Constant", b"FileConstant")
    ((tree, _),) = file_trees(path.read_bytes())
    return [op["name"].decode() for graph in tree["graph"] for op in graph.get("op", []) if op["type"] in kinds]


def _tree(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


@contextmanager
def _room(size_bytes: int | None) -> Iterator[None]:
    """Let no file become longer, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _any_file(folder: Path, chance: random.Random) -> Path:
    return chance.choice(sorted(folder.iterdir()))


def _remove(folder: Path, chance: random.Random) -> None:
    _any_file(folder, chance).unlink()


def _cut(folder: Path, chance: random.Random) -> None:
    path = _any_file(folder, chance)
    os.truncate(path, chance.randrange(path.stat().st_size + 1))


def _grow(folder: Path, chance: random.Random) -> None:
    path = _any_file(folder, chance)
    path.write_bytes(path.read_bytes() + b"x" * chance.randrange(1, 600))


def _flip(folder: Path, chance: random.Random) -> None:
    path = _any_file(folder, chance)
    data = bytearray(path.read_bytes() or b" ")
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _foreign(folder: Path, chance: random.Random) -> None:
    """Put something into the way of a list, or of a file that comes later."""
    name = chance.choice((META, SIDE, *(f"{prefix}_weight_combined" for prefix in PREFIXES), f"weight_{'0' * 64}"))
    (folder / name).touch(mode=0o600)
    (folder / name).write_bytes(chance.choice((b"", b"{", b"[[]]", b"\xff" * 700, b'{"xxh3_128": 1}', b"null")))


DAMAGES = (_remove, _cut, _grow, _flip, _foreign)
