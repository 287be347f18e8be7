"""Adding, compiling and running graphs: the methods of a session that do so.

Source: GE source, api/session/session/inner_session.cc, InnerSession.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gevar.graph import ComputeGraph
    from gevar.om import GeRootModel
    from gevar.proto.ge_ir import GraphDef, ModelDef
    from gevar.session.graph_compiler import CompiledGraph
    from gevar.session.graph_executor import GraphInputs
    from gevar.session.graph_session import GraphSession
    from gevar.session.host_kernels import Array


class GraphsOfSession:
    """The graphs of a `Session`, which is one of these.

    Thread safety: any thread; calls follow each other.
    """

    def __init__(self) -> None:
        self._graphs: GraphSession | None = None

    def add_graph(
        self, graph_id: int, graph: "GraphDef | ModelDef | ComputeGraph", options: Mapping[str, str] | None = None
    ) -> None:
        """Add a graph, which is copied; nothing is compiled yet.

        Its conversions (TransData, Cast …) stand in it already, or are none. `ge.exec.deviceId` among the options of
        the session is the device of all its graphs.

        Parameters
        ----------
        graph_id
            Number of the graph, unsigned and of 32 bits.
        graph
            A message, of a model where there are subgraphs; or a graph with its subgraphs.
        options
            Options of the graph by GE's names, which count more than those of the session. `ge.graph_key` and
            `ge.graph_compiler_cache_dir` together turn the model cache on.

        Raises
        ------
        GraphError
            The id is taken (status PARAM_INVALID), or the graph contradicts itself.
        ValueError
            The id does not fit into 32 bits, or the device is no number.
        TypeError
            The graph is something else.
        AclError, StateError
            There is no such device (107001); the session is closed.

        Source: GE source, api/session/session/inner_session.cc, InnerSession::AddGraph.
        """
        self._graph_session().add(graph_id, graph, options or {})

    def compile(self, graph_id: int) -> "CompiledGraph":
        """Compile a graph, unless that was done and no other graph has changed its variables since.

        The passes around variables run, or the model is found in the cache; variables get their memory; bytes of
        variables that get another form are converted at once. Other graphs with these variables are compiled again
        before their next run.

        Returns
        -------
        CompiledGraph
            What it was compiled to: the model, the log of the passes, the variables that were converted.

        Raises
        ------
        GraphError
            The session has no such graph; a pass refuses it; or an operator cannot be computed (status UNSUPPORTED),
            named with its node.
        VariableError, ModelFileError, FormatError
            A variable has no memory or cannot be converted; the cache is damaged.
        ValueError
            The option ``ge.exec.value_bins`` cannot be read.
        AclError, OutOfMemoryError, StateError
            The device refuses memory or a copy; the session is closed, or its variables sleep.

        After failure: variables, their bytes, device memory, and which graphs are to be compiled again are as before.
        Source: GE source, api/session/session/inner_session.cc, InnerSession::CompileGraph.
        """
        return self._graph_session().compile(graph_id)

    def get_compiled_model(self, graph_id: int) -> "GeRootModel":
        """Return the model that a graph was compiled to, to keep it elsewhere; `gevar.om.write_om` writes it to a file.

        Raises
        ------
        GraphError
            The session has no such graph, or it is not compiled yet (status PARAM_INVALID). Or the option
            `ge.exec.variable_acc` is exactly `True`, so that the next graph may change its variables (status
            UNSUPPORTED).
        StateError
            The session is closed.

        Source: GE source, compiler/graph/manager/graph_manager.cc, GraphManager::GetCompiledModel.
        """
        return self._graph_session().get_compiled_model(graph_id)

    def run(self, graph_id: int, inputs: "GraphInputs" = ()) -> "list[Array]":
        """Run a graph on its device with the kernels of the host; compile and load it first where it must be.

        Variables are read and written where they lie; their values stay for the next run, of any graph.

        Parameters
        ----------
        inputs
            Arrays in the order of the attribute ``index`` of the Data nodes, or by the names of these.

        Returns
        -------
        list of numpy.ndarray
            The inputs of its NetOutput; of a graph without one, the outputs that it names. A variable among them has
            its value at the end of the run.

        Raises
        ------
        ValueError
            An input is missing, unknown, or of another type or shape. Nothing has run. Or as `compile`.
        GraphError, VariableError, ModelFileError, FormatError, LoadError
            As `compile`; or a constant cannot be loaded, or has other bytes under its name in the session.
        AclError, OutOfMemoryError, StateError
            As `compile`. Variables that were written before hold their new values.

        After failure to compile or to load: as after one of `compile`; a model that was loaded stays loaded.
        Source: GE source, api/session/session/inner_session.cc, InnerSession::RunGraph.
        """
        return self._graph_session().run(graph_id, inputs)

    def remove_graph(self, graph_id: int) -> None:
        """Remove a graph and unload it; its variables stay, and so does what became of their formats.

        Raises
        ------
        GraphError
            The session has no such graph (status PARAM_INVALID).
        AclError, StateError
            The device refuses memory back; the session is closed.
        """
        self._graph_session().remove(graph_id)

    def _graph_session(self) -> "GraphSession":
        """The graphs of the session; what they need is imported at the first."""
        from gevar.session.graph_session import GraphSession
        from gevar.session.session import Session

        assert isinstance(self, Session)
        with self.lock:
            if self._graphs is None:
                self._graphs = GraphSession(self)
            return self._graphs
