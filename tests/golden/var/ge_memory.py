"""GE's rules for device memory: what a logical address stands for, initial values, release, what is loaded."""

from dataclasses import replace

from gevar.proto.tensor_descriptor import tensor_desc_from_proto
from gevar.types import TensorDesc
from tests.golden.var.ge_state import (
    ALIGN_BYTES,
    FAILED,
    GUARD_BYTES,
    HBM,
    OTHER_VERSION,
    RDMA,
    DeviceRecord,
    GeError,
    Resource,
    align,
)
from tests.golden.var.ge_variables import GeVariables
from tests.golden.var.values import UINT64, Op

HUGE_PAGE_OPTION = "ge.variableUse1gHugePage"


class GeMemory(GeVariables):
    """The part of the model that puts variables on devices."""

    def get_var_malloc_size(self, desc: TensorDesc) -> int:
        return align(desc.size) + GUARD_BYTES

    def memory_addr(self, addr: int, mem_type: int, device: int) -> int | None:
        """Return the device address; None where GE returns null."""
        if not self.has_mem_manager:
            return None
        if mem_type == RDMA:
            return addr
        if self.external is not None and mem_type == HBM:
            start, size_bytes = self.external
            off = addr - self.sizes.var_mem_logic_base
            fits = size_bytes >= self.get_var_mem_size(HBM) % UINT64 and 0 <= off < size_bytes
            return start + off if fits else None
        return None if self.resource is None else self.resolve(self.resource, addr, mem_type, device)

    def resolve(self, res: Resource, addr: int, mem_type: int, device: int) -> int | None:
        """Return the address in memory that was allocated, now or before."""
        records = res.devices.setdefault(device, {})
        for start, template in res.template.items():
            records.setdefault(start, replace(template))
        base = holder(records, addr)
        if base is None:
            return None
        record, inner = records[base], addr - base
        if record.dev_addr:
            return record.dev_addr + (0 if record.is_extern else inner + ALIGN_BYTES)
        size_bytes = self.get_var_malloc_size(record.desc)
        found = self.allocate(size_bytes, mem_type, device)
        if found is None:
            return None
        self.malloc_bytes += size_bytes
        record.dev_addr, record.is_allocated = found, True
        result = found + inner + ALIGN_BYTES
        return result if self.lay_down(record.desc, result) else None

    def allocate(self, size_bytes: int, mem_type: int, device: int) -> int | None:
        sources = self.around.sources
        dev_addr: int | None = None
        if self.expandable is not None:
            dev_addr = sources.expandable_malloc(size_bytes, True, self.expandable.capacity_bytes)
        if dev_addr is None and self.around.options.get(HUGE_PAGE_OPTION) != "1":
            self.expandable = None
            dev_addr = sources.device_malloc(mem_type, size_bytes, device)
        return dev_addr

    def lay_down(self, desc: TensorDesc, addr: int) -> bool:
        """Copy the initial value; return whether it fits the variable."""
        value = desc.init_value
        if value is None:
            return True
        if not tensor_desc_from_proto(value.desc).same_description(desc) or len(value.data) > desc.size:
            return False
        self.around.sources.write(addr, value.data)
        return True

    def free_var_memory(self) -> None:
        if not self.has_mem_manager:
            raise GeError(FAILED)
        if self.expandable is not None:
            self.around.sources.note("expandable_free_all")
        if self.resource is None:
            return
        for device, records in self.resource.devices.items():
            for record in records.values():
                if record.dev_addr and not record.is_extern:
                    if self.expandable is None:
                        self.around.sources.device_free(HBM, record.dev_addr, device)
                    record.dev_addr = 0
        self.malloc_bytes = 0
        self.expandable = None

    def destroy(self) -> None:
        if self.has_mem_manager:
            self.free_var_memory()
        self.version, self.device_id, self.session_id = OTHER_VERSION, 0, 0
        self.spaces = {}
        self.expandable = None

    def check_and_set_var_loaded(self, op: Op, device: int) -> bool:
        if self.resource is None or op.load_addr is None:
            return False
        flags, addr = self.resource.loaded.setdefault(device, set()), op.load_addr
        if addr in self.resource.addr_types:
            names = sorted(name for name, known in flags if known == addr)
            if names and names[0]:
                return True
        flags.add((op.name, addr))
        return False

    def set_var_is_ready(self, name: str, desc: TensorDesc, device: int) -> None:
        if self.resource is not None:
            self.resource.ready.setdefault(device, set()).add(self.resource.key(name, desc))

    def is_var_ready(self, name: str, desc: TensorDesc, device: int) -> bool:
        res = self.resource
        return res is not None and res.key(name, desc) in res.ready.get(device, ())


def holder(records: dict[int, DeviceRecord], addr: int) -> int | None:
    """The start of the record that an address lies in."""
    if addr in records:
        return addr
    return next((base for base, record in records.items() if base < addr < base + record.desc.size), None)
