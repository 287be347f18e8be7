"""The model of GE as a whole: managers by session, and the answers it gives where a manager is asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.golden.var.ge_state import Expandable, Sizes, Surroundings
from tests.golden.var.ge_tables import GeManager
from tests.golden.var.sources import Sources
from tests.golden.var.values import UINT64

STATIC_VALUES = frozenset("124")
DYNAMIC_VALUES = frozenset("34")


class ModelManager(GeManager):
    """A manager of the model, in the words of `faces.Manager`."""

    def is_initialised(self) -> bool:
        return self.resource is not None

    def session(self) -> int:
        return self.session_id

    def logic_base_now(self) -> int:
        return self.sizes.var_mem_logic_base

    def has_memory(self) -> bool:
        return self.has_mem_manager

    def set_mem_manager(self, enabled: bool) -> None:
        self.has_mem_manager = enabled

    def update_memory_config(self, sizes: Sizes) -> None:
        self.sizes = sizes

    def set_var_mem_logic_base(self, value: int) -> None:
        self.sizes = replace(self.sizes, var_mem_logic_base=value)

    def set_var_mem_max_size(self, value: int) -> None:
        self.sizes = replace(self.sizes, var_mem_max_size=value)

    def memory_config(self) -> Mapping[str, int]:
        sizes, top = self.sizes, UINT64 - 1
        unlimited = self.around.options.get("ge.evaluateGraphResourceMode") == "1"
        return {
            "graph_mem_max_size": sizes.graph_mem_max_size,
            "var_mem_max_size": sizes.var_mem_max_size,
            "var_mem_logic_base": sizes.var_mem_logic_base,
            "use_max_mem_size": top if unlimited else sizes.use_max_mem_size,
            "graph_mem_max_size_for_check": top if unlimited else sizes.graph_mem_max_size,
            "var_mem_max_size_for_check": top if unlimited else sizes.var_mem_max_size,
        }

    def get_var_malloc_mem_size(self) -> int:
        return self.malloc_bytes

    def set_external_var(self, size_bytes: int | None) -> None:
        start = None if size_bytes is None else self.around.sources.external_region(size_bytes)
        self.external = None if start is None or size_bytes is None else (start, size_bytes)

    def init_expandable(self, supported: bool | None, capacity_bytes: int | None) -> None:
        self.keep_expandable(Expandable(capacity_bytes) if supported else None)

    def get_var_memory_addr(self, addr: int, mem_type: int, device: int, graph_name: str | None) -> int | None:
        found = self.memory_addr(addr, mem_type, device)
        return None if found is None else found % UINT64

    def has_shared_var_mem_between_batch(self) -> bool:
        return self.resource is not None and bool(self.resource.batch_names)

    def to_serial(self, session_id: int) -> Any:
        return self.var_manager_info()

    def desc_info_to_serial(self, session_id: int) -> Any:
        return self.var_desc_info()

    def from_serial(self, session_id: int, info: Any) -> None:
        self.take_info(info)


class ModelPool:
    """Managers of the model by session."""

    manager_class: type[ModelManager] = ModelManager

    def __init__(self) -> None:
        self.around = Surroundings(logic_base_of=self._logic_base_of)
        self.managers: dict[int, ModelManager] = {}

    @property
    def sources(self) -> Sources:
        return self.around.sources

    def manager(self, session_id: int) -> ModelManager:
        if session_id not in self.managers:
            self.managers[session_id] = self.manager_class(self.around, session_id)
        return self.managers[session_id]

    def _logic_base_of(self, session_id: int) -> int:
        return self.manager(session_id).sizes.var_mem_logic_base

    def same(self, one: object, other: object) -> bool:
        return one is other

    def remove(self, session_id: int) -> None:
        manager = self.managers.pop(session_id, None)
        if manager is not None:
            manager.destroy()

    def destroy(self) -> None:
        for session_id in sorted(self.managers):
            self.managers[session_id].destroy()
        self.managers.clear()

    def set_option(self, key: str, value: str) -> None:
        self.around.options[key] = value

    def set_env(self, key: str, value: str) -> None:
        self.around.environment[key] = value

    def set_current_device(self, device_id: int) -> None:
        self.around.current_device = device_id

    def memory_policy(self) -> Mapping[str, bool]:
        options, environment = self.around.options, self.around.environment
        policies = {options.get("ge.exec.staticMemoryPolicy"), environment.get("GE_USE_STATIC_MEMORY")}
        static, dynamic = bool(policies & STATIC_VALUES), bool(policies & DYNAMIC_VALUES)
        page = options.get("ge.variableUse1gHugePage")
        return {
            "static_extend": static,
            "dynamic_extend": dynamic,
            "full": static and dynamic,
            "huge_1g_only": page == "1",
            "huge_1g_first": page == "2",
            "huge_1g": page in ("1", "2"),
        }
