"""The layers of the architecture: imports go down, or stay in one row."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.shared import REPOSITORY

#: Row by row from the bottom; a package or module that is not listed here fails the test.
ROWS = [
    {"acl_shim"},
    {"gevar.types", "gevar.proto", "gevar.options", "gevar.errors", "gevar.status", "gevar.align"},
    {"gevar.graph", "gevar.formats"},
    {"gevar.memory"},
    {"gevar.var"},
    {"gevar.om", "gevar.weights"},
    {"gevar.compile"},
    {"gevar.session", "gevar.runtime"},
    {"gevar.cli", "gevar.observe"},
    {"gevar"},  # the public face
]
ROW_OF = {name: number for number, names in enumerate(ROWS) for name in names}


def layer(module: str) -> str:
    """Return the part of a module's name that is a layer: `acl_shim`, `gevar`, or `gevar.X`."""
    parts = module.split(".")
    return parts[0] if parts[0] != "gevar" or len(parts) == 1 else ".".join(parts[:2])


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Yield the full names of the modules of this project that a file imports, wherever the import stands."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*anchor, base]) if base else ".".join(anchor)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in {"gevar", "acl_shim"})


def upward(root: Path) -> list[str]:
    """Return a line for every import that goes up, and for every file that belongs to no layer."""
    found = []
    files = {module_name(path, root): path for top in ("gevar", "acl_shim") for path in (root / top).rglob("*.py")}
    for module, path in sorted(files.items()):
        if layer(module) not in ROW_OF:
            found.append(f"{module}: no such layer")
            continue
        tree = ast.parse(path.read_text())
        for name in imports(tree, module, path.name == "__init__.py"):
            if name not in files:  # an object in a module; the module itself is in the list too
                continue
            if layer(name) not in ROW_OF or ROW_OF[layer(name)] > ROW_OF[layer(module)]:
                found.append(f"{module} imports {name}")
    return found


def test_no_import_goes_up() -> None:
    assert upward(REPOSITORY) == []


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("gevar/types/a.py", "from gevar.var import b", "gevar.types.a imports gevar.var"),
        ("gevar/memory/a.py", "def f():\n    import gevar.session.b", "gevar.memory.a imports gevar.session.b"),
        ("gevar/types/a.py", "from ..var.b import X", "gevar.types.a imports gevar.var.b"),
        ("acl_shim/a.py", "import gevar", "acl_shim.a imports gevar"),
        ("gevar/misc/a.py", "", "gevar.misc.a: no such layer"),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, file: str, text: str, line: str) -> None:
    for name in ("gevar", "gevar/types", "gevar/var", "gevar/memory", "gevar/session", "acl_shim", "gevar/misc"):
        (tmp_path / name).mkdir(exist_ok=True)
    for name in ("gevar/__init__", "gevar/var/__init__", "gevar/var/b", "gevar/session/b"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / file).write_text(text)
    assert line in upward(tmp_path)


def test_the_rows_hold_the_layers_that_exist() -> None:
    layers = {layer(module_name(path, REPOSITORY)) for path in (REPOSITORY / "gevar").rglob("*.py")}
    assert layers <= set(ROW_OF)
