"""A variable by its name: its description, its addresses, its value."""

from typing import TYPE_CHECKING

import numpy as np

from acl_shim.host_memory import HostBuffer, read_access
from gevar.errors import FormatError
from gevar.formats import OnLoss
from gevar.types import DataType, DevAddr, DeviceId, LogicAddr, TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var.converted_form import from_form, to_form

if TYPE_CHECKING:
    from gevar.var.var_data import VarData

ArrayType = np.dtype[np.generic]


class Variable:
    """One variable of a manager, as ``vm["name"]`` gives it.

    It holds the name only: everything is looked up when it is asked for, so it follows a change of the description and
    refuses once the manager was destroyed.

    Thread safety: any thread may use it; writes of one variable are not ordered against each other.

    Examples
    --------
    >>> from gevar.types import DataType, Format
    >>> from gevar.var import SessionVersion, VarManager
    >>> vm = VarManager(1)
    >>> vm.init(SessionVersion.CLOUD_VERSION, session_id=1)
    >>> _ = vm.assign_var_mem("a", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=24))
    >>> vm["a"], vm["a"].desc.shape, vm["a"].logic_addr
    (<Variable 'a' of session 1>, (2, 3), 34359738368)
    """

    __slots__ = ("_manager", "name")

    def __init__(self, manager: "VarData", name: str) -> None:
        self._manager = manager
        self.name = name

    @property
    def desc(self) -> TensorDesc:
        """Current description.

        Raises
        ------
        StateError, VariableError
            As `VarManager.get_cur_var_desc`.
        """
        return self._manager.get_cur_var_desc(self.name)

    @property
    def logic_addr(self) -> LogicAddr:
        """Logical address of the variable in its current form.

        Raises
        ------
        StateError, VariableError
            As `VarManager.get_cur_var_addr_and_type`.
        """
        return self._manager.get_cur_var_addr_and_type(self.name)[0]

    def dev_addr(self, device_id: DeviceId | None = None) -> DevAddr:
        """Return the address of the data on a device, the manager's own where None; allocate it if there is none.

        Raises
        ------
        AclError, AddressError, FormatError, OutOfMemoryError, StateError
            As `VarManager.get_var_memory_addr`.
        """
        logic_addr, mem_type = self._manager.get_cur_var_addr_and_type(self.name)
        return self._manager.get_var_memory_addr(logic_addr, mem_type, self._device(device_id))

    def write(
        self,
        data: HostBuffer,
        device_id: DeviceId | None = None,
        *,
        format: int | None = None,
        dtype: DataType | None = None,
        on_loss: OnLoss = "ieee",
    ) -> None:
        """Set the value: exactly the bytes of shape times data type, the padding of the variable stays as it is.

        Parameters
        ----------
        data
            A numpy array of the variable's shape and data type, as `read` returns it; or other host memory of that many
            bytes. With `format` or `dtype` an array in that form; it is converted.
        device_id
            The device; the manager's own where None.
        format, dtype
            Format and data type of the array, where they are not those the variable is stored in.
        on_loss
            What becomes of numbers that the variable's data type cannot hold; see `gevar.formats.cast`. A warning of
            the log ``gevar.var`` says how many there were.

        Raises
        ------
        ValueError
            Shape, data type or number of bytes differ. Nothing is copied.
        TypeError
            `format` or `dtype` is given and `data` is no array.
        FormatError
            The variable has no known size (status FAILED), there is no such conversion, or `on_loss` refuses what would
            be lost. Nothing is copied.
        AclError, AddressError, OutOfMemoryError, StateError
            As `VarManager.write_var_memory`.
        """
        desc = self.desc
        shape, element, size_bytes = _array_form(desc)
        if format is not None or dtype is not None:
            if not isinstance(data, np.ndarray):
                raise TypeError(f"{self} converts arrays, not {type(data).__name__}: make a numpy array of it")
            data = from_form(self.name, np.ascontiguousarray(data), desc, format, dtype, on_loss)
        if isinstance(data, np.ndarray):
            if data.shape != shape or data.dtype != element:
                raise ValueError(
                    f"{self} takes {element} {shape}, not {data.dtype} {data.shape}: convert the array first, or say"
                    " what it is by format and dtype"
                )
            data = np.ascontiguousarray(data)
        else:
            with read_access(data) as memory:
                if memory.size_bytes != size_bytes:
                    raise ValueError(f"{self} takes {size_bytes} B, not {memory.size_bytes} B: give its whole value")
        self._manager.write_var_memory(self.logic_addr, data, self._device(device_id))

    def read(
        self,
        device_id: DeviceId | None = None,
        *,
        format: int | None = None,
        dtype: DataType | None = None,
        on_loss: OnLoss = "ieee",
    ) -> "np.ndarray[tuple[int, ...], ArrayType]":
        """Return a copy of the value, without the padding.

        Elements smaller than a byte and elements without a numpy type come as the bytes they take in memory.

        Parameters
        ----------
        device_id
            The device; the manager's own where None.
        format, dtype
            Format and data type of the array that is wanted, such as ``desc.origin_format`` for the plain layout of a
            variable in a storage format; None for what the variable is stored in.
        on_loss
            What becomes of numbers that the data type wanted cannot hold; see `gevar.formats.cast`. A warning of the
            log ``gevar.var`` says how many there were.

        Raises
        ------
        FormatError
            The variable has no known size (status FAILED), there is no such conversion, or `on_loss` refuses what would
            be lost.
        AclError, AddressError, OutOfMemoryError, StateError
            As `VarManager.read_var_memory`.
        """
        desc = self.desc
        shape, element, _ = _array_form(desc)
        value = np.empty(shape, element)
        self._manager.read_var_memory(self.logic_addr, value, self._device(device_id))
        if format is None and dtype is None:
            return value
        return to_form(self.name, value, desc, format, dtype, on_loss)

    def _device(self, device_id: DeviceId | None) -> DeviceId:
        return self._manager.device_id if device_id is None else device_id

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} of session {self._manager.session_id}>"


def _array_form(desc: TensorDesc) -> tuple[tuple[int, ...], ArrayType, int]:
    """Shape and numpy type of a variable's value, and its bytes."""
    size_bytes = tensor_size_in_bytes(desc)
    if min(desc.shape, default=0) < 0:
        raise FormatError(f"{desc.dtype.name} tensor of shape {desc.shape}", "unknown shape; give every dimension")
    if desc.dtype.is_packed or desc.dtype.element_bits is None:
        return (size_bytes,), np.dtype(np.uint8), size_bytes
    return desc.shape, desc.dtype.to_numpy(), size_bytes
