"""Any order of edits of a graph gives what a plain dict gives; refused edits change nothing."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gevar.errors import GraphError
from gevar.graph import (
    ComputeGraph,
    InDataAnchor,
    Node,
    OutDataAnchor,
    insert_node_before,
    isolate_node,
    move_output_edges,
    replace_node,
)
from tests.helpers.graphs import edges, op

PLACES = st.integers(0, 1 << 16)
PORTS = st.integers(0, 3)


class Edits(RuleBasedStateMachine):
    """The model: counts of inputs and outputs by name, data edges by consumer, control edges as pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = ComputeGraph("main")
        self.counts: dict[str, tuple[int, int]] = {}
        self.data: dict[tuple[str, int], tuple[str, int]] = {}
        self.controls: set[tuple[str, str]] = set()
        self.made = 0

    def pick(self, place: int) -> str | None:
        return list(self.counts)[place % len(self.counts)] if self.counts else None

    def new_name(self) -> str:
        self.made += 1
        return f"n{self.made}"

    def node(self, name: str) -> Node:
        return self.graph[name]

    @rule(inputs=PORTS, outputs=PORTS)
    def add(self, inputs: int, outputs: int) -> None:
        name = self.new_name()
        self.graph.add_node(op(name, inputs, outputs))
        self.counts[name] = inputs, outputs

    @rule(from_place=PLACES, output=PORTS, to_place=PLACES, index=PORTS)
    def link(self, from_place: int, output: int, to_place: int, index: int) -> None:
        before, after = self.pick(from_place), self.pick(to_place)
        if before is None or after is None:
            return
        allowed = output < self.counts[before][1] and index < self.counts[after][0] and (after, index) not in self.data
        try:
            OutDataAnchor(self.node(before), output).link_to(InDataAnchor(self.node(after), index))
        except GraphError:
            assert not allowed
        else:
            assert allowed
            self.data[after, index] = before, output

    @rule(place=PLACES)
    def unlink(self, place: int) -> None:
        name = self.pick(place)
        if name is not None and self.counts[name][0]:
            index = place % self.counts[name][0]
            self.node(name).in_data_anchor(index).unlink()
            self.data.pop((name, index), None)

    @rule(from_place=PLACES, to_place=PLACES)
    def link_control(self, from_place: int, to_place: int) -> None:
        before, after = self.pick(from_place), self.pick(to_place)
        if before is not None and after is not None:
            self.node(before).link_control_to(self.node(after))
            self.controls.add((before, after))

    @rule(place=PLACES)
    def remove(self, place: int) -> None:
        name = self.pick(place)
        if name is not None:
            self.graph.remove_node(self.node(name))
            self.forget_edges(name)
            del self.counts[name]

    @rule(place=PLACES)
    def rename(self, place: int) -> None:
        name = self.pick(place)
        if name is not None:
            new = self.new_name()
            self.graph.rename_node(self.node(name), new)
            self.put_in_place(name, new)

    @rule(place=PLACES, inputs=PORTS, outputs=PORTS)
    def replace(self, place: int, inputs: int, outputs: int) -> None:
        name = self.pick(place)
        if name is None:
            return
        fits = all(index < inputs for target, index in self.data if target == name) and all(
            output < outputs for source, output in self.data.values() if source == name
        )
        new = self.new_name()
        try:
            replace_node(self.node(name), op(new, inputs, outputs))
        except GraphError:
            assert not fits
        else:
            assert fits
            self.counts[name] = inputs, outputs
            self.put_in_place(name, new)
            self.counts[new] = self.counts.pop(new)  # it comes last

    @rule(place=PLACES)
    def insert(self, place: int) -> None:
        if not self.data:
            return
        target, index = list(self.data)[place % len(self.data)]
        name = self.new_name()
        insert_node_before(self.node(target).in_data_anchor(index), op(name, 2, 2), input_index=1, output_index=1)
        self.counts[name] = 2, 2
        self.data[name, 1] = self.data[target, index]
        self.data[target, index] = name, 1

    @rule(place=PLACES, io_map=st.lists(st.integers(-1, 3), max_size=3))
    def isolate(self, place: int, io_map: list[int]) -> None:
        name = self.pick(place)
        if name is None:
            return
        inputs, outputs = self.counts[name]
        fits = len(io_map) <= outputs and all(index < inputs for index in io_map)
        try:
            isolate_node(self.node(name), io_map)
        except GraphError:
            assert not fits
            return
        assert fits
        self.isolate_in_model(name, io_map)

    def isolate_in_model(self, name: str, io_map: list[int]) -> None:
        before = {source for (target, _), (source, _) in self.data.items() if target == name}
        before |= {source for source, target in self.controls if target == name}
        after = {target for (target, _), (source, _) in self.data.items() if source == name}
        after |= {target for source, target in self.controls if source == name}
        linked = set()
        for end, (source, output) in list(self.data.items()):
            taken = io_map[output] if source == name and output < len(io_map) else -1
            producer = self.data.get((name, taken))
            if producer is not None and producer[0] != name and end[0] != name:
                self.data[end] = producer
                linked.add((producer[0], end[0]))
        self.forget_edges(name)
        pairs = {(a, b) for a in before - {name} for b in after - {name} if a != b}
        self.controls |= pairs - linked

    @rule(from_place=PLACES, to_place=PLACES)
    def move_outputs(self, from_place: int, to_place: int) -> None:
        src, dst = self.pick(from_place), self.pick(to_place)
        if src is None or dst is None:
            return
        try:
            move_output_edges(self.node(src), self.node(dst))
        except GraphError:
            assert self.counts[src][1] != self.counts[dst][1]
            return
        assert self.counts[src][1] == self.counts[dst][1]
        self.data = {end: (dst if name == src else name, output) for end, (name, output) in self.data.items()}
        moved = {(dst if before == src else before, after) for before, after in self.controls}
        self.controls = {pair for pair in moved if pair != (dst, dst) or pair in self.controls}

    @rule()
    def write_and_read(self) -> None:
        message = self.graph.to_proto()
        self.graph = ComputeGraph.from_proto(message)
        assert self.graph.to_proto() == message

    @rule()
    def sort(self) -> None:
        try:
            self.graph.topological_sorting()
        except GraphError:
            assert self.has_cycle()
            return
        assert not self.has_cycle()
        self.counts = {node.name: self.counts[node.name] for node in self.graph}

    def has_cycle(self) -> bool:
        left = set(self.counts)
        pairs = {(source, target) for (target, _), (source, _) in self.data.items()} | self.controls
        while True:
            free = left - {target for source, target in pairs if source in left}
            if not free:
                return bool(left)
            left -= free

    def forget_edges(self, name: str) -> None:
        self.data = {end: source for end, source in self.data.items() if name not in (end[0], source[0])}
        self.controls = {pair for pair in self.controls if name not in pair}

    def put_in_place(self, old: str, new: str) -> None:
        def named(name: str) -> str:
            return new if name == old else name

        self.counts = {named(name): counts for name, counts in self.counts.items()}
        self.data = {(named(a), i): (named(b), o) for (a, i), (b, o) in self.data.items()}
        self.controls = {(named(a), named(b)) for a, b in self.controls}

    @invariant()
    def the_graph_is_the_model(self) -> None:
        expected = {f"{source}:{output} -> {target}:{index}" for (target, index), (source, output) in self.data.items()}
        expected |= {f"{before} => {after}" for before, after in self.controls}
        assert edges(self.graph) == expected
        assert [node.name for node in self.graph] == list(self.counts)
        counts = [(len(node.in_data_anchors), len(node.out_data_anchors)) for node in self.graph]
        assert counts == list(self.counts.values())


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
