"""The page of differences: its form, the words of its blocks, and blocks that promise something wrong."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.golden.var.comparison import Verdict
from tests.golden.var.differences import PAGE, Difference, MalformedPage, differences, sections
from tests.golden.var.edge_cases import SMALL
from tests.golden.var.fact_words import MEANING
from tests.golden.var.hand_made import FAILS, Made, assign, begun, found, step, tensor
from tests.golden.var.traces import TRACES
from tests.golden.var.verdicts import judged
from tests.helpers.shared import REPOSITORY

TEXT = PAGE.read_text(encoding="utf-8")


def table(heading: str) -> dict[str, str]:
    """Rows of the table under a heading: first cell, without its marks, and second."""
    rows = TEXT.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [re.fullmatch(r"\| `(\w+)` \| (.+) \|", row) for row in rows]
    return {cell[1]: cell[2] for cell in cells if cell is not None}


def blocks_of(tmp_path: Path, text: str, edge: int = 4) -> tuple[Difference, ...]:
    """The blocks of a page with one block."""
    page = tmp_path / f"page {len(list(tmp_path.iterdir()))}.md"  # pages are read once
    page.write_text(f"# Page\n\n## Edge {edge}: made up\n\n```toml\n{text}\n```\n", encoding="utf-8")
    return differences(page)


def test_sections_are_in_order_and_whole() -> None:
    edges = [section.edge for section in sections()]
    assert edges == sorted(set(edges))
    for section in sections():
        for part in ("- GE: ", "- gevar: ", "- Why: ", "- Test: "):
            assert part in section.text, f"edge {section.edge} has no {part.strip()}"
        assert section.differences, f"edge {section.edge} has neither a block nor a reason why it is unseen"


def test_every_test_that_is_named_is_there() -> None:
    for section in sections():
        assert section.tests, f"edge {section.edge} names no test"
        for named in section.tests:
            path, name = named.split("::")
            assert re.search(rf"^def {name}\(", (REPOSITORY / path).read_text(encoding="utf-8"), re.MULTILINE), named


def test_words_of_the_page_are_those_of_the_runner() -> None:
    assert table("fact | what it says") == MEANING
    assert table("part | what it is") == TRACES


def test_every_word_is_used() -> None:
    used = {fact for block in differences() for condition in block.when for fact in condition.facts}
    used |= {value[1:] for block in differences() for value in block.gevar.values() if str(value).startswith("$")}
    assert used == MEANING.keys()
    assert {trace for block in differences() for trace in block.leaves} == TRACES.keys()


LOOK = 'operations = ["GetVarAddr"]'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('operations = ["GetVar"]\nleaves = ["space"]', "GetVar is no operation"),
        (f'{LOOK}\nwhen = ["size > 1"]\nleaves = ["space"]', "size is no fact of GetVarAddr"),
        (
            f'{LOOK}\nwhen = ["key_collides", "not key_collides"]\nleaves = ["space"]',
            "its conditions exclude each other",
        ),
        (f"{LOOK}\nwhen = [\"op_type == 'a'\", \"op_type == 'b'\"]", "its conditions exclude each other"),
        (f'{LOOK}\nwhen = ["key collides"]', "is neither a fact, a fact with not, nor a comparison"),
        (f'{LOOK}\nleaves = ["spaces"]', "spaces is no part of the state"),
        (f"{LOOK}\ngevar = {{ state = 1 }}", "state is no part of a result"),
        (f'{LOOK}\ngevar = {{ status = "BROKEN" }}', "BROKEN is no status"),
        (f'{LOOK}\nge = {{ status = "FAILED" }}\ngevar = {{ status = "FAILED" }}', "gevar's answer is GE's"),
        (f"{LOOK}", "gevar's answer is GE's, and nothing is left behind"),
        (f'{LOOK}\ngevar = {{ status = "$pages" }}', "pages is no fact of GetVarAddr"),
        (f"{LOOK}\nreason = 1", "unknown keys: reason"),
        ("operations = [", "edge 4, block 1"),
        ('leaves = ["space"]', "it has neither operations nor a reason why no sequence shows it"),
        (f'{LOOK}\nunseen = "never"', "it is unseen, and yet says what differs"),
    ],
)
def test_a_block_that_can_never_be_right_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(MalformedPage, match=re.escape(words)):
        blocks_of(tmp_path, text)


def test_an_edge_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedPage, match="there is no edge 45"):
        blocks_of(tmp_path, f"{LOOK}\ngevar = {{ status = 3 }}", edge=45)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # it states another answer than gevar's, where both are equal
        (f"{LOOK}\ngevar = {{ memory_type = 3 }}", 'edge 4.1 states {"memory_type": 3}'),
        (f'{LOOK}\nge = {{ status = "SUCCESS" }}\ngevar = {{ status = "FAILED" }}', "edge 4.1 states"),
        (f'{LOOK}\ngevar = {{ addr = "null" }}', "edge 4.1 states"),
        (f'{LOOK}\ngevar = {{ status = "absent" }}', "edge 4.1 states"),
        (f'{LOOK}\ngevar = {{ status = "$gevar_key_known" }}', "edge 4.1 states"),
        # it says that there is a difference where there is none
        (f'{LOOK}\ngevar = {{ status = "*" }}', "edge 4.1 matches a step in which nothing differs"),
        (f'{LOOK}\nleaves = ["addresses"]', "edge 4.1 matches a step in which nothing differs"),
    ],
)
def test_a_block_whose_edge_a_step_does_not_touch_fails(tmp_path: Path, text: str, words: str) -> None:
    steps = begun(assign("v", SMALL), found("v", SMALL, 0))
    assert judged(steps, ())[-1].verdict is Verdict.EQUAL
    finding = judged(steps, blocks_of(tmp_path, text))[-1]
    assert finding.verdict is Verdict.WRONG
    assert any(words in problem for problem in finding.problems), finding.problems


def test_a_block_that_asks_for_another_step_does_not_count(tmp_path: Path) -> None:
    steps = begun(assign("v", SMALL), found("v", SMALL, 0))
    for condition in ("key_collides", "not gevar_key_known"):
        blocks = blocks_of(tmp_path, f'{LOOK}\nwhen = ["{condition}"]\ngevar = {{ memory_type = 3 }}')
        assert judged(steps, blocks)[-1].verdict is Verdict.EQUAL


def test_a_block_speaks_of_managers_that_are_initialised(tmp_path: Path) -> None:
    steps = [found("v", SMALL, None)]
    plain = blocks_of(tmp_path, f"{LOOK}\ngevar = {{ status = 3 }}")
    assert judged(steps, plain)[-1].verdict is Verdict.EQUAL
    asking = blocks_of(tmp_path, f'{LOOK}\nwhen = ["not initialised"]\ngevar = {{ status = 3 }}')
    assert judged(steps, asking)[-1].verdict is Verdict.WRONG


GROWN_DESC = tensor(600)
GROWN = begun(assign("v", SMALL), assign("v", GROWN_DESC, FAILS))
GROWING = 'operations = ["AssignVarMem"]\nwhen = ["size > current_size", "key_known"]\ngevar = { status = "SUCCESS" }'


def test_a_difference_in_the_state_must_be_stated_too(tmp_path: Path) -> None:
    """The answer is documented, but not that keys and addresses are others from then on."""
    for leaves, left in (
        ('["addresses", "descriptions"]', ""),
        ('["addresses"]', "descriptions"),
        ("[]", "addresses, descriptions"),
    ):
        finding = judged(GROWN, blocks_of(tmp_path, f"{GROWING}\nleaves = {leaves}", edge=8))[-1]
        text = f"no longer GE's, and no block of the page says so: {left}"
        assert finding.problems == ([text] if left else [])


def test_a_later_step_must_depend_on_what_was_left(tmp_path: Path) -> None:
    """A look-up differs after `GROWN`; without a trace in addresses nothing allows that."""
    look = found("v", GROWN_DESC, 0)
    allowed = judged([*GROWN, look], blocks_of(tmp_path, f'{GROWING}\nleaves = ["addresses", "space", "descriptions"]'))
    assert allowed[-1].verdict is Verdict.FOLLOWS
    assert judged([*GROWN, look], ())[-2].verdict is Verdict.WRONG


def follows_from(steps: Sequence[Made]) -> list[frozenset[str]]:
    """What the steps follow from that do."""
    return [one.causes for one in judged(steps, differences()) if one.verdict is Verdict.FOLLOWS]


def test_what_a_step_follows_from_is_named() -> None:
    look = found("v", GROWN_DESC, 0)
    assert follows_from([*GROWN, look]) == [{"edge 8.2"}]
    flags = [step("SetVarIsReady", var="u", tensor=SMALL), step("FreeVarMemory")]
    ready = step("IsVarReady", {"value": True}, var="u", tensor=SMALL)
    assert follows_from([*GROWN, *flags, look, ready]) == [{"edge 8.2"}, {"edge 18.1"}]


def test_a_look_up_depends_on_its_own_variable_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`v` differs by a block; that another variable is not found any more is not excused by it."""
    other = tensor(40, "NHWC")
    steps = [*GROWN, assign("u", other), found("u", other, 3584)]
    assert judged(steps, differences())[-1].verdict is Verdict.EQUAL
    for rules in ("tests.golden.var.careful_tables.CarefulManager", "tests.golden.var.gevar_manager.GevarManager"):
        monkeypatch.setattr(f"{rules}.get_var_addr", lambda *_: (5, 2))
    finding = judged(steps, differences())[-1]
    assert finding.verdict is Verdict.WRONG
    assert "no block of the page says so" in finding.problems[-1]
