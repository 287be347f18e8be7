"""Damaged OM files for tests: every mutation worth trying, and what a reader must give for each.

The layout is read here by its own few lines, so that a mistake of the reader cannot hide in the mutations.
"""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gevar.errors import GraphError, ModelFileError
from gevar.graph import Model
from gevar.om.consts import ConstNode
from gevar.om.facts import om_facts
from gevar.om.model import OmModel
from gevar.om.om_file import Kind, OmFile
from gevar.proto import ge_ir

HEADER_BYTES = 256
VERSION_1, VERSION_2 = 0x10000000, 0x20000000
AT_VERSION, AT_LENGTH, AT_ENCRYPT, AT_MODELTYPE, AT_MODEL_NUM, AT_MODEL_LENGTH, AT_UNKNOW = 8, 76, 80, 82, 156, 184, 193
FLOW, BUNDLE = 3, 5
MODEL_DEF_FLIPS = 12


@dataclass
class Layout:
    """Where things lie in an OM file."""

    wide: bool
    version: int
    tables: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    boundaries: set[int] = field(default_factory=lambda: {0, 4, HEADER_BYTES})
    model_defs: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size_code(self) -> str:
        return "<Q" if self.wide else "<I"

    def size_at(self, entry: int) -> int:
        return entry + (16 if self.wide else 8)


def layout_of(data: bytes) -> Layout:
    """Read the layout of an undamaged file."""
    version, modeltype = _u32(data, AT_VERSION), data[AT_MODELTYPE]
    model_length = struct.unpack_from("<Q", data, AT_MODEL_LENGTH)[0] if version != VERSION_1 else 0
    bundle = modeltype == BUNDLE and version != VERSION_1
    found = Layout(bool(model_length), version)
    dynamic = version == VERSION_2 and (_u32(data, AT_MODEL_NUM) > 1 or data[AT_UNKNOW])
    position = HEADER_BYTES
    for _ in range(_u32(data, AT_MODEL_NUM) if dynamic and modeltype != FLOW and not bundle else 1):
        position = _read_table(data, position, found)
    return found


def _read_table(data: bytes, start: int, found: Layout) -> int:
    head, entry_bytes = (8, 24) if found.wide else (4, 12)
    num = _u32(data, start)
    found.tables.append(start)
    position = start + head + entry_bytes * num
    found.boundaries |= {start + head, position}
    for index in range(num):
        entry = start + head + entry_bytes * index
        found.entries.append(entry)
        size = struct.unpack_from(found.size_code, data, found.size_at(entry))[0]
        if _u32(data, entry) == 0:
            found.model_defs.append((position, size))
        found.places.append((position, position + size))
        position += size
        found.boundaries |= {entry, position}
    return position


def mutations(data: bytes, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield every damaged form of a file, with a label."""
    layout = layout_of(data)
    rng = random.Random(seed)
    for found in (
        _cuts(data, layout),
        _header_mutations(data, layout),
        _table_mutations(data, layout),
        _model_def_mutations(data, layout, rng),
    ):
        yield from ((label, damaged) for label, damaged in found if damaged != data)


def _cuts(data: bytes, layout: Layout) -> Iterator[tuple[str, bytes]]:
    for at in sorted(layout.boundaries):
        yield f"cut at {at}", data[:at]
        if at:
            yield f"cut at {at - 1}", data[: at - 1]
        for end in (at - 1, at):
            if HEADER_BYTES <= end < len(data):
                yield f"ends at {end}", _with_true_length(data[:end], layout)
    yield "one byte added", data + b"\0"
    for added in (1, 31, 32):
        yield f"goes on for {added} B", _with_true_length(data + bytes(added), layout)


def _with_true_length(data: bytes, layout: Layout) -> bytes:
    """Return a file whose length field says how long it is, so that the damage behind the field is met."""
    if not layout.wide:
        return _put(data, AT_LENGTH, "<I", len(data) - HEADER_BYTES)
    is_bundle = data[AT_MODELTYPE] == BUNDLE and layout.version != VERSION_1
    return _put(data, AT_MODEL_LENGTH, "<Q", len(data) if is_bundle else len(data) - HEADER_BYTES)


def _header_mutations(data: bytes, layout: Layout) -> Iterator[tuple[str, bytes]]:
    for at in range(4):
        yield f"magic byte {at}", _put(data, at, "B", data[at] ^ 0xFF)
    yield "version + 1000", _put(data, AT_VERSION, "<I", layout.version + 1000)
    yield "encrypted", _put(data, AT_ENCRYPT, "B", 1)
    for at, code in ((AT_LENGTH, "<I"), (AT_MODEL_LENGTH, "<Q")):
        value = struct.unpack_from(code, data, at)[0]
        for changed in (0, value + 1, value - 1, 2**31 + 10):
            yield f"length field at {at} = {changed}", _put(data, at, code, changed)
    if layout.version == VERSION_1:
        yield "version 2.0", _put(data, AT_VERSION, "<I", VERSION_2)
        yield "version 2.0, flow", _put(_put(data, AT_VERSION, "<I", VERSION_2), AT_MODELTYPE, "B", FLOW)
    else:
        for count in (0, 2, 2**32 - 1):
            yield f"model_num = {count}", _put(data, AT_MODEL_NUM, "<I", count)
        yield "is_unknow_model flipped", _put(data, AT_UNKNOW, "B", data[AT_UNKNOW] ^ 1)
        yield "version 1.0", _put(data, AT_VERSION, "<I", VERSION_1)
    for kind in range(7):
        yield f"modeltype = {kind}", _put(data, AT_MODELTYPE, "B", kind)


def _table_mutations(data: bytes, layout: Layout) -> Iterator[tuple[str, bytes]]:
    for start in layout.tables:
        for num in (0, 9, 2**31, 2**32 - 1):
            yield f"num at {start} = {num}", _put(data, start, "<I", num)
    for entry in layout.entries:
        at = layout.size_at(entry)
        size = struct.unpack_from(layout.size_code, data, at)[0]
        for more in (1, 2**31, 2**63, -1):
            yield f"size at {at} + {more}", _put(data, at, layout.size_code, size + more)
        offset_at = at - struct.calcsize(layout.size_code)
        offset = struct.unpack_from(layout.size_code, data, offset_at)[0]
        for more in (1, 2**63, -1):
            yield f"mem_offset at {offset_at} + {more}", _put(data, offset_at, layout.size_code, offset + more)
    for first, second in zip(layout.entries, layout.entries[1:], strict=False):
        swapped = _put(_put(data, first, "<I", _u32(data, second)), second, "<I", _u32(data, first))
        yield f"types at {first} and {second} swapped", swapped


def _model_def_mutations(data: bytes, layout: Layout, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    for start, size in layout.model_defs:
        places = {*range(min(size, 8)), *(rng.randrange(size) for _ in range(MODEL_DEF_FLIPS) if size)}
        for place in sorted(places):
            bit = rng.randrange(8)
            at = start + place
            yield f"bit {bit} of byte {at} flipped", _put(data, at, "B", data[at] ^ 1 << bit)


def _u32(data: bytes, at: int) -> int:
    value: int = struct.unpack_from("<I", data, at)[0]
    return value


def _put(data: bytes, at: int, code: str, value: int) -> bytes:
    """Return the bytes with a number replaced, cut to its width."""
    size = struct.calcsize(code)
    return data[:at] + struct.pack(code, value % (1 << 8 * size)) + data[at + size :]


# --- what a reader must give ------------------------------------------------------------------------------------------


def outcome(data: bytes, kind: Kind = "model") -> ModelFileError | None:
    """Read everything in a file; return the error, or None after checking that what was read holds together.

    Any other exception passes through and fails the test.
    """
    try:
        om = OmFile.from_bytes(data, "damaged.om", kind=kind)
        read_all(om, data)
    except ModelFileError as error:
        refusal = error
    else:
        return None
    assert refusal.file == "damaged.om"
    assert refusal.field
    assert refusal.offset is not None
    assert 0 <= refusal.offset <= len(data)
    assert "\n" not in str(refusal)
    return refusal


def read_all(om: OmFile, data: bytes) -> None:
    """Read all models of a file and its nested files, and check the facts against each other."""
    facts = om_facts(om)
    assert facts["size"] == om.size_bytes <= len(data)
    if not om.is_bundle:
        assert om.header.body_bytes == om.size_bytes - HEADER_BYTES
    assert om.models or om.submodels
    for partition in om.partitions:
        assert HEADER_BYTES < partition.file_offset <= partition.end <= om.size_bytes
    for model in om.models:
        _check_model(model, data)
    for submodel in om.submodels:
        if submodel.om is not None:
            read_all(submodel.om, data)


def _check_model(model: OmModel, data: bytes) -> None:
    nodes = list(model.nodes())
    assert len(nodes) == sum(len(graph.nodes) for graph in model.graphs)
    for node in model.variable_nodes():
        assert node in nodes
        assert len(node.output_descs) >= 0
        assert all(isinstance(name, str) and not name.startswith("\0") for name in node.attrs)
    for const in model.const_nodes():
        _check_const(const, data)
    restored = model.model_def()
    assert len(restored.graph) == len(model.graphs)
    assert _ir_or_reason(model.graph_ir) == _ir_or_reason(lambda: Model.from_proto(restored))


def _ir_or_reason(read: Callable[[], Model]) -> ge_ir.ModelDef | str:
    """The model as it is written back, or what is wrong with a graph."""
    try:
        return read().to_proto()
    except GraphError as error:
        return str(error)


def _check_const(const: ConstNode, data: bytes) -> None:
    view = const.data()
    assert view.nbytes == const.size_bytes
    if const.file_offset is not None:
        assert data[const.file_offset : const.file_offset + const.size_bytes] == view
