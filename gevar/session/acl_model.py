"""A loaded model in the hands of the ACL model API: it gets the memory that gevar holds, and can run.

The runtime is told where the weights lie, where the files of external weights lie that are on the device from their
start, and which work memory it may use. It restores variables by itself, in memory of its own.

Source: GE source, inc/external/acl/acl_mdl.h; docs/on_a_card.md says what was never run on a card.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

from acl_shim import Device, DeviceBuffer
from acl_shim.device_model import EXECUTE, DeviceModel, load_model, query_model_size
from acl_shim.host_memory import HostBuffer, read_access
from acl_shim.mem_info import AddressRange
from acl_shim.model_config import ModelConfig
from acl_shim.model_desc import ModelDesc, ModelTensor
from gevar.errors import StateError
from gevar.om import OmFile
from gevar.om.partition import PartitionType
from gevar.session.file_tensors import ModelSource
from gevar.session.loading import Loading
from gevar.session.model_memory import ModelMemory
from gevar.types import DataType
from gevar.weights import WeightBlock

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

_LOAD: Final = "aclmdlLoadWithConfig"
_WEIGHT_MULTIPLE: Final = 32
"""Sizes of external weights are multiples of so many bytes (aclmdlSetExternalWeightAddress)."""


class AclModel:
    """A model that the runtime has loaded beside gevar; closed with the `LoadedModel`.

    Attributes
    ----------
    device_model : DeviceModel
        The runtime's side of it.

    Thread safety: one thread at a time may execute.
    """

    def __init__(self, device: Device, device_model: DeviceModel) -> None:
        self._device = device
        self.device_model = device_model

    @property
    def desc(self) -> ModelDesc:
        """Inputs and outputs."""
        return self.device_model.desc()

    def execute(self, inputs: Sequence[HostBuffer]) -> list[Array]:
        """Copy inputs to the device, run the model, and return its outputs.

        Parameters
        ----------
        inputs
            Arrays or other contiguous host memory, one for each input in the order of `desc`.

        Raises
        ------
        ValueError
            There are more or fewer inputs than the model has, or one has another size. Nothing was copied.
        StateError
            There is no card behind the runtime; the model was closed; or the shape of an input or output is not fixed.
        OutOfMemoryError, AclError
            The device has no memory for inputs and outputs; or the runtime refuses or the model fails.

        Notes
        -----
        After failure: memory for inputs and outputs is given back, and the model can be executed again.

        Source: aclmdlExecute.
        """
        runtime, desc = self._device.runtime, self.desc
        if not runtime.supports(EXECUTE):
            raise no_card(runtime.backend, str(runtime.path))
        if len(inputs) != len(desc.inputs):
            raise ValueError(f"{len(inputs)} inputs are given, the model has {len(desc.inputs)}: see desc.inputs")
        for tensor, data in zip(desc.inputs, inputs, strict=True):
            with read_access(data) as held:
                if held.size_bytes != _fixed_bytes(tensor):
                    raise ValueError(f"input {tensor.name} takes {tensor.size_bytes} B, {held.size_bytes} B are given")
        with ExitStack() as stack:
            tensors = (*desc.inputs, *desc.outputs)
            buffers = [stack.enter_context(self._device.malloc(_fixed_bytes(tensor))) for tensor in tensors]
            given, made = buffers[: len(inputs)], buffers[len(inputs) :]
            for buffer, data in zip(given, inputs, strict=True):
                buffer.copy_from(data)
            self.device_model.execute(_ranges(given), _ranges(made))
            return [_output(buffer, tensor) for buffer, tensor in zip(made, desc.outputs, strict=True)]


def no_card(backend: str, library: str) -> StateError:
    """Return the error of a model that cannot run where there is no card."""
    return StateError(
        f"the model cannot run: there is no card behind {library} ({backend} backend), which has no {EXECUTE}; weights "
        "and variables are loaded all the same, run it on a machine with an NPU"
    )


def is_runnable(om: OmFile) -> bool:
    """Return whether a file has a model with tasks; one that only carries weights has none."""
    return any(_has_tasks(om, index) for index in range(len(om.models)))


def can_hand_over(om: OmFile, kind: str, loading: Loading) -> bool:
    """Return whether a load goes on to the model API: the file can run, and a card's library takes it."""
    runtime = loading.session.runtime
    plain = kind == "model" and not om.header.is_flow
    return plain and runtime.backend == "npu" and runtime.supports(_LOAD) and is_runnable(om)


def hand_over(model: ModelSource, loading: Loading, models: Sequence[ModelMemory], weight_dir: Path | None) -> AclModel:
    """Let the runtime load a model onto the memory that gevar got for it.

    Parameters
    ----------
    model
        Path or bytes.
    loading
        What gevar got for it; its stack unloads the model.
    models
        Memory of the models of the file.
    weight_dir
        Directory of external weights; None for the one beside the model.

    Raises
    ------
    OutOfMemoryError, AclError
        There is no work memory; or the runtime refuses the model.
    StateError
        The library lacks the model calls.

    Notes
    -----
    After failure: what was got before stays on the stack, nothing of the runtime's does.
    Thread safety: the lock of the session is held.
    """
    device = loading.session.runtime.device(loading.device_id)
    size = query_model_size(device.runtime, model)
    work = None
    if size.work_bytes:
        work = AddressRange(loading.malloc("work memory of a model", size.work_bytes), size.work_bytes)
    weights = None
    if len(models) == 1 and models[0].weights:
        weights = AddressRange(models[0].weights, size.weight_bytes)
    config = ModelConfig(work=work, weights=weights, external_weights=external_weights(loading), weight_path=weight_dir)
    device_model = load_model(device, model, config)
    loading.stack.push(device_model)
    return AclModel(device, device_model)


def external_weights(loading: Loading) -> Mapping[str, AddressRange]:
    """Return the weight files that lie on the device from their start: what the caller gave, and gevar's own blocks.

    A file in several blocks, or in one whose size is no multiple of 32 bytes, is left to the runtime, which reads it.
    """
    blocks: dict[str, set[WeightBlock]] = {}
    offsets: dict[str, int] = {}
    for key, block in loading.weight_blocks:
        blocks.setdefault(key.file.path.name, set()).add(block)
        offsets[key.file.path.name] = key.offset
    found = {
        name: AddressRange(block.dev_addr, block.size_bytes)
        for name, (block, *others) in blocks.items()
        if not others and not offsets[name] and not block.size_bytes % _WEIGHT_MULTIPLE
    }
    given = {
        name: AddressRange(memory.dev_addr, memory.size_bytes) for name, memory in loading.external_weights.items()
    }
    return found | given


def _has_tasks(om: OmFile, index: int) -> bool:
    model = om.models[index]
    partition = model.partition(PartitionType.TASK_INFO)
    if partition is None or not partition.mem_size:
        return False
    tasks = model.task_def()
    return tasks is not None and len(tasks.task) > 0


def _fixed_bytes(tensor: ModelTensor) -> int:
    if not tensor.size_bytes:
        raise StateError(f"tensor {tensor.name} of shape {tensor.dims} has no fixed size; run it through DeviceModel")
    return tensor.size_bytes


def _ranges(buffers: Sequence[DeviceBuffer]) -> list[AddressRange]:
    return [AddressRange(buffer.addr, buffer.size_bytes) for buffer in buffers]


def _output(buffer: DeviceBuffer, tensor: ModelTensor) -> Array:
    """Copy an output to the host, as an array of its type and shape where these account for all bytes."""
    value = np.empty(tensor.size_bytes, np.uint8)
    buffer.copy_to(value)
    data_type = DataType.from_number(tensor.data_type)
    if data_type.is_packed or data_type.element_bits is None:
        return value
    dtype = data_type.to_numpy()
    if min(tensor.dims, default=1) < 0 or int(np.prod(tensor.dims, dtype=object)) * dtype.itemsize != value.nbytes:
        return value
    return value.view(dtype).reshape(tensor.dims)
