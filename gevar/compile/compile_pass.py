"""Passes: something done to one graph at a time, or to one node of it at a time."""

from abc import ABC, abstractmethod
from collections import deque
from enum import IntEnum
from typing import ClassVar

from gevar.compile.pass_context import PassContext
from gevar.graph import ComputeGraph, Node
from gevar.status import FAILED


class OptimizationLevel(IntEnum):
    """How much is optimized; a pass runs from its own level on. The level says nothing about its position.

    Source: GE source, inc/framework/common/ge_types.h, OoLevel.
    """

    O0 = 0
    O1 = 1
    O2 = 2
    O3 = 3


class CompilePass(ABC):
    """Something that is done to a graph; the `PassManager` calls it for the graph, then for each of its subgraphs.

    One object is used for one compilation: what it remembers stays from the graph to its subgraphs.

    Attributes
    ----------
    name : str
        GE's name of the pass.
    level : OptimizationLevel
        Level from which on it runs.
    failure_status : int
        GE's status of a failure that has none of its own.
    """

    name: ClassVar[str]
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O0
    failure_status: ClassVar[int] = FAILED

    @abstractmethod
    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to one graph, without its subgraphs.

        Raises
        ------
        GevarError
            It cannot be done. The graph may be half changed: the `PassManager` makes it what it was.
        """


class NodePass(CompilePass):
    """A pass that looks at one node at a time, in the order of the graph; nodes may be queued to be looked at again.

    The `PassManager` puts the graph into topological order before.

    Source: GE source, compiler/graph/passes/base_pass.cc, GEPass.
    """

    def __init__(self) -> None:
        self._queue: deque[Node] = deque()
        self._queued: set[Node] = set()

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Look at every node, then at those that were queued, until none is left; errors are those of `run_node`."""
        self.start(graph)
        for node in list(graph):
            self.visit_again(node)
        while self._queue:
            node = self._queue.popleft()
            self._queued.discard(node)
            if graph.find_node(node.name) is node:
                self.run_node(node, context)

    def start(self, graph: ComputeGraph) -> None:
        """Prepare for a graph."""

    def visit_again(self, node: Node) -> None:
        """Queue a node, unless it waits already."""
        if node not in self._queued:
            self._queued.add(node)
            self._queue.append(node)

    @abstractmethod
    def run_node(self, node: Node, context: PassContext) -> None:
        """Do it to one node.

        Raises
        ------
        GevarError
            It cannot be done.
        """
