"""Variables that sleep: the pages under them go back to the device, their logical and device addresses stay."""

import threading
from collections.abc import Collection
from contextlib import ExitStack

from acl_shim.host_memory import HostBuffer
from gevar.errors import StateError
from gevar.memory.expandable_sleep import KeepContents
from gevar.types import DeviceId, LogicAddr
from gevar.var.block_memory import DeviceRecord
from gevar.var.device_state import DeviceState
from gevar.var.expandable_memory import ExpandableMemory
from gevar.var.load_state import LoadTicket
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.sleeping import Contents, Nap, ReloadVar, SleepingAllocator, SleepPlan, undo_each
from gevar.var.var_access import VarAccess
from gevar.var.var_transaction import VarTransaction


class VarSleep(VarTransaction):
    """The part of the variable manager that lets the memory of variables sleep."""

    def __init__(self, session_id: int) -> None:
        super().__init__(session_id)
        self._sleep_lock = threading.RLock()  # one sleep or wake at a time; before every other lock
        self._access = VarAccess()
        self._naps: dict[DeviceId, list[tuple[ExpandableMemory, Nap]]] = {}
        self._waking_thread: int | None = None

    def sleep(
        self,
        kinds: Collection[str] | None = None,
        keep: str = "host",
        reload: ReloadVar | None = None,
        *,
        device_id: DeviceId | None = None,
    ) -> int:
        """Give the pages under variables in memory that grows back to the device, until `wake`; every address stays.

        Variables in plain memory, place holders and memory of the caller's stay as they are. What is not there yet is
        not allocated meanwhile, and nothing that sleeps is read or written.

        Parameters
        ----------
        kinds
            Types of the nodes whose variables `keep` is meant for; None for all. The bytes of the others wait in host
            memory.
        keep
            What happens to the bytes: ``"host"`` copies them to host memory, ``"reload"`` lets `reload` bring them
            back, ``"discard"`` loses them: the variables count as neither loaded nor ready any more, and start
            with their initial value again.
        reload
            Called by `wake` for the memory of each variable, with its record; it may write the variable.
        device_id
            The device; None for every one that has memory that grows.

        Returns
        -------
        int
            Bytes of physical memory that were given up.

        Raises
        ------
        ValueError
            No such kind, no such way to keep bytes, or `reload` does not go with it.
        StateError
            There is no memory manager, no memory that grows, or an allocator of another make; it sleeps already; a
            variable is being allocated or loaded; or this thread is reading or writing one.
        AclError
            The runtime refuses a step.

        After failure: everything is awake as before.
        Thread safety: any thread may call. Reads and writes of variables under way end first, and later ones wait until
        it is settled; nobody may use device addresses that he holds until `wake`.
        Differs: GE has nothing like it.
        """
        plan = SleepPlan.checked(kinds, keep, reload)
        self._access.refuse_user()
        with self._sleep_lock, self._access.alone(), ExitStack() as held:
            found = self._growing(device_id)
            begun: list[tuple[DeviceId, ExpandableMemory, Nap]] = []
            lost: list[tuple[DeviceState, Contents]] = []
            try:
                for number, device in found:
                    allocators = [(one, _sleeping(held.enter_context(one.held()))) for one in device.expandables]
                    contents = self._contents(plan, number, device)
                    for expandable, allocator in allocators:
                        nap = Nap(allocator, contents)
                        nap.begin()
                        begun.append((number, expandable, nap))
                    if contents is not None and plan.keep is KeepContents.DISCARD:
                        lost.append((device, contents))
            except BaseException as error:
                left = undo_each([nap for _, _, nap in begun], lambda nap: nap.allocator.wake(), error)
                self._note_asleep([one for one in begun if one[2] in left], [])
                raise
            self._note_asleep(begun, lost)
            return sum(nap.allocator.end_sleep() for _, _, nap in begun)

    def wake(self, device_id: DeviceId | None = None) -> None:
        """Put new pages behind every address that sleeps, and bring the bytes back; does nothing when all is awake.

        Parameters
        ----------
        device_id
            The device; None for all of them.

        Raises
        ------
        OutOfMemoryError, AclError
            There are not enough pages, or a step is refused.
        FormatError
            An initial value does not fit its variable.
        StateError
            This thread is reading or writing a variable.
        Exception
            What `reload` raised.

        After failure: everything sleeps as before.
        Thread safety: as `sleep`.
        """
        self._access.refuse_user()
        with self._sleep_lock, ExitStack() as held:
            with self._lock:
                asleep = {at: list(naps) for at, naps in self._naps.items() if device_id in (None, at)}
            done: list[Nap] = []
            self._waking_thread = threading.get_ident()
            try:
                for naps in asleep.values():
                    for expandable, nap in naps:
                        held.enter_context(expandable.held())
                        nap.allocator.wake()
                        done.append(nap)
            except BaseException as error:
                undo_each(done, Nap.begin_and_end, error)
                raise
            finally:
                self._waking_thread = None
            with self._lock:
                for at in asleep:
                    self._naps.pop(at, None)

    def is_asleep(self, device_id: DeviceId = DEFAULT_DEVICE_ID) -> bool:
        """Tell whether the memory that grows of a device sleeps."""
        return device_id in self._naps

    def write_var_memory(
        self, logic_addr: LogicAddr, data: HostBuffer, device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> None:
        """Copy bytes into a variable; as `VarData.write_var_memory`, and a `StateError` also while it sleeps."""
        with self._access.use():
            self._refuse_asleep(logic_addr, device_id)
            super().write_var_memory(logic_addr, data, device_id)

    def read_var_memory(self, logic_addr: LogicAddr, data: HostBuffer, device_id: DeviceId = DEFAULT_DEVICE_ID) -> None:
        """Copy bytes of a variable; as `VarData.read_var_memory`, and a `StateError` also while it sleeps."""
        with self._access.use():
            self._refuse_asleep(logic_addr, device_id)
            super().read_var_memory(logic_addr, data, device_id)

    def _refuse_asleep(self, logic_addr: LogicAddr, device_id: DeviceId) -> None:
        resource = self._resource
        if resource is None or device_id not in self._naps or self._waking_thread == threading.get_ident():
            return
        block = self._find_block(resource, logic_addr)
        record = None if block is None else self._device_records.find(block, device_id)
        if record is not None and record.owner is None:
            raise StateError(f"variable {record.block.key} sleeps on device {device_id}: call wake first")

    def _growing(self, device_id: DeviceId | None) -> list[tuple[DeviceId, DeviceState]]:
        """Devices to let sleep, by number."""
        with self._lock:
            devices = [
                (number, device)
                for number, device in sorted(self._device_records.devices.items())
                if device.expandables and device_id in (None, number)
            ]
        where = "any device" if device_id is None else f"device {device_id}"
        if not devices:
            raise StateError(f"no variable lies in memory that grows on {where}: call init_expandable_memory_allocator")
        if asleep := [number for number, _ in devices if number in self._naps]:
            raise StateError(f"variables sleep on device {asleep[0]} already: call wake first")
        return devices

    def _contents(self, plan: SleepPlan, device_id: DeviceId, device: DeviceState) -> Contents | None:
        """How the bytes of a device come back; None where the allocators keep all of them."""
        with self._lock:
            for table in (device.memory, device.data):
                if busy := [key for key, state in table.states.items() if isinstance(state, LoadTicket)]:
                    what = f"the variable at {busy[0]:#x} is being allocated or loaded on device {device_id}"
                    raise StateError(f"{what}: let it sleep afterwards")
            records = [record for record in device.records.values() if record.owner is None]
        if plan.keep is KeepContents.HOST:
            return None
        return plan.contents(records, self._require_mem_manager(), device_id)

    def _note_asleep(
        self, begun: list[tuple[DeviceId, ExpandableMemory, Nap]], lost: list[tuple[DeviceState, Contents]]
    ) -> None:
        """Record what sleeps, and that lost bytes are not there any more."""
        with self._lock:
            for number, expandable, nap in begun:
                self._naps.setdefault(number, []).append((expandable, nap))
            resource = self._resource
            for device, contents in lost:
                blocks = {record.block for record in contents.chosen.values()}
                for block in blocks:
                    device.data.states.pop(block.logic_addr, None)
                known = {} if resource is None else resource.records
                device.ready = {key for key in device.ready if key not in known or known[key].block not in blocks}

    def _take_memory(self) -> tuple[list[DeviceRecord], list[ExpandableMemory]]:
        self._naps = {}
        return super()._take_memory()


def _sleeping(allocator: object) -> SleepingAllocator:
    if not isinstance(allocator, SleepingAllocator):
        raise StateError(f"{type(allocator).__name__} cannot sleep: give memory that has sleep and wake")
    return allocator
