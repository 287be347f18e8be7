"""What happens to variables when a graph is compiled: passes over the graph IR, and what they tell the manager.

`compile_passes` gives GE's passes around variables in GE's order; `PassManager` runs them on a graph and its subgraphs,
all or nothing, with a log of what each changed and why it refused.
"""

from gevar.compile.compile_pass import CompilePass, NodePass, OptimizationLevel
from gevar.compile.pass_context import PassContext
from gevar.compile.pass_log import PassLog, PassRecord, Refusal
from gevar.compile.pass_manager import PassManager
from gevar.compile.pass_order import compile_passes

__all__ = [
    "CompilePass",
    "NodePass",
    "OptimizationLevel",
    "PassContext",
    "PassLog",
    "PassManager",
    "PassRecord",
    "Refusal",
    "compile_passes",
]
