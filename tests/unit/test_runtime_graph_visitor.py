"""A graph's view of the variables: assigned, converted, copied, loaded from nodes and files, found by name."""

import ctypes
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar.errors import GevarError, LoadError, StateError, VariableError
from gevar.memory import DeviceMemoryManager, HostMemManager
from gevar.runtime import (
    GraphVarVisitor,
    LoweringGlobalData,
    ModelExecutor,
    RtSession,
    TensorPlacement,
    VarShapeAndMemory,
    lowering_variable,
)
from gevar.runtime.trans_var_data import copy_var_data, trans_all_var_data
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var import LoadState, TransNodeInfo, VarManager, VarOp
from gevar.var.var_op import AttrValue
from gevar.weights import WeightDirectory
from tests.helpers.runtime import host_runtime
from tests.helpers.var_memory import FakeMemory, constant, make_desc, make_manager, with_init

ZERO, ONE = DeviceId(0), DeviceId(1)
GRAPH, OTHER = 7, 3
BYTES = bytes(range(64))


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def _variable(name: str, desc: TensorDesc, **attrs: AttrValue) -> VarOp:
    return VarOp(name, "Variable", (desc,), attrs=attrs)


def _file(name: str, desc: TensorDesc, **attrs: AttrValue) -> VarOp:
    return VarOp(name, "FileConstant", (desc,), attrs=attrs)


def _told(visitor: GraphVarVisitor, name: str) -> VarShapeAndMemory:
    return visitor.get_var_shape_and_memory(name, ZERO)


def _on_device(vm: VarManager, visitor: GraphVarVisitor, name: str) -> bytes:
    found = _told(visitor, name)
    assert found.placement is TensorPlacement.ON_DEVICE_HBM
    data = np.empty(found.size_bytes, np.uint8)
    vm.read_var_memory(found.logic_addr, data)
    assert vm.get_var_memory_addr(found.logic_addr) == found.dev_addr
    return data.tobytes()


# -- variables and constants on the device


def test_variables_and_constants_of_a_graph(vm: VarManager, memory: FakeMemory) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    c = constant("c", BYTES, make_desc(64))
    visitor.init([_variable("v", with_init(make_desc(64), b"v" * 64)), c, VarOp("add", "Add", (make_desc(4),))])
    assert _on_device(vm, visitor, "v") == b"v" * 64
    assert _on_device(vm, visitor, "c") == BYTES
    assert vm.get_allocated_graph_id("v") == vm.get_allocated_graph_id("c") == GRAPH
    assert len(memory.mallocs) == 2
    with pytest.raises(VariableError, match="graph 7 did not put it on device 0") as caught:
        _told(visitor, "add")
    assert caught.value.status == FAILED
    with pytest.raises(VariableError, match="device 1"):
        visitor.get_var_shape_and_memory("v", ONE)


def test_a_second_graph_shares_blocks_and_their_bytes(vm: VarManager, memory: FakeMemory) -> None:
    c = constant("c", BYTES, make_desc(64))
    first, second = (GraphVarVisitor(vm, ZERO, graph) for graph in (OTHER, GRAPH))
    first.init([_variable("v", make_desc(8)), c])
    vm.write_var_memory(vm["v"].logic_addr, b"12345678")
    copies = memory.copies_in
    second.init([_variable("v", make_desc(8)), constant("twin", BYTES, make_desc(64))])
    assert _told(second, "twin").dev_addr == _told(first, "c").dev_addr
    assert _on_device(vm, second, "v") == b"12345678"
    assert memory.copies_in == copies
    assert [vm.get_allocated_graph_id(name) for name in ("v", "twin")] == [OTHER, GRAPH]


def test_devices_are_loaded_each(vm: VarManager) -> None:
    ops = [constant("c", BYTES, make_desc(64))]
    for device in (ZERO, ONE):
        GraphVarVisitor(vm, device, GRAPH).init(ops)
    addr = vm["c"].logic_addr
    assert [vm.get_var_load_state(addr, at) for at in (ZERO, ONE, DeviceId(2))] == [
        LoadState.LOADED,
        LoadState.LOADED,
        LoadState.ABSENT,
    ]
    data = np.empty(64, np.uint8)
    vm.read_var_memory(addr, data, ONE)
    assert data.tobytes() == BYTES


@pytest.mark.parametrize(("value", "why"), [(None, "without a value"), (bytes(65), "65 B and its output 64 B")])
def test_a_constant_without_fitting_bytes_is_refused(vm: VarManager, value: bytes | None, why: str) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    with pytest.raises(VariableError, match=why) as caught:
        visitor.init([constant("ok", b"ok", make_desc(64)), VarOp("c", "Constant", (make_desc(64),), value=value)])
    assert caught.value.status == PARAM_INVALID
    with pytest.raises(VariableError):
        _told(visitor, "ok")  # nothing of a refused graph is told
    vm.check()


def test_an_empty_constant_is_loaded(vm: VarManager) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    visitor.init([VarOp("c", "Constant", (make_desc(0),), value=b"")])
    assert _told(visitor, "c").size_bytes == 0
    assert vm.get_var_load_state(_told(visitor, "c").logic_addr) is LoadState.LOADED


def test_registered_memory_is_its_own_address(vm: VarManager, memory: FakeMemory) -> None:
    memory.rdma_room = 1 << 20
    desc = make_desc(64)
    addr = vm.assign_var_mem("r", None, desc, MemType.RT_MEMORY_RDMA_HBM)
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    visitor.init([_variable("r", desc)])
    assert (_told(visitor, "r").dev_addr, _told(visitor, "r").logic_addr) == (addr, addr)
    assert memory.mallocs == []


def test_many_threads_bring_each_constant_once(vm: VarManager, memory: FakeMemory) -> None:
    ops = [constant(f"c{n}", bytes([n]) * 64, make_desc(64)) for n in range(40)]
    visitors = [GraphVarVisitor(vm, ZERO, graph) for graph in range(6)]
    threads = [threading.Thread(target=visitor.init, args=(ops,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert (len(memory.mallocs), memory.copies_in) == (40, 40)
    for n in range(40):
        assert {_on_device(vm, visitor, f"c{n}") for visitor in visitors} == {bytes([n]) * 64}


# -- memory that was freed, and sleep


def test_freed_memory_is_not_told(vm: VarManager) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    ops = [_variable("v", with_init(make_desc(8), b"12345678")), constant("c", BYTES, make_desc(64))]
    visitor.init(ops)
    vm.free_var_memory()
    with pytest.raises(StateError, match="the bytes of c went with memory that was freed: call init again"):
        _told(visitor, "c")
    assert _on_device(vm, visitor, "v") == b"12345678"
    visitor.init(ops)
    assert _on_device(vm, visitor, "c") == BYTES


# -- host variables


def test_a_variable_on_the_host(vm: VarManager, memory: FakeMemory) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    op = _variable("h", with_init(make_desc(8), b"hosthost"), _variable_placement="host")
    visitor.init([op])
    found = _told(visitor, "h")
    assert (found.placement, found.dev_addr) == (TensorPlacement.ON_HOST, found.logic_addr)
    assert ctypes.string_at(found.dev_addr, 8) == b"hosthost"
    ctypes.memmove(found.dev_addr, b"changed!", 8)
    again = GraphVarVisitor(vm, ONE, OTHER)
    again.init([op])
    assert again.get_var_shape_and_memory("h", ONE).dev_addr == found.dev_addr
    assert ctypes.string_at(found.dev_addr, 8) == b"changed!"
    assert memory.mallocs == []


@pytest.fixture
def shared() -> Iterator[HostMemManager]:
    manager = HostMemManager()
    yield manager
    manager.finalize()


def test_a_variable_in_memory_that_processes_share(vm: VarManager, shared: HostMemManager) -> None:
    info = shared.malloc_host_shared_memory("test/visitor", 64)
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, shared_memory=shared)
    visitor.init(
        [
            _variable("test/visitor", make_desc(64), _variable_placement="host"),
            _variable("alone", make_desc(8), _variable_placement="host"),
        ]
    )
    assert _told(visitor, "test/visitor").dev_addr == info.host_addr
    assert _told(visitor, "alone").dev_addr != info.host_addr
    with pytest.raises(VariableError, match=r"needs 65 B and its shared memory Ascend_\w+ has 64 B") as caught:
        visitor.init([_variable("test/visitor", make_desc(65), _variable_placement="host")])
    assert caught.value.status == FAILED


# -- conversions


def _cast(source: TensorDesc, target: TensorDesc, kind: str = "Cast") -> TransNodeInfo:
    return TransNodeInfo(kind, source, target)


F16 = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_ND, (4,), size=64)
F32 = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=64)
VALUES = np.array([1, -2, 3.5, 1e6], np.float32)
HALVES = np.array([1, -2, 3.5, 65504], np.float16)
"""As GE casts them: what is too large becomes the largest number."""


def _changed(vm: VarManager, road: list[TransNodeInfo], *, changed: int = GRAPH) -> None:
    """A float variable of another graph with bytes, which `changed` wants as float16."""
    GraphVarVisitor(vm, ZERO, OTHER).init([_variable("v", F32)])
    vm.write_var_memory(vm.get_var_addr("v", F32), VALUES.tobytes())
    vm.set_trans_road("v", road)
    vm.set_changed_graph_id("v", changed)


def test_a_changed_variable_is_converted_once(vm: VarManager) -> None:
    _changed(vm, [_cast(F32, F16)])
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    visitor.init([_variable("v", F16)])
    assert _on_device(vm, visitor, "v")[:8] == HALVES.tobytes()
    assert vm.get_changed_graph_id("v") is None
    vm.write_var_memory(vm.get_var_addr("v", F16), bytes(8))
    visitor.init([_variable("v", F16)])
    assert _on_device(vm, visitor, "v")[:8] == bytes(8)


@pytest.mark.parametrize("changed", [OTHER, 99])
def test_what_another_graph_changed_is_left_alone(vm: VarManager, changed: int) -> None:
    _changed(vm, [_cast(F32, F16)], changed=changed)
    GraphVarVisitor(vm, ZERO, GRAPH).init([_variable("v", F32)])
    data = np.empty(16, np.uint8)
    vm.read_var_memory(vm.get_var_addr("v", F32), data)
    assert data.tobytes() == VALUES.tobytes()
    assert vm.get_changed_graph_id("v") == changed


def test_steps_that_move_nothing_copy_nothing(vm: VarManager, memory: FakeMemory) -> None:
    _changed(vm, [_cast(F32, F32, kind) for kind in ("Reshape", "ReFormat", "SqueezeV2", "UnsqueezeV2")])
    calls = memory.calls
    GraphVarVisitor(vm, ZERO, GRAPH).init([_variable("v", F32)])
    assert memory.calls == calls
    assert vm.get_changed_graph_id("v") is None


def test_a_variable_without_bytes_has_none_to_convert(vm: VarManager) -> None:
    _changed(vm, [_cast(F32, F16)])
    visitor = GraphVarVisitor(vm, ONE, GRAPH)
    visitor.init([_variable("v", F16)])
    assert vm.get_changed_graph_id("v") is None
    assert visitor.get_var_shape_and_memory("v", ONE).size_bytes == 64


def test_a_step_that_cannot_be_done_leaves_the_variable_as_it_is(vm: VarManager) -> None:
    _changed(vm, [_cast(F32, F16, "TransData")])
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    with pytest.raises(VariableError, match=r"'v': its road cannot be gone: .* element types differ") as caught:
        visitor.init([_variable("v", F16)])
    assert caught.value.status == INTERNAL_ERROR
    assert vm.get_changed_graph_id("v") == GRAPH
    data = np.empty(16, np.uint8)
    vm.read_var_memory(vm.get_var_addr("v", F32), data)
    assert data.tobytes() == VALUES.tobytes()


def test_conversions_need_the_first_graph(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, F32)
    with pytest.raises(VariableError, match="no graph is recorded as its first user") as caught:
        trans_all_var_data(vm, [_variable("v", F32)], ZERO, GRAPH)
    assert caught.value.status == INTERNAL_ERROR


def test_a_form_of_unknown_size_is_refused(vm: VarManager) -> None:
    unknown = F32.replace(shape=(-1,))
    _changed(vm, [_cast(unknown, F16)])
    with pytest.raises(VariableError, match="unknown shape"):
        GraphVarVisitor(vm, ZERO, GRAPH).init([_variable("v", F16)])
    assert vm.get_changed_graph_id("v") == GRAPH


# -- copies of other variables


def _copy(name: str, source: str, desc: TensorDesc, **attrs: AttrValue) -> VarOp:
    return _variable(name, desc, _copy_from_var_node=source, **attrs)


def test_edge_28_equal_types_are_copied_too(vm: VarManager) -> None:
    source = with_init(F32, VALUES.tobytes())
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    visitor.init([_variable("s", source), _copy("same", "s", F32), _copy("half", "s", F16), _copy("not", "", F32)])
    assert _on_device(vm, visitor, "same")[:16] == VALUES.tobytes()
    assert _on_device(vm, visitor, "half")[:8] == HALVES.tobytes()
    assert vm.get_var_load_state(_told(visitor, "not").logic_addr) is LoadState.ABSENT


def test_copies_are_made_once_for_each_memory(vm: VarManager) -> None:
    ops = [_variable("s", with_init(F32, VALUES.tobytes())), _copy("c", "s", F32)]
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    visitor.init(ops)
    vm.write_var_memory(_told(visitor, "c").logic_addr, bytes(64))
    visitor.init(ops)
    assert _on_device(vm, visitor, "c") == bytes(64)
    vm.free_var_memory()
    with pytest.raises(StateError, match="the bytes of c went"):
        _told(visitor, "c")
    visitor.init(ops)
    assert _on_device(vm, visitor, "c")[:16] == VALUES.tobytes()


def test_what_was_filled_before_is_not_copied(vm: VarManager) -> None:
    vm.assign_var_mem("s", None, with_init(F32, VALUES.tobytes()))
    vm.assign_var_mem("c", None, F32)
    assert copy_var_data(vm, [_copy("c", "s", F32, _copy_value=1)], ZERO) == []
    with pytest.raises(VariableError, match="gone"):
        copy_var_data(vm, [_copy("c", "gone", F32)], ZERO)
    assert vm.get_var_load_state(vm["c"].logic_addr) is LoadState.ABSENT
    assert copy_var_data(vm, [_copy("c", "s", F32)], ZERO) == ["c"]


# -- file constants


@pytest.fixture
def weights(tmp_path: Path) -> WeightDirectory:
    (tmp_path / "all.bin").write_bytes(bytes(range(200)))
    (tmp_path / "one.bin").write_bytes(b"one!" * 16)
    return WeightDirectory(tmp_path, None)


def test_edge_27_every_slice_of_a_file_is_loaded(vm: VarManager, weights: WeightDirectory, memory: FakeMemory) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights)
    desc = make_desc(64)
    visitor.init(
        [
            _file("a", desc, location="all.bin", offset=0, length=64),
            _file("b", desc, location="all.bin", offset=64, length=64),
            _file("twin", desc, location="all.bin", offset=64, length=64),
            _file("c", desc, location="one.bin"),
        ]
    )
    assert _on_device(vm, visitor, "a") == bytes(range(64))
    assert _on_device(vm, visitor, "b") == bytes(range(64, 128))
    assert _on_device(vm, visitor, "c") == b"one!" * 16
    assert _told(visitor, "twin").dev_addr == _told(visitor, "b").dev_addr
    assert all(vm.is_var_ready(name, desc) for name in ("a", "b", "twin", "c"))
    assert (len(memory.mallocs), memory.copies_in) == (3, 3)


def test_a_weight_of_several_blocks(vm: VarManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gevar.runtime.weight_bytes.BLOCK_BYTES", 100)
    content = np.random.default_rng(1).integers(0, 256, 1001, np.uint8)
    (tmp_path / "w.bin").write_bytes(bytes(13) + content.tobytes())
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=WeightDirectory(tmp_path, None))
    visitor.init([_file("w", make_desc(1001), location="w.bin", offset=13, length=1001)])
    assert _on_device(vm, visitor, "w") == content.tobytes()


def test_files_by_number_and_by_path(vm: VarManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.bin").write_bytes(BYTES)
    monkeypatch.chdir(tmp_path)
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, paths_by_id={"7": str(tmp_path / "p.bin")})
    visitor.init([_file("i", make_desc(64), file_id="7"), _file("p", make_desc(64), file_path="p.bin")])
    assert _on_device(vm, visitor, "i") == _on_device(vm, visitor, "p") == BYTES


@pytest.mark.parametrize(
    ("attrs", "why"),
    [
        ({"location": "gone.bin"}, "gone.bin"),
        ({"location": "one.bin", "offset": 1, "length": 64}, "passes the end"),
        ({"location": "../secret.bin"}, "leads out"),
        ({}, "names no file"),
        ({"location": "one.bin", "offset": -1, "length": 4}, "give numbers from 0"),
    ],
)
def test_a_file_that_does_not_serve_leaves_nothing(
    vm: VarManager, weights: WeightDirectory, memory: FakeMemory, attrs: dict[str, AttrValue], why: str
) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights)
    desc = make_desc(64)
    with pytest.raises((LoadError, VariableError), match=why):
        visitor.init([_file("bad", desc, **attrs)])
    assert memory.mallocs == []
    assert not vm.is_var_ready("bad", desc)
    with pytest.raises(VariableError):
        _told(visitor, "bad")


def test_a_file_that_is_cut_while_it_is_read(vm: VarManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(BYTES)
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=WeightDirectory(tmp_path, None))
    ops = [_file("w", make_desc(64), location="w.bin", length=64)]
    logic_addr = LogicAddr(vm.get_var_mem_logic_base())
    with monkeypatch.context() as patch:
        assign = vm.assign_var_mem

        def cut_then_assign(name: str, op: VarOp | None, desc: TensorDesc, mem_type: MemType) -> LogicAddr:
            path.write_bytes(BYTES[:10])
            return assign(name, op, desc, mem_type)

        patch.setattr(vm, "assign_var_mem", cut_then_assign)
        with pytest.raises(LoadError, match="changed since it was looked at"):
            visitor.init(ops)
    assert vm.get_var_load_state(logic_addr) is LoadState.ABSENT
    assert not vm.is_var_ready("w", make_desc(64))
    path.write_bytes(BYTES)
    visitor.init(ops)
    assert _on_device(vm, visitor, "w") == BYTES


# -- execution on the host


def test_constants_of_a_graph_on_the_host(vm: VarManager, weights: WeightDirectory, memory: FakeMemory) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights, is_host_execution=True)
    value = np.frombuffer(BYTES, np.uint8)
    ops = [
        constant("c", BYTES, make_desc(64)),
        _file("f", make_desc(64), location="all.bin", offset=100, length=64),
        _file("empty", make_desc(0), location="one.bin"),
    ]
    visitor.init(ops)
    assert _told(visitor, "c").dev_addr == value.ctypes.data  # the node's own buffer
    assert ctypes.string_at(_told(visitor, "f").dev_addr, 64) == bytes(range(100, 164))
    assert {_told(visitor, name).placement for name in ("c", "f", "empty")} == {TensorPlacement.ON_HOST}
    assert memory.mallocs == []
    ctypes.memset(_told(visitor, "f").dev_addr, 0, 64)
    visitor.init(ops)
    assert ctypes.string_at(_told(visitor, "f").dev_addr, 64) == bytes(64)  # it is ready, and not read again


def test_other_bytes_under_one_name_on_the_host(vm: VarManager, weights: WeightDirectory) -> None:
    """Also where a graph on the device has them: host memory and that of a device are never taken for each other."""
    on_host, on_device = (
        GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights, is_host_execution=is_host) for is_host in (True, False)
    )
    first, same, other = (
        _file("f", make_desc(64), location="all.bin", offset=offset, length=64) for offset in (100, 100, 101)
    )
    on_host.init([first])
    on_host.init([same])
    with pytest.raises(VariableError, match=r"'f'.*from 100 on .*which are not .*from 101 on"):
        on_host.init([other])
    assert ctypes.string_at(_told(on_host, "f").dev_addr, 64) == bytes(range(100, 164))
    with pytest.raises(VariableError, match="'f': the session has it in host memory"):
        on_device.init([first])
    on_device.init([_file("g", make_desc(64), location="all.bin", offset=100, length=64), _variable("v", make_desc(8))])
    with pytest.raises(VariableError, match="'g': the session has it in RT_MEMORY_HBM"):
        on_host.init([_file("g", make_desc(64), location="all.bin", offset=100, length=64)])
    with pytest.raises(VariableError, match="'v': the session has it in RT_MEMORY_HBM") as caught:
        on_host.init([_variable("v", make_desc(8), _variable_placement="host")])
    assert caught.value.status == FAILED


# -- with kernels, and on the runtime


def test_kernels_take_variables_from_it(vm: VarManager, memory: FakeMemory) -> None:
    visitor = GraphVarVisitor(vm, ZERO, GRAPH)
    ops = [_variable("v", with_init(make_desc(8), b"12345678")), constant("c", BYTES, make_desc(64))]
    visitor.init(ops)
    shared = LoweringGlobalData()
    sources = [lowering_variable(op, shared) for op in ops]
    with ModelExecutor(shared.graph, RtSession(1, visitor), memory, ZERO) as executor:
        executor.load()
        assert executor.execute([source.addr for source in sources]) == [b"12345678", BYTES]


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMemcpy"])
def test_each_call_fails_once_and_the_next_try_goes_on(
    host: HostControls, weights: WeightDirectory, function: str
) -> None:
    ops = [
        _variable("v", with_init(make_desc(64), b"v" * 64)),
        _copy("copy", "v", make_desc(64)),
        constant("c", BYTES, make_desc(64)),
        _file("f", make_desc(64), location="all.bin", offset=64, length=64),
    ]
    expected = {"v": b"v" * 64, "copy": b"v" * 64, "c": BYTES, "f": bytes(range(64, 128))}
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = VarManager(1)
        vm.init(0, 1)
        vm.set_memory_malloc_size(64 << 30)
        vm.set_mem_manager(memory)
        visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights)
        failures = 0
        for n in count(1):
            host.fail_nth(function, n, 507899)
            try:
                visitor.init(ops)
            except GevarError:
                failures += 1
                host.clear_failures()
                with pytest.raises(VariableError):
                    _told(visitor, "v")
                vm.check()
            else:
                host.clear_failures()
                break
            visitor.init(ops)
            assert {name: _on_device(vm, visitor, name) for name in expected} == expected
            vm.free_var_memory()
            visitor = GraphVarVisitor(vm, ZERO, GRAPH, weight_dir=weights)
        assert failures == (4 if function == "aclrtMallocWithCfg" else 5)
        assert {name: _on_device(vm, visitor, name) for name in expected} == expected
        vm.destroy()
        assert memory.counts.live_blocks == 0


def test_variables_that_sleep_are_not_visited(host: HostControls) -> None:
    from gevar import Session

    with Session(host_runtime()) as session:
        vm = session.var_manager
        session.rt_var_manager.init(ZERO, 128 << 30, 8 << 30)
        session.init_var_memory(ZERO)
        visitor = GraphVarVisitor(vm, ZERO, GRAPH)
        ops = [constant("c", BYTES, make_desc(64))]
        visitor.init(ops)
        session.sleep()
        with pytest.raises(StateError, match="the variables sleep on device 0: call wake first"):
            visitor.init(ops)
        session.wake()
        visitor.init(ops)
        assert _on_device(vm, visitor, "c") == BYTES
        session.sleep(keep="discard")
        session.wake()
        with pytest.raises(StateError, match="call init again"):
            _told(visitor, "c")
        visitor.init(ops)
        assert _on_device(vm, visitor, "c") == BYTES
