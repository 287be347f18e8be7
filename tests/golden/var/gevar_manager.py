"""gevar's managers in the words of `faces.Manager`, over the simulated sources of memory.

A status is the number that the raised error carries; a wrong argument is PARAM_INVALID; None for what is not recorded
is FAILED. Where GE returns null for an address, gevar raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from acl_shim.errors import AclError
from gevar.errors import GevarError
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var import TransNodeInfo, VarBroadCastInfo, VarManager, VarOp
from gevar.var.memory_config import MemoryConfig
from tests.golden.var.faces import Road
from tests.golden.var.ge_state import FAILED, NO_CONTEXT, PARAM_INVALID, GeError, Sizes
from tests.golden.var.simulated import SimulatedExpandable, SimulatedMemory
from tests.golden.var.values import Op

if TYPE_CHECKING:
    from tests.golden.var.gevar_pool import GevarPool


@contextmanager
def statuses() -> Iterator[None]:
    """Turn what gevar raises into a status."""
    try:
        yield
    except AclError as error:
        raise GeError(error.code) from error
    except GevarError as error:
        raise GeError(-1 if error.status is None else error.status) from error
    except (TypeError, ValueError) as error:
        raise GeError(PARAM_INVALID) from error


def recorded(number: int | None) -> int:
    if number is None:
        raise GeError(FAILED)
    return number


def mem_type_of(number: int) -> MemType:
    """The kind of memory; a number that is none is handed on as it is."""
    try:
        return MemType(number)
    except ValueError:
        return cast("MemType", number)


def var_op(op: Op | None) -> VarOp | None:
    if op is None:
        return None
    return VarOp(op.name, op.op_type, op.outputs, op.output_offsets, op.weight, op.attrs)


class GevarManager:
    """One `VarManager` of gevar."""

    def __init__(self, pool: "GevarPool", vm: VarManager) -> None:
        self.pool, self.vm = pool, vm

    def is_initialised(self) -> bool:
        return self.vm.is_var_resource_inited

    def session(self) -> int:
        return self.vm.session_id

    def logic_base_now(self) -> int:
        return self.vm.memory_config.var_mem_logic_base

    def has_memory(self) -> bool:
        return self.vm.has_memory_manager

    def init(self, version: int, session_id: int, device_id: int, job_id: int) -> None:
        with statuses():
            self.vm.init(version, session_id, DeviceId(device_id), job_id)

    def set_mem_manager(self, enabled: bool) -> None:
        self.vm.set_mem_manager(SimulatedMemory(self.pool.sources) if enabled else None)

    def set_all_memory_max_value(self) -> None:
        with statuses():
            self.vm.set_all_memory_max_value()

    def set_memory_malloc_size(self, total_bytes: int) -> None:
        with statuses():
            self.vm.set_memory_malloc_size(total_bytes)

    def update_memory_config(self, sizes: Sizes) -> None:
        self.vm.update_memory_config(
            MemoryConfig(
                graph_mem_max_size=sizes.graph_mem_max_size,
                var_mem_max_size=sizes.var_mem_max_size,
                use_max_mem_size=sizes.use_max_mem_size,
                var_mem_logic_base=sizes.var_mem_logic_base,
            )
        )

    def set_var_mem_logic_base(self, value: int) -> None:
        self.vm.set_var_mem_logic_base(value)

    def set_var_mem_max_size(self, value: int) -> None:
        self.vm.set_var_mem_max_size(value)

    def memory_config(self) -> Mapping[str, int]:
        vm = self.vm
        return {
            "graph_mem_max_size": vm.get_graph_memory_max_size(),
            "var_mem_max_size": vm.get_var_mem_max_size(),
            "var_mem_logic_base": vm.get_var_mem_logic_base(),
            "use_max_mem_size": vm.get_use_max_memory_size(),
            "graph_mem_max_size_for_check": vm.get_graph_memory_max_size(for_check=True),
            "var_mem_max_size_for_check": vm.get_var_mem_max_size(for_check=True),
        }

    def assign_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        with statuses():
            self.vm.assign_var_mem(name, var_op(op), desc, mem_type_of(mem_type))

    def restore_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        with statuses():
            self.vm.restore_var_mem(name, var_op(op), desc, mem_type_of(mem_type))

    def set_var_addr(self, name: str, desc: TensorDesc, addr: int, mem_type: int, op: Op | None) -> None:
        with statuses():
            self.vm.set_var_addr(name, desc, LogicAddr(addr), mem_type_of(mem_type), var_op(op))

    def get_var_addr(self, name: str, desc: TensorDesc) -> tuple[int, int]:
        with statuses():
            addr, mem_type = self.vm.get_var_addr_and_type(name, desc)
        return addr, int(mem_type)

    def get_cur_var_desc(self, name: str) -> TensorDesc:
        with statuses():
            return self.vm.get_cur_var_desc(name)

    def renew_cur_var_desc(self, name: str, desc: TensorDesc) -> None:
        with statuses():
            self.vm.renew_cur_var_desc(name, desc)

    def renew_cur_var_desc_by_op(self, name: str, op: Op | None) -> None:
        with statuses():
            self.vm.renew_cur_var_desc(name, op=var_op(op))

    def record_staged_var_desc(self, graph_id: int, name: str, desc: TensorDesc) -> None:
        with statuses():
            self.vm.record_staged_var_desc(graph_id, name, desc)

    def get_staged_var_descs(self, graph_id: int) -> Mapping[str, TensorDesc]:
        return self.vm.get_staged_var_descs(graph_id)

    def save_broad_cast_info(self, graph_id: int, info: Mapping[str, int | str]) -> None:
        with statuses():
            self.vm.save_broad_cast_info(graph_id, VarBroadCastInfo(**cast("Any", dict(info))))

    def set_trans_road(self, name: str, road: Road) -> None:
        with statuses():
            self.vm.set_trans_road(name, [TransNodeInfo(*node) for node in road])

    def get_trans_road(self, name: str) -> Road | None:
        road = self.vm.get_trans_road(name)
        return None if road is None else tuple((node.node_type, node.input, node.output) for node in road)

    def set_changed_graph_id(self, name: str, graph_id: int) -> None:
        with statuses():
            self.vm.set_changed_graph_id(name, graph_id)

    def get_changed_graph_id(self, name: str) -> int:
        with statuses():
            return recorded(self.vm.get_changed_graph_id(name))

    def get_changed_var_names(self, graph_id: int) -> Sequence[str]:
        return sorted(self.vm.get_changed_var_names(graph_id))

    def remove_changed_graph_id(self, name: str) -> None:
        self.vm.remove_changed_graph_id(name)

    def set_allocated_graph_id(self, name: str, graph_id: int) -> None:
        with statuses():
            self.vm.set_allocated_graph_id(name, graph_id)

    def get_allocated_graph_id(self, name: str) -> int:
        with statuses():
            return recorded(self.vm.get_allocated_graph_id(name))

    def is_var_exist(self, name: str, desc: TensorDesc | None) -> bool:
        return self.vm.is_var_exist(name, desc)

    def is_var_addr(self, addr: int) -> bool:
        return self.vm.is_var_addr(addr)

    def get_var_mem_type(self, addr: int) -> int:
        return int(self.vm.get_var_mem_type(addr))

    def check_and_set_var_loaded(self, op: Op, device: int) -> bool:
        return self.vm.check_and_set_var_loaded(var_op(op), DeviceId(device))

    def set_var_is_ready(self, name: str, desc: TensorDesc, device: int) -> None:
        self.vm.set_var_is_ready(name, desc, DeviceId(device))

    def is_var_ready(self, name: str, desc: TensorDesc, device: int) -> bool:
        return self.vm.is_var_ready(name, desc, DeviceId(device))

    def get_var_mem_size(self, mem_type: int) -> int:
        return self.vm.get_var_mem_size(mem_type_of(mem_type))

    def get_place_holder_mem_size(self, mem_type: int) -> int:
        return self.vm.get_var_const_place_holder_mem_size(mem_type_of(mem_type))

    def get_var_malloc_mem_size(self) -> int:
        return self.vm.get_var_malloc_mem_size()

    def get_var_malloc_size(self, desc: TensorDesc) -> int:
        with statuses():
            return self.vm.get_var_malloc_size(desc)

    def set_external_var(self, size_bytes: int | None) -> None:
        if size_bytes is None:
            self.vm.set_external_var(None)
        else:
            self.vm.set_external_var(DevAddr(self.pool.sources.external_region(size_bytes)), size_bytes)

    def get_var_memory_addr(self, addr: int, mem_type: int, device: int, graph_name: str | None) -> int | None:
        try:
            return self.vm.get_var_memory_addr(
                LogicAddr(addr), mem_type_of(mem_type), DeviceId(device), graph_name=graph_name or ""
            )
        except GevarError:
            return None

    def init_expandable(self, supported: bool | None, capacity_bytes: int | None) -> None:
        allocator = None
        if supported is not None:
            allocator = SimulatedExpandable(self.pool.sources, supported, capacity_bytes)
        with statuses():
            self.vm.init_expandable_memory_allocator(allocator)

    def free_var_memory(self) -> None:
        with statuses():
            self.vm.free_var_memory()

    def destroy(self) -> None:
        self.vm.destroy()

    def get_all_variables(self) -> Mapping[str, TensorDesc]:
        with statuses():
            return self.vm.get_all_variables()

    def set_batch_variables_key_name(self, batch_name: str, key_name: str) -> None:
        self.vm.set_batch_variables_key_name(batch_name, key_name)

    def has_shared_var_mem_between_batch(self) -> bool:
        return self.vm.has_shared_var_mem_between_batch()

    def to_serial(self, session_id: int) -> Any:
        with statuses():
            return self.vm.var_manager_to_serial(extension=False)

    def desc_info_to_serial(self, session_id: int) -> Any:
        with statuses():
            return self.vm.var_desc_info_to_serial()

    def from_serial(self, session_id: int, info: Any) -> None:
        """The caller asks the runtime for the current device, where the manager will take it."""
        device = self.pool.current_device
        if device < 0 and not self.is_initialised():
            raise GeError(NO_CONTEXT)
        with statuses():
            self.vm.var_manager_to_deserial(info, DeviceId(max(device, 0)))
