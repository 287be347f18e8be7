"""Cases of the compile side: graphs through passes, rebuild control, the model cache, conversion of variable data.

The file lists cases by kind (`graph_cases` and so on) and explains its words in `conventions`. Each kind has a module
of its own, `passes_graph` and the like, with one function that compares a case; `COMPARERS` is the dispatch. A kind
without a comparer is not compared, so a file that has it fails.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gevar import status
from tests.golden import passes_cache, passes_graph, passes_rebuild, passes_trans
from tests.golden.facts import Json, Place, Report, State

KINDS = ("graph_cases", "rebuild_sequences", "cache_match_cases", "trans_var_data_cases")
DOCUMENTATION = ("title", "conventions")
CASE_TEXT = ("id", "title", "basis", "note")
"""Keys of a case that say something to a reader alone."""

Comparer = Callable[[Mapping[str, Any], Place, Report], None]
"""Compares one case, which lies at a place of the document; every fact but `CASE_TEXT` is for it to mark or compare."""

COMPARERS: Mapping[str, Comparer] = {
    "graph_cases": passes_graph.check_case,
    "rebuild_sequences": passes_rebuild.check_case,
    "cache_match_cases": passes_cache.check_case,
    "trans_var_data_cases": passes_trans.check_case,
}


def matches(document: Json) -> bool:
    """Whether the document has the structure of cases of the compile side."""
    if not isinstance(document, Mapping):
        return False
    return any(_is_cases(document.get(kind)) for kind in KINDS)


def check(document: Mapping[str, Any], folder: Path, report: Report) -> None:
    """Compare every case of a file."""
    for key in DOCUMENTATION:
        if key in document:
            report.mark((key,), document[key], State.DOCUMENTATION)
    for kind in KINDS:
        for index, case in enumerate(document.get(kind, ())):
            place = (kind, index)
            for key in CASE_TEXT:
                if key in case:
                    report.mark((*place, key), case[key], State.DOCUMENTATION)
            if kind in COMPARERS:
                _compare(COMPARERS[kind], case, place, report)
            else:
                rest = {key: value for key, value in case.items() if key not in CASE_TEXT}
                report.mark(place, rest, State.LEFT_OUT, f"nothing compares {kind}")


def _compare(comparer: Comparer, case: Mapping[str, Any], place: Place, report: Report) -> None:
    """Compare one case; one that is not understood is a difference, and the others go on."""
    try:
        comparer(case, place, report)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        report.differ(place, f"the case is not understood: {error!r}")


def status_name(number: int | None) -> str:
    """Return the symbolic name of a status, the number as text where it has none."""
    names = (name for name, value in vars(status).items() if name.isupper() and value == number)
    return next(names, str(number))


def _is_cases(value: Json) -> bool:
    return isinstance(value, list) and all(
        isinstance(case, Mapping) and isinstance(case.get("id"), str) for case in value
    )
