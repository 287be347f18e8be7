"""OM files byte by byte for tests, written without any code of the project.

Messages are built from field numbers and values; headers and tables from their layout. Everything returns bytes, so a
test can put a wrong piece anywhere.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

VERSION_1 = 0x10000000
VERSION_2 = 0x20000000
MAGIC = 0x444F4D49

DT_FLOAT, DT_FLOAT16, DT_INT8, DT_UINT8, DT_INT32 = 1, 2, 3, 4, 7
"""Element types by their numbers on the wire."""

Value = int | str | bytes


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: Value) -> bytes:
    """One field: an integer as a varint, text and bytes (also of messages) with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Value | None]) -> bytes:
    """A message of fields; those with value None are left out."""
    return b"".join(field(number, value) for number, value in fields if value is not None)


# --- package ge.proto -------------------------------------------------------------------------------------------------


def attr_i(value: int) -> bytes:
    return field(3, value)


def attr_s(value: str | bytes) -> bytes:
    return field(2, value)


def attr_t(tensor: bytes) -> bytes:
    return field(12, tensor)


def attr_strings(values: Iterable[str | bytes]) -> bytes:
    return field(1, b"".join(field(2, value) for value in values) + field(20, 1))


def attr_ints(values: Iterable[int]) -> bytes:
    return field(1, b"".join(field(3, value) for value in values) + field(20, 2))


def attr_bools(values: Iterable[bool]) -> bytes:
    return field(1, b"".join(field(5, int(value)) for value in values) + field(20, 4))


def attr_map(number: int, attrs: Mapping[str, bytes] | None) -> bytes:
    return b"".join(field(number, field(1, name) + field(2, value)) for name, value in (attrs or {}).items())


def tensor_desc(
    shape: Sequence[int] = (),
    dtype: int = DT_FLOAT,
    layout: str = "ND",
    size: int = 0,
    weight_size: int = 0,
    data_offset: int = 0,
    attrs: Mapping[str, bytes] | None = None,
) -> bytes:
    dims = b"".join(field(1, dim) for dim in shape)
    numbers = message((10, size), (11, weight_size), (18, data_offset))
    return message((2, dtype), (3, dims), (4, layout), (9, 1)) + attr_map(5, attrs) + numbers


def tensor(desc: bytes, data: bytes | None = None) -> bytes:
    return message((1, desc), (2, data))


def op(
    name: str,
    kind: str,
    attrs: Mapping[str, bytes] | None = None,
    outputs: Sequence[bytes] = (),
    inputs: Sequence[bytes] = (),
    output_i: Sequence[int] = (),
    subgraphs: Sequence[str] = (),
    producers: Sequence[str] = (),
    input_i: Sequence[int] = (),
    is_input_const: Sequence[bool] = (),
) -> bytes:
    offsets = b"".join(field(5, producer) for producer in producers)
    offsets += b"".join(field(28, offset) for offset in input_i) + b"".join(field(29, offset) for offset in output_i)
    offsets += b"".join(field(32, int(flag)) for flag in is_input_const)
    descs = b"".join(field(33, desc) for desc in inputs) + b"".join(field(34, desc) for desc in outputs)
    owned = b"".join(field(35, graph_name) for graph_name in subgraphs)
    return message((1, name), (2, kind)) + attr_map(10, attrs) + offsets + descs + owned


def const(name: str, data_offset: int, size_bytes: int, kind: str = "Const") -> bytes:
    """A constant of bytes whose data lie in the weights partition."""
    desc = tensor_desc((size_bytes,), DT_UINT8, weight_size=size_bytes, data_offset=data_offset)
    return op(name, kind, {"value": attr_t(tensor(desc))}, [tensor_desc((size_bytes,), DT_UINT8, size=size_bytes)])


def inline_const(name: str, data: bytes, kind: str = "Constant", address: int | None = None) -> bytes:
    desc = tensor_desc((len(data),), DT_UINT8)
    output = tensor_desc((len(data),), DT_UINT8, size=len(data))
    return op(
        name, kind, {"value": attr_t(tensor(desc, data))}, [output], output_i=[] if address is None else [address]
    )


def variable(name: str, shape: Sequence[int], address: int, attrs: Mapping[str, bytes] | None = None) -> bytes:
    size = 4
    for dim in shape:
        size *= dim
    return op(name, "Variable", None, [tensor_desc(shape, DT_FLOAT, size=size, attrs=attrs)], output_i=[address])


def graph(name: str, ops: Iterable[bytes]) -> bytes:
    return field(1, name) + b"".join(field(6, item) for item in ops)


def model_def(name: str, graphs: Iterable[bytes], attrs: Mapping[str, bytes] | None = None, version: int = 2) -> bytes:
    return message((1, name), (2, version)) + b"".join(field(7, item) for item in graphs) + attr_map(11, attrs)


def compression(
    names: Sequence[str], string_values: Sequence[bool] | None = None, values: Sequence[str] = ()
) -> dict[str, bytes]:
    """Model attributes that hold a table of attribute names."""
    flags = [False] * len(names) if string_values is None else string_values
    return {
        "om_compress_version": attr_i(1),
        "attr_name_enum": attr_strings(names),
        "attrs_use_string_value": attr_bools(flags),
        "attr_value_enum": attr_strings(values),
    }


def task_def(tasks: int = 1, memory_size: int = 0, weight_size: int = 0) -> bytes:
    listed = b"".join(field(10, message((1, index), (2, 3))) for index in range(tasks))
    return listed + message((11, memory_size), (14, weight_size))


# --- stores -----------------------------------------------------------------------------------------------------------


def kernel_item(name: str, binary: bytes, magic: int = 0x5D776EFD) -> bytes:
    return struct.pack("<III", magic, len(name), len(binary)) + name.encode() + binary


def so_store(items: Sequence[tuple[str, str, int, bytes]], count: int | None = None) -> bytes:
    """A store of (name, vendor, type, binary)."""
    out = struct.pack("<I", len(items) if count is None else count)
    for name, vendor, so_type, binary in items:
        out += struct.pack("<IHHII", 0x5D776EFD, len(name), so_type, len(vendor), len(binary))
        out += name.encode() + vendor.encode() + binary
    return out


def record(number: int, value: bytes) -> bytes:
    """One record of MODEL_INOUT_INFO."""
    return struct.pack("<II", number, len(value)) + value


def tensor_info(name: str, size: int, dims: Sequence[int], shape_range: Sequence[int] = ()) -> bytes:
    pack = [struct.pack(f"<{len(row)}q", *row) for row in (dims, dims, shape_range)]
    base = struct.pack("<QiiIIII", size, 2, 0, len(name), *(len(row) for row in pack))
    return base + name.encode() + b"".join(pack)


# --- header and table -------------------------------------------------------------------------------------------------


def header(
    version: int = VERSION_2,
    length: int = 0,
    model_length: int = 0,
    modeltype: int = 0,
    model_num: int = 1,
    is_unknow_model: int = 0,
    name: str = "model",
    magic: int = MAGIC,
    headsize: int = 256,
    is_encrypt: int = 0,
    platform_version: str = "1.11.z.0",
    platform_type: int = 1,
) -> bytes:
    out = bytearray(256)
    struct.pack_into("<III", out, 0, magic, headsize, version)
    struct.pack_into("<IBBBB32s", out, 76, length, is_encrypt, 0, modeltype, 0, name.encode())
    struct.pack_into("<I", out, 152, 2)
    if version == VERSION_1:
        struct.pack_into("<20sB", out, 156, platform_version.encode(), platform_type)
    else:
        struct.pack_into("<I20sB", out, 156, model_num, platform_version.encode(), platform_type)
        struct.pack_into("<QBB", out, 184, model_length, 0, is_unknow_model)
    return bytes(out)


def table(entries: Sequence[tuple[int, int, int]], wide: bool) -> bytes:
    """A table of (type, mem_offset, mem_size)."""
    if wide:
        return struct.pack("<I4x", len(entries)) + b"".join(struct.pack("<I4xQQ", *entry) for entry in entries)
    return struct.pack("<I", len(entries)) + b"".join(struct.pack("<III", *entry) for entry in entries)


def body(partitions: Sequence[tuple[int, bytes]], wide: bool = True) -> bytes:
    """Table and data of one model."""
    entries = []
    offset = 0
    for number, data in partitions:
        entries.append((number, offset, len(data)))
        offset += len(data)
    return table(entries, wide) + b"".join(data for _, data in partitions)


def g1(partitions: Sequence[tuple[int, bytes]], **fields: int | str) -> bytes:
    data = body(partitions, wide=False)
    return header(VERSION_1, length=len(data), **fields) + data


def mobile(partitions: Sequence[tuple[int, bytes]], modeltype: int = 3) -> bytes:
    return g1(partitions, modeltype=modeltype, platform_version="3.51.z.0", platform_type=0)


def g2(partitions: Sequence[tuple[int, bytes]], **fields: int | str) -> bytes:
    data = body(partitions, wide=False)
    return header(VERSION_2, length=len(data), **fields) + data


def g3(partitions: Sequence[tuple[int, bytes]], **fields: int | str) -> bytes:
    data = body(partitions, wide=True)
    return header(VERSION_2, model_length=len(data), **fields) + data


def dynamic(models: Sequence[Sequence[tuple[int, bytes]]]) -> bytes:
    data = b"".join(body(partitions) for partitions in models)
    return header(model_length=len(data), model_num=len(models), is_unknow_model=1) + data


def flow(root: bytes, submodels: Sequence[tuple[str, str, bytes]]) -> bytes:
    """A flow model of (name, type, nested OM)."""
    relations = message((1, "flow"), *((3, name) for name, _, _ in submodels))
    parts = [(7, message((1, name), (2, kind), (3, om))) for name, kind, om in submodels]
    return g3([(0, root), (6, relations), *parts], modeltype=3)


def bundle(models: Sequence[bytes], variable_size: int = 512, **fields: int) -> bytes:
    """A bundle, with the zero magic, header size and version that its writer leaves."""
    table_bytes = 8 + 24 * (len(models) + 1)
    parts = [(25, struct.pack("<q", variable_size)), *((24, model) for model in models)]
    entries, offset = [], table_bytes
    for number, data in parts:
        entries.append((number, offset, len(data)))
        offset += len(data)
    data = table(entries, wide=True) + b"".join(part for _, part in parts)
    head: dict[str, int] = {"magic": 0, "headsize": 0, "version": 0, "model_length": 256 + len(data), **fields}
    return header(modeltype=5, model_num=len(models), name="", platform_version="", platform_type=0, **head) + data


# --- whole files ------------------------------------------------------------------------------------------------------

WEIGHTS = bytes(512) + bytes(range(64)) + bytes(448) + b"\x01\x02\x03\x04" + bytes(508)
"""A weights partition with pieces of 64 B at 512 and 4 B at 1024."""


def small_graphs() -> list[bytes]:
    """A root with one subgraph: constants in and beside the graph, variables, an initial value."""
    init = tensor(tensor_desc((2,), DT_FLOAT), struct.pack("<2f", 1.5, -2.0))
    root = [
        op("data", "Data", {"index": attr_i(0)}, [tensor_desc((4,))]),
        variable("v", (2, 3), 0x20_0000_0000),
        const("weight", 512, 64),
        op("call", "PartitionedCall", None, subgraphs=["body"]),
        inline_const("table", b"\x07\x08\x09", address=0x20_0000_0400),
        op("out", "NetOutput"),
    ]
    inner = [variable("w", (2,), 0x20_0000_0200, {"_init_value": attr_t(init)}), const("bias", 1024, 4)]
    return [graph("root", root), graph("body", inner)]


def small_partitions(graphs: Iterable[bytes] | None = None, **attrs: bytes) -> list[tuple[int, bytes]]:
    """The five partitions of an ordinary model."""
    found = {
        "memory_size": attr_i(2048),
        "weight_size": attr_i(len(WEIGHTS)),
        "variable_size": attr_i(1 << 20),
        "task_gen_variable_addr": attr_i(0x20_0000_0000),
        "target_type": attr_s("MINI"),
        **attrs,
    }
    return [
        (8, record(0, struct.pack("<I", 1) + tensor_info("data", 16, (4,)))),
        (0, model_def("small", small_graphs() if graphs is None else graphs, found)),
        (1, WEIGHTS),
        (3, kernel_item("add", b"\x90" * 20) + kernel_item("mul", b"")),
        (2, task_def(2, 2048, len(WEIGHTS))),
    ]
