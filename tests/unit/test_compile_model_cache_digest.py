"""A cached model of other weights, or one compiled otherwise, is not used; what is missing beside it is a miss."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache import ModelCache
from gevar.compile.model_cache_digest import SOURCE_DIGESTS, source_digests
from gevar.errors import GraphError
from gevar.graph import AttrValue, ComputeGraph, GeTensor, OpDesc
from gevar.om import GeRootModel
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.status import GE_GRAPH_OPTIONS_INVALID
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarManager
from tests.helpers.cached_models import NCHW, options, root_model
from tests.helpers.var_memory import FakeMemory, make_manager
from tests.helpers.var_states import state_bytes

ROW = TensorDesc(DataType.DT_INT32, Format.FORMAT_ND, (2,), size=8)
Change = Callable[[ComputeGraph], object]


def graph_of(order: str = "wcfb") -> ComputeGraph:
    """A variable with an initial value, a constant, an external weight, and a constant inside a body."""
    graph = ComputeGraph("main")
    for letter in order:
        if letter == "w":
            value = ge_ir.TensorDef(desc=tensor_desc_to_proto(NCHW), data=bytes(24))
            graph.add_node(
                OpDesc("w", "Variable", outputs=[NCHW.replace(attrs={"_init_value": ge_ir.AttrDef(t=value)})])
            )
        elif letter == "c":
            graph.add_node(OpDesc("c", "Constant", outputs=[ROW], attrs={"value": GeTensor(ROW, bytes(range(8)))}))
        elif letter == "f":
            place: dict[str, AttrValue] = {"location": "/old/w.bin", "offset": 0, "length": 8}
            graph.add_node(OpDesc("f", "FileConstant", outputs=[ROW], attrs=place))
        else:
            body = ComputeGraph("body")
            body.add_node(OpDesc("c", "Const", outputs=[ROW], attrs={"value": GeTensor(ROW, bytes(8))}))
            graph.add_subgraph(graph.add_node(OpDesc("call", "PartitionedCall")), body)
    return graph


def one_byte(graph: ComputeGraph) -> None:
    graph["c"].op_desc.attrs["value"] = GeTensor(ROW, bytes(7) + b"\x01")


def one_byte_in_the_body(graph: ComputeGraph) -> None:
    graph.subgraph("body")["c"].op_desc.attrs["value"] = GeTensor(ROW, b"\x01" + bytes(7))


def other_type(graph: ComputeGraph) -> None:
    graph["c"].op_desc.attrs["value"] = GeTensor(ROW.replace(dtype=DataType.DT_FLOAT), bytes(range(8)))


def other_start(graph: ComputeGraph) -> None:
    value = ge_ir.TensorDef(desc=tensor_desc_to_proto(NCHW), data=b"\x01" + bytes(23))
    graph["w"].op_desc.update_output_desc(0, NCHW.replace(attrs={"_init_value": ge_ir.AttrDef(t=value)}))


CHANGES: list[tuple[str, Change]] = [
    ("c", one_byte),
    ("body/c", one_byte_in_the_body),
    ("c", other_type),
    ("w", other_start),
    ("f", lambda graph: graph["f"].op_desc.attrs.update({"offset": 512})),
    ("f", lambda graph: graph["f"].op_desc.attrs.update({"length": 4})),
    ("f", lambda graph: graph["f"].op_desc.attrs.update({"location": "/old/v.bin"})),
]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_other_weights_have_another_digest(name: str, change: Change) -> None:
    changed, before = graph_of(), source_digests(graph_of(), {})
    change(changed)
    after = source_digests(changed, {})
    assert {one for one in before if before[one] != after[one]} == {name}


def test_what_does_not_count() -> None:
    digests = source_digests(graph_of(), {})
    assert set(digests) == {"w", "c", "f", "body/c", "ge.exec.variable_acc"}
    assert all(len(bytes.fromhex(one)) == 16 for name, one in digests.items() if not name.startswith("ge."))
    assert source_digests(graph_of("bfcw"), {}) == digests
    moved = graph_of()
    moved["f"].op_desc.attrs["location"] = "/new/w.bin"
    moved.add_node(OpDesc("more", "NoOp"))
    assert source_digests(moved, {"ge.graph_key": "other", "ge.exec.variable_acc": "yes"}) == digests
    assert source_digests(graph_of(), {"ge.exec.variable_acc": "False"}) != digests
    assert source_digests(graph_of(), {"ge.AllowMultiGraphParallelCompile": "1"}) != digests


def cache(folder: Path, vm: VarManager, graph: ComputeGraph, **more: str) -> ModelCache:
    switches = {f"ge.exec.{name}": value for name, value in more.items()}
    return ModelCache(graph, vm, GraphRebuildStateCtrl(), options(folder) | switches)


def stored(folder: Path, vm: VarManager, graph: ComputeGraph, name: str = "first", **more: str) -> GeRootModel:
    model = root_model(ComputeGraph("main"), name=name)
    with cache(folder, vm, graph, **more) as one:
        assert one.try_cache_model(model) is not None
    return model


def found(folder: Path, vm: VarManager, graph: ComputeGraph, **more: str) -> str | None:
    with cache(folder, vm, graph, **more) as one:
        model = one.try_load_model_from_cache()
    return None if model is None else model.models[0].model.name


@pytest.fixture
def vm() -> VarManager:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("w", None, NCHW)
    return vm


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_model_of_other_weights_is_a_miss(
    tmp_path: Path, vm: VarManager, name: str, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path, vm, graph_of())
    changed, state = graph_of(), state_bytes(vm)
    change(changed)
    with caplog.at_level(logging.INFO, "gevar.compile"):
        assert found(tmp_path, vm, changed) is None
    assert f"made with another {name!r} than there is now" in caplog.text
    assert state_bytes(vm) == state
    stored(tmp_path, vm, changed, "second")
    assert (found(tmp_path, vm, graph_of()), found(tmp_path, vm, changed)) == ("first", "second")


def test_another_configuration_is_a_miss(tmp_path: Path, vm: VarManager) -> None:
    stored(tmp_path, vm, graph_of())
    assert found(tmp_path, vm, graph_of(), variable_acc="False") is None
    stored(tmp_path, vm, graph_of(), "fixed", variable_acc="False")
    assert found(tmp_path, vm, graph_of(), variable_acc="False") == "fixed"
    assert found(tmp_path, vm, graph_of(), variable_acc="True") == "first"


def test_a_model_that_does_not_tell_is_right(tmp_path: Path, vm: VarManager) -> None:
    model = root_model(ComputeGraph("main"), name="GE's")
    with cache(tmp_path, vm, graph_of()) as one:
        path = one.try_cache_model(model)
    assert path is not None
    wanted = [f"{digest} {name}" for name, digest in source_digests(graph_of(), {}).items()]
    assert list(model.models[0].model.attrs.get_list(SOURCE_DIGESTS, str) or ()) == wanted
    path.write_bytes(path.read_bytes().replace(SOURCE_DIGESTS.encode(), b"x" * len(SOURCE_DIGESTS)))
    changed = graph_of()
    one_byte(changed)
    assert found(tmp_path, vm, changed) == "GE's"


def test_a_weight_that_only_one_of_both_has_does_not_count(tmp_path: Path, vm: VarManager) -> None:
    """The graph key says that it is the same graph."""
    stored(tmp_path, vm, graph_of("wc"))
    assert found(tmp_path, vm, graph_of("wfb")) == "first"


def test_a_missing_side_file_is_a_miss(tmp_path: Path, vm: VarManager, caplog: pytest.LogCaptureFixture) -> None:
    stored(tmp_path, vm, graph_of())
    [side] = tmp_path.glob("*.rdcpkt")
    side.unlink()
    state = state_bytes(vm)
    with caplog.at_level(logging.INFO, "gevar.compile"):
        assert found(tmp_path, vm, graph_of()) is None
    assert f"{side.name!r} is not there" in caplog.text
    assert state_bytes(vm) == state
    stored(tmp_path, vm, graph_of(), "again")
    assert found(tmp_path, vm, graph_of()) == "again"


def test_switches_that_exclude_each_other(tmp_path: Path, vm: VarManager) -> None:
    both = options(tmp_path) | {"ge.exec.variable_acc": "True", "ge.AllowMultiGraphParallelCompile": "1"}
    with pytest.raises(GraphError, match="E10001") as caught:
        ModelCache(graph_of(), vm, GraphRebuildStateCtrl(), both)
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID
    assert list(tmp_path.iterdir()) == []
