"""What passes need beside the graph: the variables of the session, the rebuild control, the log."""

from dataclasses import dataclass, field

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.pass_log import PassLog
from gevar.errors import GraphError, StateError
from gevar.status import INTERNAL_ERROR
from gevar.var import VarManager


@dataclass(slots=True)
class PassContext:
    """What passes need beside the graph.

    Attributes
    ----------
    var_manager : VarManager or None
        Variables of the session; without one, passes that ask for it fail.
    rebuild_control : GraphRebuildStateCtrl or None
        Rebuild control of the graph manager, as above.
    log : PassLog
        What the passes did.
    changed_names : list of str
        Variables that were given another format; the rebuild control is told when all passes have succeeded.
    recovered_names : set of str
        Variables that this graph takes as an earlier graph changed them.
    """

    var_manager: VarManager | None = None
    rebuild_control: GraphRebuildStateCtrl | None = None
    log: PassLog = field(default_factory=PassLog)
    changed_names: list[str] = field(default_factory=list)
    recovered_names: set[str] = field(default_factory=set)

    def require_var_manager(self, graph_name: str) -> VarManager:
        """Return the manager.

        Raises
        ------
        GraphError
            There is none (status INTERNAL_ERROR).
        StateError
            It is not initialised (status INTERNAL_ERROR).
        """
        manager = self.var_manager
        if manager is None:
            raise GraphError(graph_name, "there is no variable manager; give one", status=INTERNAL_ERROR)
        if not manager.is_var_resource_inited:
            error = StateError(f"{manager!r} is not initialised: call init before graph {graph_name!r} is compiled")
            error.status = INTERNAL_ERROR
            raise error
        return manager

    def require_rebuild_control(self, graph_name: str) -> GraphRebuildStateCtrl:
        """Return the rebuild control.

        Raises
        ------
        GraphError
            There is none (status INTERNAL_ERROR).
        """
        if self.rebuild_control is None:
            raise GraphError(graph_name, "there is no rebuild control; give one", status=INTERNAL_ERROR)
        return self.rebuild_control
