"""What goes in and out of a loaded model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from acl_shim.api_types import IODimsStruct, ModelDescHandle
from acl_shim.codes import AclErrorCode
from acl_shim.structs import new_io_dims

if TYPE_CHECKING:
    from acl_shim.api import AclApi
    from acl_shim.runtime import Runtime


class ModelTensor(NamedTuple):
    """One input or output.

    Attributes
    ----------
    name
        Name in the model.
    size_bytes
        Bytes of its buffer; 0 where the shape is not fixed.
    dims
        Shape; -1 for a dimension that is not fixed.
    format, data_type
        Numbers of `aclFormat` and `aclDataType`, which are GE's.
    """

    name: str
    size_bytes: int
    dims: tuple[int, ...]
    format: int
    data_type: int


@dataclass(frozen=True, slots=True)
class ModelDesc:
    """Inputs and outputs of a model, in the order of its indexes.

    Source: aclmdlGetDesc and the calls on its result.
    """

    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]


class _Side(NamedTuple):
    """The calls that describe inputs, or outputs."""

    count: Callable[[ModelDescHandle], int]
    size_bytes: Callable[[ModelDescHandle, int], int]
    name: Callable[[ModelDescHandle, int], str | None]
    dims: Callable[[ModelDescHandle, int, IODimsStruct], int]
    format: Callable[[ModelDescHandle, int], int]
    data_type: Callable[[ModelDescHandle, int], int]
    dims_call: str


def _inputs(api: "AclApi") -> _Side:
    return _Side(
        api.aclmdlGetNumInputs,
        api.aclmdlGetInputSizeByIndex,
        api.aclmdlGetInputNameByIndex,
        api.aclmdlGetInputDims,
        api.aclmdlGetInputFormat,
        api.aclmdlGetInputDataType,
        "aclmdlGetInputDims",
    )


def _outputs(api: "AclApi") -> _Side:
    return _Side(
        api.aclmdlGetNumOutputs,
        api.aclmdlGetOutputSizeByIndex,
        api.aclmdlGetOutputNameByIndex,
        api.aclmdlGetOutputDims,
        api.aclmdlGetOutputFormat,
        api.aclmdlGetOutputDataType,
        "aclmdlGetOutputDims",
    )


def read_desc(runtime: "Runtime", model_id: int) -> ModelDesc:
    """Return what goes in and out of a loaded model; nothing is left behind.

    Raises
    ------
    AclError
        There is no such model, or the runtime refuses.
    StateError
        The library lacks the model calls.
    """
    api = runtime.api
    desc = ModelDescHandle(api.aclmdlCreateDesc())
    if not desc:
        raise runtime.error(AclErrorCode.ACL_ERROR_BAD_ALLOC, "aclmdlCreateDesc", {})
    try:
        runtime.check(api.aclmdlGetDesc(desc, model_id), "aclmdlGetDesc", {"model_id": model_id})
        return ModelDesc(_read_side(runtime, desc, _inputs(api)), _read_side(runtime, desc, _outputs(api)))
    finally:
        api.aclmdlDestroyDesc(desc)


def _read_side(runtime: "Runtime", desc: ModelDescHandle, side: _Side) -> tuple[ModelTensor, ...]:
    tensors = []
    for index in range(side.count(desc)):
        shape = new_io_dims()
        runtime.check(side.dims(desc, index, shape), side.dims_call, {"index": index})
        dims = tuple(shape.dims[axis] for axis in range(shape.dimCount))
        name = side.name(desc, index) or ""
        tensors.append(
            ModelTensor(name, side.size_bytes(desc, index), dims, side.format(desc, index), side.data_type(desc, index))
        )
    return tuple(tensors)
