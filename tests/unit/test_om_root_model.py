"""Files in parsed form: changed and written again, put together, and what the writer refuses."""

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gevar.graph import GeTensor, OpDesc, insert_node_before
from gevar.om import Blob, GeModel, GeRootModel, OmBuilder, OmFile, StreamedBytes, open_om, write_om
from gevar.om.composed_model import bundle, dynamic
from gevar.om.external_weights_writer import ExternalWeightsWriter
from gevar.om.header import ModelFileHeader, ModelType
from gevar.om.model_spec import OmModelSpec
from gevar.om.partition import PartitionType
from gevar.om.partition_writer import model_body
from gevar.om.root_model import NestedModel
from gevar.om.root_model_writer import root_model_blob
from gevar.proto import flow_model, ge_ir
from gevar.types import DataType, Format, LogicAddr, TensorDesc
from tests.helpers import om_builder as made
from tests.helpers.om_rules import check_bundle, check_external, check_file, check_sizes

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,))
VALUES = np.arange(4, dtype=np.float32)


def net(name: str, *variables: str, kernel: float = 1, desc: TensorDesc = ROW) -> OmModelSpec:
    builder = OmBuilder(name)
    inputs = [builder.data("x", ROW), builder.const("kernel", np.full(4, kernel, np.float32))]
    inputs += [builder.variable(variable, desc) for variable in variables]
    builder.output(builder.node("Add", "add", inputs, [ROW]))
    return builder.build()


def parse(path: Path, spec: OmModelSpec) -> tuple[OmFile, GeRootModel]:
    write_om(path, spec)
    om = open_om(path)
    return om, GeRootModel.from_om(om)


def test_an_unchanged_file_is_written_byte_for_byte(tmp_path: Path) -> None:
    for name, spec in (("static", net("a", "v")), ("dynamic", dynamic("r", [net("a", "v"), net("b")], compress=True))):
        write_om(tmp_path / "one.om", spec)
        with open_om(tmp_path / "one.om") as om:
            write_om(tmp_path / "two.om", GeRootModel.from_om(om))
        assert (tmp_path / "one.om").read_bytes() == (tmp_path / "two.om").read_bytes(), name


def test_a_changed_graph(tmp_path: Path) -> None:
    om, root = parse(tmp_path / "one.om", net("a", "v"))
    with om:
        graph = root.models[0].model.graph
        assert graph is not None
        new = OpDesc("new", "Const", outputs={"y": ROW}, attrs={"value": GeTensor(ROW, VALUES.tobytes())})
        graph.add_node(new)
        scale = OpDesc("scale", "Mul", inputs={"x1": ROW, "x2": ROW}, outputs={"y": ROW}, attrs={"mode": "fast"})
        node = insert_node_before(graph["Node_Output"].in_data_anchor(0), scale)
        graph["new"].out_data_anchor(0).link_to(node.in_data_anchor(1))
        root.is_compressed = True
        write_om(tmp_path / "two.om", root)
    check_file((tmp_path / "two.om").read_bytes())
    with open_om(tmp_path / "two.om") as again:
        model = again.models[0]
        assert model.is_compressed
        consts = {const.name: bytes(const.data()) for const in model.const_nodes()}
        assert consts == {"kernel": np.ones(4, np.float32).tobytes(), "new": VALUES.tobytes()}
        ops = {op.name: op for op in model.model_def().graph[0].op}
        assert list(ops["scale"].input) == ["add:0", "new:0"]
        assert list(ops["Node_Output"].input) == ["scale:0"]
        assert ops["scale"].attr["mode"].s == b"fast"


def test_weights_of_another_size(tmp_path: Path) -> None:
    om, root = parse(tmp_path / "one.om", net("a"))
    with om:
        old = root.models[0].partition(PartitionType.WEIGHTS_DATA).read()
        root.models[0].set_weights(Blob.of(old[:512] + VALUES.tobytes() + bytes(2048 - 528)))
        root.models[0].model.attrs["tasks"] = root.models[0].partition(PartitionType.TASK_INFO).read()
        root.models[0].set_weights(root.models[0].partition(PartitionType.WEIGHTS_DATA))
        write_om(tmp_path / "two.om", root)
    (model,) = check_file((tmp_path / "two.om").read_bytes())
    check_sizes(model)
    with open_om(tmp_path / "two.om") as again:
        assert [bytes(const.data()) for const in again.models[0].const_nodes()] == [VALUES.tobytes()]
        assert again.models[0].int_attr("weight_size") == 2048


def test_weights_of_a_model_without_any() -> None:
    root = dynamic("r", [net("a")])
    assert root.models[0].partition(PartitionType.WEIGHTS_DATA).size_bytes == 0
    root.models[0].set_weights(Blob.of(bytes(1024)))
    root.models[0].partitions = [part for part in root.models[0].partitions if part[0] != PartitionType.TASK_INFO]
    root.models[0].set_weights(Blob.of(bytes(512)))
    assert root.models[0].partition(PartitionType.WEIGHTS_DATA).size_bytes == 512
    assert root.models[0].model.attrs["weight_size"] == 512


def test_a_file_must_stay_open(tmp_path: Path) -> None:
    om, root = parse(tmp_path / "one.om", net("a"))
    om.close()
    with pytest.raises(Exception, match="was closed"):
        write_om(tmp_path / "two.om", root)
    assert not (tmp_path / "two.om").exists()


def test_a_flow_model_with_files_inside(tmp_path: Path) -> None:
    write_om(tmp_path / "inner.om", net("inner"))
    inner = open_om(tmp_path / "inner.om")
    relation = Blob.of(flow_model.FlowModelDef(model_name="flow", submodel_name=["a"]).SerializeToString())
    root = GeRootModel.from_om(inner)
    root.header = ModelFileHeader(name="flow", modeltype=ModelType.MODEL_TYPE_FLOW_MODEL)
    root.models[0].partitions = [(PartitionType.FLOW_MODEL, relation)]
    root.nested = [
        NestedModel(GeRootModel.from_om(inner), flow_model.SubmodelDef(model_name="a", model_type="NPU")),
        NestedModel(None, flow_model.SubmodelDef(model_name="b", om_data_file_path="b.om")),
    ]
    write_om(tmp_path / "flow.om", root)
    inner.close()
    check_file((tmp_path / "flow.om").read_bytes())
    with open_om(tmp_path / "flow.om") as om:
        assert [part.type for part in om.partitions] == [0, 6, 7, 7]
        first, second = om.submodels
        assert (first.name, first.model_type) == ("a", "NPU")
        assert first.om is not None
        assert [bytes(const.data()) for const in first.om.models[0].const_nodes()] == [np.ones(4, np.float32).tobytes()]
        assert (second.name, second.om, second.om_data_file_path) == ("b", None, "b.om")
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    assert (tmp_path / "again.om").read_bytes() == (tmp_path / "flow.om").read_bytes()


def test_a_bundle_shares_one_space_and_knows_its_size(tmp_path: Path) -> None:
    write_om(tmp_path / "b.om", bundle([net("a", "v", "w"), net("b", "v", "u")]))
    check_bundle((tmp_path / "b.om").read_bytes())
    with open_om(tmp_path / "b.om", kind="bundle") as om:
        assert om.bundle_variable_size == 3 * 1536
        write_om(tmp_path / "again.om", GeRootModel.from_om(om))
    assert (tmp_path / "again.om").read_bytes() == (tmp_path / "b.om").read_bytes()


@pytest.mark.parametrize("mode", [1, 2])
def test_a_bundle_with_external_weights(tmp_path: Path, mode: int) -> None:
    with ExternalWeightsWriter(tmp_path / "weight", mode, prefix="b") as weights:
        models = [weights.move_out(net(name, "v", kernel=kernel)) for name, kernel in (("a", 1), ("b", 1), ("c", 2))]
        write_om(tmp_path / "b.om", bundle(models))
        weights.write_meta()
        weights.commit()
    files = check_bundle((tmp_path / "b.om").read_bytes())
    one, other, third = (next(op for op in model.ops.values() if op.type == "FileConstant") for (model,) in files)
    assert one.name == other.name != third.name
    assert one.output_i == other.output_i != third.output_i
    for (model,) in files:
        check_external(model, tmp_path / "weight")


def test_results_of_a_subgraph_are_those_of_the_node_that_calls_it() -> None:
    root, sub = dynamic("r", [net("a")]).models
    assert root.model.graph is not None
    assert sub.model.graph is not None
    for graph in (sub.model.graph, *root.model.graph.all_subgraphs()):
        desc = graph["Node_Output"].op_desc.input_desc(0)
        assert desc.attrs["_parent_node_index"].i == 0
        assert graph["x"].op_desc.attrs["_parent_node_index"] == 0
    assert [node.type for node in root.model.graph] == ["Data", "PartitionedCall", "NetOutput"]


def test_models_that_do_not_go_together() -> None:
    other = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (4,))
    with pytest.raises(ValueError, match=r"variable v is DT_INT8 \(4,\) here and DT_FLOAT \(4,\) in another model"):
        bundle([net("a", "v"), net("b", "v", desc=other)])
    with pytest.raises(ValueError, match="2 variable spaces"):
        bundle([net("a"), OmBuilder("b", logic_base=LogicAddr(1 << 35)).build()])
    with pytest.raises(ValueError, match="no model is given"):
        bundle([])
    for names in (("a", "a"), ("root", "b")):
        with pytest.raises(ValueError, match="make them differ"):
            dynamic("root", [net(name) for name in names])


@pytest.mark.parametrize("change", ["place", "type", "host"])
def test_a_bundle_whose_models_disagree_is_not_written(tmp_path: Path, change: str) -> None:
    file = bundle([net("a", "v"), net("b", "w", "v")])
    nested = file.nested[1].root
    assert nested is not None
    graph = nested.models[0].model.graph
    assert graph is not None
    op = graph["v"].op_desc
    if change == "place":
        op.output_i = (op.output_i[0] + 512,)
    elif change == "type":
        op.update_output_desc(0, op.output_desc(0).replace(dtype=DataType.DT_INT32))
    else:
        op.attrs["_variable_placement"] = "host"
    with pytest.raises(ValueError, match="variable v is"):
        write_om(tmp_path / "b.om", file)
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_go_with_a_parsed_file(tmp_path: Path) -> None:
    root = dynamic("r", [net("a")])
    with pytest.raises(ValueError, match="set its is_compressed"):
        write_om(tmp_path / "m.om", root, compress=True)
    with pytest.raises(ValueError, match="set its is_compressed"):
        write_om(tmp_path / "m.om", root, external_weight=1)


def test_partitions_lie_in_the_order_of_ge_and_empty_ones_are_left_out() -> None:
    kinds = [2, 3, 1, 8, 12, 26, 5, 4]
    message = ge_ir.ModelDef(name="m")
    message.attr["om_info_list"].list.i.extend([9] * 5)
    body = model_body(message, [(kind, Blob.of(b"x" * kind)) for kind in kinds if kind != 4] + [(4, Blob.of(b""))])
    data = body.read()
    (num,) = struct.unpack_from("<I", data)
    assert [struct.unpack_from("<I", data, 8 + 24 * index)[0] for index in range(num)] == [5, 26, 12, 8, 0, 1, 3, 2]
    assert list(message.attr["om_info_list"].list.i) == [1, 3, 0, 2, 5]


def test_a_model_of_nothing_is_not_written(tmp_path: Path) -> None:
    data = made.g3([(0, b""), (1, bytes(1024))])
    with OmFile.from_bytes(data) as om, pytest.raises(ValueError, match="has no definition to write; name it"):
        write_om(tmp_path / "m.om", GeRootModel.from_om(om))
    assert list(tmp_path.iterdir()) == []


def test_a_short_list_of_sizes_stays_short() -> None:
    message = ge_ir.ModelDef(name="m")
    message.attr["om_info_list"].list.i.extend([0] * 4)
    model_body(message, [(PartitionType.SO_BINS, Blob.of(b"so"))])
    assert list(message.attr["om_info_list"].list.i) == [0] * 4


def test_limits_of_partitions() -> None:
    message = ge_ir.ModelDef(name="m")
    with pytest.raises(ValueError, match="9 partitions, 8 at most"):
        model_body(message, [(kind, Blob.of(b"x")) for kind in (1, 2, 3, 4, 5, 8, 12, 26)])
    large = Blob(1 << 32, ())
    with pytest.raises(ValueError, match="TASK_INFO of model 'm' takes 4294967296 B"):
        model_body(message, [(PartitionType.TASK_INFO, large)])
    assert model_body(message, [(PartitionType.WEIGHTS_DATA, large)]).size_bytes > 1 << 32


def test_large_weights_are_copied_in_pieces(tmp_path: Path) -> None:
    size = 96 << 20
    chunk = bytes(1 << 20)
    builder = OmBuilder("large")
    data = StreamedBytes(size, lambda: iter([chunk] * (size >> 20)))
    builder.const("w", data, TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (size,)))
    tracemalloc.start()
    builder.write(tmp_path / "one.om")
    with open_om(tmp_path / "one.om") as om:
        write_om(tmp_path / "two.om", GeRootModel.from_om(om))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 << 20
    assert (tmp_path / "two.om").stat().st_size == (tmp_path / "one.om").stat().st_size > size


def test_blobs_of_models_are_those_of_files() -> None:
    file = bundle([net("a"), net("b")])
    first = file.nested[0].root
    assert first is not None
    inner = root_model_blob(first).read()
    assert inner in root_model_blob(file).read()
    assert isinstance(first.models[0], GeModel)
