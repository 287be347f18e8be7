"""An OM file taken apart with struct and the protobuf library alone, to check the writer without the reader."""

import struct
from dataclasses import dataclass
from pathlib import Path

from gevar.proto import ge_ir, task

PARTITION_NAMES = {0: "model_def", 1: "weights", 2: "task", 3: "kernels", 8: "inout"}


@dataclass(frozen=True)
class TakenApart:
    """The parts of a file with one wide table. `table` holds (type, mem_offset, mem_size)."""

    header: bytes
    table: list[tuple[int, int, int]]
    parts: dict[str, bytes]

    def u32(self, offset: int) -> int:
        return int(struct.unpack_from("<I", self.header, offset)[0])

    def u64(self, offset: int) -> int:
        return int(struct.unpack_from("<Q", self.header, offset)[0])

    @property
    def model(self) -> ge_ir.ModelDef:
        return ge_ir.ModelDef.FromString(self.parts["model_def"])

    @property
    def tasks(self) -> task.ModelTaskDef:
        return task.ModelTaskDef.FromString(self.parts["task"])

    @property
    def ops(self) -> dict[str, ge_ir.OpDef]:
        return {op.name: op for op in self.model.graph[0].op}

    @property
    def weights(self) -> bytes:
        return self.parts["weights"]

    def number(self, key: str) -> int:
        """Return a numeric attribute of the model, which must be there."""
        assert key in self.model.attr, key
        return self.model.attr[key].i

    def const_bytes(self, name: str) -> bytes:
        """Return the bytes of a Const from where its value says they lie."""
        desc = self.ops[name].attr["value"].t.desc
        return self.weights[desc.data_offset : desc.data_offset + desc.weight_size]


def take_apart(path: Path) -> TakenApart:
    """Cut a file into header, table and partitions; every length must fit exactly."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<I", data, 256)
    table, position = [], 256 + 8 + 24 * count
    parts = {}
    for index in range(count):
        kind, mem_offset, mem_size = struct.unpack_from("<I4xQQ", data, 264 + 24 * index)
        table.append((kind, mem_offset, mem_size))
        parts[PARTITION_NAMES[kind]] = data[position : position + mem_size]
        position += mem_size
    assert position == len(data)
    return TakenApart(data[:256], table, parts)


def inout_tensors(data: bytes) -> dict[int, list[tuple[str, int, int, int, tuple[int, ...], tuple[int, ...]]]]:
    """Decode a MODEL_INOUT_INFO partition: record type to (name, size, format, data type, dims, dims again)."""
    found = {}
    position = 0
    while position < len(data):
        kind, length, count = struct.unpack_from("<III", data, position)
        at, end = position + 12, position + 8 + length
        tensors = []
        for _ in range(count):
            size, fmt, dtype, name_len, *lengths = struct.unpack_from("<QiiIIII", data, at)
            name = data[at + 32 : at + 32 + name_len].decode()
            at += 32 + name_len
            dims = []
            for length_bytes in lengths:
                dims.append(struct.unpack_from(f"<{length_bytes // 8}q", data, at))
                at += length_bytes
            assert dims[2] == ()
            tensors.append((name, size, fmt, dtype, dims[0], dims[1]))
        assert at == end
        found[kind] = tensors
        position = end
    return found
