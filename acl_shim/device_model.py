"""Models that the runtime has loaded onto a device: how much memory they need, their owner, running them."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from acl_shim.api_types import DatasetHandle
from acl_shim.codes import AclErrorCode
from acl_shim.errors import StateError
from acl_shim.host_memory import read_access
from acl_shim.lease import Lease
from acl_shim.mem_info import AddressRange
from acl_shim.model_config import ModelConfig, ModelSource, open_config
from acl_shim.model_desc import ModelDesc, read_desc
from acl_shim.owner import StreamOwner
from acl_shim.table import new_cell, path_bytes

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.runtime import Runtime

EXECUTE = "aclmdlExecute"
"""The call that runs a model; only a card's library has it."""


class ModelSize(NamedTuple):
    """Device memory that a model needs, in bytes.

    Attributes
    ----------
    work_bytes
        Work memory; 0 for a dynamic model, which takes it as it runs.
    weight_bytes
        Weights.
    """

    work_bytes: int
    weight_bytes: int


def query_model_size(runtime: "Runtime", source: ModelSource) -> ModelSize:
    """Return how much device memory a model needs; starts the runtime and sets no device.

    Parameters
    ----------
    runtime
        The runtime.
    source
        Path of an OM file, or its bytes.

    Raises
    ------
    AclError
        The runtime does not take it for a model that can be run.
    StateError
        The library lacks the call.
    ValueError
        No file can have the path.

    Thread safety: any thread may call.
    Source: aclmdlQuerySize, aclmdlQuerySizeFromMem.
    """
    runtime.start()
    work, weight = new_cell("size_t *"), new_cell("size_t *")
    if isinstance(source, str | os.PathLike):
        code = runtime.api.aclmdlQuerySize(path_bytes(source), work, weight)
        runtime.check(code, "aclmdlQuerySize", {"path": os.fspath(source)})
    else:
        with read_access(source) as held:
            code = runtime.api.aclmdlQuerySizeFromMem(held.addr, held.size_bytes, work, weight)
            runtime.check(code, "aclmdlQuerySizeFromMem", {"size_bytes": held.size_bytes})
    return ModelSize(work[0], weight[0])


class DeviceModel(StreamOwner):
    """Own one model that the runtime has loaded; `load_model` makes them.

    Closing unloads it. Memory of the caller that it uses must stay until then. A reset of the device takes it away.
    Load, run and unload belong to one context, that of the device, whatever the calling thread has current.

    Thread safety: any thread may use it.
    Source: aclmdlLoadWithConfig, aclmdlUnload.
    """

    __slots__ = ("_desc",)

    def __init__(self, device: "Device", lease: Lease, model_id: int) -> None:
        self._desc: ModelDesc | None = None
        super().__init__(device, lease, model_id)

    def _home(self) -> "Device":
        return self._device

    def _give_back(self, handle: int) -> None:
        self._device.runtime.check(self._device.runtime.api.aclmdlUnload(handle), "aclmdlUnload", {"model_id": handle})

    @property
    def model_id(self) -> int:
        """The number that the runtime gave it.

        Raises
        ------
        StateError
            The model is closed.
        """
        return self._handle()

    def desc(self) -> ModelDesc:
        """Return its inputs and outputs; asked once and kept.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The model is closed, or the library lacks the calls.
        """
        model_id = self._handle()
        if self._desc is None:
            self._desc = read_desc(self._device.runtime, model_id)
        return self._desc

    def execute(self, inputs: Sequence[AddressRange], outputs: Sequence[AddressRange]) -> None:
        """Run the model on buffers in device memory and wait until the outputs are there.

        Parameters
        ----------
        inputs, outputs
            One buffer for each, in the order of `desc`.

        Raises
        ------
        StateError
            The runtime has no card behind it, or the model is closed.
        AclError
            The runtime refuses, or the model fails. What the outputs hold then is not defined.

        Source: aclmdlExecute.
        """
        model_id, runtime = self._handle(), self._device.runtime
        if not runtime.supports(EXECUTE):
            raise StateError(
                f"model {model_id} cannot run: {runtime.path} ({runtime.backend} backend) has no {EXECUTE}, "
                "there is no card behind it; run it where open_runtime('npu') works"
            )
        self._device.enter()
        with ExitStack() as stack:
            given = [_dataset(runtime, buffers, stack) for buffers in (inputs, outputs)]
            runtime.check(runtime.api.aclmdlExecute(model_id, *given), EXECUTE, {"model_id": model_id})


def _dataset(runtime: "Runtime", buffers: Sequence[AddressRange], stack: ExitStack) -> DatasetHandle:
    """Make a list of buffers; the stack destroys it, then them."""
    api = runtime.api
    handles = []
    for memory in buffers:
        handle = api.aclCreateDataBuffer(memory.base, memory.size_bytes)
        if not handle:
            raise runtime.error(AclErrorCode.ACL_ERROR_BAD_ALLOC, "aclCreateDataBuffer", {"addr": memory.base})
        stack.callback(api.aclDestroyDataBuffer, handle)
        handles.append(handle)
    dataset = DatasetHandle(api.aclmdlCreateDataset())
    if not dataset:
        raise runtime.error(AclErrorCode.ACL_ERROR_BAD_ALLOC, "aclmdlCreateDataset", {})
    stack.callback(api.aclmdlDestroyDataset, dataset)
    for index, handle in enumerate(handles):
        runtime.check(api.aclmdlAddDatasetBuffer(dataset, handle), "aclmdlAddDatasetBuffer", {"index": index})
    return dataset


def load_model(device: "Device", source: ModelSource, config: ModelConfig | None = None) -> DeviceModel:
    """Let the runtime load a model onto a device.

    Parameters
    ----------
    device
        The device.
    source
        Path of an OM file, or its bytes, which may go afterwards.
    config
        How; by default the runtime allocates all memory.

    Raises
    ------
    AclError
        The runtime refuses an option or the model, or has no memory. Nothing is left loaded.
    TypeError, ValueError
        `source` is neither a path nor a contiguous buffer.
    StateError
        The library lacks the model calls.

    Thread safety: any thread may call.
    Source: aclmdlLoadWithConfig.
    """
    runtime, cell = device.runtime, new_cell("uint32_t *")
    lease = device.enter()
    with open_config(runtime, source, config or ModelConfig()) as handle:
        code = runtime.api.aclmdlLoadWithConfig(handle, cell)
        path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        runtime.check(code, "aclmdlLoadWithConfig", {"path": path, "device_id": device.id})
    return DeviceModel(device, lease, cell[0])
