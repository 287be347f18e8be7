"""What a load of a model is told, and its C form, which lives as long as the load takes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from acl_shim.api_types import CellType, ModelConfigHandle
from acl_shim.codes import AclErrorCode
from acl_shim.errors import Argument
from acl_shim.host_memory import HostBuffer, read_access
from acl_shim.mem_info import AddressRange
from acl_shim.model_codes import ModelConfigAttr, ModelLoadType
from acl_shim.table import address_of, new_c_text, new_cell, path_bytes

if TYPE_CHECKING:
    from acl_shim.runtime import Runtime

ModelFile = str | os.PathLike[str]
"""Path of a model."""

ModelSource: TypeAlias = "ModelFile | HostBuffer"
"""A model: the path of an OM file, or its bytes."""

_CELLS: dict[str, tuple[CellType, int]] = {"INT32": ("int32_t *", 4), "SIZET": ("size_t *", 8)}
"""End of an option's name -> its C type, and the bytes of that; others are pointers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Say how a model is loaded.

    Attributes
    ----------
    work, weights
        Device memory of the caller for work and for weights, which stays his until the model is unloaded; None: the
        runtime allocates what it needs.
    external_weights
        Name of a file of weights, without folders -> device memory that holds its bytes already.
    weight_path
        Folder of the files of external weights that are not in memory; None: the folder ``weight`` beside the model.
    priority
        Priority of the model's streams, as of `Device.stream_priorities`; None: the runtime's own.
    options
        Other options: numbers, or addresses for those that end in ``_PTR``.

    Source: aclmdlSetConfigOpt, aclmdlSetExternalWeightAddress.
    """

    work: AddressRange | None = None
    weights: AddressRange | None = None
    external_weights: Mapping[str, AddressRange] = field(default_factory=dict)
    weight_path: ModelFile | None = None
    priority: int | None = None
    options: Mapping[ModelConfigAttr, int] = field(default_factory=dict)

    def load_type(self, in_memory: bool) -> ModelLoadType:
        """Return where the model comes from and whose memory it uses."""
        own = self.work is None and self.weights is None
        if in_memory:
            return ModelLoadType.ACL_MDL_LOAD_FROM_MEM if own else ModelLoadType.ACL_MDL_LOAD_FROM_MEM_WITH_MEM
        return ModelLoadType.ACL_MDL_LOAD_FROM_FILE if own else ModelLoadType.ACL_MDL_LOAD_FROM_FILE_WITH_MEM


class _OpenConfig:
    """One `aclmdlConfigHandle`, and what it points to."""

    def __init__(self, runtime: "Runtime", handle: ModelConfigHandle) -> None:
        self._runtime = runtime
        self.handle = handle

    def check(self, code: int, call: str, arguments: dict[str, Argument]) -> None:
        self._runtime.check(code, call, arguments)

    def set(self, attr: ModelConfigAttr, value: int) -> None:
        ctype, size_bytes = _CELLS.get(attr.name.rsplit("_", 1)[-1], ("size_t *", 8))
        cell = new_cell(ctype, value)
        code = self._runtime.api.aclmdlSetConfigOpt(self.handle, attr, address_of(cell), size_bytes)
        self.check(code, "aclmdlSetConfigOpt", {"attr": attr, "value": value})

    def set_path(self, attr: ModelConfigAttr, path: ModelFile) -> None:
        text = new_c_text(path_bytes(path))  # the runtime copies it
        cell = new_cell("uintptr_t *", address_of(text))
        code = self._runtime.api.aclmdlSetConfigOpt(self.handle, attr, address_of(cell), 8)
        self.check(code, "aclmdlSetConfigOpt", {"attr": attr, "value": os.fspath(path)})

    def set_range(self, addr_attr: ModelConfigAttr, size_attr: ModelConfigAttr, memory: AddressRange | None) -> None:
        if memory is not None:
            self.set(addr_attr, memory.base)
            self.set(size_attr, memory.size_bytes)

    def set_external(self, file: str, memory: AddressRange) -> None:
        name = path_bytes(file)
        code = self._runtime.api.aclmdlSetExternalWeightAddress(self.handle, name, memory.base, memory.size_bytes)
        arguments: dict[str, Argument] = {"file": file, "addr": memory.base, "size_bytes": memory.size_bytes}
        self.check(code, "aclmdlSetExternalWeightAddress", arguments)


@contextmanager
def open_config(runtime: "Runtime", source: ModelSource, config: ModelConfig) -> Iterator[ModelConfigHandle]:
    """Make the C form of a configuration for one load, and destroy it afterwards.

    Raises
    ------
    AclError
        The runtime refuses an option.
    TypeError, ValueError
        The model is neither a path nor a buffer, or no file can have the path or the name of external weights.
    StateError
        The library lacks the model calls.
    """
    attrs = ModelConfigAttr
    with ExitStack() as stack:
        handle = ModelConfigHandle(runtime.api.aclmdlCreateConfigHandle())
        if not handle:
            raise runtime.error(AclErrorCode.ACL_ERROR_BAD_ALLOC, "aclmdlCreateConfigHandle", {})
        stack.callback(runtime.api.aclmdlDestroyConfigHandle, handle)
        opened = _OpenConfig(runtime, handle)
        in_memory = not isinstance(source, str | os.PathLike)
        opened.set(attrs.ACL_MDL_LOAD_TYPE_SIZET, config.load_type(in_memory))
        if isinstance(source, str | os.PathLike):
            opened.set_path(attrs.ACL_MDL_PATH_PTR, source)
        else:
            held = stack.enter_context(read_access(source))
            memory = AddressRange(held.addr, held.size_bytes)
            opened.set_range(attrs.ACL_MDL_MEM_ADDR_PTR, attrs.ACL_MDL_MEM_SIZET, memory)
        opened.set_range(attrs.ACL_MDL_WORKSPACE_ADDR_PTR, attrs.ACL_MDL_WORKSPACE_SIZET, config.work)
        opened.set_range(attrs.ACL_MDL_WEIGHT_ADDR_PTR, attrs.ACL_MDL_WEIGHT_SIZET, config.weights)
        for file, block in config.external_weights.items():
            opened.set_external(file, block)
        if config.weight_path is not None:
            opened.set_path(attrs.ACL_MDL_WEIGHT_PATH_PTR, config.weight_path)
        if config.priority is not None:
            opened.set(attrs.ACL_MDL_PRIORITY_INT32, config.priority)
        for attr, value in config.options.items():
            opened.set(attr, value)
        yield handle
