"""Decoding MODEL_DEF piece by piece: the same messages as protobuf makes, without tasks and large inline data."""

import tracemalloc
from collections.abc import Callable

import pytest

from gevar.errors import ModelFileError
from gevar.om.allowance import EXTRA_BYTES, Allowance
from gevar.om.model_def import decode_model_def, pieces
from gevar.om.om_file import OmFile
from gevar.om.op_def import APART_BYTES, StoredBytes, merge_piece, read_places
from gevar.om.source import ByteSource
from gevar.proto import ge_ir, task
from tests.helpers import om_builder as build

LARGE = bytes(range(256)) * (APART_BYTES // 256)
assert len(LARGE) == APART_BYTES


def source_of(data: bytes) -> ByteSource:
    return ByteSource.of_bytes(data, "d.om")


def allowance_of(data: bytes) -> Allowance:
    return Allowance(4 * len(data) + EXTRA_BYTES, lambda reason: ModelFileError("d.om", 0, "MODEL_DEF", reason))


class Decoded:
    """What was decoded, and all of it as one message, without what was left out."""

    def __init__(self, data: bytes) -> None:
        found = decode_model_def(source_of(data), allowance_of(data))
        self.apart = found.apart
        self.data = {place: apart.data for place, apart in found.apart.items() if apart.data}
        self.attrs = {place: apart.attrs for place, apart in found.apart.items() if apart.attrs}
        self._message = found.message

    def whole(self) -> ge_ir.ModelDef:
        return ge_ir.ModelDef.FromString(self._message.SerializeToString())


def decode(data: bytes) -> Decoded:
    return Decoded(data)


def model(*ops: bytes, **attrs: bytes) -> bytes:
    return build.model_def("m", [build.graph("g", ops)], attrs)


def test_small_model_is_what_protobuf_reads() -> None:
    data = build.model_def("m", build.small_graphs(), {"a": build.attr_i(3), "s": build.attr_s(b"\xff")})
    decoded = decode(data)
    assert decoded.whole() == ge_ir.ModelDef.FromString(data)
    assert decoded.apart == {}


def test_empty_partition_is_an_empty_model() -> None:
    assert decode(b"").whole() == ge_ir.ModelDef()


def test_large_model_is_what_protobuf_reads() -> None:
    desc = build.tensor_desc((3, 4), attrs={f"attr_{number}": build.attr_i(number) for number in range(50)})
    ops = [build.op(f"node_{number}", "Add", {"a": build.attr_s("x" * 300)}, [desc] * 2) for number in range(2000)]
    small = build.graph("small", ops[:1])
    data = build.model_def("m", [small, build.graph("large", ops), small], {f"k{n}": build.attr_i(n) for n in range(9)})
    assert len(data) > 3 << 20  # several pieces
    assert decode(data).whole() == ge_ir.ModelDef.FromString(data)


def test_order_of_graphs_and_operators_of_mixed_size() -> None:
    ops = [build.inline_const(f"c{number}", LARGE if number % 2 else b"x") for number in range(6)]
    graphs = [build.graph(f"g{number}", ops if number % 2 else ops[:1]) for number in range(5)]
    message = decode(build.model_def("m", graphs)).whole()
    assert [graph.name for graph in message.graph] == [f"g{number}" for number in range(5)]
    assert [op.name for op in message.graph[1].op] == [f"c{number}" for number in range(6)]


def test_inline_data_from_the_limit_on_stays_in_the_file() -> None:
    data = model(build.inline_const("small", LARGE[200:]), build.inline_const("large", LARGE))
    decoded = decode(data)
    small, large = decoded.whole().graph[0].op
    assert small.attr["value"].t.data == LARGE[200:]
    assert large.attr["value"].t.data == b""
    assert list(large.attr["value"].t.desc.shape.dim) == [APART_BYTES]
    ((place, stored),) = decoded.data.items()
    assert place == (0, 1)
    assert stored == {"value": StoredBytes(data.index(LARGE), APART_BYTES)}


def test_only_the_data_is_left_out() -> None:
    whole = build.op(
        "c",
        "Const",
        {"a": build.attr_s("text"), "value": build.attr_t(build.tensor(build.tensor_desc((9,)), LARGE))},
        [build.tensor_desc((9,), size=64)],
        output_i=[512],
        subgraphs=["s"],
    )
    decoded = decode(model(whole))
    expected = ge_ir.ModelDef.FromString(model(whole))
    expected.graph[0].op[0].attr["value"].t.data = b""
    assert decoded.whole() == expected


def test_tensor_without_description_stays_a_tensor() -> None:
    decoded = decode(model(build.op("c", "Const", {"value": build.attr_t(build.field(2, LARGE))})))
    assert decoded.whole().graph[0].op[0].attr["value"].WhichOneof("value") == "t"
    assert decoded.data[0, 0]["value"].size_bytes == APART_BYTES


def test_large_attributes_of_other_kinds_stay_in_the_file() -> None:
    text, raw = build.attr_s(LARGE), build.field(7, LARGE)
    data = model(build.op("n", "T", {"text": text, "bytes": raw, "small": build.attr_i(1)}))
    decoded = decode(data)
    (op,) = decoded.whole().graph[0].op
    assert {name: op.attr[name].WhichOneof("value") for name in op.attr} == {"text": None, "bytes": None, "small": "i"}
    assert decoded.data == {}
    ((place, stored),) = decoded.attrs.items()
    assert place == (0, 0)
    assert {name: read_places(source_of(data), places) for name, places in stored.items()} == {
        "text": text,
        "bytes": raw,
    }


@pytest.mark.parametrize("value", [build.attr_s(LARGE), build.attr_t(build.tensor(build.tensor_desc(), LARGE))])
def test_the_last_of_attributes_of_one_name_counts(value: bytes) -> None:
    small, large = build.attr_map(10, {"a": build.attr_i(1)}), build.attr_map(10, {"a": value})
    for entries, kind in ((small + large, None), (large + small, "i"), (large + small + large, None)):
        decoded = decode(model(build.field(1, "n") + entries))
        (op,) = decoded.whole().graph[0].op
        assert op.attr["a"].WhichOneof("value") in ("i", "t", None)
        assert (op.attr["a"].WhichOneof("value") == "i") is (kind == "i")
        assert bool(decoded.apart) is (kind is None)


def test_initial_values_stay_whatever_their_size() -> None:
    init = build.attr_t(build.tensor(build.tensor_desc((1,)), LARGE))
    data = model(build.variable("v", (1,), 0, {"_init_value": init}))
    assert decode(data).whole() == ge_ir.ModelDef.FromString(data)


@pytest.mark.parametrize("size", [10, APART_BYTES, 3_000_000])
def test_tasks_are_left_out(size: int) -> None:
    decoded = decode(model(tasks=build.field(7, bytes(size)), kept=build.attr_i(1), large=build.attr_s(LARGE)))
    assert sorted(decoded.whole().attr) == ["kept", "large"]
    assert decoded.whole().attr["large"].s == LARGE


def test_attribute_that_comes_twice_is_the_last_one() -> None:
    first = build.attr_map(10, {"value": build.attr_i(1)})
    second = build.attr_map(10, {"value": build.attr_t(build.tensor(build.tensor_desc(), LARGE))})
    op = ge_ir.OpDef.FromString(first + second)
    assert op.attr["value"].t.data == LARGE
    decoded = decode(model(build.field(1, "n") + first + second))
    assert decoded.whole().graph[0].op[0].attr["value"].WhichOneof("value") == "t"


def test_memory_stays_small_with_much_inline_data() -> None:
    data = model(
        *(build.inline_const(f"c{number}", bytes(8 << 20)) for number in range(4)), tasks=build.field(7, LARGE)
    )
    tracemalloc.start()
    try:
        decoded = decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(decoded.apart) == 4
    assert decoded.whole().ByteSize() < 1000
    assert peak < 1 << 20


def test_memory_of_a_large_model_is_one_piece() -> None:
    data = model(*(build.op(f"node_{number}", "Add", {"a": build.attr_s("x" * 2000)}) for number in range(5000)))
    assert len(data) > 10_000_000
    tracemalloc.start()
    try:
        decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_larger_than_protobuf_allows() -> None:
    storage = ByteSource.of_bytes(b"", "d.om")._storage
    with pytest.raises(ModelFileError, match="2147483648 B, protobuf allows 2147483647 B"):
        decode_model_def(ByteSource(storage, 0, 1 << 31), allowance_of(b""))


@pytest.mark.parametrize(
    "damage",
    [
        b"\x0a\xff",  # text cut off
        build.field(1, b"\xff\xfe"),  # name that is not UTF-8
        build.field(7, b"\x0a\x05ab"),  # graph cut off inside
        b"\x00\x00",
        b"\x0f",
    ],
)
def test_damage_is_refused(damage: bytes) -> None:
    with pytest.raises(ModelFileError) as caught:
        decode(build.model_def("m", []) + damage)
    assert caught.value.field == "MODEL_DEF"
    assert caught.value.file == "d.om"


def test_nesting_is_limited() -> None:
    graph = build.graph("inner", [])
    for _ in range(120):
        graph = build.graph("outer", [build.op("n", "T", {"g": build.field(13, graph)})])
    om = OmFile.from_bytes(build.g3([(0, build.model_def("m", [graph])), (1, b"")]))
    assert [node.name for node in om.models[0].nodes()] == ["n"]
    with pytest.raises(ModelFileError, match="node n does not decode"):
        om.models[0].check_decodes()


def test_operators_are_decoded_when_they_are_looked_at() -> None:
    bad = build.field(1, "bad") + build.field(2, "Add") + build.field(33, b"\x0a\xff")
    good = build.variable("good", (4,), 1 << 37)
    data = build.g3([(0, build.model_def("m", [build.graph("g", [good, bad])])), (1, b"")])
    model = OmFile.from_bytes(data, "d.om").models[0]
    assert [(node.name, node.type) for node in model.nodes()] == [("good", "Variable"), ("bad", "Add")]
    first, second = model.nodes()
    assert first.output_i == (1 << 37,)
    looks: list[Callable[[], object]] = [
        lambda: second.input_i,
        lambda: second.attrs,
        second.check_decodes,
        model.check_decodes,
        model.model_def,
    ]
    for look in looks:
        with pytest.raises(ModelFileError, match="node bad does not decode") as caught:
            look()
        assert (caught.value.field, caught.value.file, caught.value.status) == ("MODEL_DEF", "d.om", 545002)
    first.check_decodes()


def test_damage_in_a_large_graph_names_its_piece() -> None:
    ops = [build.op(f"node_{number}", "Add", {"a": build.attr_s("x" * 1000)}) for number in range(3000)]
    bad = build.field(1, b"\xff")
    graph = build.graph("g", [*ops, bad])
    data = build.model_def("m", [graph])
    with pytest.raises(ModelFileError) as caught:
        decode(data)
    at = data.index(build.field(6, bad))
    assert caught.value.offset is not None
    assert at - (1 << 20) - 2000 < caught.value.offset <= at


def test_damaged_key_of_a_large_attribute() -> None:
    entry = build.field(1, b"\xff") + build.field(2, build.attr_s(LARGE))
    with pytest.raises(ModelFileError, match="not UTF-8"):
        decode(build.model_def("m", []) + build.field(11, entry))


def test_pieces_cover_the_message_at_field_boundaries() -> None:
    data = b"".join(build.field(10, build.message((1, number), (6, "x" * 400))) for number in range(9000))
    source = ByteSource.of_bytes(data, "t.om")
    found = pieces(source, 0, len(data), "TASK_INFO")
    assert len(found) > 2
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == len(data)
    whole = task.ModelTaskDef()
    for start, end in found:
        merge_piece(whole, source, start, end, "TASK_INFO")
    assert whole == task.ModelTaskDef.FromString(data)
    assert pieces(source, 5, 5, "TASK_INFO") == []
