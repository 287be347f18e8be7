"""Which graphs must be built again because another graph changed a variable that they use."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from gevar.graph import ComputeGraph

RESOURCE_TYPES: Final = frozenset({"Variable", "VariableV2", "VarHandleOp"})
"""Types of nodes whose name is a resource of their graph."""
MAX_CHANGES: Final = 1
"""How often the format of a variable may change in the life of a session."""


class GraphRebuildStateCtrl:
    """Resources of graphs, and what changes of them mean for other graphs; one for a session.

    A graph is built when it never was, or when it must be built again. A graph that is added after a change is not
    marked: it meets the changed variable at its first build.

    Thread safety: any thread may use it.

    Source: GE source, compiler/graph/manager/util/graph_rebuild_state_ctrl.cc, GraphRebuildStateCtrl.

    Examples
    --------
    >>> ctrl = GraphRebuildStateCtrl()
    >>> ctrl.add_resource_name(1, "w")
    >>> ctrl.set_state_changed("w")
    >>> ctrl.is_graph_need_rebuild(1), ctrl.is_var_permit_to_change_formats("w")
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[int, set[str]] = {}
        self._rebuild: set[int] = set()
        self._changes: dict[str, int] = {}

    def add_graph(self, graph_id: int, graph: ComputeGraph | None) -> None:
        """Take the names of a graph's variables, at every level, in place of those known of it; None is passed over.

        References to variables count under their own names.

        Raises
        ------
        GraphError
            A node names a subgraph that is not there; nothing changes.
        """
        if graph is None:
            return
        names = {node.name for node in graph.all_nodes() if node.type in RESOURCE_TYPES}
        with self._lock:
            self._names[graph_id] = names

    def add_resource_name(self, graph_id: int, name: str) -> None:
        """Add the name of a resource to those of a graph, which need not be known yet."""
        with self._lock:
            self._names.setdefault(graph_id, set()).add(name)

    def remove_graph(self, graph_id: int) -> None:
        """Forget a graph; how often its variables changed is kept."""
        with self._lock:
            self._names.pop(graph_id, None)
            self._rebuild.discard(graph_id)

    def is_graph_need_rebuild(self, graph_id: int) -> bool:
        """Tell whether a resource of a graph changed since it was built."""
        with self._lock:
            return graph_id in self._rebuild

    def set_graph_build_end(self, graph_id: int) -> None:
        """Say that a graph was built, with all changes so far."""
        with self._lock:
            self._rebuild.discard(graph_id)

    def set_state_changed(self, name: str) -> None:
        """Count a change of a resource; every graph that has it must be built again, the one that is built now too."""
        with self._lock:
            self._changes[name] = self._changes.get(name, 0) + 1
            self._rebuild.update(graph_id for graph_id, names in self._names.items() if name in names)

    def is_var_permit_to_change_formats(self, name: str) -> bool:
        """Tell whether a variable may still change: it may once in the life of the controller."""
        with self._lock:
            return self._changes.get(name, 0) < MAX_CHANGES

    @property
    def change_counts(self) -> Mapping[str, int]:
        """How often each resource changed in the life of the controller, by name; a copy."""
        with self._lock:
            return dict(self._changes)

    @property
    def graphs_to_rebuild(self) -> frozenset[int]:
        """Ids of the graphs that must be built again."""
        with self._lock:
            return frozenset(self._rebuild)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take back what the calls of a block did, if the block raises; those of other threads meanwhile too."""
        with self._lock:
            names = {graph_id: set(known) for graph_id, known in self._names.items()}
            rebuild, changes = set(self._rebuild), dict(self._changes)
        try:
            yield
        except BaseException:
            with self._lock:
                self._names, self._rebuild, self._changes = names, rebuild, changes
            raise
