"""Passes, memory, rebuilds and cache together: two graphs that want one variable in different formats."""

from pathlib import Path

from gevar.compile import PassContext, PassManager, compile_passes
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.om import GeRootModel
from gevar.types import Format
from gevar.var import VarManager
from tests.helpers.cached_models import cache_of, graph_of, root_model
from tests.helpers.compile_graphs import compile_graph
from tests.helpers.graphs import edges
from tests.helpers.var_memory import make_manager

GRAPHS = {
    1: "w Variable = N4; c Const = N4; a Assign w c = N4; r Relu w = N4",
    2: "w Variable = N4; t TransData w = N5; r Relu t = N5; u TransData w = N5; s Relu u = N5",
}


class Program:
    """A session that builds graphs as they are needed, with a cache on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.vm: VarManager = make_manager()
        self.ctrl = GraphRebuildStateCtrl()
        self.compiled: list[int] = []
        self.models: dict[int, GeRootModel] = {}
        for graph_id, text in GRAPHS.items():
            self.ctrl.add_graph(graph_id, compile_graph(text))

    def run(self, graph_id: int) -> GeRootModel:
        """Build a graph if it has to be, as before a run of it."""
        if graph_id not in self.models or self.ctrl.is_graph_need_rebuild(graph_id):
            self.models[graph_id] = self._build(graph_id)
            self.ctrl.set_graph_build_end(graph_id)
        return self.models[graph_id]

    def _build(self, graph_id: int) -> GeRootModel:
        graph = compile_graph(GRAPHS[graph_id])
        graph.graph_id = graph_id
        with cache_of(self._folder, self.vm, graph, self.ctrl, f"g{graph_id}") as cache:
            model = cache.try_load_model_from_cache()
            if model is None:
                self.compiled.append(graph_id)
                PassManager(compile_passes({})).run(graph, PassContext(self.vm, self.ctrl))
                VarMemAssignUtil(self.vm, graph).assign_var_memory()
                model = root_model(graph, name=f"graph {graph_id}")
                cache.try_cache_model(model)
        return model


def test_a_second_start_compiles_nothing_and_gives_the_same(tmp_path: Path) -> None:
    first, second = Program(tmp_path), Program(tmp_path)
    for program in (first, second):
        for graph_id in (1, 2, 1, 2, 1):
            program.run(graph_id)
    # the first graph is built again once: its variable has another format since the second was built
    assert (first.compiled, second.compiled) == ([1, 2, 1], [])
    # all that GE keeps; staged descriptions are those of a compilation
    assert first.vm.var_manager_to_bytes(extension=False) == second.vm.var_manager_to_bytes(extension=False)
    assert first.vm.table() == second.vm.table()
    assert first.vm.get_cur_var_desc("w").format & 0xFF == Format.FORMAT_NC1HWC0
    for graph_id in GRAPHS:
        one, other = (graph_of(program.models[graph_id]) for program in (first, second))
        assert edges(one) == edges(other)
        assert {node.name: node.op_desc.output_i for node in one} == {
            node.name: node.op_desc.output_i for node in other
        }
    for program in (first, second):
        assert not any(program.ctrl.is_graph_need_rebuild(graph_id) for graph_id in GRAPHS)
        assert not program.ctrl.is_var_permit_to_change_formats("w")
        program.vm.check()


def test_graphs_in_another_order_find_nothing_that_is_wrong(tmp_path: Path) -> None:
    first, other = Program(tmp_path), Program(tmp_path)
    for graph_id in (1, 2, 1):
        first.run(graph_id)
    for graph_id in (2, 1):
        other.run(graph_id)
        [variable] = [node for node in graph_of(other.models[graph_id]) if node.name == "w"]
        assert variable.op_desc.output_desc(0).same_description(other.vm.get_cur_var_desc("w"))
        assert variable.op_desc.output_i[0] == other.vm.get_var_addr("w", variable.op_desc.output_desc(0))
