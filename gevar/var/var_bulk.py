"""Many variables in one call: each call takes the lock once, and registers all of its variables or none."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gevar.status import PARAM_INVALID
from gevar.types import DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var.mem_resource import POOL_MEM_TYPES
from gevar.var.new_variables import WEIGHT_OP_TYPES, VarItem, assign_new_run
from gevar.var.resolved_table import AddrArray
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_request import VarRequest
from gevar.var.var_resource import VarResource
from gevar.var.var_serial import VarSerial
from gevar.var.var_undo import VarUndo

_Register = Callable[[VarResource, VarRequest], VarRecord]
_Run = tuple[list[VarBlock], list[LogicAddr]]
_RegisterRun = Callable[[VarResource, Iterator[VarItem]], _Run]


class VarBulk(VarSerial):
    """The part of the variable manager that takes many variables at once."""

    def assign_many(self, items: Iterable[VarItem], memory_type: MemType = MemType.RT_MEMORY_HBM) -> AddrArray:
        """Do `assign_var_mem` for each item in turn, all or none.

        Parameters
        ----------
        items
            Name, node and description of each variable.
        memory_type
            Kind of memory of all of them.

        Returns
        -------
        numpy.ndarray
            Logical addresses in the order of the items.

        Raises
        ------
        StateError, ValueError, VariableError, SizeOverflowError
            As `assign_var_mem`; a note of the error names the item.

        After failure: everything is as it was, but for what a pool gave and bytes that were compared.
        Thread safety: as `assign_var_mem`. A look-up beside the call may find a variable before all of them are there.
        """

        def assign(resource: VarResource, request: VarRequest) -> VarRecord:
            return resource.assign(request, self._mem_resource(memory_type, resource), self._config)

        def assign_run(resource: VarResource, items: Iterator[VarItem]) -> _Run:
            if memory_type != MemType.RT_MEMORY_HBM:
                return _no_run(resource, items)
            return assign_new_run(resource, items, self._mem_resource(memory_type, resource), self._config)

        return self._register_many(items, memory_type, assign, assign_run)

    def restore_many(self, items: Iterable[VarItem], memory_type: MemType = MemType.RT_MEMORY_HBM) -> AddrArray:
        """Do `restore_var_mem` for each item in turn, all or none; arguments and result as `assign_many`.

        Raises
        ------
        StateError, ValueError, VariableError, AddressError
            As `restore_var_mem`; a note of the error names the item.

        After failure: everything is as it was.
        """

        def restore(resource: VarResource, request: VarRequest) -> VarRecord:
            return resource.restore(request, self._config)

        return self._register_many(items, memory_type, restore, _no_run)

    def _register_many(
        self, items: Iterable[VarItem], memory_type: MemType, register: _Register, register_run: _RegisterRun
    ) -> AddrArray:
        """Register all items or none: a run of them, the one at which the run ended, and so on."""
        items = list(items)
        requests = self._weight_requests(items, memory_type)
        addrs: list[LogicAddr] = []
        with self._lock:
            resource = self._require(PARAM_INVALID)
            undo, mems = VarUndo(resource), dict(self._mem_resources)
            rest, figures = iter(items), [(mem, mem.figures) for mem in mems.values()]
            try:
                while len(addrs) < len(items):
                    blocks, run_addrs = register_run(resource, rest)
                    undo.note_new(blocks)
                    addrs += run_addrs
                    at = len(addrs)
                    if at == len(items):
                        break
                    known = requests.get(at)
                    request = resource.completed(known) if known else resource.request(*items[at], memory_type)
                    undo.note(request)
                    addrs.append(register(resource, request).block.logic_addr)
            except BaseException as error:
                undo.take_back()
                self._mem_resources = mems
                for mem, before in figures:
                    mem.figures = before
                _name_item(error, len(addrs), items)
                raise
        return np.array(addrs, np.uint64)

    def _weight_requests(self, items: Sequence[VarItem], memory_type: MemType) -> dict[int, VarRequest]:
        """Read the weights of those items that may share by them, without the lock."""
        resource = self._require(PARAM_INVALID)
        requests: dict[int, VarRequest] = {}
        for at, (name, op, desc) in enumerate(items):
            if op is not None and op.op_type in WEIGHT_OP_TYPES:
                try:
                    requests[at] = resource.request(name, op, desc, memory_type)
                except ValueError as error:
                    _name_item(error, at, items)
                    raise
        return requests

    def get_var_addr_many(self, names: Sequence[str], descs: Sequence[TensorDesc]) -> AddrArray:
        """Return the logical address of each name in the form of its description, as `get_var_addr` does.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            A variable is not there, or not in this form (status INTERNAL_ERROR).
        ValueError
            There are more names than descriptions, or fewer.

        Thread safety: all addresses are those of one moment.
        """
        with self._lock:
            found = [self._record(name, desc).block.logic_addr for name, desc in zip(names, descs, strict=True)]
        return np.array(found, np.uint64)

    def resolve_many(self, addresses: npt.NDArray[np.integer], device_id: DeviceId = DEFAULT_DEVICE_ID) -> AddrArray:
        """Return the device address that each logical address stands for, as `get_var_memory_addr` does.

        Parameters
        ----------
        addresses
            Logical addresses, an array of integers of any shape.
        device_id
            The device.

        Returns
        -------
        numpy.ndarray
            Device addresses in the same shape.

        Raises
        ------
        TypeError
            The array is not one of integers.
        AddressError
            An address belongs to no variable. Nothing is allocated.
        AclError, FormatError, OutOfMemoryError, StateError
            As `get_var_memory_addr`.

        After failure: where the runtime refused, variables that got memory before that keep it.
        Thread safety: as `get_var_memory_addr`; memory that is freed meanwhile is looked up again.
        """
        if addresses.dtype.kind not in "iu":
            raise TypeError(f"addresses are {addresses.dtype}: give an array of integers")
        while True:
            self._require_mem_manager()
            generation = self._device_records.generation
            result = self._resolve_all(addresses, device_id)
            if generation == self._device_records.generation:
                return result

    def _resolve_all(self, addresses: npt.NDArray[np.integer], device_id: DeviceId) -> AddrArray:
        resource, flat = self._require(PARAM_INVALID), addresses.ravel()
        if flat.dtype.kind == "i" and flat.min(initial=0) < 0:
            raise self._no_block(resource, int(flat.min()))
        addrs = flat.astype(np.uint64, copy=False)
        if device_id in self._regions:
            return self._resolve_each(addrs, device_id).reshape(addresses.shape)
        found, missing = self._device_records.device(device_id).resolved(self._lock).resolve(addrs)
        if missing.size:
            found[missing] = self._resolve_each(addrs[missing], device_id)
        return found.reshape(addresses.shape)

    def _resolve_each(self, addrs: AddrArray, device_id: DeviceId) -> AddrArray:
        """Resolve addresses that have no memory yet, or memory of other owners; one that is none is found first."""
        numbers = addrs.tolist()
        with self._lock:
            resource = self._require(PARAM_INVALID)
            blocks = [self._plain_block(resource, addr, device_id) for addr in numbers]
        data_addrs: dict[VarBlock, int] = {}
        found: list[int] = []
        for addr, block in zip(numbers, blocks, strict=True):
            if block is None:
                found.append(self.get_var_memory_addr(LogicAddr(addr), device_id=device_id))
                continue
            data_addr = data_addrs.get(block)
            if data_addr is None:
                data_addr = data_addrs[block] = self.get_var_memory_addr(block.logic_addr, device_id=device_id)
            found.append(data_addr + addr - block.logic_addr)
        return np.array(found, np.uint64)

    def _plain_block(self, resource: VarResource, logic_addr: int, device_id: DeviceId) -> VarBlock | None:
        """The block of an address that has memory of its own on a device; None where more than that decides."""
        if device_id in self._regions:
            return None
        block = resource.blocks.find(logic_addr)
        if block is None:
            raise self._no_block(resource, logic_addr)
        return None if block.is_place_holder or block.mem_type in POOL_MEM_TYPES else block


def _no_run(_resource: VarResource, items: Iterator[VarItem]) -> _Run:
    """End at the first item."""
    next(items, None)
    return [], []


def _name_item(error: BaseException, number: int, items: Sequence[VarItem]) -> None:
    """Say in a note which item an error is about."""
    error.add_note(f"it was variable {items[number][0]!r}, item {number} of {len(items)}; none of them is registered")
