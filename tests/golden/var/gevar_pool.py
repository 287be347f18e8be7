"""gevar's pool of managers in the words of `faces.Pool`, over the simulated sources of memory."""

from collections.abc import Mapping

from gevar.options import MemoryOptions
from gevar.var import VarManager, VarManagerPool
from tests.golden.var.faces import Manager
from tests.golden.var.gevar_manager import GevarManager
from tests.golden.var.sources import Sources


class GevarPool:
    """A `VarManagerPool` of gevar; options hold for every manager, as GE's hold for every session of a graph."""

    def __init__(self) -> None:
        self.sources = Sources()
        self._pool = VarManagerPool()
        self._seen: dict[int, VarManager] = {}
        self._options: dict[str, str] = {}
        self._environment: dict[str, str] = {}
        self.current_device = 0

    def manager(self, session_id: int) -> GevarManager:
        vm = self._pool.get_var_manager(session_id)
        if id(vm) not in self._seen:
            self._seen[id(vm)] = vm
            vm.set_options(self._options)
        return GevarManager(self, vm)

    def same(self, one: Manager, other: Manager) -> bool:
        return isinstance(one, GevarManager) and isinstance(other, GevarManager) and one.vm is other.vm

    def remove(self, session_id: int) -> None:
        self._pool.remove_var_manager(session_id)

    def destroy(self) -> None:
        self._pool.destroy()

    def set_option(self, key: str, value: str) -> None:
        self._options[key] = value
        for vm in self._seen.values():
            vm.set_options(self._options)

    def set_env(self, key: str, value: str) -> None:
        self._environment[key] = value

    def set_current_device(self, device_id: int) -> None:
        self.current_device = device_id

    def memory_policy(self) -> Mapping[str, bool]:
        options = MemoryOptions.from_options(self._options, self._environment)
        return {
            "static_extend": options.is_ge_use_extend_size_memory(),
            "dynamic_extend": options.is_ge_use_extend_size_memory(dynamic_graph=True),
            "full": options.is_ge_use_extend_size_memory_full,
            "huge_1g_only": options.is_variable_use_1g_huge_page_only,
            "huge_1g_first": options.is_variable_use_1g_huge_page_first,
            "huge_1g": options.is_variable_use_1g_huge_page,
        }
