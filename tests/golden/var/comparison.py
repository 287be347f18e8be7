"""Hold gevar against a recorded sequence: every step is GE's answer, a documented difference, or a failure.

Two models run beside gevar: one of GE's rules, one of the careful rules that `docs/differences.md` describes. A step in
which gevar gives another answer than GE passes only if

- GE's rules come to the recorded answer, and the careful rules to gevar's answer, as a whole; and
- a block of the page matches the step and states what differs, or an earlier step, which a block matched, has left a
  trace in a part of the state that the operation depends on; `causes` keeps them.

An answer that differs in nothing but where blocks lie counts as GE's; `places` knows which block is which.

A step after which the careful rules have come to another state than GE's must be matched by a block that leaves such a
trace, or follow from a trace. A block that matches must be right: gevar's answer is the one it states, and there is a
difference, in the answer or in the state.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from google.protobuf.message import DecodeError

from tests.golden.var.careful_tables import CarefulManager, CarefulPool
from tests.golden.var.causes import LOOK_UPS, Causes, Owner, Traces, atoms_of
from tests.golden.var.differences import Difference
from tests.golden.var.fact_words import Facts, careful, model
from tests.golden.var.ge_pool import ModelManager, ModelPool
from tests.golden.var.gevar_pool import GevarPool
from tests.golden.var.messages import Numbers, aligned, bytes_fit_message, learn_numbers, renumbered
from tests.golden.var.operations import Replay
from tests.golden.var.places import Before, Places
from tests.golden.var.state_facts import facts_of
from tests.golden.var.steps import Result, Step
from tests.golden.var.traces import NUMBERS, Item, diverging, sources_differ
from tests.golden.var.values import Tree, UnknownForm, canonical, same_json


class Verdict(Enum):
    """What became of a step."""

    EQUAL = "equal to GE"
    MOVED = "equal to GE but for places that a documented difference moved"
    DOCUMENTED = "differ as documented"
    FOLLOWS = "differ as follows from a documented difference"
    WRONG = "wrong"


@dataclass
class Judgement:
    """Verdict on one step: what is wrong, blocks that matched, those it follows from, what the models do not know."""

    verdict: Verdict
    problems: list[str] = field(default_factory=list)
    matched: list[Difference] = field(default_factory=list)
    causes: frozenset[str] = frozenset()
    missed: list[str] = field(default_factory=list)


@dataclass
class Answers:
    """Answers to one step, as recorded, by gevar, by the careful rules; `knows_ge`: GE's rules give the first.

    `moved` is the first with the places of blocks as gevar has them.
    """

    recorded: Result
    gevar: Result
    careful: Result
    knows_ge: bool
    moved: Result

    @property
    def knows_gevar(self) -> bool:
        """Whether the careful rules come to gevar's answer."""
        return same_json(self.careful, self.gevar)

    def differing_keys(self) -> frozenset[str]:
        """Keys of the result in which gevar differs from what was recorded."""
        keys = self.recorded.keys() | self.gevar.keys()
        return frozenset(key for key in keys if not _same_key(self.recorded, self.gevar, key))


def _same_key(one: Result, other: Result, key: str) -> bool:
    return key in one and key in other and same_json(one[key], other[key])


SOURCES = "sources"


class Comparison:
    """Compare the steps of one sequence, in order.

    Parameters
    ----------
    recorded
        Function that returns the bytes of the message recorded at a step.
    blocks
        Blocks of the page of differences.
    """

    def __init__(self, recorded: Callable[[int], bytes], blocks: Sequence[Difference]) -> None:
        self._pools = ModelPool(), CarefulPool()
        self.numbers: Numbers = {}

        def message(step: int) -> bytes:
            return renumbered(recorded(step), self.numbers)

        self.ge, self.careful = (Replay(pool, message) for pool in self._pools)
        self.gevar = Replay(GevarPool(), message)
        self.blocks = blocks
        self.places = Places()
        self.causes = Causes()

    def judge(self, op: str, args: Tree, result: Tree) -> Judgement:
        """Do one step three times and compare.

        Raises
        ------
        UnknownForm
            The file has an operation, argument or result that the schema does not know.
        """
        try:
            return self._judge(op, args, result)
        except UnknownForm:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, DecodeError) as error:
            raise UnknownForm(f"{op} is not understood: {error!r}") from error

    def _judge(self, op: str, args: Tree, result: Tree) -> Judgement:
        ge, gevar = self._managers(op, args)
        atoms = atoms_of(Step(self.ge, args, op), ge, gevar)
        read = self.causes.read(op, self.causes.traces if op == "DestroyPool" else (ge, SOURCES), atoms)
        inherited = self.causes.blocks(read)
        blocks, given = Before.of(ge, gevar), self.places.arguments(ge, gevar, args)
        facts = facts_of(op, args, given, self.ge, self.careful)
        models = self.ge.step(op, args), self.careful.step(op, given)
        found = self._ask_gevar(op, given)
        self.places.learn(blocks, ge, gevar, *models)
        for one, other in self._pairs():
            if other.resource is None:
                self.places.blocks.pop(one, None)
        answers = self._answers(result, *models, found)
        answers.moved = self.places.result(ge, gevar, answers.recorded)
        matched = [block for block in self.blocks if block.matches(op, facts, answers.recorded)]
        before = self.causes.traces
        unstated = self.causes.go_on(before if op in LOOK_UPS else self._traces(), matched, inherited)
        problems = list(_broken(matched, answers, facts, [*before.values(), *self.causes.traces.values()]))
        if unstated and not read and answers.knows_ge and answers.knows_gevar:
            problems.append(f"no longer GE's, and no block of the page says so: {', '.join(unstated)}")
        return _verdict(answers, matched, problems, inherited)

    def _managers(self, op: str, args: Tree) -> tuple[ModelManager, CarefulManager]:
        """The manager that a step goes to, in both models."""
        return model(Step(self.ge, args, op).manager), careful(Step(self.careful, args, op).manager)

    def _ask_gevar(self, op: str, args: Tree) -> Result:
        """Do the step on gevar; an error that no caller expects is an answer, and never the recorded one."""
        try:
            return self.gevar.step(op, args)
        except UnknownForm:
            raise
        except Exception as error:
            return {"raised": repr(error)}

    def _answers(self, result: Tree, ge: Result, careful: Result, gevar: Result) -> Answers:
        """The answers without the wire form of messages, and with addresses of pools by number."""
        if not bytes_fit_message(result):
            raise UnknownForm("bytes_b64 and message of a result are not one message")
        recorded = {key: value for key, value in result.items() if key != "bytes_b64"}
        learn_numbers(recorded, ge, self.ge.pool.sources, self.numbers)
        expected, ge = aligned(recorded, ge, self.ge.pool.sources)
        _, careful = aligned(recorded, careful, self.careful.pool.sources)
        recorded, gevar = aligned(recorded, gevar, self.gevar.pool.sources)
        return Answers(recorded, gevar, careful, same_json(expected, ge), recorded)

    def _traces(self) -> Traces:
        """What differs, per manager."""
        differ = sources_differ(self.ge.pool.sources, self.careful.pool.sources)
        found: dict[Owner, frozenset[Item]] = {SOURCES: frozenset({(NUMBERS,)} if differ else ())}
        return found | {ge: diverging(ge, gevar) for ge, gevar in self._pairs()}

    def _pairs(self) -> Iterator[tuple[ModelManager, CarefulManager]]:
        """The managers in the pool, and those that are held, on both sides."""
        ge, gevar = self._pools
        for session_id in sorted(ge.managers.keys() | gevar.managers.keys()):
            yield model(ge.manager(session_id)), careful(gevar.manager(session_id))
        for label, manager in self.ge.held.items():
            yield model(manager), careful(self.careful.held[label])


def _verdict(answers: Answers, matched: list[Difference], problems: list[str], inherited: frozenset[str]) -> Judgement:
    """Judge a step, with what is wrong with the blocks that match it."""
    differing, stated = answers.differing_keys(), {key for block in matched for key in block.gevar}
    is_moved = same_json(answers.moved, answers.gevar)
    if differing and not is_moved:
        problems = [*problems, *_unexplained(answers, differing <= stated or bool(inherited))]
    known = {"GE's": answers.knows_ge, "the careful": answers.knows_gevar}
    verdict = Verdict.EQUAL
    if problems:
        verdict = Verdict.WRONG
    elif differing:
        verdict = Verdict.DOCUMENTED if differing <= stated else Verdict.MOVED if is_moved else Verdict.FOLLOWS
    missed = [name for name, is_known in known.items() if not is_known]
    return Judgement(verdict, problems, matched, inherited if verdict is Verdict.FOLLOWS else frozenset(), missed)


def _broken(
    matched: Sequence[Difference], answers: Answers, facts: Facts, traces: Sequence[frozenset[Item]]
) -> Iterator[str]:
    """Yield what is wrong with the blocks that matched."""
    differing = answers.differing_keys()
    for block in matched:
        if not block.holds(answers.gevar, facts):
            yield f"{block.name} states {canonical(dict(block.expected(facts)))}, found {_short(answers.gevar)}"
        elif block.is_open and not differing & block.gevar.keys() and not any(traces):
            yield f"{block.name} matches a step in which nothing differs"


def _unexplained(answers: Answers, stated: bool) -> Iterator[str]:
    """Yield why an answer that is not the recorded one is not right either."""
    expected, found = _short(answers.recorded), _short(answers.gevar)
    if not answers.knows_ge:
        yield f"expected {expected}, found {found}"
    elif not answers.knows_gevar:
        yield f"expected {expected}, by the careful rules {_short(answers.careful)}, found {found}"
    elif not stated:
        yield f"expected {expected}, found {found}, and no block of the page says so"


def _short(value: Mapping[str, Any]) -> str:
    text = canonical(dict(value))
    return text if len(text) <= 200 else f"{text[:197]}..."
