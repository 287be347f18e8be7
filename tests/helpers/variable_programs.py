"""Random programs over shared variables: the graphs that do them, and the same with plain numpy.

A program has some graphs; each reads and writes variables in forms that its engines would choose. The numpy side knows
nothing of forms: it works on what the variables mean, so that folding, roads and conversions are held against it.
Values are small whole numbers, which halves hold exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from gevar.graph import ComputeGraph, Node, OpDesc, replace_node
from gevar.proto.ge_ir import AttrDef
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.training_graphs import W5, WZ, W, const, data, op, outputs, variable

Values = npt.NDArray[Any]

HALF: Final = DataType.DT_FLOAT16
ND: Final = W.replace(format=Format.FORMAT_ND, origin_format=Format.FORMAT_ND)
FLAT: Final = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4, 180), Format.FORMAT_ND, (4, 180))
CHAINS: Final[Mapping[str, tuple[tuple[str, TensorDesc], ...]]] = {
    "plain": (),
    "5HD": (("TransData", W5),),
    "Z": (("TransData", WZ),),
    "half": (("Cast", W.replace(dtype=HALF)),),
    "5HD half": (("TransData", W5), ("Cast", W5.replace(dtype=HALF))),
    "half 5HD": (("Cast", W.replace(dtype=HALF)), ("TransData", W5.replace(dtype=HALF))),
    "flat": (("Reshape", FLAT),),
    "5HD and back": (("TransData", W5), ("TransData", W)),
    "5HD, then Z": (("TransData", W5), ("TransData", W), ("TransData", WZ)),
}
"""Conversions behind a variable, in order, with what each makes."""


@dataclass(frozen=True)
class Use:
    """What a graph does with one variable.

    Attributes
    ----------
    form : str
        The form that readers and writers want, a key of `CHAINS`.
    reads : tuple of str
        Forms of readers that come before the writers.
    writes : tuple of str
        Writers behind one another.
    value : str
        What is written: `const`, `data`, `computed`, or the name of a variable that comes later.
    is_shared : bool
        Whether readers and writers of the form have the conversions in common.
    is_logged : bool
        Whether something reads what is written, behind the conversions back.
    is_read_after : bool
        Whether something reads what the last writer made, in the form.
    """

    form: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    value: str
    is_shared: bool
    is_logged: bool
    is_read_after: bool


@dataclass(frozen=True)
class Program:
    """Graphs by id, each with its uses by variable, and which are run.

    Variables may be described without the meaning of their axes; graphs may do their work in a graph that they call.
    """

    graphs: Mapping[int, Mapping[str, Use]]
    runs: tuple[int, ...]
    starts_as_nd: frozenset[str] = frozenset()
    calls: frozenset[int] = frozenset()


def uses(later: list[str]) -> st.SearchStrategy[Use]:
    forms = st.sampled_from(sorted(CHAINS))
    return st.builds(
        lambda form, more, alike, **rest: Use(form, (form,) * alike + tuple(more), **rest),
        form=forms,
        more=st.sampled_from(([], [], [])) | st.lists(forms, max_size=1),
        alike=st.sampled_from((0, 1, 1, 2)),
        writes=st.lists(st.sampled_from(("Assign", "AssignAdd", "AssignSub")), max_size=2).map(tuple),
        value=st.sampled_from(("const", "data", "computed", *later)),
        is_shared=st.booleans(),
        is_logged=st.booleans(),
        is_read_after=st.booleans(),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Two or three graphs over one or two variables, run in some order."""
    names = ["v", "w"][: draw(st.integers(1, 2))]
    graphs = {}
    for graph_id in range(1, draw(st.integers(2, 3)) + 1):
        chosen = [name for name in names if draw(st.booleans())] or names[:1]
        graphs[graph_id] = {name: draw(uses([later for later in chosen if later > name])) for name in chosen}
    runs = draw(st.lists(st.sampled_from(sorted(graphs)), min_size=2, max_size=5))
    nd = draw(st.frozensets(st.sampled_from(names)))
    calls = draw(st.frozensets(st.sampled_from(sorted(graphs)), max_size=1))
    return Program(graphs, tuple(runs), nd & {name for uses in graphs.values() for name in uses}, calls)


class _Builder:
    """Makes the graph of some uses."""

    def __init__(self, program: Program, graph_id: int) -> None:
        self.graph = ComputeGraph(f"graph_{graph_id}")
        self._uses = program.graphs[graph_id]
        self._nd = program.starts_as_nd
        self._results: list[Node] = []
        self._count = 0
        self._last: Node | None = None

    def build(self) -> ComputeGraph:
        sources = {name: variable(self.graph, name, ND if name in self._nd else W) for name in self._uses}
        for name, use in self._uses.items():
            self._use(name, use, sources)
        if not self._results:
            self._read("nothing", data(self.graph, "nothing", 0, W))
        return outputs(self.graph, *self._results)

    def build_call(self) -> ComputeGraph:
        """The same, in a graph that the only node of the root calls."""
        body = self.build()
        root = ComputeGraph(f"{body.name}_root")
        given = [node for node in body if node.type == "Data" or node.name in self._uses]
        descs = [node.op_desc.output_desc(0) for node in given]
        makes = [node.op_desc.output_desc(0) for node in self._results]
        call = root.add_node(OpDesc("call", "PartitionedCall", inputs=descs, outputs=makes))
        for index, node in enumerate(given):
            outer = root.add_node(node.op_desc.copy(node.name))
            outer.out_data_anchor(0).link_to(call.in_data_anchor(index))
            inner = OpDesc(f"in_{node.name}", "Data", outputs=[descs[index]], attrs={"_parent_node_index": index})
            replace_node(node, inner)
        body.set_outputs([])
        ends = [desc.replace(attrs={"_parent_node_index": AttrDef(i=index)}) for index, desc in enumerate(makes)]
        end = body.add_node(OpDesc("end", "NetOutput", inputs=ends))
        for index, node in enumerate(self._results):
            node.out_data_anchor(0).link_to(end.in_data_anchor(index))
        root.add_subgraph(call, body)
        root.set_outputs(list(call.out_data_anchors))
        return root

    def _use(self, name: str, use: Use, sources: Mapping[str, Node]) -> None:
        variable_node = sources[name]
        chains: dict[str, Node] = {}
        readers = []
        for form in use.reads:
            if form not in chains or not use.is_shared:
                chains[form] = self._converted(variable_node, form)
            readers.append(self._read(name, chains[form]))
        if not use.writes:
            return
        if use.form in chains and use.is_shared:
            here = chains[use.form]
        else:
            here = self._converted(variable_node, use.form)
        value = self._value(name, use, sources, here)
        written = here
        for number, kind in enumerate(use.writes):
            desc = here.op_desc.output_desc(0)
            written = op(self.graph, f"{name}_{kind}_{number}", kind, [written, value], desc)
            for before in (*readers, *([self._last] if self._last is not None and number == 0 else [])):
                before.link_control_to(written)
        if use.value in sources:  # its own writers wait until it was read
            self._last = written
        if use.is_read_after:
            self._read(name, written)
        back = written
        if CHAINS[use.form]:
            back = self._undone(variable_node, use.form, written)
            desc = back.op_desc.output_desc(0)
            ref = OpDesc(f"{name}_ref", "Variable", inputs=[desc], outputs=[desc], attrs={"ref_var_src_var_name": name})
            back.out_data_anchor(0).link_to(self.graph.add_node(ref).in_data_anchor(0))
        if use.is_logged:
            self._read(name, back)

    def _value(self, name: str, use: Use, sources: Mapping[str, Node], here: Node) -> Node:
        """What is written, in the form of what it is written to."""
        if use.value in sources:
            return self._converted(sources[use.value], use.form)
        if use.value == "const":
            plain = const(self.graph, f"{name}_const", np.full(W.shape, CONST, np.float32), W)
        else:
            plain = data(self.graph, f"{name}_data", len(self.graph), W)
        if use.value == "computed":
            plain = op(self.graph, f"{name}_sum", "Add", [plain, plain], W)
        return self._converted(plain, use.form)

    def _converted(self, source: Node, form: str) -> Node:
        made = source
        for kind, desc in CHAINS[form]:
            made = self._convert(made, kind, desc)
        return made

    def _undone(self, variable_node: Node, form: str, written: Node) -> Node:
        made = written
        chain = CHAINS[form]
        for index in reversed(range(len(chain))):
            target = chain[index - 1][1] if index else W
            made = self._convert(made, chain[index][0], target)
        return made

    def _convert(self, source: Node, kind: str, desc: TensorDesc) -> Node:
        self._count += 1
        node = op(self.graph, f"c{self._count}", kind, [source], desc)
        found = source.op_desc.output_desc(0)
        if found.format == Format.FORMAT_ND and len(found.shape) == 4:
            node.op_desc.update_input_desc(0, W)  # the engine knows what the axes mean
        return node

    def _read(self, name: str, source: Node) -> Node:
        desc = source.op_desc.output_desc(0)
        reader = op(self.graph, f"r{len(self._results)}_{name}", "Add", [source, source], desc)
        self._results.append(reader)
        return reader


CONST: Final = 3


def graph_of(program: Program, graph_id: int) -> ComputeGraph:
    """Make the graph of an id."""
    builder = _Builder(program, graph_id)
    return builder.build_call() if graph_id in program.calls else builder.build()


def run_with_numpy(
    program: Program, graph_id: int, state: dict[str, Values], inputs: Mapping[str, Values]
) -> list[Values]:
    """Do with plain numpy what a graph does; change the state, return its outputs, plain."""
    results: list[Values] = []
    read = dict(state)
    for name, use in program.graphs[graph_id].items():
        results += [_shaped(state[name] * 2, form) for form in use.reads]
        if not use.writes:
            continue
        value = _value_of(name, use, read, inputs)
        for kind in use.writes:
            old = state[name]
            state[name] = value if kind == "Assign" else old + value if kind == "AssignAdd" else old - value
        if use.is_read_after:
            results.append(_shaped(state[name] * 2, use.form))
        if use.is_logged:
            results.append(state[name] * 2)
    return results or [inputs["nothing"] * 2]


def _value_of(name: str, use: Use, state: Mapping[str, Values], inputs: Mapping[str, Values]) -> Values:
    if use.value in state:
        return state[use.value]
    value = np.full(W.shape, CONST, np.float32) if use.value == "const" else inputs[f"{name}_data"]
    return value * 2 if use.value == "computed" else value


def _shaped(value: Values, form: str) -> Values:
    return value.reshape(FLAT.shape) if form == "flat" else value
