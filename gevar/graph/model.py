"""A model: a root graph with its subgraphs, and the attributes of the whole."""

from collections.abc import Iterable
from typing import Final

from gevar.errors import GraphError
from gevar.graph.attr_map import AttrMap
from gevar.graph.compute_graph import ComputeGraph
from gevar.graph.graph_message import read_graph
from gevar.graph.op_wire import WholeOp
from gevar.graph.sharing import Sharing, Take, rest_of, take_any
from gevar.proto import ge_ir

_OWNED: Final = frozenset({"name", "version", "custom_version", "graph", "attr"})


class Model:
    """A model, as the message `ModelDef` holds it.

    Attributes
    ----------
    name : str
        Name of the model.
    version : int
        Version of the form.
    platform_version : str
        Version of the software that made it (`custom_version` in the message).
    graph : ComputeGraph or None
        The root graph, which has the subgraphs; None in a model without graphs.
    attrs : AttrMap
        Attributes of the model.

    Thread safety: as `ComputeGraph`.

    Source: GE source, graph_metadef/graph/normal_graph/model.cc, Model.

    Examples
    --------
    >>> Model("m", ComputeGraph("main")).to_proto().graph[0].name
    'main'
    """

    def __init__(
        self, name: str, graph: ComputeGraph | None = None, *, version: int = 0, platform_version: str = ""
    ) -> None:
        self.name = name
        self.graph = graph
        self.version = version
        self.platform_version = platform_version
        self.attrs = AttrMap()
        self._rest = b""

    @classmethod
    def from_proto(cls, message: ge_ir.ModelDef) -> "Model":
        """Return the model that a message holds; the message may go afterwards.

        Raises
        ------
        GraphError
            A graph is wrong, as `ComputeGraph.from_proto`; two graphs have one name.
        """
        return cls.from_parts(message, ((graph, ((op, {}) for op in graph.op)) for graph in message.graph))

    @classmethod
    def from_parts(
        cls,
        message: ge_ir.ModelDef,
        parts: Iterable[tuple[ge_ir.GraphDef, Iterable[WholeOp]]],
        take: Take = take_any,
    ) -> "Model":
        """Return the model that a message without its graphs and the graphs without their operators say.

        Operators that come one by one need not lie in memory together. `take` is told of all memory before it is taken,
        and may refuse. Errors are its and those of `from_proto`.
        """
        sharing = Sharing(take)
        graphs = [read_graph(graph, ops, sharing) for graph, ops in parts]
        model = cls(message.name, version=message.version, platform_version=message.custom_version)
        model.attrs = AttrMap.from_proto(message.attr, sharing)
        model._rest = rest_of(message, _OWNED)
        if graphs:
            model.graph = graphs[0]
            model.graph._register(tuple(graphs[1:]))
            for graph in graphs:
                _give_owners(graph)
        return model

    def to_proto(self) -> ge_ir.ModelDef:
        """Return the message; of an unchanged model it equals the one that was read.

        Raises
        ------
        GraphError
            The graph is a subgraph of another.
        """
        message = ge_ir.ModelDef()
        message.MergeFromString(self._rest)
        message.name = self.name
        message.version = self.version
        message.custom_version = self.platform_version
        self.attrs.write_to(message.attr)
        if self.graph is not None:
            if self.graph.root is not self.graph:
                raise GraphError(self.graph.name, f"is a subgraph of {self.graph.root.name!r}, a model needs the root")
            for graph in (self.graph, *self.graph.all_subgraphs()):
                graph.write_to(message.graph.add())
        return message

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.graph!r}>"


def _give_owners(graph: ComputeGraph) -> None:
    """Make nodes the parents of the subgraphs that they name; of several, the first.

    A sub-model of a dynamic file may name graphs that only the root has: such names stay names.
    """
    for node in graph:
        for name in node.op_desc.subgraph_instance_names:
            subgraph = graph.root._subgraphs.get(name)
            if subgraph is not None and subgraph._parent_node is None:
                subgraph._parent_node = node
