"""Options of GE by name, and what their values mean for memory.

GE reads them from thread-local options at the moment it needs them, so a worker thread without options decides
otherwise than its session. Here they are one value, made from the options of a session, and the same for every thread.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE_USE_1G_HUGE_PAGE: Final = "ge.variableUse1gHugePage"
"""Option: 1 GiB pages for variables; "1" only those, "2" first those, anything else none."""

STATIC_MEMORY_POLICY: Final = "ge.exec.staticMemoryPolicy"
"""Option: which graphs use memory that grows; "1" and "2" static, "3" dynamic, "4" both, anything else none."""

EVALUATE_GRAPH_RESOURCE_MODE: Final = "ge.evaluateGraphResourceMode"
"""Option: "1" when graphs are compiled to learn what they need, so sizes are not limited."""

GE_USE_STATIC_MEMORY: Final = "GE_USE_STATIC_MEMORY"
"""Environment variable with the values of `STATIC_MEMORY_POLICY`; a graph extends if one of the two says so."""

_STATIC_VALUES: Final = frozenset({"1", "2", "4"})
_DYNAMIC_VALUES: Final = frozenset({"3", "4"})


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """What the options of a session say about memory.

    Attributes
    ----------
    is_evaluate_graph_resource_mode : bool
        Whether sizes are not limited, since graphs are only evaluated.
    is_variable_use_1g_huge_page_only : bool
        Whether variables take pages of 1 GiB and nothing else.
    is_variable_use_1g_huge_page_first : bool
        Whether variables take pages of 1 GiB and, where there are none, others.
    static_extend, dynamic_extend : bool
        Whether static, or dynamic, graphs use memory that grows.

    Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::IsGeUseExtendSizeMemory,
    IsVariableUse1gHugePage.
    Differs: edge 42 of docs/differences.md.

    Examples
    --------
    >>> options = MemoryOptions.from_options({"ge.variableUse1gHugePage": "2"}, {"GE_USE_STATIC_MEMORY": "3"})
    >>> options.is_variable_use_1g_huge_page, options.static_memory_policy
    (True, 3)
    """

    is_evaluate_graph_resource_mode: bool = False
    is_variable_use_1g_huge_page_only: bool = False
    is_variable_use_1g_huge_page_first: bool = False
    static_extend: bool = False
    dynamic_extend: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str], environ: Mapping[str, str] | None = None) -> "MemoryOptions":
        """Return what options by GE's names say; names that mean nothing here are passed over.

        Parameters
        ----------
        options
            Options of the session.
        environ
            Environment variables; those of the process where None.
        """
        environment = os.environ if environ is None else environ
        policies = {options.get(STATIC_MEMORY_POLICY, ""), environment.get(GE_USE_STATIC_MEMORY, "")}
        huge_page = options.get(VARIABLE_USE_1G_HUGE_PAGE, "")
        return cls(
            is_evaluate_graph_resource_mode=options.get(EVALUATE_GRAPH_RESOURCE_MODE) == "1",
            is_variable_use_1g_huge_page_only=huge_page == "1",
            is_variable_use_1g_huge_page_first=huge_page == "2",
            static_extend=not _STATIC_VALUES.isdisjoint(policies),
            dynamic_extend=not _DYNAMIC_VALUES.isdisjoint(policies),
        )

    @property
    def is_variable_use_1g_huge_page(self) -> bool:
        """Whether variables take pages of 1 GiB at all."""
        return self.is_variable_use_1g_huge_page_only or self.is_variable_use_1g_huge_page_first

    @property
    def is_ge_use_extend_size_memory_full(self) -> bool:
        """Whether static and dynamic graphs use memory that grows."""
        return self.static_extend and self.dynamic_extend

    def is_ge_use_extend_size_memory(self, dynamic_graph: bool = False) -> bool:
        """Tell whether graphs of a kind use memory that grows."""
        return self.dynamic_extend if dynamic_graph else self.static_extend

    @property
    def static_memory_policy(self) -> int:
        """Number of the policy that option and environment together give: 0, 2 static, 3 dynamic, 4 both."""
        if self.is_ge_use_extend_size_memory_full:
            return 4
        if self.dynamic_extend:
            return 3
        return 2 if self.static_extend else 0
