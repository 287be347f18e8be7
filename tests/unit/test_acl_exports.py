"""What the package offers by name."""

import importlib
import pkgutil

import acl_shim


def test_every_name_of_all_is_there_and_the_list_is_sorted() -> None:
    assert acl_shim.__all__ == sorted(acl_shim.__all__)
    for name in acl_shim.__all__:
        assert getattr(acl_shim, name).__module__.startswith("acl_shim.")


def test_every_module_has_a_docstring_and_documents_its_public_classes() -> None:
    for module_info in pkgutil.iter_modules(acl_shim.__path__):
        if module_info.name == "_acl":
            continue
        module = importlib.import_module(f"acl_shim.{module_info.name}")
        assert module.__doc__, module_info.name
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_"):
                assert value.__doc__, f"{module_info.name}.{name}"
