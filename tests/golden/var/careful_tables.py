"""The careful answers for graphs and stored states, as `docs/differences.md` describes them; managers by session."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.golden.var.careful_memory import CarefulMemory
from tests.golden.var.careful_state import merge, read_state
from tests.golden.var.ge_pool import ModelPool
from tests.golden.var.ge_state import FAILED, HBM, INTERNAL_ERROR, NO_CONTEXT, DeviceRecord, GeError, Record, Sizes
from tests.golden.var.ge_tables import SIZE_FIELDS, message_of_state


class CarefulManager(CarefulMemory):
    """The whole model of gevar's rules."""

    def set_changed_graph_id(self, name: str, graph_id: int) -> None:
        """Edge 21: one name, and one graph, for a variable."""
        res = self.need(INTERNAL_ERROR)
        res.changed[res.key_name(name)] = graph_id

    def get_changed_var_names(self, graph_id: int) -> Sequence[str]:
        if self.resource is None:
            return ()
        return sorted(name for name, graph in self.resource.changed.items() if graph == graph_id)

    def remove_changed_graph_id(self, name: str) -> None:
        if self.resource is not None:
            self.resource.changed.pop(self.resource.key_name(name), None)

    def var_manager_info(self) -> Any:
        """Edge 2: keys that are one text in GE's form are refused."""
        res = self.need(INTERNAL_ERROR)
        entries = {f"{name}{fmt}_{dtype}": entry for (name, fmt, dtype), entry in self.tables.entries.items()}
        if len(entries) != len(self.tables.entries):
            raise GeError(FAILED)
        records = {
            text: Record(entry.desc, entry.block.addr, entry.offset, entry.block.mem_type, None)
            for text, entry in entries.items()
        }
        blocks = self.tables.pool_blocks | self.tables.blocks
        template = {
            addr: DeviceRecord(block.desc, block.extern[0] if block.extern else 0) for addr, block in blocks.items()
        }
        kinds = {addr: block.mem_type for addr, block in blocks.items()}
        shown = replace(res, records=records, addr_types=kinds, template=template)
        return message_of_state(self, shown)

    def take_info(self, info: Any) -> None:
        """Edge 24: a message is checked as a whole; sizes become the larger of both."""
        if self.resource is None and self.around.current_device < 0:
            raise GeError(NO_CONTEXT)
        incoming, new = read_state(info)
        if self.resource is None:
            self.version, self.session_id, self.job_id = info.version, info.session_id, info.job_id
            self.device_id = self.around.current_device
            self.sizes = Sizes(**{name: getattr(info, name) for name in SIZE_FIELDS})
            self.resource, self.tables = incoming, new
        else:
            same_base = info.var_mem_logic_base == self.sizes.var_mem_logic_base
            merge(self.resource, self.tables, incoming, new, same_base)
        for mem_type, figures in sorted(info.mem_resource_map.items()):
            space = self.space(mem_type)
            space.var_mem_size = max(space.var_mem_size, figures.var_mem_size)
            if mem_type == HBM:
                self.tables.next_offset = max(self.tables.next_offset, figures.var_mem_size)


class CarefulPool(ModelPool):
    """Careful managers by session."""

    manager_class = CarefulManager
