"""What does it cost to read a model of 100 000 nodes into the graph IR, and to keep it?

The model is made up with the habits of real ones: a node has 36 attributes, most of them equal to those of other nodes,
and three descriptions of tensors with attributes of their own; it reads the two nodes before it. A fresh process reads
the file, has protobuf parse it, makes the IR and drops the message. Time is processor time from the bytes to the IR,
beside protobuf's part of it; memory is what is resident then, less what was before the file was read. The C library is
asked to give freed memory back before, which protobuf does by itself after each 10 000 pieces that it frees.
"""

from functools import cache
from pathlib import Path

from benchmarks.harness import Promise, Row, run_python, scratch_folder
from gevar.proto import ge_ir

ROUNDS = 5
NODES = 100_000
TYPES = 24
SHARED_ATTRS = 33
SHAPES = 500
CONTROL_EVERY = 16
_CHILD = """
import ctypes, gc, sys, time
from gevar.graph import Model
from gevar.proto import ge_ir

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

gc.collect()
before = resident()
data = open(sys.argv[1], "rb").read()
start = time.process_time()
message = ge_ir.ModelDef.FromString(data)
parsed = time.process_time()
model = Model.from_proto(message)
end = time.process_time()
nodes = len(model.graph)
del data, message
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
print(end - start, parsed - start, (resident() - before) / nodes)
"""


def _tensor(tensor: ge_ir.TensorDescriptor, number: int, slot: int) -> None:
    tensor.name = f"slot{slot}"
    tensor.dtype = 1 + number % 3
    tensor.layout = "NCHW"
    tensor.shape.dim.extend((1, 64 + number % SHAPES, 14, 14))
    tensor.size = 4 * 64 * 196 + 512 * (number % SHAPES)
    tensor.device_type = "NPU"
    tensor.has_out_attr = True
    for name, value in (("format_for_int", 0), ("origin_format_for_int", 0), ("_tensor_memory_type", 2)):
        tensor.attr[name].i = value
    tensor.attr["origin_format"].s = b"NCHW"
    tensor.attr["origin_shape_initialized"].b = True
    tensor.attr["origin_shape"].list.i.extend((1, 64 + number % SHAPES, 14, 14))
    tensor.attr["origin_shape"].list.val_type = 2


def _node(op: ge_ir.OpDef, number: int) -> None:
    op.name = f"features/block_{number // 8}/op_{number}"
    op.type = f"Operator{number % TYPES}"
    op.has_out_attr = True
    op.id = number
    before = [previous for previous in (number - 1, number - 2) if previous >= 0]
    op.input.extend(f"features/block_{previous // 8}/op_{previous}:0" for previous in before)
    if number % CONTROL_EVERY == CONTROL_EVERY - 1:
        op.input.append(f"features/block_{(number - 9) // 8}/op_{number - 9}:-1")
    op.input_i.extend(512 * previous for previous in before)
    op.output_i.append(512 * number)
    for slot in range(len(before)):
        _tensor(op.input_desc.add(), before[slot], slot)
    _tensor(op.output_desc.add(), number, 0)
    for index in range(SHARED_ATTRS):
        attr = op.attr[f"_attribute_of_the_compiler_{index}"]
        if index % 3 == 0:
            attr.s = f"kind {number % TYPES % (index + 1)}".encode()
        elif index % 3 == 1:
            attr.i = number % TYPES * index
        else:
            attr.list.b.extend((False, index % 2 == 0))
            attr.list.val_type = 4
    op.attr["_op_read_write_index"].i = number
    op.attr["tbe_kernel_name"].s = f"kernel_{number}".encode()
    op.attr["_datadump_original_op_names"].list.s.append(op.name.encode())


def _write_model(path: Path) -> int:
    """Write the message of the model and return its bytes."""
    model = ge_ir.ModelDef(name="large")
    graph = model.graph.add(name="large")
    for number in range(NODES):
        _node(graph.op.add(), number)
    return path.write_bytes(model.SerializeToString())


@cache
def _measured() -> tuple[int, tuple[tuple[float, float, float], ...]]:
    """Return the bytes of the message, and of each round seconds in all, seconds of protobuf, and bytes a node."""
    with scratch_folder() as folder:
        path = folder / "large.pb"
        size_bytes = _write_model(path)
        rounds = []
        for _ in range(ROUNDS):
            whole, parse, node_bytes = map(float, run_python(_CHILD, str(path)).stdout.split())
            rounds.append((whole, parse, node_bytes))
    return size_bytes, tuple(rounds)


def graph_read() -> Row:
    size_bytes, rounds = _measured()
    whole = tuple(row[0] for row in rounds)
    return Row(
        name="graph-read",
        backend="none",
        unit="s",
        subject=whole,
        reference=tuple(row[1] for row in rounds),
        figure=max(whole),
        figure_unit="s at most",
        promise=Promise("under 15 s", 15, at_most=True),
        conditions={"nodes": NODES, "message_mib": size_bytes / (1 << 20), "reference": "protobuf's parse alone"},
    )


def graph_memory() -> Row:
    size_bytes, rounds = _measured()
    node_bytes = tuple(row[2] for row in rounds)
    return Row(
        name="graph-memory",
        backend="none",
        unit="B",
        subject=node_bytes,
        reference=(size_bytes / NODES,) * len(rounds),
        figure=max(node_bytes),
        figure_unit="B a node at most",
        promise=Promise("under 3 KiB", 3072, at_most=True),
        conditions={"nodes": NODES, "reference": "bytes of the message a node"},
    )
