"""Several calls to a manager that happen as one or not at all."""

from collections.abc import Container, Iterator
from contextlib import contextmanager

from gevar.errors import GevarError
from gevar.status import PARAM_INVALID
from gevar.types import LogicAddr
from gevar.var.var_bulk import VarBulk


class VarTransaction(VarBulk):
    """The part of the variable manager that takes back what several calls did to its tables."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take back what the calls of a block did to the tables, if the block raises.

        That are names, descriptions, logical addresses, sizes, what graphs did to variables, and what was called ready.
        Device memory and its contents are not taken back, nor is memory that a pool gave. Blocks may
        be nested; `destroy` does not belong into one.

        Raises
        ------
        StateError
            The manager is not initialised (status PARAM_INVALID).

        Thread safety: other writers wait until the block ends. A look-up beside it may find what is taken back later.

        Examples
        --------
        >>> from gevar.var import VarManager, SessionVersion
        >>> from gevar.types import DataType, Format, TensorDesc
        >>> vm = VarManager(1)
        >>> vm.init(SessionVersion.CLOUD_VERSION, session_id=1)
        >>> try:
        ...     with vm.transaction():
        ...         _ = vm.assign_var_mem("a", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2,), size=8))
        ...         raise KeyError("a")
        ... except KeyError:
        ...     vm.is_var_exist("a")
        False
        """
        with self._lock:
            resource = self._require(PARAM_INVALID)
            saved, mems = resource.copy(), {kind: (mem, mem.figures) for kind, mem in self._mem_resources.items()}
            ready = {device_id: set(device.ready) for device_id, device in self._device_records.devices.items()}
            try:
                yield
            except BaseException:
                resource.take_over(saved)
                self._mem_resources = {kind: mem for kind, (mem, _) in mems.items()}
                for mem, figures in mems.values():
                    mem.figures = figures
                for device_id, device in self._device_records.devices.items():
                    device.ready = ready.get(device_id, set())
                raise

    @contextmanager
    def memory_transaction(self, logic_addrs: Container[LogicAddr] | None = None) -> Iterator[None]:
        """Give back the device memory that the calls of a block got, if the block raises; on every device.

        Parameters
        ----------
        logic_addrs
            First addresses of the variables whose memory counts; None for all.

        Thread safety: takes no lock. Memory that another thread gets meanwhile for these variables goes, too.
        """
        known = set(self._device_records.records())
        try:
            yield
        except BaseException as error:
            try:
                self._device_records.give_back_new(known, logic_addrs)
            except GevarError as second:
                error.add_note(f"memory that was got for it stays with its owner: {second}")
            raise
