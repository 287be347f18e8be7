"""The rules of OM files, checked by a reader of its own: struct and a walk over protobuf's wire form, nothing of gevar.

Every function returns normally when the rules hold and fails an assertion, with what is wrong, when they do not.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers.om_fields import (
    align,
    all_of,
    attrs,
    first,
    int_attr,
    int_list,
    numbers,
    string_attr,
    text_list,
    wire,
)

ORDER = (5, 26, 12, 8, 0, 1, 3, 4, 2, 6, 7)
OM_INFO = (1, 3, 4, 2, 5)
PLAIN_NAMES = {
    *("_input_name_key", "_input_name_value", "_output_name_key", "_output_name_value", "_opt_input"),
    *("_ir_inputs_key", "_ir_inputs_value", "_ir_outputs_key", "_ir_outputs_value", "_ir_attr_names"),
    *("origin_format", "origin_format_for_int", "format_for_int", "origin_data_type", "origin_shape"),
    *("origin_shape_initialized",),
}
TABLES = {"om_compress_version", "attr_name_enum", "attr_value_enum", "attrs_use_string_value"}


@dataclass
class Part:
    kind: int
    mem_offset: int
    data: bytes


@dataclass
class Op:
    name: str
    type: str
    inputs: list[str]
    attrs: dict[str, bytes]
    input_i: list[int]
    output_i: list[int]
    is_input_const: list[int]
    input_descs: list[bytes]
    output_descs: list[bytes]


@dataclass
class CheckedModel:
    """One model of a file: its parts by type, model attributes and operators with plain names."""

    parts: dict[int, bytes]
    attrs: dict[str, bytes]
    name: str
    graphs: dict[str, list[Op]] = field(default_factory=dict)

    @property
    def ops(self) -> dict[str, Op]:
        return {op.name: op for op in next(iter(self.graphs.values()))}


def check_file(data: bytes, folder: Path | None = None, *, places: bool = True) -> list[CheckedModel]:
    """Check a static or dynamic file of dialect G3; `folder` has its external weights.

    Without `places` variables and constants may lie anywhere.
    """
    magic, headsize, version, checksum, length = struct.unpack_from("<III64sI", data)
    assert (magic, headsize, version, length) == (0x444F4D49, 256, 0x20000000, 0)
    assert checksum == bytes(64)
    assert data[80] == 0, "is_encrypt"
    assert data[84 + 31] == 0, "the name has no NUL"
    (model_num,) = struct.unpack_from("<I", data, 156)
    (model_length,) = struct.unpack_from("<Q", data, 184)
    assert model_length == len(data) - 256
    is_dynamic = model_num > 1 or data[193] == 1
    at, models = 256, []
    for _ in range(model_num if is_dynamic else 1):
        parts, at = check_table(data, at, max_num=4096 if data[82] == 3 else 8)
        models.append(parts)
    assert at == len(data), "bytes are left over"
    assert all(8 not in [part.kind for part in parts] for parts in models[1:]), "a sub-model lists inputs"
    checked = [check_model(parts) for parts in models]
    restore_names(checked)
    for index, model in enumerate(checked if places else ()):
        check_variables(model)
        check_external(model, folder)
        if index or not (is_dynamic or data[82] == 3):  # the constants of such a root lie with the models inside
            check_weights(model)
    return checked


def check_bundle(data: bytes, *, places: bool = True) -> list[list[CheckedModel]]:
    """Check a bundle and the files in it; `places` as in `check_file`."""
    header = bytearray(data[:256])
    (model_num,), (model_length,) = struct.unpack_from("<I", header, 156), struct.unpack_from("<Q", header, 184)
    assert header[82] == 5
    assert model_length == len(data), "the length of a bundle has the header in it"
    header[82] = 0
    header[156:160] = bytes(4)
    header[184:192] = bytes(8)
    assert header == bytes(256), "a bundle sets three fields only"
    num, pad = struct.unpack_from("<II", data, 256)
    assert (num, pad) == (model_num + 1, 0)
    at, mem_offset, files = 256 + 8 + 24 * num, 8 + 24 * num, []
    for index in range(num):
        kind, pad, offset, size = struct.unpack_from("<IIQQ", data, 264 + 24 * index)
        assert (kind, pad, offset) == (24 if index else 25, 0, mem_offset)
        assert index or size == 8
        if index:
            files.append(check_file(data[at : at + size], places=places))
        at += size
        mem_offset += size
    assert at == len(data)
    (variable_size,) = struct.unpack_from("<q", data, 256 + 8 + 24 * num)
    for model, *_ in files if places else ():
        for op in model.ops.values():
            if op.type == "Variable":
                end = (
                    op.output_i[0] - int_attr(model.attrs, "task_gen_variable_addr") + first(op.output_descs[0], 10, 0)
                )
                assert end <= variable_size, "a variable leaves the space of the bundle"
    return files


def check_table(data: bytes, start: int, *, max_num: int) -> tuple[list[Part], int]:
    num, pad = struct.unpack_from("<II", data, start)
    assert pad == 0
    assert 1 <= num <= max_num
    at = start + 8 + 24 * num
    parts = []
    for index in range(num):
        kind, pad, mem_offset, size = struct.unpack_from("<IIQQ", data, start + 8 + 24 * index)
        assert pad == 0
        assert size > 0, "a partition without bytes is left out"
        assert mem_offset == sum(len(part.data) for part in parts), "mem_offset is the running sum"
        parts.append(Part(kind, mem_offset, data[at : at + size]))
        assert len(parts[-1].data) == size
        at += size
    kinds = [ORDER.index(part.kind) for part in parts]
    assert kinds == sorted(kinds), f"order of partitions {[part.kind for part in parts]}"
    return parts, at


def check_model(parts: list[Part]) -> CheckedModel:
    by_kind: dict[int, bytes] = {}
    for part in parts:
        by_kind.setdefault(part.kind, part.data)
    model_def = by_kind[0]
    model = CheckedModel(by_kind, attrs(model_def, 11), first(model_def, 1, b"").decode())
    if "om_info_list" in model.attrs:
        sizes = int_list(model.attrs["om_info_list"])
        assert sizes == [len(by_kind.get(kind, b"")) for kind in OM_INFO][: len(sizes)]
    if "tasks" in model.attrs:
        assert (first(model.attrs["tasks"], 7, None) or first(model.attrs["tasks"], 2, b"")) == by_kind.get(2, b"")
    check_stores(by_kind)
    for graph in all_of(model_def, 7):
        model.graphs[first(graph, 1, b"").decode()] = [read_op(op) for op in all_of(graph, 6)]
    return model


def check_sizes(model: CheckedModel) -> None:
    """Check what ATC's models promise about sizes, beyond those of a fixture."""
    found, weights = model.attrs, model.parts.get(1, b"")
    assert int_attr(found, "weight_size") == len(weights)
    tasks = model.parts.get(2, b"")
    assert first(tasks, 11, 0) == int_attr(found, "memory_size")
    assert first(tasks, 14, 0) == len(weights)
    rows = [numbers(row, 1) for row in all_of(first(found["sub_memory_info"], 14, b""), 1)]
    position = 0
    for memory_type, offset, size, _ in rows:
        assert (memory_type, offset) == (2, position)
        position += size
    assert position == int_attr(found, "memory_size")
    assert rows[-1][2] == int_attr(found, "zero_copy_memory_size")
    assert int_attr(found, "task_gen_weight_addr") == int_attr(found, "task_gen_base_addr") + position
    has_variables = any(op.type in ("Variable", "Constant", "FileConstant") for op in model.ops.values())
    assert (int_attr(found, "variable_size") > 0) == has_variables


def read_op(data: bytes) -> Op:
    return Op(
        first(data, 1, b"").decode(),
        first(data, 2, b"").decode(),
        [text.decode() for text in all_of(data, 5)],
        attrs(data, 10),
        numbers(data, 28),
        numbers(data, 29),
        numbers(data, 32),
        all_of(data, 33),
        all_of(data, 34),
    )


def check_stores(parts: dict[int, bytes]) -> None:
    for kind, magic in ((3, 0x5D776EFD), (4, 0x5D776EFD), (26, 0x4B43534B)):
        at, store = 0, parts.get(kind, b"")
        while at < len(store):
            found, name_len, bin_len = struct.unpack_from("<III", store, at)
            assert found == magic
            at += 12 + name_len + bin_len
        assert at == len(store), "a kernel store is not used up"
    at, inout = 0, parts.get(8, b"")
    while at < len(inout):
        kind, length = struct.unpack_from("<II", inout, at)
        assert kind <= 6
        at += 8 + length
    assert at == len(inout), "MODEL_INOUT_INFO is not used up"


class Names:
    """The tables of a model: number to name, and number to text."""

    def __init__(self, found: dict[str, bytes]) -> None:
        self.names = [text.decode() for text in text_list(found["attr_name_enum"])]
        self.values = text_list(found["attr_value_enum"])
        self.flags = numbers(first(found["attrs_use_string_value"], 1, b""), 5)
        assert len(self.names) == len(self.flags)
        assert int_attr(found, "om_compress_version") == 1

    def restore(self, name: str, attr: bytes) -> tuple[str, bytes]:
        index = sum((ord(digit) - 1) * 127**place for place, digit in enumerate(name[1:]))
        if not self.flags[index]:
            return self.names[index], attr
        if all_of(attr, 3):
            return self.names[index], string_attr(self.values[first(attr, 3, 0)])
        items = b"".join(wire(2, self.values[number]) for number in int_list(attr))
        return self.names[index], wire(1, items + b"\xa0\x01\x01")


def restore_names(models: list[CheckedModel]) -> None:
    """Restore attribute names by the own table and then the root's; plain files have none."""
    tables = [Names(model.attrs) if "om_compress_version" in model.attrs else None for model in models]
    for model in models:
        assert len(TABLES & set(model.attrs)) in (0, 4)
    for index, model in enumerate(models):
        rounds = [table for table in dict.fromkeys((tables[index], tables[0])) if table is not None]
        for ops in model.graphs.values():
            for op in ops:
                op.attrs = restored(op.attrs, rounds)


def restored(found: dict[str, bytes], tables: list[Names]) -> dict[str, bytes]:
    plain: dict[str, bytes] = {}
    for stored, value in found.items():
        name, attr = stored, value
        assert not tables or stored.startswith("\0") or stored in PLAIN_NAMES, f"{stored} is not compressed"
        for table in tables:
            if name.startswith("\0"):
                name, attr = table.restore(name, attr)
        assert not name.startswith("\0"), f"{stored!r} stays compressed"
        assert name not in ("_l2fusion_ToOpStruct", "_op_slice_info") or not tables
        if stored == name or name not in plain:
            plain[name] = attr
    return plain


def const_place(op: Op) -> tuple[int, int, bytes]:
    """Return offset in the weights, number of bytes and inline data of a constant."""
    tensor = first(op.attrs["value"], 12, b"")
    desc = first(tensor, 1, b"")
    return first(desc, 18, 0), first(desc, 11, 0), first(tensor, 2, b"")


def check_weights(model: CheckedModel) -> None:
    """Check the layout of partition 1 and what consumers say about it."""
    weights = model.parts.get(1, b"")
    pieces: set[tuple[int, int]] = set()
    for ops in model.graphs.values():
        places = {op.name: const_place(op) for op in ops if op.type == "Const" and "value" in op.attrs}
        placed = {name: (offset, size) for name, (offset, size, inline) in places.items() if size and not inline}
        pieces |= {(offset, offset + size) for offset, size in placed.values()}
        check_consumers(ops, placed)
    if not pieces:
        return
    assert weights[:512] == bytes(512)
    position = 512
    for begin, end in sorted(pieces):
        assert begin % 512 == 0
        assert 0 <= begin - position < 512, "pieces overlap, or a gap is too wide"
        assert weights[position:begin] == bytes(begin - position)
        position = end
    assert len(weights) % 512 == 0
    assert 32 <= len(weights) - position < 1024 + 512


def check_consumers(ops: list[Op], placed: dict[str, tuple[int, int]]) -> None:
    for op in ops:
        linked = [text for text in op.inputs if not text.endswith(":-1")]
        flags = numbers(first(op.attrs.get("is_input_const", b""), 1, b""), 5)
        for index, text in enumerate(linked):
            offset, size = placed.get(text.rpartition(":")[0], (0, 0))
            if size and flags:
                assert flags[index] == 1, f"{op.name} does not know that input {index} is constant"
                assert first(op.input_descs[index], 18, 0) == offset


def check_variables(model: CheckedModel) -> None:
    """Check that variables lie in the variable space, apart from each other unless they are one."""
    blocks: dict[int, int] = {}
    for ops in model.graphs.values():
        for op in ops:
            if op.type in ("Variable", "Constant", "FileConstant") and op.output_i:
                size = first(op.output_descs[0], 10, 0)
                assert len(op.output_i) == 1
                blocks[op.output_i[0]] = max(size, blocks.get(op.output_i[0], 0))
    if not blocks:
        return
    base, room = (int_attr(model.attrs, key) for key in ("task_gen_variable_addr", "variable_size"))
    end = base
    for addr, size in sorted(blocks.items()):
        assert addr >= end, "variables overlap"
        end = addr + align(size, 512) + 1024
        assert addr + size <= base + room


def check_external(model: CheckedModel, folder: Path | None) -> None:
    """Check what FileConstants say, and their bytes by the digest in the name."""
    for ops in model.graphs.values():
        for op in ops if folder is not None else ():
            if op.type != "FileConstant":
                continue
            location = first(op.attrs["location"], 2, b"").decode()
            offset, length = int_attr(op.attrs, "offset"), int_attr(op.attrs, "length")
            assert "/" not in location
            assert folder is not None
            content = (folder / location).read_bytes()
            digest = hashlib.sha256(content[offset : offset + length]).hexdigest()
            assert op.name.endswith(f"_{digest}")
            if location == f"weight_{digest}":
                assert (offset, len(content)) == (0, length)
            else:
                assert location.endswith("_weight_combined")
                assert offset % 512 == 0
                assert len(content) % 512 == 0
                assert content[offset + length : align(offset + length, 512)] == bytes(-length % 512)
            assert {"dtype", "shape", "original_shape"} <= set(op.attrs)
            assert int_list(op.attrs["shape"]) == numbers(first(op.output_descs[0], 3, b""), 1)


def check_padding(model: CheckedModel) -> None:
    """Check that the stored size of a constant is its bytes and 32, in units of 32."""
    for op in model.ops.values():
        if op.type == "Const":
            _, size, inline = const_place(op)
            assert first(op.output_descs[0], 10, 0) == align((size or len(inline)) + 32, 32)
