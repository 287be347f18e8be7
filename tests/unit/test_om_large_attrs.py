"""Attributes and operators that are small in a file and large in memory: read as they are, or refused before."""

from collections.abc import Iterator

import pytest

from gevar.errors import ModelFileError
from gevar.graph import Model
from gevar.om.facts import om_facts
from gevar.om.om_file import OmFile
from gevar.proto import ge_ir
from tests.helpers import om_builder as build
from tests.helpers.om_swollen import ATTRS, DESC
from tests.helpers.peak_memory import bounded_memory

SIZE = 5_000_000


def one_op(attrs: dict[str, bytes], *, names: list[str] | None = None, op_type: str = "Relu") -> bytes:
    graph = build.graph("g", [build.op("x", op_type, attrs, [DESC])])
    return build.g3([(0, build.model_def("m", [graph], build.compression(names) if names else None))])


@pytest.fixture(params=["packed ints", "empty texts", "empty descriptions", "lists of one", "a graph"])
def large(request: pytest.FixtureRequest) -> bytes:
    return ATTRS[request.param](SIZE)


def test_a_graph_has_it_in_wire_form(large: bytes) -> None:
    data = one_op({"a": large, "small": build.attr_i(7)})
    with OmFile.from_bytes(data) as om:
        with bounded_memory(len(data)):
            model = om.models[0].graph_ir()
        assert model.graph is not None
        attrs = model.graph["x"].op_desc.attrs
        assert attrs["small"] == 7
        assert attrs._wires["a"] == large
        with bounded_memory(len(data)):
            assert om_facts(om)["var_like_nodes"]
            om.models[0].check_decodes()


def test_who_asks_for_one_that_takes_too_much_is_refused(large: bytes) -> None:
    with OmFile.from_bytes(one_op({"a": large, "small": build.attr_i(7)})) as om:
        (node,) = om.models[0].nodes()
        small = node.attr("small")
        assert small is not None
        assert small.i == 7
        with (
            bounded_memory(SIZE),
            pytest.raises(ModelFileError, match=r"attribute 'a' of node x of \d+ B would take more memory") as caught,
        ):
            node.attr("a")
        assert (caught.value.field, caught.value.status) == ("MODEL_DEF", 545002)


@pytest.mark.parametrize("name", ["packed ints", "empty texts", "empty descriptions", "named", "one text", "a graph"])
@pytest.mark.parametrize("stored", ["plain", "\0\1"])
def test_one_that_takes_little_is_what_protobuf_reads(name: str, stored: str) -> None:
    wire = ATTRS[name](60_000)
    with OmFile.from_bytes(one_op({stored: wire}, names=["plain"])) as om:
        (node,) = om.models[0].nodes()
        expected = ge_ir.AttrDef.FromString(wire)
        assert node.attr("plain") == node.attrs["plain"] == expected
        assert om.models[0].model_def().graph[0].op[0].attr["plain"] == expected
        graph = om.models[0].graph_ir().graph
        assert graph is not None
        assert graph["x"].op_desc.attrs.to_proto("plain") == expected


@pytest.mark.parametrize(
    "bad",
    [
        build.field(10, build.field(2, b"\x0a\5ab")),
        build.field(1, build.field(3, b"\xff")),
        build.field(10, b"\x0a\1\xff"),
    ],
)
def test_damage_in_one_is_found(bad: bytes) -> None:
    wire = build.field(2, bytes(SIZE)) + bad
    with OmFile.from_bytes(one_op({"a": wire})) as om:
        (node,) = om.models[0].nodes()
        for look in (node.check_decodes, lambda: node.attr("a"), om.models[0].graph_ir, om.models[0].model_def):
            with pytest.raises(ModelFileError, match=r"attribute 'a'.* does not decode") as caught:
                look()
            assert (caught.value.field, caught.value.status) == ("MODEL_DEF", 545002)


def entries(first: str, last: str) -> Iterator[tuple[str, bytes]]:
    kinds = {
        "small": build.attr_i(3),
        "large": ATTRS["one text"](40_000),
        "tensor": build.attr_t(build.tensor(build.tensor_desc((9,)), b"\7" * 40_000)),
    }
    yield from ((kind, kinds[kind]) for kind in (first, last))


@pytest.mark.parametrize("first", ["small", "large", "tensor"])
@pytest.mark.parametrize("last", ["small", "large", "tensor"])
def test_of_two_of_one_name_the_last_counts(first: str, last: str) -> None:
    op = build.op("x", "Const", None, [DESC]) + b"".join(
        build.attr_map(10, {"value": wire}) for _, wire in entries(first, last)
    )
    data = build.model_def("m", [build.graph("g", [op])])
    expected = ge_ir.ModelDef.FromString(data)
    with OmFile.from_bytes(build.g3([(0, data)])) as om:
        assert om.models[0].model_def() == expected
        assert om.models[0].graph_ir().to_proto() == Model.from_proto(expected).to_proto()
        (const,) = om.models[0].const_nodes()
        assert const.data() == expected.graph[0].op[0].attr["value"].t.data


def test_models_of_one_file_share_what_it_may_take() -> None:
    small = build.model_def("r", [build.graph("g", [build.op("only", "Relu", None, [DESC])])])
    swollen = build.model_def("s", [build.graph("g", [build.field(1, f"{n:x}") for n in range(4000)])])
    data = build.dynamic([[(0, small)], *([[(0, swollen)]] * 40)])
    with OmFile.from_bytes(data) as om, bounded_memory(len(data)):
        assert [node.name for node in om.models[0].nodes()] == ["only"]
        assert len(om.models[0].graph_ir().graph or ()) == 1
        with pytest.raises(ModelFileError, match="would take more memory"):
            [model.graph_ir() for model in om.models]
