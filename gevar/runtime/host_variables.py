"""Variables that lie in host memory of a session, the same for all devices.

Source: GE source, runtime/v1/hybrid/executor/hybrid_model_rt_v2_executor.cc, GraphVarVisitor.
"""

import threading
from typing import Final

from gevar.errors import VariableError
from gevar.runtime.rt_var_manager import PLACEMENT_HOST, VARIABLE_PLACEMENT
from gevar.status import FAILED
from gevar.types import LogicAddr, MemType
from gevar.var import VarManager, VarOp
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock
from gevar.var.var_op import VARIABLE

_lock: Final = threading.Lock()


def is_on_host(op: VarOp) -> bool:
    """Tell whether a node is a Variable in host memory."""
    return op.op_type == VARIABLE and op.attrs.get(VARIABLE_PLACEMENT) == PLACEMENT_HOST


def assign_on_host(vm: VarManager, op: VarOp, graph_id: int) -> LogicAddr:
    """Return the address of a Variable in host memory; it gets some, with its initial value, at the first question.

    Parameters
    ----------
    vm
        The session's variables.
    op
        The node.
    graph_id
        Graph that counts as its first user where it is new.

    Raises
    ------
    VariableError
        It contradicts a variable that is there, or as `host_addr`.
    FormatError
        Its initial value does not fit.
    StateError, OutOfMemoryError
        There is no host memory.

    Thread safety: any thread; of many, one lays the initial value down.
    """
    desc = op.output_desc[0]
    data = initial_data(VarBlock(op.name, desc, LogicAddr(0), MemType.RT_MEMORY_HOST))
    with _lock:
        if not vm.is_var_exist(op.name, desc):
            logic_addr = vm.assign_var_mem(op.name, op, desc, MemType.RT_MEMORY_HOST)
            if data:
                vm.write_var_memory(logic_addr, data)
            vm.set_allocated_graph_id(op.name, graph_id)
    return host_addr(vm, op)


def host_addr(vm: VarManager, op: VarOp) -> LogicAddr:
    """Return the address of a variable that is there in host memory.

    Raises
    ------
    VariableError
        It has memory of another kind (status FAILED).
    """
    addr, mem_type = vm.get_var_addr_and_type(op.name, op.output_desc[0])
    if mem_type is not MemType.RT_MEMORY_HOST:
        reason = f"the session has it in {mem_type.name}, and this graph wants it on the host; rename one"
        raise VariableError(op.name, reason, status=FAILED)
    return addr
