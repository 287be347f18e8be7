"""The public names: each is there, documented, and its example works; the package is light to import."""

import doctest
import importlib
import pkgutil
import types

import pytest

import acl_shim
import gevar
from tests.helpers.child import expect_output


@pytest.mark.parametrize("package", [gevar, acl_shim])
def test_every_public_name_is_there_and_sorted(package: types.ModuleType) -> None:
    assert list(package.__all__) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name).__doc__, name


@pytest.mark.parametrize("name", gevar.__all__)
def test_every_name_of_gevar_has_an_example(name: str) -> None:
    assert ">>> " in str(getattr(gevar, name).__doc__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_here"):
        gevar.nothing_here  # noqa: B018


def _modules() -> list[str]:
    names = []
    for package in (gevar, acl_shim):
        names += [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [name for name in names if not name.endswith("._acl")]


@pytest.mark.parametrize("name", ["gevar", *_modules()])
def test_examples_work(name: str) -> None:
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    results = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert results.failed == 0


def test_importing_takes_no_extra_and_no_numpy() -> None:
    code = """
        import sys
        import gevar
        print(sorted({"numpy", "click", "rich", "google.protobuf", "acl_shim"} & set(sys.modules)))
    """
    expect_output(code, "[]")


def test_the_public_face_takes_no_extra() -> None:
    code = """
        import sys
        import gevar
        for name in gevar.__all__:
            getattr(gevar, name)
        print(sorted({"click", "rich", "matplotlib", "onnx", "safetensors"} & set(sys.modules)))
    """
    expect_output(code, "[]")
