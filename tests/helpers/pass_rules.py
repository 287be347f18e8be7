"""The rules of the passes around variables over plain tables, written from their description alone.

They share nothing with `gevar.compile`: nodes are rows, edges are pairs of names, descriptions have short names. Each
rule changes the tables as the description says, or raises `Refused` where a pass fails.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from gevar.graph import ComputeGraph
from gevar.types import TensorDesc
from tests.helpers.compile_graphs import DESCS

End = tuple[str, int]
TRANS = {
    "TransData",
    "Transpose",
    "TransposeD",
    "Reshape",
    "ReFormat",
    "Cast",
    "Squeeze",
    "SqueezeV2",
    "UnsqueezeV2",
} | {
    "ExpandDims",
    "SqueezeV3",
    "UnsqueezeV3",
}
UNCHANGED = {"Reshape", "ReFormat", "SqueezeV2", "UnsqueezeV2"}
NOT_COMPUTED = {"Data", "RefData", "AippData", "AnnData", "Const", "Constant", "Variable", "VariableV2"}
VAR_LIKE = {"Variable", "VariableV2", "RefData"}


class Refused(Exception):
    """The pass fails."""


@dataclass
class Row:
    """A node."""

    type: str
    ins: list[End | None]
    in_descs: list[str]
    out_descs: list[str]
    in_names: list[str]
    out_names: list[str]
    ports: list[bool]
    ref: str | None
    original: str | None
    label: str | None
    number: int
    out_attrs: list[dict[str, str]] = field(default_factory=list)

    def facts(self) -> tuple[object, ...]:
        return (self.type, self.in_descs, self.out_descs, self.ref, self.label, self.out_attrs)


def desc_name(desc: TensorDesc) -> str:
    return next(name for name, known in DESCS.items() if known.same_description(desc))


class Tables:
    """A graph without subgraphs."""

    def __init__(self, graph: ComputeGraph) -> None:
        self.rows: dict[str, Row] = {}
        self.readers: dict[End, list[End]] = {}
        self.after: dict[str, list[str]] = {
            node.name: [after.name for after in node.out_control_nodes] for node in graph
        }
        for node in graph:
            op = node.op_desc
            self.rows[node.name] = Row(
                node.type,
                [
                    None if anchor.peer is None else (anchor.peer.node.name, anchor.peer.idx)
                    for anchor in node.in_data_anchors
                ],
                [desc_name(desc) for desc in op.input_descs],
                [desc_name(desc) for desc in op.output_descs],
                [op.input_name(index) for index in range(len(op.input_descs))],
                [op.output_name(index) for index in range(len(op.output_descs))],
                ["ref_port_index" in desc.attrs for desc in op.input_descs],
                op.attrs.get_as("ref_var_src_var_name", str),
                op.attrs.get_as("original_type", str),
                op.attrs.get_as("_stream_label", str),
                op.id,
                [{key: attr.s.decode() for key, attr in desc.attrs.items() if attr.s} for desc in op.output_descs],
            )
            for anchor in node.out_data_anchors:
                self.readers[node.name, anchor.idx] = [(peer.node.name, peer.idx) for peer in anchor.peers]

    def facts(self) -> tuple[object, ...]:
        """What is compared: nodes, data edges, control edges, each without order."""
        data = {(end, reader) for end, readers in self.readers.items() for reader in readers}
        order = {(before, after) for before, afters in self.after.items() for after in afters}
        return {name: row.facts() for name, row in self.rows.items()}, data, order

    # -- edits

    def add(self, name: str, kind: str, ins: list[str], outs: list[str], like: Row | None = None) -> Row:
        if name in self.rows:
            raise Refused(name)
        row = Row(kind, [None] * len(ins), list(ins), list(outs), [""] * len(ins), [""] * len(outs), [False] * len(ins),
                  None, None, like.label if like else None, 0, [{} for _ in outs])  # fmt: skip
        self.rows[name] = row
        self.after[name] = []
        self.readers |= {(name, index): [] for index in range(len(outs))}
        return row

    def link(self, end: End, reader: End) -> None:
        self.readers[end].append(reader)
        self.rows[reader[0]].ins[reader[1]] = end

    def unlink(self, reader: End) -> None:
        end = self.rows[reader[0]].ins[reader[1]]
        if end is not None:
            self.readers[end].remove(reader)
            self.rows[reader[0]].ins[reader[1]] = None

    def order(self, before: str, after: str) -> None:
        if after not in self.after[before]:
            self.after[before].append(after)

    def before(self, name: str) -> list[str]:
        return [one for one, afters in self.after.items() if name in afters]

    def outputs(self, name: str) -> list[End]:
        return [(name, index) for index in range(len(self.rows[name].out_descs))]

    def consumers(self, name: str) -> list[End]:
        return [reader for end in self.outputs(name) for reader in self.readers[end]]

    def isolate_and_remove(self, name: str, source: int | None) -> None:
        """Output 0 goes over to the producer of an input."""
        row = self.rows[name]
        coming = [end[0] for end in row.ins if end is not None] + self.before(name)
        going = [reader[0] for reader in self.consumers(name)] + list(self.after[name])
        made = set()
        taken = row.ins[source] if source is not None and row.out_descs else None
        if taken is not None:
            for reader in list(self.readers[name, 0]):
                self.unlink(reader)
                self.link(taken, reader)
                made.add((taken[0], reader[0]))
        self.remove(name)
        for a in coming:
            for b in going:
                if a != b and (a, b) not in made:
                    self.order(a, b)

    def remove(self, name: str) -> None:
        for index in range(len(self.rows[name].ins)):
            self.unlink((name, index))
        for reader in self.consumers(name):
            self.unlink(reader)
        for afters in self.after.values():
            if name in afters:
                afters.remove(name)
        for end in self.outputs(name):
            del self.readers[end]
        del self.rows[name], self.after[name]

    def refs(self) -> list[str]:
        return [name for name, row in self.rows.items() if row.type in VAR_LIKE and row.ref is not None]


# --- VariablePrepareOpPass --------------------------------------------------------------------------------------------


def prepare(tables: Tables) -> None:
    known: dict[str, dict[int, int]] = {}
    for row in tables.rows.values():
        found = {}
        for index, name in enumerate(row.in_names):
            if name in row.out_names:
                found[index] = row.out_names.index(name)
            elif row.ports[index]:
                found[index] = len(row.out_descs)
        if found:
            known.setdefault(row.type, found)
    if not known:
        return

    def written(reader: End) -> list[int]:
        row = tables.rows[reader[0]]
        if row.type == "FrameworkOp":
            return [0, 1] if row.original == "RefSwitch" and reader[1] == 0 else []
        found = known.get(row.type, {}).get(reader[1])
        return [] if found is None else [found]

    for variable in [name for name, row in tables.rows.items() if row.type in VAR_LIKE]:
        for reader in tables.consumers(variable):
            for output in written(reader):
                _trace(tables, variable, (reader, output), written)


def _trace(tables: Tables, variable: str, start: tuple[End, int], written: Callable[[End], list[int]]) -> None:
    stack = [start]
    while stack:
        (name, index), output = stack.pop()
        pushed = [(after, new) for after in tables.readers.get((name, output), ()) for new in written(after)]
        stack += pushed
        is_framework = tables.rows[name].type == "FrameworkOp"
        if not pushed and not is_framework and output >= len(tables.rows[name].out_descs):
            _insert_ref(tables, name, index, variable)
        elif (not pushed and not is_framework) or (pushed and tables.after[name]):
            _add_ref(tables, name, output, variable)


def _add_ref(tables: Tables, name: str, output: int, variable: str) -> None:
    readers = [tables.rows[reader] for reader, _ in tables.readers[name, output]]
    if any(row.type in VAR_LIKE and row.ref == variable for row in readers):
        return
    ref = _new_ref(tables, name, output, variable)
    _order_refs(tables, ref, name)
    tables.link((name, output), (ref, 0))


def _insert_ref(tables: Tables, name: str, index: int, variable: str) -> None:
    source = tables.rows[name].ins[index]
    assert source is not None
    bridge, desc = f"RefIdentity_{source[0]}_{source[1]}_TO_{name}_{index}", tables.rows[name].in_descs[index]
    ref = _new_ref(tables, name, index, variable)
    tables.add(bridge, "RefIdentity", [desc], [desc])
    _order_refs(tables, ref, name)
    tables.unlink((name, index))
    tables.link(source, (bridge, 0))
    tables.link((bridge, 0), (name, index))
    tables.link((bridge, 0), (ref, 0))
    tables.order(name, ref)


def _new_ref(tables: Tables, name: str, index: int, variable: str) -> str:
    row, ref = tables.rows[variable], f"{variable}_TO_{name}_REF_{index}"
    tables.add(ref, row.type, row.out_descs[:1], row.out_descs[:1], tables.rows[name]).ref = variable
    return ref


def _order_refs(tables: Tables, ref: str, name: str) -> None:
    for end in tables.outputs(name):
        for reader in list(tables.readers[end]):
            row = tables.rows[reader[0]]
            kind = row.original if row.type == "FrameworkOp" else row.type
            if kind is None:
                raise Refused(reader[0])
            if kind not in ("Merge", "RefMerge"):
                tables.order(ref, reader[0])
                continue
            identity, desc = f"Identity_{name}_TO_{reader[0]}_{reader[1]}", tables.rows[name].out_descs[end[1]]
            tables.add(identity, "Identity", [desc], [desc])
            tables.unlink(reader)
            tables.link(end, (identity, 0))
            tables.link((identity, 0), reader)
            tables.order(ref, identity)
    for after in list(tables.after[name]):
        if tables.rows[after].type == "FrameworkOp" and tables.rows[after].original is None:
            raise Refused(after)
        tables.order(ref, after)


# --- VariableOpPass ---------------------------------------------------------------------------------------------------

Road = list[tuple[str, str, str]]


def fuse(tables: Tables, permitted: Callable[[str], bool]) -> dict[str, Road]:
    """Fold; return the roads."""
    roads = {}
    rows = tables.rows
    variables = sorted(name for name, row in rows.items() if row.type in ("Variable", "VariableV2") and row.ref is None)
    for variable in variables:
        if not permitted(variable):
            continue
        refs = [name for name, row in rows.items() if row.type in ("Variable", "VariableV2") and row.ref == variable]
        road = _fuse_one(tables, variable, refs)
        if road:
            roads[variable] = road
            end = road[-1][2]
            rows[variable].out_descs[0] = end
            for ref in refs:
                rows[ref].in_descs[0] = rows[ref].out_descs[0] = end
    return roads


def _fuse_one(tables: Tables, variable: str, refs: list[str]) -> Road:
    rows, road = tables.rows, list[tuple[str, str, str]]()
    while True:
        readers = tables.consumers(variable)
        keys = {rows[name].out_descs[0] for name, _ in readers if rows[name].out_descs}
        if len(keys) != 1 or any(rows[name].type not in TRANS or index for name, index in readers):
            return road
        last = rows[readers[-1][0]]
        step = (last.type, last.in_descs[0], last.out_descs[0])
        if not _is_supported(*step):
            return road
        producers = []
        for ref in refs:
            found = [end[0] for end in rows[ref].ins if end is not None]
            if len(found) != 1:
                raise Refused(ref)
            producers.append(found[0])
        first = rows[readers[0][0]]
        for producer in producers:
            b = rows[producer]
            if not b.in_descs or (b.in_descs[0], b.out_descs[0]) != (first.out_descs[0], first.in_descs[0]):
                return road  # what was folded before stays
        if not road and DESCS[rows[variable].out_descs[0]].format != DESCS[step[1]].format:
            road.append(("ReFormat", rows[variable].out_descs[0], step[1]))
        road.append(step)
        for name, _ in readers:
            tables.isolate_and_remove(name, 0)
        for ref, producer in zip(refs, producers, strict=True):
            if producer not in rows:
                continue
            if rows[producer].ins[0] is None:
                raise Refused(producer)
            if len(tables.consumers(producer)) > 1:
                for before in tables.before(producer):
                    if before != ref:
                        tables.order(before, ref)
                source = rows[producer].ins[0]
                tables.unlink((ref, 0))
                if source is not None:
                    tables.link(source, (ref, 0))
            else:
                tables.isolate_and_remove(producer, 0)


def _is_supported(kind: str, source: str, target: str) -> bool:
    if any(dim < 0 for dim in DESCS[target].shape):
        return False
    if kind in UNCHANGED:
        return True
    formats = {DESCS[source].format & 0xFF, DESCS[target].format & 0xFF}
    types = (DESCS[source].dtype.name, DESCS[target].dtype.name)
    if kind == "TransData":
        return formats == {0, 3}
    return kind == "Cast" and types in (("DT_FLOAT", "DT_FLOAT16"), ("DT_FLOAT16", "DT_FLOAT"))


# --- UpdateVariableFormats --------------------------------------------------------------------------------------------


def recover(tables: Tables, roads: Mapping[str, Road]) -> None:
    """Take over what an earlier graph made of variables."""
    rows, numbers, ref_numbers = tables.rows, count(), count()
    for variable in [name for name, row in rows.items() if row.type == "Variable" and roads.get(name)]:
        road, tail = roads[variable], variable
        for kind, source, target in reversed(road):
            new = f"{variable}_trans_{next(numbers)}"
            tables.add(new, kind, [target], [source], rows[variable])
            for reader in list(tables.readers[tail, 0]):
                tables.unlink(reader)
                tables.link((new, 0), reader)
            tables.link((tail, 0), (new, 0))
            tables.after[new], tables.after[tail] = tables.after[tail], []
            tail = new
        rows[variable].out_descs[0] = road[-1][2]
        for ref in [name for name, row in rows.items() if row.type in VAR_LIKE and row.ref == variable]:
            head = ref
            for kind, source, target in reversed(road):
                new, producer = f"{ref}_trans_{next(ref_numbers)}", rows[head].ins[0]
                if producer is None:
                    raise Refused(ref)
                tables.add(new, kind, [source], [target], rows[ref])
                tables.unlink((head, 0))
                tables.link(producer, (new, 0))
                tables.link((new, 0), (head, 0))
                for before in tables.before(head):
                    tables.after[before].remove(head)
                    tables.order(before, new)
                head = new
            rows[ref].in_descs[0] = rows[ref].out_descs[0] = road[-1][2]


# --- the later ones ---------------------------------------------------------------------------------------------------


def drop_useless_order(tables: Tables) -> None:
    for ref in tables.refs():
        source = next((end for end in tables.rows[ref].ins if end is not None), None)
        if source is not None:
            known = {name for name, _ in tables.consumers(source[0])} | set(tables.after[source[0]])
            tables.after[ref] = [after for after in tables.after[ref] if after not in known]


def delete_bridges(tables: Tables) -> None:
    for name in [name for name, row in tables.rows.items() if row.type == "RefIdentity"]:
        tables.isolate_and_remove(name, 0)


def delete_refs(tables: Tables) -> None:
    names = {name for name, row in tables.rows.items() if row.type in VAR_LIKE}
    for ref in tables.refs():
        source, end = tables.rows[ref].ref, tables.rows[ref].ins[0] if tables.rows[ref].ins else None
        if source is None or source not in names or end is None:
            raise Refused(ref)
        if end[0] != source:
            tables.rows[end[0]].out_attrs[end[1]]["ref_var_src_var_name"] = source
        tables.isolate_and_remove(ref, 0)


def remove_assigns(tables: Tables) -> None:
    rows = tables.rows
    for name in [name for name, row in rows.items() if row.type == "Assign"]:
        variable, value = rows[name].ins[0], rows[name].ins[1]
        if variable is None or value is None:
            continue
        r, v = rows[variable[0]], rows[value[0]]
        if (
            v.type not in NOT_COMPUTED
            and r.type in ("Variable", "VariableV2")
            and not any(r.ins)
            and len(tables.readers[variable]) == len(tables.readers[value]) == 1
            and (not tables.after[variable[0]] or r.number >= v.number)
        ):
            tables.isolate_and_remove(name, 0)
            if not r.ins:
                r.ins.append(None)
                r.in_descs.append("")
            r.in_descs[0] = v.out_descs[value[1]]
            tables.link(value, (variable[0], 0))
            v.out_attrs[value[1]]["_assign_var_name"] = variable[0]


def answer_queries(tables: Tables, is_known: Callable[[str], bool]) -> dict[str, bool]:
    """Replace queries; return the answers by name."""
    rows, answers = tables.rows, dict[str, bool]()
    sets: dict[str, set[str]] = {}
    for name in list(_in_order(tables)):
        row = rows[name]
        coming = [end[0] for end in row.ins if end is not None] + tables.before(name)
        sets[name] = set().union(*(sets[one] for one in coming))
        if row.type == "Assign":
            if row.ins[0] is None:
                raise Refused(name)
            sets[name].add(row.ins[0][0])
        if row.type == "VarIsInitializedOp":
            producers = [end[0] for end in row.ins if end is not None]
            if len(producers) != 1 or rows[producers[0]].type != "Variable":
                raise Refused(name)
            answers[name] = is_known(producers[0]) or producers[0] in sets[name]
            tables.unlink((name, 0))
            row.type, row.ins, row.in_descs = "Const", [], []
            tables.order(producers[0], name)
    return answers


def _in_order(tables: Tables) -> Iterator[str]:
    done: set[str] = set()
    while len(done) < len(tables.rows):
        for name, row in tables.rows.items():
            coming = {end[0] for end in row.ins if end is not None} | set(tables.before(name))
            if name not in done and coming <= done:
                done.add(name)
                yield name
