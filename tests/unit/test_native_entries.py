"""Every exported function of the host runtime begins with the entry hook and names its parameters there."""

import re

import pytest

from tests.helpers.shared import REPOSITORY

NATIVE = REPOSITORY / "native"
SOURCES = "\n".join(path.read_text() for path in sorted((NATIVE / "src").glob("*.c")))
FUNCTIONS = re.findall(r"HOSTACL_FUNCTION\((\w+)\)", (NATIVE / "src/functions.def").read_text())


def split(arguments: str) -> list[str]:
    """Return the parts of a list of arguments, which hold no commas of their own."""
    return [" ".join(part.split()) for part in arguments.split(",")] if arguments.strip() else []


def prototypes() -> dict[str, list[str]]:
    """Return name -> parameters of the functions of the public headers."""
    text = "\n".join(path.read_text() for path in sorted((NATIVE / "include/acl").glob("*.h")))
    found = {}
    for name, inside in re.findall(r"ACL_FUNC_VISIBILITY[^;(]*?\b(acl\w+)\(([^()]*)\)", text):
        parts = [] if inside.strip() == "void" else split(inside)
        found[name] = [match[0] for part in parts if (match := re.search(r"(\w+|\.\.\.)$", part))]
    return found


def entries() -> dict[str, list[str]]:
    """Return name -> arguments of the entry hooks in the sources, IN left out."""
    found: dict[str, list[str]] = {}
    for inside in re.findall(r"\bENTER(?:_OR)?\(((?:[^()]|\((?:[^()]|\(\))*\))*)\);", SOURCES):
        arguments = [re.sub(r"^IN\((\w+)\)$", r"\1", part) for part in split(inside)]
        name = next(part for part in arguments if part in FUNCTIONS)
        assert name not in found, f"{name} has two entry hooks"
        found[name] = arguments[arguments.index(name) + 1 :]
    return found


PROTOTYPES = prototypes()
ENTRIES = entries()


def test_functions_are_listed_once() -> None:
    assert len(FUNCTIONS) == len(set(FUNCTIONS)) > 100


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "aclAppLog"])
def test_the_hook_names_the_parameters_of_the_prototype(name: str) -> None:
    assert ENTRIES[name] == PROTOTYPES[name]


def test_the_one_function_that_takes_any_number_traces_by_itself() -> None:
    assert PROTOTYPES["aclAppLog"][-1] == "..."
    assert f'.names = "{", ".join(PROTOTYPES["aclAppLog"][:-1])}"' in SOURCES


def test_nothing_else_has_a_hook() -> None:
    assert set(ENTRIES) == set(FUNCTIONS) - {"aclAppLog"}


def test_the_documented_queries_are_exported_and_the_others_are_not() -> None:
    text = (REPOSITORY / "docs/host_runtime.md").read_text()
    queries = text.partition("## Queries\n")[2].partition("\n## ")[0]
    answered, _, unanswered = queries.partition("Not exported")
    names = {
        part: re.findall(r"\bacl\w+", "".join(re.findall(r"^\| [^|]*\|", part, re.M)))
        for part in (answered, unanswered)
    }
    assert len(names[answered]) > 10
    assert len(names[unanswered]) > 10
    assert set(names[answered]) <= set(FUNCTIONS)
    assert not set(names[unanswered]) & set(FUNCTIONS)
