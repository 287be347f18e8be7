"""What does it cost to read a model of 100 000 nodes into the graph IR, and to keep it?

The model is made up with the habits of real ones: a node has 36 attributes, most of them equal to those of other nodes,
and three descriptions of tensors with attributes of their own; it reads the two nodes before it. A fresh process opens
the file, makes the IR and closes the file. Time is processor time of all that, beside protobuf's parse of the whole
message in a process of its own; memory is what is resident then, less what was before the file was opened.
"""

from functools import cache
from pathlib import Path

from benchmarks.harness import Promise, Row, run_python, scratch_folder
from gevar.om.header import ModelFileHeader
from gevar.om.partition import WIDE_TABLE, PartitionType
from gevar.proto import ge_ir

ROUNDS = 5
NODES = 100_000
TYPES = 24
SHARED_ATTRS = 33
SHAPES = 500
CONTROL_EVERY = 16
_READ = """
import gc, sys, time
from gevar.om import open_om

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

with open_om(sys.argv[2]) as om:
    om.models[0].graph_ir()  # what is imported and built once
del om
gc.collect()
before, start = resident(), time.process_time()
with open_om(sys.argv[1]) as om:
    model = om.models[0].graph_ir()
seconds, nodes = time.process_time() - start, len(model.graph)
del om
gc.collect()
print(seconds, (resident() - before) / nodes)
"""
_PARSE = """
import sys, time
from gevar.proto import ge_ir
data = open(sys.argv[1], "rb").read()
ge_ir.ModelDef()
start = time.process_time()
ge_ir.ModelDef.FromString(data)
print(time.process_time() - start)
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


def write_message(path: Path, nodes: int = NODES) -> int:
    """Write the message of the model and return its bytes."""
    model = ge_ir.ModelDef(name="large")
    graph = model.graph.add(name="large")
    for number in range(nodes):
        _node(graph.op.add(), number)
    return path.write_bytes(model.SerializeToString())


def write_model(path: Path, message: Path) -> None:
    """Put a message behind a header and a table."""
    size = message.stat().st_size
    table = WIDE_TABLE.pack([(PartitionType.MODEL_DEF, 0, size), (PartitionType.WEIGHTS_DATA, size, 0)])
    header = ModelFileHeader(name="large", model_length=len(table) + size)
    path.write_bytes(header.pack() + table + message.read_bytes())


@cache
def _measured() -> tuple[int, tuple[tuple[float, float], ...], tuple[float, ...]]:
    """Return the bytes of the message, of each round seconds and bytes a node, and the seconds of protobuf."""
    with scratch_folder() as folder:
        message, path, small = folder / "large.pb", folder / "large.om", folder / "small.om"
        write_message(message, 1)
        write_model(small, message)
        size_bytes = write_message(message)
        write_model(path, message)

        def read() -> tuple[float, float]:
            seconds, node_bytes = map(float, run_python(_READ, str(path), str(small)).stdout.split())
            return seconds, node_bytes

        rounds, parses = [], []
        for _ in range(ROUNDS):
            rounds.append(read())
            parses.append(float(run_python(_PARSE, str(message)).stdout))
    return size_bytes, tuple(rounds), tuple(parses)


def graph_read() -> Row:
    size_bytes, rounds, parses = _measured()
    whole = tuple(row[0] for row in rounds)
    return Row(
        name="graph-read",
        backend="none",
        unit="s",
        subject=whole,
        reference=parses,
        figure=max(whole),
        figure_unit="s at most",
        promise=Promise("under 15 s", 15, at_most=True),
        conditions={"nodes": NODES, "message_mib": size_bytes / (1 << 20), "reference": "protobuf's parse alone"},
    )


def graph_memory() -> Row:
    size_bytes, rounds, _ = _measured()
    node_bytes = tuple(row[1] for row in rounds)
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
