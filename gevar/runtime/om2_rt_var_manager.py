"""Variables of OM2 packages at run time: exact sizes, no guards, one block for each key and device.

Source: GE source, runtime/om2, Om2RTVarManager.
Differs: edges 28, 29 and 30 of docs/differences.md.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from gevar.errors import AddressError, VariableError
from gevar.memory import MemoryManager
from gevar.runtime.om2_var_blocks import Om2VarBlock, Om2VarBlocks, Place
from gevar.runtime.om2_var_resource import RTVarEntry, RTVarResource
from gevar.runtime.trans_steps import Bytes, cast, convert, moves_data, warn_of_losses
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var.load_state import LoadTable

OM2_LOGIC_BASE: Final = 128 << 30
"""Logical address at which memory of the caller's starts."""

THREADS: Final = 16
_log = logging.getLogger("gevar.runtime")


class Om2RTVarManager:
    """Give the variables of one session memory on devices, and bring their data there.

    Parameters
    ----------
    session_id
        Number of the session.
    memory_manager
        Memory of the devices.

    Thread safety: all methods, from any thread; a block is got once however many ask.
    Source, Differs: as the module.
    """

    def __init__(self, session_id: int, memory_manager: MemoryManager) -> None:
        self.session_id = session_id
        self._memory = memory_manager
        self._lock = threading.RLock()
        self._resource = RTVarResource()
        self._external: tuple[DevAddr, int] | None = None
        self._blocks = Om2VarBlocks(memory_manager, self._lock)
        self._loaded: LoadTable[Place] = LoadTable(self._lock)

    def init(self, resource: RTVarResource, external_addr: DevAddr | None = None, external_size: int = 0) -> None:
        """Take variables over; keys that are there stay as they are.

        Parameters
        ----------
        resource
            The variables.
        external_addr, external_size
            Memory of the caller's for all of them, from logical address 128 GiB on; None for none.

        Raises
        ------
        ValueError
            The address is not positive, or the size negative. Nothing has changed.
        """
        if external_addr is not None and (external_addr <= 0 or external_size < 0):
            raise ValueError(f"external memory of {external_size} B at {external_addr}: give an address and a size")
        with self._lock:
            self._external = None if external_addr is None else (external_addr, external_size)
            self._resource.add_new(resource)

    def entry(self, name: str) -> RTVarEntry:
        """Return a variable by its name or key.

        Raises
        ------
        VariableError
            There is none (status PARAM_INVALID).
        """
        with self._lock:
            found = self._resource.find(name)
        if found is None:
            reason = f"session {self.session_id} has no such variable; init with its package first"
            raise VariableError(name, reason, status=PARAM_INVALID)
        return found

    def get_var_dev_addr(self, var: str | RTVarEntry, device_id: DeviceId) -> DevAddr | None:
        """Return the memory of a variable on a device, with its initial data; None for a variable of 0 bytes.

        Raises
        ------
        VariableError
            There is no such variable (status PARAM_INVALID), or its initial data is longer than it (status FAILED).
        AddressError
            It does not lie in the memory of the caller's (status FAILED).
        StateError
            Everything was freed meanwhile.
        AclError, OutOfMemoryError
            The device refuses memory or a copy.

        After failure: nothing is left allocated, and the next call tries again.
        """
        entry = self.entry(var) if isinstance(var, str) else var
        block = self._blocks.obtain(entry.var_key, device_id, lambda: self._make(entry, device_id))
        return None if block is None else block.dev_addr

    def get_or_create_var_addr(self, key: str, device_id: DeviceId, size_bytes: int) -> DevAddr | None:
        """Return memory for an external weight, kept under its key; None for 0 bytes.

        Raises
        ------
        VariableError
            The key has memory of another size (status FAILED), or the size is negative.
        AclError, OutOfMemoryError
            The device refuses memory.
        """
        if size_bytes < 0:
            raise VariableError(key, f"its size is {size_bytes} B; give a size from 0", status=PARAM_INVALID)
        hbm = MemType.RT_MEMORY_HBM
        block = None
        if size_bytes:
            block = self._blocks.obtain(key, device_id, lambda: self._blocks.malloc(key, hbm, size_bytes, device_id))
        if block is None:
            return None
        if block.size_bytes != size_bytes:
            reason = f"it has {block.size_bytes} B on device {device_id}, not {size_bytes} B"
            raise VariableError(key, reason, status=FAILED)
        return block.dev_addr

    def try_get_var_addr(self, key: str, device_id: DeviceId) -> DevAddr | None:
        """Return the memory that a key has on a device; None where it has none."""
        block = self._blocks.find(key, device_id)
        return None if block is None else block.dev_addr

    def _make(self, entry: RTVarEntry, device_id: DeviceId) -> Om2VarBlock | None:
        """Memory of a variable that holds what it starts with."""
        data = entry.init_data
        if data is not None and len(data) > entry.size:
            reason = f"its initial data has {len(data)} B and the variable {entry.size} B"
            raise VariableError(entry.var_key, reason, status=FAILED)
        if entry.extern_dev_addr is not None:
            block = Om2VarBlock(entry.extern_dev_addr, entry.size, entry.memory_type, is_owned=False)
        elif self._external is not None:
            block = self._external_block(entry, *self._external)
        elif entry.size:
            block = self._blocks.malloc(entry.var_key, entry.memory_type, entry.size, device_id)
        else:
            return None
        if data:
            try:
                self._memory.memcpy_in(block.dev_addr, entry.size, data, device_id)
            except BaseException:
                self._blocks.free(block, device_id)
                raise
        return block

    def _external_block(self, entry: RTVarEntry, addr: DevAddr, size_bytes: int) -> Om2VarBlock:
        offset = entry.logic_addr - OM2_LOGIC_BASE
        if not 0 <= offset <= size_bytes - entry.size:
            reason = f"{entry.size} B of {entry.var_key} do not lie in the {size_bytes} B from {OM2_LOGIC_BASE} on"
            error = AddressError(LogicAddr(entry.logic_addr), reason)
            error.status = FAILED
            raise error
        return Om2VarBlock(DevAddr(addr + offset), entry.size, entry.memory_type, is_owned=False)

    def trans_all_var_data(self, names: Iterable[str], device_id: DeviceId, graph_id: int) -> list[str]:
        """Bring the data of variables into the form that a graph changed them to; return those that were converted.

        That is each variable with a road that moves bytes, changed by this graph and first used by another, and not
        loaded on the device yet.

        Raises
        ------
        VariableError
            There is no such variable (status PARAM_INVALID), or none in the form before the change (status FAILED).
        FormatError
            A step of a road cannot be done (status UNSUPPORTED).
        AclError, OutOfMemoryError
            The device refuses memory or a copy.

        After failure: the variable counts as not loaded; others may be converted, and are not converted again.
        """
        chosen = [
            entry
            for entry in map(self.entry, names)
            if entry.changed_graph_id == graph_id
            and entry.changed_graph_id != entry.allocated_graph_id
            and moves_data(entry.trans_road)
        ]
        return self._bring_all(chosen, device_id, self._converted)

    def copy_var_data(self, names: Iterable[str], device_id: DeviceId) -> list[str]:
        """Fill variables that start as a copy of another one; return those that were filled.

        A source that is not there is passed over with a warning.

        Raises
        ------
        VariableError
            There is no such variable (status PARAM_INVALID).
        FormatError
            The types cannot be converted.
        AclError, OutOfMemoryError
            The device refuses memory or a copy.

        After failure: as `trans_all_var_data`.
        """
        chosen = [entry for entry in map(self.entry, names) if entry.copy_info is not None]
        return self._bring_all(chosen, device_id, self._copied)

    def _bring_all(
        self,
        entries: list[RTVarEntry],
        device_id: DeviceId,
        content: Callable[[RTVarEntry, DeviceId], Bytes | None],
    ) -> list[str]:
        if not entries:
            return []
        with ThreadPoolExecutor(min(THREADS, len(entries))) as pool:
            brought = pool.map(lambda entry: self._bring(entry, device_id, content), entries)
            return [entry.var_name for entry, done in zip(entries, list(brought), strict=True) if done]

    def _bring(
        self,
        entry: RTVarEntry,
        device_id: DeviceId,
        content: Callable[[RTVarEntry, DeviceId], Bytes | None],
    ) -> bool:
        """Write what a variable should hold, once for a device."""
        ticket = self._loaded.begin((entry.var_key, device_id))
        if ticket is None:
            return False
        try:
            data = content(entry, device_id)
            addr = None if data is None else self.get_var_dev_addr(entry, device_id)
            if data is None or addr is None:
                ticket.abort()
                return False
            if len(data) > entry.size:
                reason = f"{len(data)} B do not fit its {entry.size} B"
                raise VariableError(entry.var_key, reason, status=FAILED)
            self._memory.memcpy_in(addr, entry.size, data, device_id)
        except BaseException:
            ticket.abort()
            raise
        return ticket.commit()

    def _converted(self, entry: RTVarEntry, device_id: DeviceId) -> Bytes:
        before = entry.trans_road[0].input
        with self._lock:
            old = self._resource.find_form(entry.var_name, before)
        if old is None:
            reason = f"it is not there in format {before.format}, type {before.dtype.name}, from which its road starts"
            raise VariableError(entry.var_name, reason, status=FAILED)
        data, counts = convert(self._read(old, device_id), entry.trans_road)
        warn_of_losses(entry.var_name, counts)
        return data

    def _copied(self, entry: RTVarEntry, device_id: DeviceId) -> Bytes | None:
        assert entry.copy_info is not None
        with self._lock:
            source = self._resource.find(entry.copy_info.src_var_name)
        if source is None:
            text = "variable %r starts as a copy of %r, which session %d does not have: it is left as it is"
            _log.warning(text, entry.var_name, entry.copy_info.src_var_name, self.session_id)
            return None
        data, counts = cast(self._read(source, device_id), source.tensor_desc, entry.tensor_desc)
        warn_of_losses(entry.var_name, counts)
        return data

    def _read(self, entry: RTVarEntry, device_id: DeviceId) -> Bytes:
        data, addr = np.empty(entry.size, np.uint8), self.get_var_dev_addr(entry, device_id)
        if addr is not None:
            self._memory.memcpy_out(data, addr, device_id)
        return data

    def is_loaded(self, name: str, device_id: DeviceId) -> bool:
        """Tell whether a variable was converted or copied on a device."""
        return self._loaded.is_loaded((self.entry(name).var_key, device_id))

    def finalize(self) -> None:
        """Free all memory that was got here, on its owner's device; what is the caller's stays.

        Raises
        ------
        AclError
            The device refuses a block; the others are freed, and it is its owner's to give back.
        """
        with self._lock:
            self._loaded.clear()
        self._blocks.free_all()
