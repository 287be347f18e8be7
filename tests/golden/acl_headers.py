"""The C interface as cffi declarations, read from the project's public headers: no function is named here."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cffi import FFI

from tests.helpers.shared import REPOSITORY

INCLUDE = REPOSITORY / "native" / "include"
INTEGER_DEFINE = re.compile(r"#\s*define\s+(\w+)\s+(-?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*)\s*$")
QUOTED_INCLUDE = re.compile(r'#\s*include\s+"([^"]+)"')
CPLUSPLUS_BLOCK = re.compile(r"^#\s*ifdef __cplusplus$.*?^#\s*endif$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ATTRIBUTE = re.compile(r"\b(?:ACL_FUNC_VISIBILITY|HOSTACL_API)\b|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def headers() -> list[Path]:
    """Return every public header, the one that programs include first."""
    first = INCLUDE / "acl" / "acl.h"
    return [first, *sorted({*INCLUDE.rglob("*.h")} - {first})]


def declarations(paths: Iterable[Path]) -> str:
    """Return headers in the form cffi reads: each file once, quoted includes expanded, of the macros whole numbers."""
    seen: set[Path] = set()
    return "\n".join(line for path in paths for line in _expanded(path, seen))


def _expanded(path: Path, seen: set[Path]) -> list[str]:
    if path.resolve() in seen:
        return []
    seen.add(path.resolve())
    text = CPLUSPLUS_BLOCK.sub("", COMMENT.sub("", path.read_text(encoding="utf-8")))
    lines = []
    for line in text.splitlines():
        if included := QUOTED_INCLUDE.match(line):
            lines += _expanded(path.parent / included[1], seen)
        elif define := INTEGER_DEFINE.match(line):
            lines.append(f"#define {define[1]} {define[2]}")
        elif not line.lstrip().startswith("#"):
            lines.append(ATTRIBUTE.sub("", line))
    return lines


@cache
def interface() -> FFI:
    """Return the declarations of every header."""
    ffi = FFI()
    ffi.cdef(declarations(headers()))
    return ffi


@cache
def names() -> frozenset[str]:
    """Return the name of every function, enum value and integer macro that the headers declare."""
    return frozenset(dir(interface().dlopen(None)))


@cache
def constants() -> dict[str, int]:
    """Return every enum value and integer macro by name."""
    library = interface().dlopen(None)
    values = {name: getattr(library, name, None) for name in names()}
    return {name: value for name, value in values.items() if isinstance(value, int)}
