"""Kernels of the execution graph: constants, allocators, `SplitVariable`, memory of one run, and copies.

A kernel takes the values of its inputs and returns those of its outputs; what it has to release later it leaves to the
context. Device work waits until it is done.

Source: GE source, runtime/v2/kernel, variable.cc (SplitVariable), memory kernels.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from gevar.errors import StateError
from gevar.memory import MemoryManager
from gevar.runtime.rt_session import RtSession
from gevar.runtime.rt_var_manager import TensorData, TensorPlacement
from gevar.status import FAILED
from gevar.types import DevAddr, DeviceId, MemType

T = TypeVar("T")

_Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

KERNEL_CONST: Final = "Const"
KERNEL_SESSION: Final = "RtSession"
KERNEL_DATA: Final = "Data"
KERNEL_CREATE_ALLOCATOR: Final = "CreateAllocator"
KERNEL_SPLIT_VARIABLE: Final = "SplitVariable"
KERNEL_ALLOC_MEMORY: Final = "AllocMemory"
KERNEL_COPY_TENSOR: Final = "CopyTensor"
COPY_BYTES: Final = 4 << 20
"""Bytes of a copy that are under way at a time."""


@dataclass(frozen=True, slots=True)
class KernelContext:
    """Where a kernel runs.

    Attributes
    ----------
    session : RtSession
        The session.
    device_id : DeviceId
        The device.
    memory_manager : MemoryManager
        Memory of the device, and copies.
    data : sequence of TensorData
        Inputs of the run; empty for the init part.
    releases : ExitStack
        What has to be done when what the kernel made is not needed any more.
    """

    session: RtSession
    device_id: DeviceId
    memory_manager: MemoryManager
    data: Sequence[TensorData]
    releases: ExitStack


@dataclass(frozen=True, slots=True)
class Allocator:
    """Memory of one placement on the device of a run."""

    placement: TensorPlacement
    manager: MemoryManager
    device_id: DeviceId


Kernel = Callable[[KernelContext, Sequence[object], object], tuple[object, ...]]
"""Context, inputs, and the value of the node; gives the outputs."""


def input_of(kernel: str, inputs: Sequence[object], number: int, kind: type[T]) -> T:
    """Return an input of a kernel.

    Raises
    ------
    StateError
        It is missing or something else (status FAILED).
    """
    value = inputs[number] if number < len(inputs) else None
    if not isinstance(value, kind):
        error = StateError(f"input {number} of {kernel} is {value!r}: it must be a {kind.__name__}")
        error.status = FAILED
        raise error
    return value


def const(_context: KernelContext, _inputs: Sequence[object], value: object) -> tuple[object, ...]:
    """Give the value of the node."""
    return (value,)


def rt_session(context: KernelContext, _inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Give the session of the run."""
    return (context.session,)


def data(context: KernelContext, _inputs: Sequence[object], value: object) -> tuple[object, ...]:
    """Give an input of the run, by the number in the node.

    Raises
    ------
    StateError
        The run has no input of this number (status FAILED).
    """
    number = input_of(KERNEL_DATA, (value,), 0, int)
    return (input_of(KERNEL_DATA, context.data, number, TensorData),)


def create_allocator(context: KernelContext, inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Make an allocator; input 0 is the placement.

    Raises
    ------
    StateError
        There is no placement (status FAILED).
    """
    placement = input_of(KERNEL_CREATE_ALLOCATOR, inputs, 0, TensorPlacement)
    return (Allocator(placement, context.memory_manager, context.device_id),)


def split_variable(context: KernelContext, inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Give shape and memory of a variable, whose memory stays the session's.

    Inputs are session, name of the variable, and an allocator.

    Raises
    ------
    StateError
        An input is missing, or the session has no variables (status FAILED).
    VariableError
        The variable is not there on this device (status FAILED).
    AclError, OutOfMemoryError
        As `RtVarManager.get_var_shape_and_memory`.

    Source: GE source, runtime/v2/kernel/common_kernel_impl, variable.cc, SplitVariable.
    """
    session = input_of(KERNEL_SPLIT_VARIABLE, inputs, 0, RtSession)
    name = input_of(KERNEL_SPLIT_VARIABLE, inputs, 1, str)
    input_of(KERNEL_SPLIT_VARIABLE, inputs, 2, Allocator)
    manager = session.rt_var_manager
    if manager is None:
        error = StateError(f"session {session.session_id} has no variables: load a model into it first")
        error.status = FAILED
        raise error
    found = manager.get_var_shape_and_memory(name, context.device_id)
    return found.shape, found.tensor_data


def alloc_memory(context: KernelContext, inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Get memory for one run; inputs are an allocator and a size in bytes.

    Raises
    ------
    StateError
        An input is missing (status FAILED), or the memory is not on a device.
    AclError, OutOfMemoryError
        There is no memory.
    """
    allocator = input_of(KERNEL_ALLOC_MEMORY, inputs, 0, Allocator)
    size_bytes = input_of(KERNEL_ALLOC_MEMORY, inputs, 1, int)
    if allocator.placement is not TensorPlacement.ON_DEVICE_HBM:
        raise StateError(f"{KERNEL_ALLOC_MEMORY} was given {allocator.placement.name}: it takes device memory only")
    hbm, manager = MemType.RT_MEMORY_HBM, allocator.manager
    addr = manager.malloc_memory(hbm, "output of a node", max(size_bytes, 1), allocator.device_id)
    context.releases.callback(manager.free_memory, hbm, addr, allocator.device_id)
    return (TensorData(addr, size_bytes, allocator.placement),)


def copy_tensor(context: KernelContext, inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Copy the bytes of input 0 to the memory of input 1, which it gives.

    Raises
    ------
    StateError
        An input is missing, or the memory too small (status FAILED). Nothing is copied.
    AclError
        The copy was refused; the memory holds old bytes, new bytes or both.
    """
    source = input_of(KERNEL_COPY_TENSOR, inputs, 0, TensorData)
    target = input_of(KERNEL_COPY_TENSOR, inputs, 1, TensorData)
    if source.size_bytes > target.size_bytes:
        error = StateError(f"{source.size_bytes} B do not fit the {target.size_bytes} B at {target.addr:#x}")
        error.status = FAILED
        raise error
    staging = np.empty(min(source.size_bytes, COPY_BYTES), np.uint8)
    for start in range(0, source.size_bytes, COPY_BYTES):
        part = staging[: min(COPY_BYTES, source.size_bytes - start)]
        read_bytes(context, source, start, part)
        write_bytes(context, target, start, part)
    return (TensorData(target.addr, source.size_bytes, target.placement),)


def read_bytes(context: KernelContext, source: TensorData, start: int, part: _Bytes) -> None:
    """Copy bytes of a tensor, from its byte `start` on, into host memory until that is full.

    Raises
    ------
    AclError
        The copy was refused.
    """
    if source.placement is TensorPlacement.ON_HOST:
        ctypes.memmove(part.ctypes.data, source.addr + start, part.nbytes)
    else:
        context.memory_manager.memcpy_out(part, DevAddr(source.addr + start), context.device_id)


def write_bytes(context: KernelContext, target: TensorData, start: int, part: _Bytes) -> None:
    """Copy host memory to a tensor, from its byte `start` on.

    Raises
    ------
    AclError
        The copy was refused; the tensor holds old bytes, new bytes or both.
    """
    if target.placement is TensorPlacement.ON_HOST:
        ctypes.memmove(target.addr + start, part.ctypes.data, part.nbytes)
    else:
        room = target.size_bytes - start
        context.memory_manager.memcpy_in(DevAddr(target.addr + start), room, part, context.device_id)


KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {
        KERNEL_CONST: const,
        KERNEL_SESSION: rt_session,
        KERNEL_DATA: data,
        KERNEL_CREATE_ALLOCATOR: create_allocator,
        KERNEL_SPLIT_VARIABLE: split_variable,
        KERNEL_ALLOC_MEMORY: alloc_memory,
        KERNEL_COPY_TENSOR: copy_tensor,
    }
)
"""Kernels by the name that nodes carry."""
