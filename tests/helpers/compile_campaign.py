"""Programs over shared variables in sessions: their numbers must be those of plain numpy, whatever the passes fold."""

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings

from gevar import Session
from gevar.formats import transfer
from gevar.graph import ComputeGraph
from gevar.types import Format, TensorDesc
from gevar.types.format import primary_format
from tests.helpers.graphs import edges
from tests.helpers.runtime import host_runtime
from tests.helpers.training_graphs import W
from tests.helpers.variable_programs import FLAT, Program, Values, graph_of, programs, run_with_numpy

FULL_PROGRAMS = 250
SHARE = 25
"""The tests do one program in so many of the full number."""


@dataclass
class Campaign:
    """What a campaign saw: programs, and how many variables got a road in each."""

    programs: int = 0
    roads: Counter[int] = field(default_factory=Counter)


def run(count: int, seed_number: int) -> Campaign:
    """Do so many programs: with folding, without, in a session that was restored, and twice from one cache.

    Raises
    ------
    AssertionError
        A number is not that of numpy, or a second start had to compile.
    """
    seen = Campaign()

    @seed(seed_number)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def check(program: Program) -> None:
        seen.programs += 1
        seen.roads[once(program, {})] += 1
        once(program, {"ge.exec.variable_acc": "False"})
        stored_and_restored(program)
        twice_from_one_cache(program)

    check()
    return seen


def plain(value: Values, desc: TensorDesc) -> Values:
    """What an array of a form means."""
    if value.shape in (W.shape, FLAT.shape):
        return value
    return np.asarray(transfer(value, desc, W.replace(dtype=desc.dtype)))


def in_form(value: Values, desc: TensorDesc) -> Values:
    """An array in a form."""
    value = np.asarray(value, desc.dtype.to_numpy())
    if primary_format(desc.format) in (Format.FORMAT_NCHW, Format.FORMAT_ND):
        return value.reshape(desc.shape)
    return np.asarray(transfer(value, W.replace(dtype=desc.dtype), desc))


def start(name: str) -> Values:
    """A small whole number for each element."""
    return (np.arange(np.prod(W.shape)) % (7 if name == "v" else 5) - 2).astype(np.float32).reshape(W.shape)


def inputs_of(graph: ComputeGraph, number: int) -> dict[str, Values]:
    names = [node.name for node in graph if node.type == "Data"]
    return {name: np.roll(start(name), number + place) for place, name in enumerate(names)}


class Run:
    """A session that does a program and numpy that does it too, compared after every run."""

    def __init__(self, program: Program, session: Session, options: Mapping[str, str], cache: str | None) -> None:
        self.program, self.session = program, session
        self.state: dict[str, Values] = {}
        self.from_cache: list[bool] = []
        for graph_id in program.graphs:
            own = {"ge.graph_key": f"g{graph_id}", "ge.graph_compiler_cache_dir": cache} if cache else {}
            session.add_graph(graph_id, graph_of(program, graph_id), {**options, **own})

    def all(self) -> None:
        for number, graph_id in enumerate(self.program.runs):
            self._one(number, graph_id)

    def _one(self, number: int, graph_id: int) -> None:
        program, session, vm = self.program, self.session, self.session.var_manager
        compiled = session.compile(graph_id)
        self.from_cache.append(compiled.is_from_cache)
        for graph in (compiled.graph, *compiled.graph.all_subgraphs()):
            edges(graph)
        for name in program.graphs[graph_id]:
            if name not in self.state:
                self.state[name] = start(name)
                vm.write(name, in_form(start(name), vm.get_cur_var_desc(name)))
        inputs = inputs_of(graph_of(program, graph_id), number)
        found = session.run(graph_id, inputs)
        wanted = run_with_numpy(program, graph_id, self.state, inputs)
        [end] = [node for node in compiled.graph if node.type == "NetOutput"]
        assert len(found) == len(wanted)
        for place, (value, one) in enumerate(zip(found, wanted, strict=True)):
            got = plain(value, end.op_desc.input_desc(place))
            assert np.array_equal(got.astype(np.float32), one), (number, graph_id, place)
        for name, value in self.state.items():
            assert np.array_equal(self._held(name), value), (number, graph_id, name)
        vm.check()

    def _held(self, name: str) -> Values:
        """What a variable means."""
        vm = self.session.var_manager
        return plain(vm.read(name), vm.get_cur_var_desc(name)).astype(np.float32).reshape(W.shape)


def once(program: Program, options: Mapping[str, str]) -> int:
    """Do a program in a new session; return how many variables got a road."""
    with Session(host_runtime()) as session:
        run = Run(program, session, options, None)
        run.all()
        return sum(1 for name in run.state if session.var_manager.get_trans_road(name))


def stored_and_restored(program: Program) -> None:
    """Do it in a session, and again in another that takes over descriptions and roads; bytes come from elsewhere."""
    with Session(host_runtime()) as session:
        first = Run(program, session, {}, None)
        first.all()
        vm = session.var_manager
        stored = vm.var_manager_to_bytes()
        held = {name: vm.read(name) for name in first.state}
        roads = {name: vm.get_trans_road(name) for name in first.state}
    with Session(host_runtime()) as session:
        vm = session.var_manager
        vm.var_manager_to_deserial(stored)
        again = Run(program, session, {}, None)
        for name, value in held.items():
            vm.write(name, value)
        again.state = first.state
        again.all()
        assert {name: vm.get_trans_road(name) for name in roads} == roads


def twice_from_one_cache(program: Program) -> None:
    """Do it in two sessions with one cache: the second one compiles nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            with Session(host_runtime()) as session:
                run = Run(program, session, {}, folder)
                run.all()
                assert number == 0 or all(run.from_cache)
        assert not list(Path(folder).glob("*.tmp"))
