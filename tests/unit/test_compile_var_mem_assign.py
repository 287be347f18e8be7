"""Memory of the variables and constants of a graph."""

import pytest

from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.errors import GraphError, StateError
from gevar.graph import AttrValue, ComputeGraph, GeTensor, OpDesc
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager
from tests.helpers.var_memory import FakeMemory, make_manager
from tests.helpers.var_states import state_bytes

BASE = 128 << 30
F32 = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3))  # 24 B, 64 with padding
TEXT = TensorDesc(DataType.DT_STRING, Format.FORMAT_ND, (3,))
BLOCK = 1536


def make_graph(*ops: OpDesc, graph_id: int = 1) -> ComputeGraph:
    graph = ComputeGraph("main")
    graph.graph_id = graph_id
    for op_desc in ops:
        graph.add_node(op_desc)
    return graph


def op(name: str, op_type: str = "Variable", desc: TensorDesc = F32, outputs: int = 1, **attrs: AttrValue) -> OpDesc:
    return OpDesc(name, op_type, outputs=[desc] * outputs, attrs=attrs)


def weight(data: bytes, desc: TensorDesc = F32) -> GeTensor:
    return GeTensor(desc, data)


def assign(vm: VarManager, graph: ComputeGraph) -> dict[str, tuple[int, ...]]:
    """Assign memory and return the offsets of every node."""
    VarMemAssignUtil(vm, graph).assign_var_memory()
    vm.check()
    return {node.name: node.op_desc.output_i for node in graph.all_nodes()}


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def test_each_kind_of_node_gets_memory_in_the_order_of_the_graph(vm: VarManager) -> None:
    graph = make_graph(
        op("data", "Data"),
        op("w", "Variable", outputs=3),
        op("c", "Constant", value=weight(bytes(24))),
        op("f", "FileConstant", location="w.bin", offset=0, length=24),
        op("p", "ConstPlaceHolder", storage_shape=[2, 3], dtype=0, size=24, placement=1, addr=20000),
        op("const", "Const", value=weight(bytes(24))),
        op("v2", "VariableV2"),
    )
    assert assign(vm, graph) == {
        "data": (),
        "w": (BASE, 0, 0),
        "c": (BASE + BLOCK,),
        "f": (BASE + 2 * BLOCK,),
        "p": (BASE + 3 * BLOCK,),
        "const": (),
        "v2": (),
    }
    assert [graph[name].op_desc.output_desc(0).size for name in ("w", "c", "f", "p")] == [64] * 4
    assert vm.get_var_mem_size() == 3 * BLOCK
    assert vm.get_var_memory_addr(LogicAddr(BASE + 3 * BLOCK)) == 20000
    assert [vm.get_allocated_graph_id(name) for name in ("w", "c", "f", "p")] == [1] * 4


def test_other_graphs_find_variables_where_they_are(vm: VarManager) -> None:
    assign(vm, make_graph(op("a"), op("b")))
    second = make_graph(op("b"), op("new"), op("a", desc=F32.replace(format=Format.FORMAT_NHWC)), graph_id=2)
    assert assign(vm, second) == {"b": (BASE + BLOCK,), "new": (BASE + 2 * BLOCK,), "a": (BASE,)}
    assert [vm.get_allocated_graph_id(name) for name in ("a", "b", "new")] == [1, 1, 2]
    assert vm.get_cur_var_desc("a").format == Format.FORMAT_NHWC


def test_a_variable_keeps_its_description_where_only_the_shape_is_another(vm: VarManager) -> None:
    assign(vm, make_graph(op("a")))
    assign(vm, make_graph(op("a", desc=F32.replace(shape=(6,)))))
    assert vm.get_cur_var_desc("a").shape == (2, 3)


def test_a_variable_that_needs_more_memory_gets_more(vm: VarManager) -> None:
    assign(vm, make_graph(op("a"), op("b")))
    assert assign(vm, make_graph(op("a", desc=F32.replace(shape=(1000,))))) == {"a": (BASE + 2 * BLOCK,)}
    assert vm.get_cur_var_desc("a").size == 4032


def test_a_variable_without_the_padding_stays_where_it_is(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, F32.replace(size=24))
    assert assign(vm, make_graph(op("a"), op("b"))) == {"a": (BASE,), "b": (BASE + BLOCK,)}
    assert vm.assign_var_mem("text", None, TEXT.replace(size=24)) == BASE + 2 * BLOCK
    assert assign(vm, make_graph(op("text", desc=TEXT))) == {"text": (BASE + 3 * BLOCK,)}


def test_constants_with_equal_weights_share(vm: VarManager) -> None:
    fills = {"a": 1, "b": 2, "c": 1}
    graph = make_graph(*(op(name, "Constant", value=weight(bytes([fill]) * 24)) for name, fill in fills.items()))
    assert assign(vm, graph) == {"a": (BASE,), "b": (BASE + BLOCK,), "c": (BASE,)}


def test_file_constants_share_by_place(vm: VarManager) -> None:
    places = {"a": (0, 8), "b": (8, 8), "c": (0, 8), "d": (0, 4)}
    ops = [op(name, "FileConstant", location="w", offset=at, length=size) for name, (at, size) in places.items()]
    offsets = assign(vm, make_graph(*ops))
    assert offsets["a"] == offsets["c"]
    assert len(set(offsets.values())) == 3


def test_references_have_no_memory_of_their_own(vm: VarManager) -> None:
    graph = make_graph(op("w"), op("w_ref", ref_var_src_var_name="w"), op("last"))
    assert assign(vm, graph) == {"w": (BASE,), "w_ref": (), "last": (BASE + BLOCK,)}
    assert not vm.is_var_exist("w_ref")


def test_a_node_known_by_another_name(vm: VarManager) -> None:
    graph = make_graph(
        op("clone", "Constant", value=weight(b"x" * 24), _src_const_name="c"), op("w", _src_const_name="")
    )
    assert assign(vm, graph) == {"clone": (BASE,), "w": (BASE + BLOCK,)}
    assert [vm.is_var_exist(name) for name in ("clone", "c", "w")] == [False, True, True]
    assert vm.get_allocated_graph_id("c") == 1


def test_subgraphs_count_behind_the_node_that_runs_them(vm: VarManager) -> None:
    graph, inner = make_graph(op("a"), op("call", "PartitionedCall"), op("z")), make_graph(op("deep"), op("a"))
    inner = ComputeGraph("inner")
    inner.add_node(op("deep"))
    inner.add_node(op("a"))
    graph.add_subgraph(graph["call"], inner)
    assign(vm, graph)
    assert inner["deep"].op_desc.output_i == (BASE + BLOCK,)
    assert inner["a"].op_desc.output_i == graph["a"].op_desc.output_i == (BASE,)
    assert graph["z"].op_desc.output_i == (BASE + 2 * BLOCK,)


@pytest.mark.parametrize(
    ("op_type", "attrs", "size"),
    [
        ("Constant", {"value": weight(b"x" * 77, TEXT)}, 77),
        ("FileConstant", {"location": "w", "length": 100}, 100),
        ("FileConstant", {"location": "w"}, 96),  # 3 elements of 16 B, padded
        ("Variable", {}, 96),
        ("Variable", {"length": 100}, 96),
    ],
)
def test_sizes_of_text(vm: VarManager, op_type: str, attrs: dict[str, AttrValue], size: int) -> None:
    graph = make_graph(op("x", op_type, TEXT, **attrs))
    assign(vm, graph)
    assert graph["x"].op_desc.output_desc(0).size == vm.get_cur_var_desc("x").size == size


@pytest.mark.parametrize(("shape", "size"), [((), 64), ((0,), 32), ((8,), 64), ((9,), 96), ((25,), 160)])
def test_sizes_have_the_padding(vm: VarManager, shape: tuple[int, ...], size: int) -> None:
    graph = make_graph(op("x", desc=F32.replace(shape=shape, size=7)))
    assign(vm, graph)
    assert graph["x"].op_desc.output_desc(0).size == size


def test_the_padding_of_the_product_can_be_given(vm: VarManager) -> None:
    graph = make_graph(op("x"))
    VarMemAssignUtil(vm, graph, pad_bytes=64).assign_constant_op_memory()
    assert graph["x"].op_desc.output_desc(0).size == 96


def test_memory_of_a_pool() -> None:
    vm = make_manager(FakeMemory(rdma_room=1 << 20))
    offsets = assign(vm, make_graph(op("a"), op("r", _output_memory_type=1), op("b", _output_memory_type=0)))
    assert offsets["b"] == (BASE + BLOCK,)
    assert vm.get_var_mem_type(offsets["r"][0]) == MemType.RT_MEMORY_RDMA_HBM


def test_a_shadow_gets_the_description_of_its_source(vm: VarManager) -> None:
    half = F32.replace(dtype=DataType.DT_FLOAT16)
    graph = make_graph(op("w"), op("w_half", desc=half, _src_var_name="w"), op("last"))
    assert assign(vm, graph) == {"w": (BASE,), "w_half": (BASE + BLOCK,), "last": (BASE + 2 * BLOCK,)}
    assert vm.get_cur_var_desc("w_half") == vm.get_cur_var_desc("w")
    assert vm.get_var_addr("w_half", F32) == BASE
    assert vm.get_var_addr("w_half", half) == BASE + BLOCK


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (op("x", outputs=0), "without outputs"),
        (op("x", "Constant", TEXT), "holds text and has no weight"),
        (op("x", desc=F32.replace(shape=(-1, 2))), "no size: .*unknown"),
        (op("x", desc=F32.replace(dtype=DataType.DT_UNDEFINED)), "no fixed size"),
        (op("x", desc=F32.replace(format=Format.FORMAT_BN_WEIGHT)), "cannot be counted"),
        (op("x", desc=F32.replace(shape=(1 << 40, 1 << 40))), "gives"),
        (op("x", _src_var_name="nowhere"), "shadow of variable 'nowhere'"),
    ],
)
def test_a_node_that_cannot_be_changes_nothing(vm: VarManager, bad: OpDesc, reason: str) -> None:
    assign(vm, make_graph(op("known")))
    graph = make_graph(op("first"), bad)
    before, message = state_bytes(vm), graph.to_proto()
    with pytest.raises(GraphError, match=reason) as caught:
        VarMemAssignUtil(vm, graph).assign_var_memory()
    assert (caught.value.node, caught.value.graph, caught.value.status) == ("x", "main", FAILED)
    assert (state_bytes(vm), graph.to_proto()) == (before, message)
    vm.check()


@pytest.mark.parametrize(
    ("bad", "status", "reason"),
    [
        (op("x", _output_memory_type=1), INTERNAL_ERROR, "no RT_MEMORY_RDMA_HBM"),  # there is no pool
        (op("x", desc=F32.replace(shape=(1 << 40,))), INTERNAL_ERROR, "of the variable memory gives"),
        (op("x", "ConstPlaceHolder", storage_shape=[2, 3], dtype=0, size=24, placement=1), INTERNAL_ERROR, "addr"),
        (op("x", "FileConstant", location=3), PARAM_INVALID, "location is 3"),
        (op("x", "FileConstant", TEXT, location="w", length=-1), INTERNAL_ERROR, "size is -1 B"),
        (op("known", _output_memory_type=1), PARAM_INVALID, "keep the kind of memory"),
    ],
)
def test_what_the_manager_refuses_changes_nothing(vm: VarManager, bad: OpDesc, status: int, reason: str) -> None:
    if bad.name == "known":
        vm.assign_var_mem("known", None, F32.replace(dtype=DataType.DT_INT32))
    graph = make_graph(op("first"), op("c", "Constant", value=weight(b"a" * 24)), bad)
    before, message, end = state_bytes(vm), graph.to_proto(), vm.get_var_mem_size()
    with pytest.raises(GraphError, match=reason) as caught:
        VarMemAssignUtil(vm, graph).assign_var_memory()
    assert (caught.value.node, caught.value.status) == (bad.name, status)
    assert (state_bytes(vm), graph.to_proto()) == (before, message)
    assert vm.assign_var_mem("next", None, F32.replace(size=64)) == BASE + end


def test_a_manager_that_is_not_initialised() -> None:
    with pytest.raises(StateError):
        VarMemAssignUtil(VarManager(1), make_graph(op("a"))).assign_var_memory()


def test_a_missing_source_of_a_shadow_that_was_there_before(vm: VarManager) -> None:
    graph = make_graph(op("x", _src_var_name="gone"), op("y"))
    vm.assign_var_mem("x", None, F32.replace(size=64))
    assert assign(vm, graph)["x"] == (BASE,)  # the shadow has memory, so its source is not asked for
    util = VarMemAssignUtil(vm, graph)
    with pytest.raises(GraphError, match="gone"):
        util.assign_data2_fp32_var(graph["x"])
    util.assign_data2_fp32_var(graph["y"])
    assert vm.get_cur_var_desc("y") == F32.replace(size=64)
