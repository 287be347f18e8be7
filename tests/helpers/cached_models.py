"""Models for the model cache: a variable with a reader, as a compiled model has them."""

from collections.abc import Mapping
from pathlib import Path

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache import ModelCache
from gevar.graph import ComputeGraph, Model, Node, OpDesc
from gevar.om import GeModel, GeRootModel
from gevar.om.header import ModelFileHeader
from gevar.om.partition import PartitionType
from gevar.om.stored_bytes import Blob, StreamedBytes
from gevar.proto import task
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarManager
from tests.helpers.graphs import link

BASE = 128 << 30
NCHW = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (1, 3, 2, 2), origin_format=Format.FORMAT_NCHW, size=64)
NC1HWC0 = TensorDesc(
    DataType.DT_FLOAT16, Format.FORMAT_NC1HWC0, (1, 1, 2, 2, 16), origin_format=Format.FORMAT_NCHW, size=160
)


def model_graph(variables: Mapping[str, TensorDesc], *, name: str = "main", graph_id: int = 1) -> ComputeGraph:
    """A graph in which a node reads each variable."""
    graph = ComputeGraph(name)
    graph.graph_id = graph_id
    for var, desc in variables.items():
        source = graph.add_node(OpDesc(var, "Variable", outputs=[desc]))
        link(source, 0, graph.add_node(OpDesc(f"read_{var}", "Relu", inputs=[desc], outputs=[desc])), 0)
    return graph


def root_model(
    graph: ComputeGraph, *, name: str = "model", tasks: int = 0, weights: bytes | StreamedBytes = b""
) -> GeRootModel:
    """A model of one graph in parsed form."""
    info = task.ModelTaskDef(version="1.0", task=[task.TaskDef(id=number) for number in range(tasks)])
    partitions = [
        (int(PartitionType.WEIGHTS_DATA), Blob.of(weights)),
        (int(PartitionType.TASK_INFO), Blob.of(info.SerializeToString())),
    ]
    return GeRootModel(ModelFileHeader(name="cached"), [GeModel(Model(name, graph), partitions)])


def options(folder: Path, key: str = "k") -> dict[str, str]:
    return {"ge.graph_compiler_cache_dir": str(folder), "ge.graph_key": key}


def cache_of(
    folder: Path, vm: VarManager, graph: ComputeGraph, ctrl: GraphRebuildStateCtrl | None = None, key: str = "k"
) -> ModelCache:
    return ModelCache(graph, vm, ctrl or GraphRebuildStateCtrl(), options(folder, key))


def store(folder: Path, vm: VarManager, model: GeRootModel, key: str = "k") -> Path:
    """Put a model into the cache, as compiled without a change of variables."""
    graph = graph_of(model)
    with cache_of(folder, vm, graph, key=key) as cache:
        path = cache.try_cache_model(model)
    assert path is not None
    return path


def graph_of(model: GeRootModel) -> ComputeGraph:
    graph = model.models[0].model.graph
    assert graph is not None
    return graph


def variables_of(model: GeRootModel) -> list[Node]:
    return [node for node in graph_of(model).all_nodes() if node.type == "Variable"]
