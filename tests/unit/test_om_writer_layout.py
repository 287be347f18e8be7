"""Where things lie: weights, variables, work memory; and how nodes say so."""

from pathlib import Path

import numpy as np
import pytest
import xxhash

from gevar.om.builder import OmBuilder
from gevar.om.weights_layout import EqualBytes, SparseBytes, WeightsLayout
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_bytes import TakenApart, take_apart

BASE = 128 << 30


def desc(dtype: DataType, *shape: int) -> TensorDesc:
    return TensorDesc(dtype, Format.FORMAT_ND, shape)


def octets(size_bytes: int, first: int = 1) -> memoryview:
    return memoryview(bytes((first + index) % 251 for index in range(size_bytes)))


def written(builder: OmBuilder, folder: Path) -> TakenApart:
    path = folder / "model.om"
    builder.write(path)
    return take_apart(path)


@pytest.mark.parametrize(
    ("sizes", "offsets", "total"),
    [
        ([], [], 1024),
        ([1], [512], 1024),
        ([480], [512], 1024),
        ([481], [512], 1536),
        ([511, 512, 513, 1], [512, 1024, 1536, 2560], 3072),
        ([512], [512], 1536),
    ],
)
def test_weights_start_at_multiples_of_512_and_end_with_a_tail(
    sizes: list[int], offsets: list[int], total: int
) -> None:
    layout = WeightsLayout()
    assert [layout.place(octets(size, first)) for first, size in enumerate(sizes)] == offsets
    assert layout.size_bytes == total
    assert [offset for offset, _ in layout.pieces] == offsets


def test_equal_weights_of_equal_size_share_a_place() -> None:
    layout = WeightsLayout()
    offsets = [layout.place(octets(size, first)) for size, first in ((600, 1), (600, 2), (600, 1), (599, 1))]
    assert offsets == [512, 1536, 512, 2560]
    assert len(layout.pieces) == 3


def test_sparse_weights_keep_a_place_each() -> None:
    layout = WeightsLayout()
    zeros = memoryview(bytes(600))
    assert [layout.place(data) for data in (SparseBytes(600), SparseBytes(600), zeros, zeros)] == [
        512,
        1536,
        2560,
        2560,
    ]
    assert layout.pieces == [(2560, zeros)]


def test_weights_without_bytes_take_no_room() -> None:
    layout = WeightsLayout()
    assert [layout.place(data) for data in (memoryview(b""), octets(5), memoryview(b""))] == [512, 512, 512]
    assert layout.size_bytes == 1024


def test_bytes_of_one_digest_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xxhash, "xxh3_128_digest", lambda _: b"same")
    equal = EqualBytes()
    places = iter((10, 20, 30))
    found = [equal.place(memoryview(data), lambda: next(places)) for data in (b"aa", b"bb", b"aa", b"bb", b"a")]
    assert found == [10, 20, 10, 20, 30]


def test_equal_bytes_of_another_width_have_another_place() -> None:
    equal = EqualBytes()
    places = iter((10, 20))
    found = [equal.place(octets(8), lambda: next(places), width=width) for width in (4, 2, 4, 2)]
    assert found == [10, 20, 10, 20]


def test_the_weights_hold_the_bytes_and_zeros_between(tmp_path: Path) -> None:
    builder = OmBuilder("weights")
    first, second = np.arange(1, 200, dtype=np.int32), np.full(3, 7, np.int8)
    builder.const("first", first)
    builder.const("second", second)
    om = written(builder, tmp_path)
    assert om.const_bytes("first") == first.tobytes()
    assert om.const_bytes("second") == second.tobytes()
    expected = bytearray(len(om.weights))
    expected[512 : 512 + first.nbytes] = first.tobytes()
    expected[1536 : 1536 + second.nbytes] = second.tobytes()
    assert om.weights == bytes(expected)


def test_a_const_and_its_readers_say_where_the_bytes_lie(tmp_path: Path) -> None:
    builder = OmBuilder("const")
    x = builder.data("x", desc(DataType.DT_FLOAT, 10))
    builder.const("other", np.zeros(3, np.int8))
    w = builder.const("w", np.ones(10, np.float32))
    builder.output(builder.node("Add", "sum", [x, w], [desc(DataType.DT_FLOAT, 10)]))
    om = written(builder, tmp_path)
    op = om.ops["w"]
    value = op.attr["value"].t
    assert (value.data, value.desc.data_offset, value.desc.weight_size, value.desc.size) == (b"", 1024, 40, 96)
    assert (op.has_out_attr, op.output_desc[0].size, op.output_desc[0].weight_size) == (True, 96, 0)
    assert op.output_desc[0].data_offset == 0
    assert op.attr["is_input_const"].list.val_type == 4
    reader = om.ops["sum"]
    assert list(reader.is_input_const) == list(reader.attr["is_input_const"].list.b) == [False, True]
    assert [td.data_offset for td in reader.input_desc] == [0, 1024]
    assert list(reader.input) == ["x:0", "w:0"]
    assert (list(reader.src_name), list(reader.src_index)) == (["x", "w"], [0, 0])


@pytest.mark.parametrize(
    ("shape", "size"),
    [((), 64), ((0, 3), 32), ((1,), 64), ((8,), 64), ((9,), 96), ((24,), 128), ((25,), 160)],
)
def test_stored_sizes_are_padded(tmp_path: Path, shape: tuple[int, ...], size: int) -> None:
    builder = OmBuilder("sizes")
    builder.const("w", np.zeros(shape, np.float32))
    builder.constant("c", np.zeros(shape, np.float32))
    builder.variable("v", desc(DataType.DT_FLOAT, *shape))
    builder.data("x", desc(DataType.DT_FLOAT, *shape))
    om = written(builder, tmp_path)
    assert {op.output_desc[0].size for op in om.ops.values()} == {size}
    assert om.ops["x"].input_desc[0].size == om.ops["w"].attr["value"].t.desc.weight_size == np.prod(shape) * 4


def test_a_string_constant_is_stored_with_the_size_of_its_bytes(tmp_path: Path) -> None:
    builder = OmBuilder("text")
    builder.constant("c", b"some text of 23 letters", desc(DataType.DT_STRING, 1))
    builder.const("w", b"other", desc(DataType.DT_STRING, 1))
    om = written(builder, tmp_path)
    assert (om.ops["c"].output_desc[0].size, om.ops["w"].output_desc[0].size) == (23, 5)
    assert om.ops["c"].attr["value"].t.data == b"some text of 23 letters"
    assert om.const_bytes("w") == b"other"


def test_variables_follow_each_other_with_their_guard(tmp_path: Path) -> None:
    builder = OmBuilder("variables")
    for name, count in (("a", 0), ("b", 1), ("c", 480), ("d", 481), ("e", 1)):
        builder.variable(name, desc(DataType.DT_INT8, count))
    om = written(builder, tmp_path)
    # Stored sizes 32, 64, 512, 544, 64; each block is the size in units of 512 and 1024.
    assert [om.ops[name].output_i[0] - BASE for name in "abcde"] == [0, 1536, 3072, 4608, 6656]


def test_a_constant_lies_among_the_variables_in_node_order(tmp_path: Path) -> None:
    builder = OmBuilder("mixed")
    builder.variable("a", desc(DataType.DT_INT8, 1))
    builder.constant("b", np.array([5], np.int8))
    builder.const("c", np.array([5], np.int8))
    builder.variable("d", desc(DataType.DT_INT8, 1))
    om = written(builder, tmp_path)
    assert [om.ops[name].output_i[0] for name in "abcd"] == [BASE, BASE + 1536, 0, BASE + 3072]
    value = om.ops["b"].attr["value"].t
    assert (value.data, value.desc.data_offset, value.desc.weight_size) == (b"\x05", 0, 0)


def test_equal_constants_of_equal_width_share_an_address(tmp_path: Path) -> None:
    builder = OmBuilder("twins")
    raw = np.arange(12, dtype=np.int32)
    builder.constant("int32", raw)
    builder.constant("float", raw.view(np.float32))
    builder.constant("shaped", raw.reshape(3, 4))
    builder.constant("int16", raw.view(np.int16))
    builder.constant("other", raw + 1)
    builder.constant("int32_again", raw.copy())
    builder.constant("empty", raw[:0])
    builder.constant("empty_again", raw[:0])
    om = written(builder, tmp_path)
    addresses = {name: op.output_i[0] - BASE for name, op in om.ops.items()}
    assert addresses.pop("empty") < addresses.pop("empty_again"), "as in GE, which looks for equal bytes only"
    assert addresses == {"int32": 0, "float": 0, "shaped": 0, "int16": 1536, "other": 3072, "int32_again": 0}


def test_string_constants_and_variables_never_share(tmp_path: Path) -> None:
    builder = OmBuilder("no twins")
    zeros = np.zeros(3, np.float32)
    builder.constant("s1", b"text", desc(DataType.DT_STRING, 1))
    builder.constant("s2", b"text", desc(DataType.DT_STRING, 1))
    builder.variable("v1", desc(DataType.DT_FLOAT, 3), init=zeros)
    builder.variable("v2", desc(DataType.DT_FLOAT, 3), init=zeros)
    builder.constant("c", zeros)
    om = written(builder, tmp_path)
    assert [om.ops[name].output_i[0] - BASE for name in om.ops] == [0, 1536, 3072, 4608, 6144]


def test_the_initial_value_belongs_to_the_output_of_a_variable(tmp_path: Path) -> None:
    builder = OmBuilder("init")
    init = np.arange(6, dtype=np.float16).reshape(2, 3)
    builder.variable("with", desc(DataType.DT_FLOAT16, 2, 3), init=init)
    builder.variable("without", desc(DataType.DT_FLOAT16, 2, 3))
    om = written(builder, tmp_path)
    value = om.ops["with"].output_desc[0].attr["_init_value"].t
    assert value.data == init.tobytes()
    assert list(value.desc.shape.dim) == [2, 3]
    assert "value" not in om.ops["with"].attr
    assert "_init_value" not in om.ops["without"].output_desc[0].attr


def test_an_assigning_output_has_the_address_of_its_variable(tmp_path: Path) -> None:
    builder = OmBuilder("assign")
    one = desc(DataType.DT_INT64, 1)
    builder.constant("c", np.array([4], np.int64))
    v = builder.variable("ge_global_step", one)
    step = builder.const("step", np.array([1], np.int64))
    builder.node("AssignAdd", "add", [v, step], [one], assigns={0: v})
    om = written(builder, tmp_path)
    op = om.ops["add"]
    assert op.output_i[0] == om.ops[v].output_i[0] == op.input_i[0] == BASE + 1536
    assert op.output_desc[0].attr["ref_var_src_var_name"].s == b"ge_global_step"
    assert om.number("memory_size") == 0


def test_work_memory_is_tiled_and_ends_with_inputs_and_outputs(tmp_path: Path) -> None:
    builder = OmBuilder("work")
    x = builder.data("x", desc(DataType.DT_FLOAT, 200))
    z = builder.data("z", desc(DataType.DT_FLOAT, 1))
    v = builder.variable("v", desc(DataType.DT_FLOAT, 200))
    inner = builder.node("Add", "inner", [x, v], [desc(DataType.DT_FLOAT, 200), desc(DataType.DT_INT8, 1)])
    last = builder.node("Mul", "last", [inner, (inner, 1), z], [desc(DataType.DT_FLOAT, 300)])
    for result in (last, (inner, 1), x, v):
        builder.output(result)
    om = written(builder, tmp_path)
    assert list(om.ops["inner"].output_i) == [0, 2560]  # the second one is an output of the model
    assert list(om.ops["last"].output_i) == [1024]
    assert (list(om.ops["x"].output_i), list(om.ops["z"].output_i)) == ([3072], [4096])
    assert (om.number("memory_size"), om.number("zero_copy_memory_size")) == (4608, 3584)
    rows = [list(row.list_i) for row in om.model.attr["sub_memory_info"].list_list_int.list_list_i]
    assert rows == [[2, 0, 1024, 0], [2, 1024, 3584, 0]]
    assert list(om.ops["Node_Output"].input_i) == [1024, 2560, 3072, BASE]
    assert list(om.model.graph[0].input) == ["x:0", "z:0"]
    assert list(om.model.graph[0].output) == ["last:0", "inner:1", "x:0", "v:0"]


def test_a_data_node_has_an_index_and_an_unlinked_input(tmp_path: Path) -> None:
    builder = OmBuilder("data")
    builder.data("x", desc(DataType.DT_FLOAT, 3))
    builder.data("y", desc(DataType.DT_FLOAT, 3))
    om = written(builder, tmp_path)
    assert [om.ops[name].attr["index"].i for name in ("x", "y")] == [0, 1]
    assert list(om.ops["x"].input) == [""]
    assert list(om.ops["x"].src_name) == list(om.ops["x"].input_i) == []


def test_formats_are_stored_whole(tmp_path: Path) -> None:
    builder = OmBuilder("formats")
    fractal = TensorDesc(
        DataType.DT_FLOAT16,
        83886596,  # FRACTAL_Z, sub-format 2, C0 16
        (9, 2, 16, 16),
        origin_format=Format.FORMAT_NCHW,
        origin_shape=(32, 16, 3, 3),
    )
    builder.variable("v", fractal)
    td = written(builder, tmp_path).ops["v"].output_desc[0]
    assert td.layout == "FRACTAL_Z:2"
    assert td.attr["format_for_int"].i == 83886596
    assert td.attr["origin_format"].s == b"NCHW"
    assert list(td.attr["origin_shape"].list.i) == [32, 16, 3, 3]
    assert td.attr["origin_shape_initialized"].b
