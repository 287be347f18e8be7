"""Reading messages: what is kept, and one kind of error for damaged, cut and deep input under every implementation."""

import os
import subprocess
import sys

import pytest
from google.protobuf.internal import api_implementation

from gevar.errors import ModelFileError
from gevar.proto import ge_ir, task
from gevar.proto.parse import parse_message, unknown_field_numbers
from tests.helpers.shared import REPOSITORY


def model() -> bytes:
    graph = ge_ir.GraphDef(name="g")
    op = graph.op.add(name="v", type="Variable", output_i=[137438953472])
    op.attr["value"].t.data = b"abcd"
    op.output_desc.add(layout="ND", dtype=1).shape.dim.extend([2, 3])
    return ge_ir.ModelDef(name="m", version=2, graph=[graph]).SerializeToString()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind: type) -> None:
    found = parse_message(ge_ir.ModelDef, kind(model()))
    assert (found.name, found.version, found.graph[0].op[0].output_i[0]) == ("m", 2, 137438953472)


def test_no_bytes_are_an_empty_message() -> None:
    assert parse_message(ge_ir.ModelDef, b"") == ge_ir.ModelDef()


def test_unknown_fields_are_kept() -> None:
    unknown = bytes.fromhex("f8a3a00105" + "c2060461626364")
    found = parse_message(ge_ir.ModelDef, model() + unknown)
    assert found.name == "m"
    assert found.SerializeToString().endswith(unknown)


def test_unknown_fields_inside_a_message_are_kept() -> None:
    tasks = bytes.fromhex("520608011a024142")
    assert parse_message(task.ModelTaskDef, tasks).SerializeToString() == tasks


def test_numbers_of_fields_that_are_kept_in_wire_form() -> None:
    assert unknown_field_numbers(parse_message(ge_ir.ModelDef, model())) == set()
    unknown = bytes.fromhex("f8a3a00105" + "c2060461626364" + "120100")  # the last: bytes for the number `version`
    assert unknown_field_numbers(parse_message(ge_ir.ModelDef, model() + unknown)) == {2, 104, 328255}


def cuts() -> list[int]:
    """Return the sizes at which the bytes of `model` stop inside a field of the outermost message."""
    data = model()
    whole = {0, 3, 5, len(data)}  # behind nothing, the name, the version, the graph
    return [size for size in range(len(data)) if size not in whole]


@pytest.mark.parametrize("size", cuts())
def test_a_cut_message_is_refused(size: int) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_message(ge_ir.ModelDef, model()[:size])
    assert caught.value.field == "ge.proto.ModelDef"
    assert caught.value.reason.endswith(f"({size} bytes)")


def test_a_message_cut_between_fields_is_a_shorter_one() -> None:
    assert parse_message(ge_ir.ModelDef, model()[:5]) == ge_ir.ModelDef(name="m", version=2)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a", id="a tag without its length"),
        pytest.param(b"\x0a\x05ab", id="a length past the end"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="a negative length"),
        pytest.param(b"\x10" + b"\xff" * 11, id="a number that does not end"),
        pytest.param(b"\x0a\x02\xc3\x28", id="a name that is not UTF-8"),
        pytest.param(b"\x0c", id="an end without a start"),
        pytest.param(b"\x00\x01", id="field number 0"),
        pytest.param(b"\x3a\x03\x0a\x05a", id="a cut message inside"),
    ],
)
def test_a_damaged_message_is_refused(data: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"^ge\.proto\.ModelDef: .*bytes") as caught:
        parse_message(ge_ir.ModelDef, data)
    assert (caught.value.file, caught.value.offset) == (None, None)
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


DEEP = """
from gevar.errors import ModelFileError
from gevar.proto import ge_ir
from gevar.proto.parse import parse_message, unknown_field_numbers
from google.protobuf.internal import api_implementation

def field(number, data):
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data

def nested(levels):
    data = b""
    for _ in range(levels):
        data = field(10, field(2, field(1, b"k") + field(2, data)))
    return data

parse_message(ge_ir.AttrDef, nested(10))
try:
    parse_message(ge_ir.AttrDef, nested(10000))
except ModelFileError as error:
    print(api_implementation.Type(), str(error).startswith("ge.proto.AttrDef: "), str(error).count(chr(10)))
"""


@pytest.mark.parametrize("implementation", sorted({"python", api_implementation.Type()}))
def test_deep_nesting_is_refused_by_every_implementation(implementation: str) -> None:
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
    command = [sys.executable, "-c", DEEP]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [implementation, "True", "0"], done.stderr
