"""Constants of a graph on their way into the weights partition."""

from pathlib import Path

import numpy as np
import pytest

from gevar.errors import GraphError
from gevar.graph import ComputeGraph, GeTensor, Model, OpDesc
from gevar.om import GeModel, GeRootModel, OmBuilder, StreamedBytes, open_om, write_om
from gevar.om.header import ModelFileHeader
from gevar.om.partition import PartitionType
from gevar.om.weights_placing import place_weights
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_rules import check_file

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=64)


def row(value: float) -> memoryview:
    return memoryview(np.full(4, value, np.float32).tobytes())


def const(graph: ComputeGraph, name: str, data: bytes = b"", desc: TensorDesc = ROW) -> None:
    graph.add_node(OpDesc(name, "Const", outputs={"y": desc}, attrs={"value": GeTensor(desc, data)}))


def made(*consts: str) -> tuple[GeModel, ComputeGraph]:
    """Return a model of these constants, without bytes, and one operator that reads them all."""
    graph = ComputeGraph("g")
    reader = graph.add_node(OpDesc("add", "AddN", inputs=[ROW] * len(consts), outputs=[ROW]))
    for index, name in enumerate(consts):
        const(graph, name)
        graph[name].out_data_anchor(0).link_to(reader.in_data_anchor(index))
    return GeModel(Model("m", graph)), graph


def written(model: GeModel, path: Path) -> dict[str, bytes]:
    """Write a model and return its constants as a reader finds them."""
    write_om(path, GeRootModel(ModelFileHeader(name="m"), [model]))
    check_file(path.read_bytes())
    with open_om(path) as om:
        return {one.name: bytes(one.data()) for one in om.models[0].const_nodes()}


def test_a_graph_and_weights_become_a_file(tmp_path: Path) -> None:
    model, graph = made("a", "b", "c")
    stream = StreamedBytes(16, lambda: iter([bytes(row(2))]))
    place_weights(model, {"a": row(1), "b": stream, "c": row(1)})
    found = written(model, tmp_path / "m.om")
    assert found == {"a": bytes(row(1)), "b": bytes(row(2)), "c": bytes(row(1))}
    reader = graph["add"].op_desc
    assert [reader.input_desc(index).data_offset for index in range(3)] == [512, 1024, 512]
    assert reader.attrs["is_input_const"] == (True, True, True)
    assert model.model.attrs["weight_size"] == model.partition(PartitionType.WEIGHTS_DATA).size_bytes == 1536


def test_bytes_in_the_graph_are_moved_out(tmp_path: Path) -> None:
    model, graph = made("a")
    const(graph, "inline", bytes(row(3)))
    place_weights(model)
    assert written(model, tmp_path / "m.om") == {"a": b"", "inline": bytes(row(3))}
    value = graph["inline"].op_desc.attrs["value"]
    assert isinstance(value, GeTensor)
    assert (value.data, value.desc.data_offset, value.desc.weight_size) == (b"", 512, 16)
    assert graph["add"].op_desc.attrs.get("is_input_const") is None, "it reads a constant without bytes"


def test_what_lies_there_keeps_its_place(tmp_path: Path) -> None:
    builder = OmBuilder("net")
    names = [builder.const(name, np.full(4, value, np.float32)) for name, value in (("a", 1), ("b", 2), ("tied", 1))]
    builder.output(builder.node("AddN", "add", names, [ROW]))
    builder.write(tmp_path / "one.om")
    with open_om(tmp_path / "one.om") as om:
        root = GeRootModel.from_om(om)
        (model,) = root.models
        graph = model.model.graph
        assert graph is not None
        const(graph, "new", bytes(row(5)))
        place_weights(model, {"b": row(6)})
        assert graph["add"].op_desc.is_input_const == (True, True, True)
        write_om(tmp_path / "two.om", root)
        place_weights(model, {"a": row(7)})
        write_om(tmp_path / "three.om", root)
    expected = {"a": (512, 1.0), "b": (1024, 6.0), "tied": (512, 1.0), "new": (1536, 5.0)}
    for name, places in (("two", expected), ("three", expected | {"a": (2048, 7.0)})):
        check_file((tmp_path / f"{name}.om").read_bytes())
        with open_om(tmp_path / f"{name}.om") as om:
            found = {
                one.name: (one.offset, np.frombuffer(one.data(), np.float32)[0]) for one in om.models[0].const_nodes()
            }
            assert found == places, "a shares its place with another, so it gets a new one"
            graph_inputs = om.models[0].model_def().graph[0].op
            (add,) = (op for op in graph_inputs if op.name == "add")
            assert [desc.data_offset for desc in add.input_desc] == [places[one][0] for one in ("a", "b", "tied")]


def test_nothing_to_place_changes_nothing() -> None:
    model, graph = made("a")
    before = model.model.to_proto()
    place_weights(model)
    assert model.model.to_proto() == before
    assert model.partitions == []
    place_weights(GeModel(Model("empty")))
    assert graph["a"].op_desc.attrs["value"] == GeTensor(ROW, b"")


def test_constants_of_subgraphs_are_placed_too(tmp_path: Path) -> None:
    model, graph = made("a")
    call = graph.add_node(OpDesc("call", "PartitionedCall"))
    inner = ComputeGraph("inner")
    const(inner, "b", bytes(row(4)))
    graph.add_subgraph(call, inner)
    place_weights(model, {"a": row(1)})
    assert written(model, tmp_path / "m.om") == {"a": bytes(row(1)), "b": bytes(row(4))}


def test_refusals_leave_the_model_as_it_was() -> None:
    model, graph = made("a", "b")
    before = model.model.to_proto()
    with pytest.raises(GraphError, match="given for 'add', which is no Const"):
        place_weights(model, {"a": row(1), "add": row(1)})
    with pytest.raises(GraphError, match=r"DT_FLOAT \(4,\) takes 16 B, 3 B are given"):
        place_weights(model, {"a": row(1), "b": memoryview(b"abc")})
    assert model.model.to_proto() == before
    graph.add_node(OpDesc("odd", "Const", outputs=[ROW]))
    with pytest.raises(GraphError, match="without a tensor as its value"):
        place_weights(model, {"a": row(1)})
    graph["odd"].op_desc.attrs["value"] = 5
    with pytest.raises(GraphError, match="without a tensor as its value"):
        place_weights(model, {"a": row(1)})
    assert model.partitions == []
