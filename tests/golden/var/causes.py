"""Where the two models have come apart, and which blocks of the page of differences that comes from."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.differences import Difference
from tests.golden.var.ge_memory import holder
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import Resource
from tests.golden.var.steps import Step
from tests.golden.var.traces import NUMBERS, READ_BY, Item

Owner = ModelManager | str
"""A manager, by GE's side of it, or the sources of memory."""
Traces = Mapping[Owner, frozenset[Item]]
Atoms = frozenset[object]


@dataclass
class Causes:
    """What differs at the moment, and for each such thing the blocks that it comes from."""

    traces: Traces = field(default_factory=dict)
    known: dict[tuple[Owner, Item], frozenset[str]] = field(default_factory=dict)

    def read(self, op: str, concerned: Iterable[Owner], atoms: Atoms | None) -> list[tuple[Owner, Item]]:
        """What differs of all that an operation reads; of a look-up only what has to do with its variable."""
        parts = READ_BY.get(op, frozenset())
        found = [(owner, item) for owner in concerned for item in self.traces.get(owner, ()) if item[0] in parts]
        return [one for one in found if atoms is None or _touches(one[1], atoms)]

    def blocks(self, read: Iterable[tuple[Owner, Item]]) -> frozenset[str]:
        """The blocks that differences come from."""
        return frozenset(name for one in read for name in self.known.get(one, ()))

    def go_on(self, traces: Traces, matched: Sequence[Difference], inherited: frozenset[str]) -> list[str]:
        """Take up what differs after a step; return the parts that no block which matched says so of.

        What is new comes from the blocks that leave it, else from what the step has read.
        """
        unstated: set[str] = set()
        for owner, items in traces.items():
            for item in items - self.traces.get(owner, frozenset()):
                names = frozenset(block.name for block in matched if _leaves(block, item[0]))
                unstated |= set() if names else {item[0]}
                self.known[owner, item] = names or inherited
        self.traces = traces
        return sorted(unstated)


def _leaves(block: Difference, part: str) -> bool:
    return part in block.leaves or (part == NUMBERS and "memory" in block.leaves)


def _touches(item: Item, atoms: Atoms) -> bool:
    """Whether a thing that differs is of the whole manager, or named as one of the atoms."""
    named = set(_flat(item[1:]))
    return not named or bool(named & atoms)


def _flat(path: Iterable[object]) -> Iterable[object]:
    for part in path:
        if isinstance(part, tuple):
            yield from _flat(part)
        else:
            yield part


def atoms_of(step: Step, ge: ModelManager, gevar: CarefulManager) -> Atoms | None:
    """Names, keys, addresses and graphs that a look-up asks for; None for an operation that is none."""
    if step.operation not in LOOK_UPS:
        return None
    found: set[object] = set()
    res = ge.resource or Resource(0)
    if "var" in step.args:
        own = gevar.resource or res
        found |= {step.name, res.key_name(step.name), own.key_name(step.name)}
        if step.maybe_tensor is not None:
            text = res.key(step.name, step.tensor)
            found |= {text} | {name for name in res.cur_descs if text.startswith(name)}
    if "addr" in step.args:
        found |= {step.addr, holder(res.template, step.addr)}
    if "graph_id" in step.args:
        found |= {step.graph_id}
    return frozenset(found)


LOOK_UPS: Set[str] = frozenset(
    {"GetVarAddr", "GetCurVarDesc", "IsVarExist", "IsVarReady", "IsVarAddr", "GetVarMemType", "GetTransRoad"}
    | {"GetChangedGraphId", "GetAllocatedGraphId", "GetChangedVarNames", "GetStagedVarDescs"}
)
"""Operations that look at one variable, address or graph and change nothing."""
