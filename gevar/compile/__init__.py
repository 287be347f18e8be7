"""What happens to variables when a graph is compiled: passes over the graph IR, and what they tell the manager.

`compile_passes` gives GE's passes around variables in GE's order; `PassManager` runs them on a graph and its subgraphs,
all or nothing, with a log of what each changed and why it refused. `VarMemAssignUtil` gives the variables of a graph
their memory, `GraphRebuildStateCtrl` says which graphs must be built again, `ModelCache` keeps compiled models on disk.
"""

from gevar.compile.compile_pass import CompilePass, NodePass, OptimizationLevel
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache import ModelCache
from gevar.compile.pass_context import PassContext
from gevar.compile.pass_log import PassLog, PassRecord, Refusal
from gevar.compile.pass_manager import PassManager
from gevar.compile.pass_order import compile_passes
from gevar.compile.var_mem_assign_util import VarMemAssignUtil

__all__ = [
    "CompilePass",
    "GraphRebuildStateCtrl",
    "ModelCache",
    "NodePass",
    "OptimizationLevel",
    "PassContext",
    "PassLog",
    "PassManager",
    "PassRecord",
    "Refusal",
    "VarMemAssignUtil",
    "compile_passes",
]
