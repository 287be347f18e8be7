"""A memory manager over dictionaries, for tests that need no runtime, and short ways to make descriptions and ops."""

import ctypes
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from acl_shim.host_memory import HostBuffer
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.types import DataType, DevAddr, DeviceId, Format, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from gevar.var.var_op import AttrValue

DEVICE_BASE = 0x1240_0000_0000
DEVICE_SPAN = 1 << 40
GIB = 1 << 30
_RANGES = itertools.count(DEVICE_BASE - DEVICE_SPAN, 1 << 32)


def _view(data: HostBuffer) -> memoryview:
    """The bytes of a buffer; numpy exports none for the types of ml_dtypes."""
    source = data.reshape(-1).view(np.uint8) if isinstance(data, np.ndarray) else data
    return memoryview(cast("bytes", source)).cast("B")


@dataclass
class Block:
    mem_type: MemType
    purpose: str
    data: bytearray


@dataclass
class FakeMemory:
    """Memory of numbered devices. `fail_at` makes the call of that number, from 1, fail with 507899.

    There is a pool of registered memory while `rdma_room` is a number: the bytes it has left. Host memory is real.
    """

    fail_at: int = 0
    calls: int = 0
    mallocs: list[tuple[MemType, int, int]] = field(default_factory=list)
    frees: list[tuple[MemType, int, int]] = field(default_factory=list)
    copies_in: int = 0
    blocks: dict[tuple[int, int], Block] = field(default_factory=dict)
    on_malloc: Callable[[], None] | None = None
    rdma_room: int | None = None
    rdma: list[tuple[MemType, int, int]] = field(default_factory=list)
    host: list[tuple[MemType, int]] = field(default_factory=list)
    host_blocks: list[bytearray] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _count(self, call: str) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise AclError(507899, call, {})

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        if self.on_malloc is not None:
            self.on_malloc()
        with self._lock:
            self._count("malloc")
            addr = self._next.get(device_id, DEVICE_BASE + device_id * DEVICE_SPAN)
            self._next[device_id] = addr + size_bytes + 4096
            self.blocks[device_id, addr] = Block(mem_type, purpose, bytearray(b"\xee" * min(size_bytes, 1 << 20)))
            self.mallocs.append((mem_type, size_bytes, device_id))
            return DevAddr(addr)

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        with self._lock:
            if (device_id, dev_addr) not in self.blocks:
                raise StateError(f"no block at {dev_addr:#x} on device {device_id}")
            self._count("free")
            assert self.blocks.pop((device_id, dev_addr)).mem_type == mem_type
            self.frees.append((mem_type, dev_addr, device_id))

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        with self._lock:
            if self.rdma_room is None:
                raise StateError("there is no pool of registered memory")
            if size_bytes > self.rdma_room:
                raise OutOfMemoryError(207001, "pool", {"size_bytes": size_bytes})
            self.rdma_room -= size_bytes
            self.rdma.append((mem_type, size_bytes, device_id))
            addr = self._next.get(device_id, DEVICE_BASE + device_id * DEVICE_SPAN)
            self._next[device_id] = addr + -(-max(size_bytes, 1) // 4096) * 4096
            self.blocks[device_id, addr] = Block(MemType.RT_MEMORY_RDMA_HBM, "pool", bytearray(size_bytes))
            return DevAddr(addr)

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        with self._lock:
            self._count("get_host_pool_memory")
            self.host.append((mem_type, size_bytes))
            block = bytearray(max(size_bytes, 1))
            self.host_blocks.append(block)
            return ctypes.addressof(ctypes.c_char.from_buffer(block))

    def _place(self, dev_addr: int, device_id: int) -> tuple[bytearray, int]:
        for (device, start), block in self.blocks.items():
            if device == device_id and start <= dev_addr < start + len(block.data):
                return block.data, dev_addr - start
        raise StateError(f"no block holds {dev_addr:#x} on device {device_id}")

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        content = _view(data)
        with self._lock:
            self._count("memcpy_in")
            block, at = self._place(dev_addr, device_id)
            assert len(content) <= max_bytes <= len(block) - at
            block[at : at + len(content)] = content
            self.copies_in += 1

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        target = _view(data)
        with self._lock:
            self._count("memcpy_out")
            block, at = self._place(dev_addr, device_id)
            target[:] = block[at : at + len(target)]


@dataclass
class FakeExpandable:
    """Memory that grows, over the blocks of a `FakeMemory`; it has room for `capacity` bytes, frees give none back."""

    memory: FakeMemory
    capacity: int = 1 << 40
    supported: bool = True
    device_id: DeviceId = field(default_factory=lambda: DeviceId(0))
    settings: list[tuple[str, bool]] = field(default_factory=list)
    mallocs: list[tuple[str, int, bool]] = field(default_factory=list)
    frees: int = 0
    live: list[int] = field(default_factory=list)
    _next: int = field(default_factory=lambda: next(_RANGES))

    def is_support_expandable_memory(self) -> bool:
        return self.supported

    def set_reuse(self, reuse: bool) -> None:
        self.settings.append(("reuse", reuse))

    def set_share_phy_allocator(self, share_phy_allocator: bool) -> None:
        self.settings.append(("share_phy_allocator", share_phy_allocator))

    def malloc_memory(self, purpose: str, size_bytes: int, incremental: bool = False) -> DevAddr:
        self.mallocs.append((purpose, size_bytes, incremental))
        if size_bytes > self.capacity:
            raise OutOfMemoryError(207001, "expandable", {"size_bytes": size_bytes})
        self.capacity -= size_bytes
        addr, self._next = self._next, self._next + size_bytes
        self.memory.blocks[self.device_id, addr] = Block(MemType.RT_MEMORY_HBM, purpose, bytearray(size_bytes))
        self.live.append(addr)
        return DevAddr(addr)

    def free_memory(self) -> None:
        self.frees += 1
        for addr in self.live:
            del self.memory.blocks[self.device_id, addr]
        self.live.clear()


def make_desc(
    size: int,
    dtype: DataType = DataType.DT_INT8,
    fmt: int = Format.FORMAT_ND,
    shape: tuple[int, ...] | None = None,
) -> TensorDesc:
    """A description of `size` bytes; one dimension unless a shape is given."""
    return TensorDesc(dtype, fmt, (max(size, 0),) if shape is None else shape, size=size)


def with_init(desc: TensorDesc, data: bytes, value_desc: TensorDesc | None = None) -> TensorDesc:
    """The description with an initial value."""
    value = ge_ir.TensorDef(desc=tensor_desc_to_proto(desc if value_desc is None else value_desc), data=data)
    return desc.replace(attrs={**desc.attrs, "_init_value": ge_ir.AttrDef(t=value)})


def with_inner_offset(desc: TensorDesc, offset: int) -> TensorDesc:
    return desc.replace(attrs={**desc.attrs, "_inner_offset": ge_ir.AttrDef(i=offset)})


def constant(name: str, value: bytes | None, desc: TensorDesc) -> VarOp:
    return VarOp(name, "Constant", (desc,), value=value)


def file_constant(name: str, location: str, offset: int = 0, length: int = 0) -> VarOp:
    return VarOp(name, "FileConstant", attrs={"location": location, "offset": offset, "length": length})


def place_holder(name: str, addr: int, size: int, dtype: DataType = DataType.DT_INT8) -> VarOp:
    shape = (size // dtype.size_code,)
    attrs: dict[str, AttrValue] = {"storage_shape": shape, "dtype": dtype, "size": size, "placement": 1, "addr": addr}
    return VarOp(name, "ConstPlaceHolder", attrs=attrs)


def make_manager(memory: FakeMemory | None = None, *, sized: bool = True, session_id: int = 1) -> VarManager:
    """An initialised manager; with sizes set its logic base is 128 GiB."""
    vm = VarManager(session_id)
    vm.init(0, session_id)
    if sized:
        vm.set_memory_malloc_size(64 * GIB)
    if memory is not None:
        vm.set_mem_manager(memory)
    return vm
