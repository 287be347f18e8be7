"""GE's passes around variables, in GE's order.

Between these, GE's engines choose formats and insert conversions; a graph that is given here has them already, or none.

Source: GE source, compiler/graph/manager/graph_manager.cc, compiler/graph/preprocess/graph_prepare.cc.
"""

from collections.abc import Mapping

from gevar.compile.assign_remove_pass import AssignRemovePass
from gevar.compile.compile_pass import CompilePass
from gevar.compile.ref_deletion import (
    RefIdentityDeleteOpPass,
    VariableRefDeleteOpPass,
    VariableRefUselessControlOutDeletePass,
)
from gevar.compile.ref_input_check import CheckRefInputNode
from gevar.compile.split_variable_into_subgraph_pass import SplitVariableIntoSubgraphPass
from gevar.compile.switches import variable_acc
from gevar.compile.update_variable_formats import UpdateVariableFormats
from gevar.compile.var_is_initialized_op_pass import VarIsInitializedOpPass
from gevar.compile.variable_op_pass import VariableOpPass
from gevar.compile.variable_prepare_op_pass import VariablePrepareOpPass


def compile_passes(options: Mapping[str, str] | None = None) -> list[CompilePass]:
    """Return new passes for one compilation, in order.

    Parameters
    ----------
    options
        Options by GE's names; those of `switches` decide on `VariableOpPass`.

    Raises
    ------
    GraphError
        The options exclude each other (status GE_GRAPH_OPTIONS_INVALID).
    """
    return [
        SplitVariableIntoSubgraphPass(),
        VarIsInitializedOpPass(),
        CheckRefInputNode(),
        VariablePrepareOpPass(),
        UpdateVariableFormats(),
        *([VariableOpPass()] if variable_acc(options or {}) else []),
        VariableRefUselessControlOutDeletePass(),
        AssignRemovePass(),
        RefIdentityDeleteOpPass(),
        VariableRefDeleteOpPass(),
    ]
