"""What a kernel asks of variables at run time: shape and memory by name, wherever they come from.

Source: GE source, runtime/v2 and runtime/v1/common/runtime, RtVarManager.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from gevar.types import DevAddr, DeviceId, LogicAddr, TensorDesc

VARIABLE_PLACEMENT: Final = "_variable_placement"
"""Attribute of a Variable: where its memory is."""

PLACEMENT_HOST: Final = "host"
"""Value of it for host memory; every other one means the device."""


class TensorPlacement(IntEnum):
    """Where the bytes of a tensor are.

    Source: GE source, metadef, TensorPlacement.
    """

    ON_DEVICE_HBM = 0
    ON_HOST = 1


@dataclass(frozen=True, slots=True)
class StorageShape:
    """Shape of a tensor as the framework sees it, and as it lies in memory, in elements."""

    origin_shape: tuple[int, ...]
    storage_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorData:
    """Memory of a tensor; whoever holds this does not own the memory.

    Attributes
    ----------
    addr
        First byte: a device address, or one of this process for `TensorPlacement.ON_HOST`.
    size_bytes
        Bytes there, padding after the data included.
    placement
        Which of the two.
    """

    addr: int
    size_bytes: int
    placement: TensorPlacement


@dataclass(frozen=True, slots=True)
class VarShapeAndMemory:
    """A variable as a kernel needs it.

    Attributes
    ----------
    desc
        Description it was restored with; carries origin and storage shape.
    logic_addr, dev_addr
        Logical address, and address of the first byte of data.
    size_bytes
        Stored size in bytes.
    placement
        Where the data is; `dev_addr` is an address of this process for host memory.
    """

    desc: TensorDesc
    logic_addr: LogicAddr
    dev_addr: DevAddr
    size_bytes: int
    placement: TensorPlacement = TensorPlacement.ON_DEVICE_HBM

    @property
    def shape(self) -> StorageShape:
        """Origin and storage shape; the former is the latter where it was never set."""
        desc = self.desc
        return StorageShape(desc.shape if desc.origin_shape is None else desc.origin_shape, desc.shape)

    @property
    def tensor_data(self) -> TensorData:
        """The memory."""
        return TensorData(self.dev_addr, self.size_bytes, self.placement)


class RtVarManager(Protocol):
    """Source of variables for kernels; `ModelRtVarManager` is one.

    Source: as the module.
    """

    def get_var_shape_and_memory(self, name: str, device_id: DeviceId) -> VarShapeAndMemory:
        """Return where a variable lies on a device.

        Raises
        ------
        VariableError
            There is none of this name on the device (status FAILED).
        """
