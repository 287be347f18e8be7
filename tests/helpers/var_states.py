"""Managers with something in every table, to be stored and restored."""

from gevar.types import DataType, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var import TransNodeInfo, VarBroadCastInfo, VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, constant, file_constant, make_desc, make_manager, place_holder

BASE = 128 * GIB
NCHW = TensorDesc(
    DataType.DT_FLOAT,
    Format.FORMAT_NCHW,
    (1, 16, 4, 4),
    origin_format=Format.FORMAT_NCHW,
    origin_shape=(1, 16, 4, 4),
    origin_dtype=DataType.DT_FLOAT,
    size=1024,
)
NC1HWC0 = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NC1HWC0, (1, 1, 4, 4, 16), size=1024)
ROAD = (TransNodeInfo("TransData", NCHW, NC1HWC0),)
INFO = VarBroadCastInfo("v", "hcom", -1, 0, 1, -2, (1 << 64) - 1)
WEIGHT = b"\x01\x02\x03\x04"
HOLDER = 87960930226176


def full_manager(memory: FakeMemory | None = None) -> VarManager:
    """A manager with something in every table; device memory and states too."""
    vm = make_manager(FakeMemory() if memory is None else memory)
    vm.assign_var_mem("v", None, NCHW)
    vm.assign_var_mem("v", None, NC1HWC0)
    vm.assign_var_mem("c", constant("c", WEIGHT, make_desc(4)), make_desc(4))
    vm.assign_var_mem("f", file_constant("f", "/w/a", 16, 4), make_desc(4))
    vm.assign_var_mem("p", place_holder("p", HOLDER, 32), make_desc(16))
    vm.restore_var_mem("r", VarOp("r", "Variable", (), (BASE + 10240,)), make_desc(100))
    alias = VarOp("ref", "Variable", (), (BASE + 10240,), attrs={"ref_var_src_var_name": "r"})
    vm.restore_var_mem("ref", alias, make_desc(100))
    vm.set_var_addr("named", make_desc(8), LogicAddr(12345))
    vm.set_var_addr("inside", make_desc(8), LogicAddr(BASE + 8))
    vm.set_batch_variables_key_name("vb", "v")
    vm.set_trans_road("v", ROAD)
    vm.set_trans_road("e", ())
    vm.set_changed_graph_id("vb", 2)
    vm.set_allocated_graph_id("v", 1)
    vm.save_broad_cast_info(1, INFO)
    vm.record_staged_var_desc(3, "v", NCHW)
    vm.set_var_is_ready("v", NC1HWC0)
    vm.get_var_memory_addr(LogicAddr(BASE))
    vm.check_and_set_var_loaded(VarOp("c", "Constant", (), (BASE + 2048,)))
    return vm


def restored(vm: VarManager, memory: FakeMemory | None = None, *, extension: bool = True) -> VarManager:
    """A new manager with the state of another one."""
    other = VarManager(vm.session_id)
    other.set_mem_manager(FakeMemory() if memory is None else memory)
    other.var_manager_to_deserial(vm.var_manager_to_serial(strict=False, extension=extension))
    other.check()
    return other


def state_bytes(vm: VarManager) -> bytes:
    """All that is stored of a manager, as canonical bytes; empty while it is not initialised."""
    if not vm.is_var_resource_inited:
        return b""
    return vm.var_manager_to_serial(strict=False).SerializeToString(deterministic=True)


D0, D3 = DeviceId(0), DeviceId(3)
HBM, RDMA, HOST = MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_RDMA_HBM, MemType.RT_MEMORY_HOST
