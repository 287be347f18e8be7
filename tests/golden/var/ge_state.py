"""Plain tables that follow GE's documented rules, sharp edges included: state of one manager, sizes, statuses.

Written from the rules alone, not from gevar's manager: results of gevar and of recorded files are held against it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from gevar.types import MemType, TensorDesc
from tests.golden.var.sources import Sources
from tests.golden.var.values import UINT64, Op

SUCCESS: Final = 0
FAILED: Final = 0xFFFFFFFF
MEMALLOC_FAILED: Final = 1343225856
PARAM_INVALID: Final = 1343225857
INTERNAL_ERROR: Final = 1343225860
OPTIONS_INVALID: Final = 1343242291
NO_CONTEXT: Final = 107002

HBM: Final = int(MemType.RT_MEMORY_HBM)
RDMA: Final = int(MemType.RT_MEMORY_RDMA_HBM)
HOST: Final = int(MemType.RT_MEMORY_HOST)
RESERVED: Final = int(MemType.RT_MEMORY_RESERVED)
ALIGN_BYTES: Final = 512
GUARD_BYTES: Final = 1024
GIB: Final = 1 << 30
OTHER_VERSION: Final = 2


class GeError(Exception):
    """A status other than SUCCESS."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Sizes:
    """Sizes and logic base."""

    graph_mem_max_size: int = 26 * GIB
    var_mem_max_size: int = 5 * GIB
    var_mem_logic_base: int = 32 * GIB
    use_max_mem_size: int = 31 * GIB


@dataclass
class Record:
    """What a key stands for."""

    desc: TensorDesc
    address: int
    offset: int
    mem_type: int
    op: Op | None


@dataclass
class DeviceRecord:
    """Memory of one logical address on one device, or the template of it."""

    desc: TensorDesc
    dev_addr: int = 0
    is_extern: bool = False
    is_allocated: bool = False


@dataclass
class Space:
    """Assigned bytes of one kind of memory."""

    var_mem_size: int = 0
    place_holder_size: int = 0


@dataclass
class Expandable:
    """An expandable allocator that a manager has."""

    capacity_bytes: int | None


@dataclass
class Resource:
    """Tables of the variables; `session_id` names the manager whose logic base counts."""

    session_id: int
    records: dict[str, Record] = field(default_factory=dict)
    cur_descs: dict[str, TensorDesc] = field(default_factory=dict)
    addr_types: dict[int, int] = field(default_factory=dict)
    template: dict[int, DeviceRecord] = field(default_factory=dict)
    devices: dict[int, dict[int, DeviceRecord]] = field(default_factory=dict)
    file_keys: dict[str, str] = field(default_factory=dict)
    batch_names: dict[str, str] = field(default_factory=dict)
    roads: dict[str, tuple[tuple[str, TensorDesc, TensorDesc], ...]] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    changed_names: dict[int, set[str]] = field(default_factory=dict)
    allocated: dict[str, int] = field(default_factory=dict)
    staged: dict[int, dict[str, TensorDesc]] = field(default_factory=dict)
    broadcasts: dict[int, dict[str, dict[str, int | str]]] = field(default_factory=dict)
    ready: dict[int, set[str]] = field(default_factory=dict)
    loaded: dict[int, set[tuple[str, int]]] = field(default_factory=dict)

    def key_name(self, name: str) -> str:
        return self.batch_names.get(name, name)

    def key(self, name: str, desc: TensorDesc) -> str:
        return f"{self.key_name(name)}{int(desc.format)}_{int(desc.dtype)}"


@dataclass
class Surroundings:
    """What a manager finds around it: sources of memory, options, the current device, managers by session."""

    sources: Sources = field(default_factory=Sources)
    options: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    current_device: int = 0
    logic_base_of: Callable[[int], int] = lambda session_id: 0


def signed(number: int) -> int:
    """The signed number of 64 bits that has the bits of an unsigned one."""
    number %= UINT64
    return number - UINT64 if number >= UINT64 // 2 else number


def align(size_bytes: int) -> int:
    """Round up to 512, as C++ does with a signed number."""
    quotient = size_bytes + ALIGN_BYTES - 1
    return (quotient // ALIGN_BYTES if quotient >= 0 else -(-quotient // ALIGN_BYTES)) * ALIGN_BYTES


class GeState:
    """Life cycle and sizes of one manager."""

    def __init__(self, around: Surroundings, session_id: int) -> None:
        self.around = around
        self.session_id = session_id
        self.version = OTHER_VERSION
        self.device_id = self.job_id = 0
        self.sizes = Sizes()
        self.external: tuple[int, int] | None = None
        self.malloc_bytes = 0
        self.resource: Resource | None = None
        self.spaces: dict[int, Space] = {}
        self.has_mem_manager = False
        self.expandable: Expandable | None = None

    def need(self, status: int) -> Resource:
        if self.resource is None:
            raise GeError(status)
        return self.resource

    def init(self, version: int, session_id: int, device_id: int, job_id: int) -> None:
        if self.resource is not None:
            return
        if version > OTHER_VERSION:
            raise GeError(PARAM_INVALID)
        self.version, self.session_id, self.device_id, self.job_id = version, session_id, device_id, job_id
        self.resource = Resource(session_id)

    def set_memory_malloc_size(self, total_bytes: int) -> None:
        use, graph, var = (int(total_bytes * ratio / 32.0) for ratio in (31, 26, 5))
        self.sizes = replace(self.sizes, graph_mem_max_size=graph, var_mem_max_size=var, use_max_mem_size=use)
        self.set_all_memory_max_value()

    def set_all_memory_max_value(self) -> None:
        sizes = self.sizes
        if sizes.graph_mem_max_size + 32 * GIB >= UINT64:
            raise GeError(INTERNAL_ERROR)
        self.sizes = sizes = replace(sizes, var_mem_logic_base=128 * GIB)
        use = sizes.graph_mem_max_size + sizes.var_mem_max_size
        if use >= UINT64:
            raise GeError(INTERNAL_ERROR)
        self.sizes = replace(sizes, use_max_mem_size=use)
        if use > 256 * GIB:
            raise GeError(OPTIONS_INVALID)

    def space(self, mem_type: int) -> Space:
        if mem_type not in self.spaces:
            if mem_type not in (HBM, RDMA, HOST):
                raise GeError(PARAM_INVALID)
            self.spaces[mem_type] = Space()
        return self.spaces[mem_type]

    def get_var_mem_size(self, mem_type: int) -> int:
        space = self.spaces.get(mem_type, Space())
        return signed(space.var_mem_size - (space.place_holder_size if mem_type == HBM else 0))

    def get_place_holder_mem_size(self, mem_type: int) -> int:
        return signed(self.spaces.get(mem_type, Space()).place_holder_size) if mem_type == HBM else 0

    def keep_expandable(self, expandable: Expandable | None) -> None:
        if self.expandable is None and expandable is not None:
            self.around.sources.note("expandable_set_reuse", value=False)
            self.around.sources.note("expandable_set_share_phy_allocator", value=False)
            self.expandable = expandable
