"""Graphs of a session: added, compiled when they must be, loaded, run.

Source: GE source, api/session/session/inner_session.cc, InnerSession; compiler/graph/manager/graph_manager.cc.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gevar.compile import GraphRebuildStateCtrl
from gevar.compile.switches import refuse_reading_back
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, Model
from gevar.om import GeRootModel
from gevar.proto import ge_ir
from gevar.session.caller_device import caller_device
from gevar.session.graph_calls import DATA
from gevar.session.graph_compiler import CompiledGraph, compile_graph
from gevar.session.graph_executor import GraphExecutor, GraphInputs
from gevar.session.host_kernels import Array
from gevar.session.session import Session
from gevar.status import PARAM_INVALID
from gevar.types import DeviceId
from gevar.var.graph_tables import checked_graph_id

EXEC_DEVICE_ID: Final = "ge.exec.deviceId"
"""Option of a session: the device of its graphs."""


@dataclass(slots=True)
class _Graph:
    """A graph as it was added, and what became of it."""

    message: ge_ir.ModelDef
    inputs: tuple[str, ...]
    options: Mapping[str, str]
    compiled: CompiledGraph | None = None
    executor: GraphExecutor | None = None


class GraphSession:
    """The graphs of one session; `Session` has its methods.

    Parameters
    ----------
    session
        The session.

    Attributes
    ----------
    session : Session
        As given.
    rebuild_ctrl : GraphRebuildStateCtrl
        Which graphs must be built again.
    device_id : DeviceId
        Device of the graphs.

    Raises
    ------
    ValueError
        The option ``ge.exec.deviceId`` of the session is no number.

    Thread safety: any thread; calls follow each other.
    """

    def __init__(self, session: Session) -> None:
        text = session.options.get(EXEC_DEVICE_ID, "0")
        if not text.isdecimal():
            raise ValueError(f"option {EXEC_DEVICE_ID} is {text!r}; give the number of a device")
        self.session = session
        self.rebuild_ctrl = GraphRebuildStateCtrl()
        self.device_id = DeviceId(int(text))
        self._graphs: dict[int, _Graph] = {}

    def add(
        self, graph_id: int, graph: ge_ir.GraphDef | ge_ir.ModelDef | ComputeGraph, options: Mapping[str, str]
    ) -> None:
        """Do `Session.add_graph`."""
        checked_graph_id(graph_id)
        session = self.session
        with session.lock, caller_device(session.runtime):
            session.check_open()
            if graph_id in self._graphs:
                raise GraphError(None, f"id {graph_id} is taken; remove that graph first", status=PARAM_INVALID)
            message = _message(graph)
            own = _graph_of(message)
            added = _Graph(message, _input_names(own), dict(options))
            self._init_variables()
            self.rebuild_ctrl.add_graph(graph_id, own)
            self._graphs[graph_id] = added

    def compile(self, graph_id: int) -> CompiledGraph:
        """Do `Session.compile`."""
        session = self.session
        with session.lock, caller_device(session.runtime):
            session.check_open()
            added = self._find(graph_id)
            if added.compiled is None or self.rebuild_ctrl.is_graph_need_rebuild(graph_id):
                graph = _graph_of(added.message)
                graph.graph_id, graph.session_id = graph_id, session.id
                options = {**session.options, **added.options}
                added.compiled = compile_graph(graph, session.var_manager, self.rebuild_ctrl, options, self.device_id)
            return added.compiled

    def get_compiled_model(self, graph_id: int) -> GeRootModel:
        """Do `Session.get_compiled_model`."""
        with self.session.lock:
            self.session.check_open()
            added = self._find(graph_id)
            refuse_reading_back({**self.session.options, **added.options})
            if added.compiled is None:
                raise GraphError(None, f"id {graph_id} is not compiled; compile it first", status=PARAM_INVALID)
            return added.compiled.model

    def run(self, graph_id: int, inputs: GraphInputs) -> list[Array]:
        """Do `Session.run`."""
        session = self.session
        with session.lock, caller_device(session.runtime):
            compiled, added = self.compile(graph_id), self._graphs[graph_id]
            if added.executor is None or added.executor.compiled is not compiled:
                executor = GraphExecutor(session, compiled, added.inputs, self.device_id)
                old, added.executor = added.executor, executor
                if old is not None:
                    old.close()
            return added.executor.run(inputs)

    def remove(self, graph_id: int) -> None:
        """Do `Session.remove_graph`."""
        session = self.session
        with session.lock, caller_device(session.runtime):
            session.check_open()
            added = self._find(graph_id)
            del self._graphs[graph_id]
            self.rebuild_ctrl.remove_graph(graph_id)
            if added.executor is not None:
                added.executor.close()

    def _find(self, graph_id: int) -> _Graph:
        added = self._graphs.get(graph_id)
        if added is None:
            reason = f"id {graph_id} is not in {self.session!r}, which has {sorted(self._graphs)}; add it first"
            raise GraphError(None, reason, status=PARAM_INVALID)
        return added

    def _init_variables(self) -> None:
        """Make the session's variables ready for graphs; what an earlier model settled stays."""
        session = self.session
        config, external = session.var_manager.memory_config, session.rt_session
        session.rt_var_manager.init(
            self.device_id,
            config.var_mem_logic_base,
            session.var_manager.get_var_mem_max_size(),
            external.external_var_addr,
            external.external_var_size,
        )
        session.init_var_memory(self.device_id)


def _message(graph: ge_ir.GraphDef | ge_ir.ModelDef | ComputeGraph) -> ge_ir.ModelDef:
    """A copy of a graph, with its subgraphs."""
    if isinstance(graph, ComputeGraph):
        return Model(graph.name, graph).to_proto()
    if isinstance(graph, ge_ir.ModelDef):
        return ge_ir.ModelDef(name=graph.name, graph=graph.graph)
    if not isinstance(graph, ge_ir.GraphDef):
        raise TypeError(f"a graph is a GraphDef, ModelDef or ComputeGraph, not {type(graph).__name__}")
    return ge_ir.ModelDef(name=graph.name, graph=[graph])


def _graph_of(message: ge_ir.ModelDef) -> ComputeGraph:
    graph = Model.from_proto(message).graph
    if graph is None:
        raise GraphError(message.name, "the model has no graph")
    return graph


def _input_names(graph: ComputeGraph) -> tuple[str, ...]:
    """Names of Data nodes by the number that they carry, else in the order of the graph."""
    nodes = [node for node in graph if node.type == DATA]
    return tuple(node.name for node in sorted(nodes, key=lambda node: node.op_desc.attrs.get_as("index", int) or 0))
