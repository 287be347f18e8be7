"""Running passes on a graph: in order, with its subgraphs, all or nothing."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from gevar.compile.compile_pass import CompilePass, NodePass, OptimizationLevel
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError, VariableError
from gevar.graph import ComputeGraph
from gevar.graph.graph_snapshot import taken_back_on_failure
from gevar.status import FAILED

AfterPass = Callable[[CompilePass, ComputeGraph], None]
"""Called after each pass with the graph that all are run on."""


class PassManager:
    """Runs passes on a graph.

    Each pass is run on the graph, then on every subgraph at all levels, a graph before those that its nodes run.

    Parameters
    ----------
    passes
        The passes in order; `compile_passes` gives GE's. Those above the level are left out.
    level
        Optimization level.

    Source: GE source, compiler/graph/passes/pass_manager.cc, PassManager::Run.
    Differs: row all-or-nothing of docs/differences.md.

    Examples
    --------
    >>> from gevar.compile.ref_deletion import RefIdentityDeleteOpPass
    >>> from gevar.graph import ComputeGraph, OpDesc
    >>> graph = ComputeGraph("main")
    >>> _ = graph.add_node(OpDesc("bridge", "RefIdentity"))
    >>> context = PassContext()
    >>> PassManager([RefIdentityDeleteOpPass()]).run(graph, context)
    >>> len(graph), context.log.records[0].changes
    (0, ["'bridge' removed"])
    """

    def __init__(self, passes: Iterable[CompilePass], level: OptimizationLevel = OptimizationLevel.O3) -> None:
        self.passes = tuple(one for one in passes if one.level <= level)

    def run(self, graph: ComputeGraph, context: PassContext, *, after_pass: AfterPass | None = None) -> None:
        """Run the passes on a graph and its subgraphs, which are put into topological order before and on the way.

        Parameters
        ----------
        graph
            The graph; a subgraph is allowed.
        context
            Manager, rebuild control and log.
        after_pass
            Called after each pass; what it raises counts as a failure.

        Raises
        ------
        GraphError
            The graph is wrong (a cycle, a subgraph that is not there), or a pass failed; the message names the pass
            and the node.
        StateError
            A pass needs the manager, which is not initialised.

        After failure: graph, manager and rebuild control are as they were; the log says how far the passes came.
        Thread safety: the manager's writers wait meanwhile; no other thread may use the graph.
        """
        manager = context.var_manager
        with ExitStack() as stack:
            stack.enter_context(taken_back_on_failure(graph.root))
            if manager is not None and manager.is_var_resource_inited:
                stack.enter_context(manager.transaction())
            context.changed_names.clear()
            context.recovered_names.clear()
            for number, one in enumerate(self.passes):
                if number == 0 or isinstance(one, NodePass):
                    _sort(graph.root)
                self._run_pass(one, graph, context)
                if after_pass is not None:
                    after_pass(one, graph)
        if context.rebuild_control is not None:
            for name in context.changed_names:
                context.rebuild_control.set_state_changed(name)

    @staticmethod
    def _run_pass(one: CompilePass, graph: ComputeGraph, context: PassContext) -> None:
        for part in _with_subgraphs(graph):
            with context.log.run_of(one.name, part.name):
                try:
                    one.run(part, context)
                except GraphError as error:
                    status = one.failure_status if error.status is None else error.status
                    raise GraphError(
                        error.graph, f"{one.name}: {error.reason}", node=error.node, status=status
                    ) from error
                except VariableError as error:
                    reason = f"{one.name}: {error}"
                    raise GraphError(part.name, reason, node=error.var_key, status=one.failure_status) from error


def _sort(root: ComputeGraph) -> None:
    try:
        root.topological_sorting()
    except GraphError as error:
        raise GraphError(error.graph, error.reason, node=error.node, status=FAILED) from error


def _with_subgraphs(graph: ComputeGraph) -> Iterator[ComputeGraph]:
    """Yield a graph, then its subgraphs, each after the one that runs it; those that no node runs come last."""
    found = {graph: None}
    queue = [graph]
    for part in queue:
        for node in part:
            new = (
                [below for below in node.subgraphs if below not in found]
                if node.op_desc.subgraph_instance_names
                else []
            )
            found.update(dict.fromkeys(new))
            queue += new
    yield from queue
    yield from (below for below in graph.all_subgraphs() if below not in found)
