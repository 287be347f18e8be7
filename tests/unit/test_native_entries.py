"""Every exported function of the host runtime begins with the entry hook and names its parameters there."""

import json
import re

import pytest

from tests.helpers.shared import REPOSITORY, shared_path

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


def documented(part: str) -> list[str]:
    """Return the functions that the first columns of a part's tables name; ``...`` stands for any end."""
    return re.findall(r"\bacl\w+(?:\.\.\.)?", "".join(re.findall(r"^\| [^|]*\|", part, re.M)))


DOCUMENT = (REPOSITORY / "docs/host_runtime.md").read_text()
MISSING = [
    name for part in DOCUMENT.split("\nNot exported:\n")[1:] for name in documented(re.split(r"\n(?=#|\*\*)", part)[0])
]


def is_missing(function: str) -> bool:
    """Return whether the document says that a function is not exported."""
    return any(function.startswith(name[:-3]) if name.endswith("...") else function == name for name in MISSING)


def test_the_documented_queries_are_exported() -> None:
    queries = documented(DOCUMENT.partition("## Queries\n")[2].partition("\n## ")[0])
    assert len(queries) > 20
    assert set(queries) <= set(FUNCTIONS)


def test_what_the_document_calls_missing_is_not_exported() -> None:
    assert len(MISSING) > 10
    assert not [name for name in FUNCTIONS if is_missing(name)]


def test_every_model_function_of_the_reference_is_exported_or_called_missing() -> None:
    section = shared_path("reference/om_format.md").read_text().partition("\n### 13.1 ")[2].partition("\n### 13.4 ")[0]
    names = documented(section) + re.findall(r"\baclmdlBundle\w+(?=\()", section)
    assert len(names) > 15
    assert not [name for name in names if name not in FUNCTIONS and not is_missing(name)]
    assert [name for name in FUNCTIONS if name.startswith("aclmdl")]


def test_every_function_of_the_reference_is_exported_or_called_missing() -> None:
    functions = json.loads(shared_path("reference/acl_runtime.json").read_text())["functions"]
    names = [function["name"] for function in functions]
    assert len(names) > 200
    assert not [name for name in names if name not in FUNCTIONS and not is_missing(name)]
