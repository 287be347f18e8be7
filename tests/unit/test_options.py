"""What the options of a session say about memory."""

import dataclasses

import pytest

from gevar.options import MemoryOptions

POLICY, HUGE = "ge.exec.staticMemoryPolicy", "ge.variableUse1gHugePage"


def _policy(option: str | None, environment: str | None) -> MemoryOptions:
    environ = {} if environment is None else {"GE_USE_STATIC_MEMORY": environment}
    return MemoryOptions.from_options({} if option is None else {POLICY: option}, environ)


@pytest.mark.parametrize(
    ("option", "environment", "static", "dynamic", "policy"),
    [
        (None, None, False, False, 0),
        ("0", None, False, False, 0),
        ("1", None, True, False, 2),
        ("2", None, True, False, 2),
        ("3", None, False, True, 3),
        ("4", None, True, True, 4),
        ("5", None, False, False, 0),
        ("", None, False, False, 0),
        ("0", "1", True, False, 2),
        ("0", "2", True, False, 2),
        ("0", "3", False, True, 3),
        ("0", "4", True, True, 4),
        ("0", "x", False, False, 0),
        ("3", "2", True, True, 4),
        (None, "3", False, True, 3),
    ],
)
def test_option_and_environment_add_up(
    option: str | None, environment: str | None, static: bool, dynamic: bool, policy: int
) -> None:
    options = _policy(option, environment)
    assert options.is_ge_use_extend_size_memory() is static
    assert options.is_ge_use_extend_size_memory(dynamic_graph=True) is dynamic
    assert options.is_ge_use_extend_size_memory_full is (static and dynamic)
    assert options.static_memory_policy == policy


@pytest.mark.parametrize(
    ("value", "only", "first"),
    [("0", False, False), ("1", True, False), ("2", False, True), ("3", False, False), ("", False, False)],
)
def test_pages_of_1_gib(value: str, only: bool, first: bool) -> None:
    options = MemoryOptions.from_options({HUGE: value}, {})
    assert options.is_variable_use_1g_huge_page_only is only
    assert options.is_variable_use_1g_huge_page_first is first
    assert options.is_variable_use_1g_huge_page is (only or first)


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("0", False), ("true", False), ("", False)])
def test_evaluating(value: str, wanted: bool) -> None:
    options = MemoryOptions.from_options({"ge.evaluateGraphResourceMode": value}, {})
    assert options.is_evaluate_graph_resource_mode is wanted


def test_other_options_mean_nothing_here() -> None:
    assert MemoryOptions.from_options({"ge.variableMemoryMaxSize": "5", "ge.socVersion": "x"}, {}) == MemoryOptions()


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GE_USE_STATIC_MEMORY", "3")
    assert MemoryOptions.from_options({}).static_memory_policy == 3
    monkeypatch.delenv("GE_USE_STATIC_MEMORY")
    assert MemoryOptions.from_options({}).static_memory_policy == 0


def test_options_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        MemoryOptions().static_extend = True  # type: ignore[misc]
