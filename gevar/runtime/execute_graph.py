"""A small execution graph: nodes with kernels, in a part that runs once per load and one that runs every time.

Nodes run in the order in which they were added; an input is an output of a node before, and the init part uses nothing
of the main part. What nodes hold after a run is released in the reverse order, by who runs the graph.

Source: GE source, runtime/v2, ExecuteGraph, ValueHolder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto


class Stage(Enum):
    """Part of a graph."""

    INIT = auto()
    """Runs once per load."""
    MAIN = auto()
    """Runs every time."""


@dataclass(frozen=True, slots=True)
class ValueHolder:
    """An output of a node, which others take as their input.

    Attributes
    ----------
    stage, node
        Part of the graph, and number of the node in it.
    index
        Number of the output.
    """

    stage: Stage
    node: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class ExeNode:
    """A node.

    Attributes
    ----------
    kernel : str
        Name of its kernel, see `gevar.runtime.kernels`.
    inputs : tuple of ValueHolder
        Where its inputs come from.
    value : object
        What the kernel needs besides; a value for ``Const``.
    """

    kernel: str
    inputs: tuple[ValueHolder, ...] = ()
    value: object = None


@dataclass(slots=True)
class ExecuteGraph:
    """Both parts of a graph.

    Attributes
    ----------
    init, main : list of ExeNode
        Nodes of the part that runs once per load, and of the one that runs every time.

    Thread safety: none while nodes are added; it is only read afterwards.
    """

    init: list[ExeNode] = field(default_factory=list)
    main: list[ExeNode] = field(default_factory=list)

    def nodes(self, stage: Stage) -> list[ExeNode]:
        """Return the nodes of a part."""
        return self.init if stage is Stage.INIT else self.main

    def add(
        self, stage: Stage, kernel: str, inputs: Sequence[ValueHolder] = (), *, value: object = None
    ) -> ValueHolder:
        """Add a node, and return its output 0.

        Raises
        ------
        ValueError
            An input is no node before, or one of the main part for a node of the init part. Nothing is added.
        """
        nodes = self.nodes(stage)
        for number, holder in enumerate(inputs):
            if stage is Stage.INIT and holder.stage is Stage.MAIN:
                raise ValueError(f"input {number} of {kernel} comes from the main part: the init part runs before it")
            if not 0 <= holder.node < len(self.nodes(holder.stage)):
                raise ValueError(f"input {number} of {kernel} is node {holder.node}, which is not there yet")
        nodes.append(ExeNode(kernel, tuple(inputs), value))
        return ValueHolder(stage, len(nodes) - 1)
