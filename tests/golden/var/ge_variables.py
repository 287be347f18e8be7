"""GE's rules for names, keys and logical addresses."""

from collections.abc import Mapping
from dataclasses import replace

from gevar.types import DataType, Format, TensorDesc
from gevar.types.data_type import element_size_code
from tests.golden.var.ge_state import (
    ALIGN_BYTES,
    FAILED,
    GUARD_BYTES,
    HBM,
    INTERNAL_ERROR,
    MEMALLOC_FAILED,
    PARAM_INVALID,
    RDMA,
    RESERVED,
    DeviceRecord,
    GeError,
    GeState,
    Record,
    Resource,
)
from tests.golden.var.values import UINT64, Op

MEMSET_LIMIT_BYTES = (1 << 31) - 1
ND_OUTPUT = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, ())
"""What an operator without outputs has for output 0."""


class GeVariables(GeState):
    """The part of the model that knows no device."""

    def logic_base(self) -> int:
        """The base that registrations count from: that of the manager the tables name."""
        return self.around.logic_base_of(self.need(FAILED).session_id)

    def assign_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        res = self.need(PARAM_INVALID)
        self.space(mem_type)
        found, capacity, stored_type = self.reusable(res, name, desc, op, mem_type)
        if found is None or desc.size > capacity:
            raw = self.place(mem_type, desc.size, op)
            try:
                self.save_var_addr(res, name, desc, raw, stored_type, op)
            except GeError as error:
                raise GeError(INTERNAL_ERROR) from error
            found = raw
        current = res.cur_descs.get(res.key_name(name))
        if current is None or not current.same_description(desc):
            self.set_var_addr(name, desc, found, stored_type, op)

    def reusable(
        self, res: Resource, name: str, desc: TensorDesc, op: Op | None, mem_type: int
    ) -> tuple[int | None, int, int]:
        """The address a request may have without new space, the bytes there, and the kind of memory to record."""
        current = res.cur_descs.get(res.key_name(name))
        if current is None:
            donor = self.donor(res, op)
            return (None, 0, mem_type) if donor is None else (donor.address, desc.size, donor.mem_type)
        record = res.records.get(res.key(name, current))
        return (None, 0, mem_type) if record is None else (record.address, current.size, record.mem_type)

    def donor(self, res: Resource, op: Op | None) -> Record | None:
        """The record that an operator shares by content or by file."""
        if op is None:
            return None
        if op.op_type == "FileConstant":
            return res.records.get(res.file_keys.get(file_key(op), "")) if op.attrs.get("location") else None
        code = size_code(op)
        if code <= 0 or not op.weight:
            return None
        for record in res.records.values():
            other = record.op
            if other is None or other.op_type != "Constant" or other.weight != op.weight:
                continue
            if size_code(other) == code:
                return record
        return None

    def place(self, mem_type: int, size_bytes: int, op: Op | None) -> int:
        """Take new space; return what GE records as the offset."""
        space, size = self.spaces[mem_type], size_bytes % UINT64
        if mem_type == HBM:
            if size + ALIGN_BYTES >= UINT64:
                raise GeError(INTERNAL_ERROR)
            offset, block = space.var_mem_size, -(-size // ALIGN_BYTES) * ALIGN_BYTES + GUARD_BYTES
            if offset + block - ALIGN_BYTES >= UINT64:
                raise GeError(INTERNAL_ERROR)
            if offset + block >= UINT64:
                space.var_mem_size += block - ALIGN_BYTES
                raise GeError(INTERNAL_ERROR)
            space.var_mem_size += block
            if op is not None and op.op_type == "ConstPlaceHolder":
                space.place_holder_size += block
            return offset
        if not self.has_mem_manager:
            raise GeError(INTERNAL_ERROR) from GeError(MEMALLOC_FAILED)
        sources = self.around.sources
        if mem_type == RDMA:
            raw = sources.rdma_pool_malloc(HBM, size, self.device_id)
        else:
            raw = sources.host_pool_malloc(HBM, size)
            if not 0 < size <= MEMSET_LIMIT_BYTES:
                raise GeError(INTERNAL_ERROR)
        space.var_mem_size += size
        return raw

    def save_var_addr(self, res: Resource, name: str, desc: TensorDesc, raw: int, mem_type: int, op: Op | None) -> None:
        key = res.key(name, desc)
        if key in res.records:
            raise GeError(FAILED)
        address = (raw + self.logic_base()) % UINT64 if mem_type == HBM else raw
        res.records[key] = Record(desc, address, raw, mem_type, op)
        res.addr_types[address] = mem_type
        if op is not None and op.op_type == "FileConstant":
            res.file_keys.setdefault(file_key(op), key)
        extern = 0
        if op is not None and op.op_type == "ConstPlaceHolder":
            extern = place_holder_addr(op)
        res.template[address] = DeviceRecord(desc, extern, bool(extern))

    def set_var_addr(self, name: str, desc: TensorDesc, addr: int, mem_type: int, op: Op | None) -> None:
        res = self.need(INTERNAL_ERROR)
        key = res.key(name, desc)
        if key not in res.records:
            offset = (addr - self.logic_base()) % UINT64 if mem_type == HBM else 0
            res.records[key] = Record(desc, addr % UINT64, offset, mem_type, op)
            if op is not None and op.op_type == "FileConstant":
                res.file_keys.setdefault(file_key(op), key)
        res.cur_descs[res.key_name(name)] = desc

    def restore_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        res = self.need(PARAM_INVALID)
        if desc.size < 0:
            raise GeError(PARAM_INVALID)
        current = res.cur_descs.get(res.key_name(name))
        record = None if current is None else res.records.get(res.key(name, current))
        if current is not None and record is not None:
            if current.same_description(desc):
                return
            if desc.size > current.size:
                raise GeError(PARAM_INVALID)
            self.set_var_addr(name, desc, record.address, mem_type, op)
            return
        if op is None or not op.output_offsets:
            raise GeError(PARAM_INVALID)
        offset = op.output_offsets[0] - self.sizes.var_mem_logic_base
        if offset < 0 or offset + desc.size > self.sizes.var_mem_max_size:
            raise GeError(PARAM_INVALID)
        try:
            self.save_var_addr(res, name, desc, offset, mem_type, op)
        except GeError as error:
            raise GeError(PARAM_INVALID) from error
        self.set_var_addr(name, desc, offset, mem_type, op)

    def get_var_addr(self, name: str, desc: TensorDesc) -> tuple[int, int]:
        res = self.need(INTERNAL_ERROR)
        record = res.records.get(res.key(name, desc))
        if record is None:
            raise GeError(INTERNAL_ERROR)
        return record.address, record.mem_type

    def get_cur_var_desc(self, name: str) -> TensorDesc:
        res = self.need(INTERNAL_ERROR)
        desc = res.cur_descs.get(res.key_name(name))
        if desc is None:
            raise GeError(FAILED)
        return desc

    def renew_cur_var_desc(self, name: str, desc: TensorDesc) -> None:
        res = self.need(INTERNAL_ERROR)
        current = res.cur_descs.get(res.key_name(name))
        if current is None:
            return
        old_key = res.key(name, current)
        renewed = current.replace(format=desc.format, origin_format=desc.origin_format)
        res.cur_descs[res.key_name(name)] = renewed
        record = res.records.pop(old_key, None)
        if record is None:
            raise GeError(FAILED)
        form = record.desc.replace(format=desc.format, origin_format=desc.origin_format)
        res.records[res.key(name, renewed)] = replace(record, desc=form)

    def renew_cur_var_desc_by_op(self, name: str, op: Op | None) -> None:
        res = self.need(INTERNAL_ERROR)
        if res.key_name(name) not in res.cur_descs:
            return
        if op is None:
            raise GeError(FAILED)
        self.renew_cur_var_desc(name, op.outputs[0] if op.outputs else ND_OUTPUT)

    def is_var_exist(self, name: str, desc: TensorDesc | None) -> bool:
        if self.resource is None:
            return False
        res = self.resource
        return res.key_name(name) in res.cur_descs if desc is None else res.key(name, desc) in res.records

    def is_var_addr(self, addr: int) -> bool:
        return self.resource is not None and addr in self.resource.addr_types

    def get_var_mem_type(self, addr: int) -> int:
        return RESERVED if self.resource is None else self.resource.addr_types.get(addr, RESERVED)

    def get_all_variables(self) -> Mapping[str, TensorDesc]:
        res = self.need(INTERNAL_ERROR)
        if not res.cur_descs:
            raise GeError(INTERNAL_ERROR)
        roads = {name: res.roads.get(res.key_name(name)) for name in res.cur_descs}
        return {name: road[0][1] if (road := roads[name]) else desc for name, desc in res.cur_descs.items()}


def size_code(op: Op) -> int:
    """Element size of output 0: bytes, or 1000 + bits; not positive where there is none."""
    return element_size_code(op.outputs[0].dtype) if op.outputs else -1


def file_key(op: Op) -> str:
    return f"{op.attrs.get('location', '')}:{op.attrs.get('offset', 0)}"


def place_holder_addr(op: Op) -> int:
    """Address of the caller's memory that a place holder names."""
    shape, dtype, addr = op.attrs.get("storage_shape"), op.attrs.get("dtype"), op.attrs.get("addr")
    size, placement = op.attrs.get("size"), op.attrs.get("placement")
    if not isinstance(shape, tuple) or not isinstance(dtype, DataType) or not isinstance(addr, int) or not addr:
        raise GeError(FAILED)
    if not isinstance(size, int) or placement != 1 or tensor_bytes(shape, dtype) > size:
        raise GeError(FAILED)
    return addr % UINT64


def tensor_bytes(shape: tuple[int, ...], dtype: DataType) -> int:
    count, code = 1, element_size_code(dtype)
    for dim in shape:
        count *= dim
    return -(-count * (code - 1000) // 8) if code > 1000 else count * code
