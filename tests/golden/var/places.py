"""Blocks and pieces of memory that a documented difference has put elsewhere: what a later step calls by an address.

A block that GE and gevar make in one step is one block, and so are the pieces of memory that they take in one step,
whatever their addresses and numbers. An address in the arguments of a step means the block that it has in GE; results
are compared with such places named as gevar has them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.ge_memory import holder
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import GUARD_BYTES, DeviceRecord, align
from tests.golden.var.messages import with_addresses
from tests.golden.var.sources import SPACES
from tests.golden.var.steps import Result
from tests.golden.var.values import UINT64, Tree

Blocks = Mapping[int, DeviceRecord]


@dataclass(frozen=True)
class Before:
    """The blocks of a manager, in GE and by gevar's rules, before a step."""

    ge: Blocks
    gevar: frozenset[int]

    @classmethod
    def of(cls, ge: ModelManager, gevar: CarefulManager) -> "Before":
        return cls(_blocks(ge), frozenset(gevar.tables.blocks))


def _blocks(ge: ModelManager) -> Blocks:
    return {} if ge.resource is None else dict(ge.resource.template)


@dataclass
class Places:
    """Blocks that lie elsewhere, by manager and GE's address, and numbers of pieces of memory, by source."""

    blocks: dict[ModelManager, dict[int, int]] = field(default_factory=dict)
    pieces: dict[str, dict[int, int]] = field(default_factory=dict)

    def learn(self, before: Before, ge: ModelManager, gevar: CarefulManager, ge_result: Result, result: Result) -> None:
        """Take up what both made in a step."""
        known, own = _blocks(ge), set(gevar.tables.blocks) - before.gevar
        new = [addr for addr, block in known.items() if before.ge.get(addr) is not block]
        moved = self.blocks.setdefault(ge, {})
        if gevar.resource is None or not known:
            moved.clear()
        for addr in new:
            moved.pop(addr, None)
        if len(new) == len(own) == 1 and set(new) != own:
            moved[new[0]] = own.pop()
        for space in SPACES:
            taken, mine = _taken(ge_result, space), _taken(result, space)
            if len(taken) == len(mine):
                self.pieces.setdefault(space, {}).update(zip(taken, mine, strict=True))

    def address(self, ge: ModelManager, addr: int) -> int:
        """Where gevar has the block that an address of GE's lies in; the address itself where nothing has moved."""
        moved, known = self.blocks.get(ge, {}), _blocks(ge)
        if not moved:
            return addr
        base = holder(dict(known), addr)
        if base is None:
            base = next((one for one in moved if one <= addr < one + align(known[one].desc.size) + GUARD_BYTES), None)
        return addr if base is None or base not in moved else moved[base] + addr - base

    def arguments(self, ge: ModelManager, gevar: CarefulManager, args: Tree) -> Tree:
        """Return the arguments of a step as gevar is given them."""
        found = dict(args)
        if not self.blocks.get(ge):
            return args
        base, own = ge.logic_base_now(), gevar.logic_base_now()

        def offset(given: int) -> int:
            addr = (base + given) % UINT64
            there = self.address(ge, addr)
            return given if there == addr else there - own

        if "addr" in args:
            found["addr"] = offset(args["addr"])
        if isinstance(args.get("op"), Mapping) and args["op"].get("output_offset"):
            found["op"] = {**args["op"], "output_offset": [offset(given) for given in args["op"]["output_offset"]]}
        return found

    def result(self, ge: ModelManager, gevar: CarefulManager, result: Result) -> Result:
        """Return a result of GE's with its places named as gevar has them."""
        base, own = ge.logic_base_now(), gevar.logic_base_now()

        def place(given: Any) -> Any:
            if not isinstance(given, Mapping):
                return given
            if given["space"] == "logic":
                addr = (base + given["off"]) % UINT64
                there = self.address(ge, addr)
                return given if there == addr else {**given, "off": there - own}
            return {**given, "alloc": self.number(given["space"], given["alloc"])} if "alloc" in given else given

        found = dict(result)
        if "addr" in result:
            found["addr"] = place(result["addr"])
        if "events" in result:
            found["events"] = [self.event(event, place) for event in _list(result["events"])]
        if "message" in result:
            found["message"] = with_addresses(result["message"], lambda addr: self.address(ge, addr))
        return found

    def number(self, space: str, number: Any) -> Any:
        return self.pieces.get(space, {}).get(number, number)

    def event(self, event: Tree, place: Callable[[Any], Any]) -> dict[str, Any]:
        found = dict(event)
        if "addr" in event:
            found["addr"] = place(event["addr"])
        if event.get("alloc") is not None:
            found["alloc"] = self.number(event["call"].removesuffix("_malloc"), event["alloc"])
        return found


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) else ()


def _taken(result: Result, space: str) -> list[int]:
    """Numbers of the pieces that a step took from a source."""
    call = f"{space}_malloc"
    events = [event for event in _list(result.get("events")) if event["call"] == call]
    return [event["alloc"] for event in events if event["alloc"] is not None]
