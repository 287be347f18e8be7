"""The MODEL_INOUT_INFO partition of a model: its inputs and outputs, in the layout that `inout_info` reads.

Source: GE source, base/common/model/model_introduction.cc.
"""

import struct
from collections.abc import Sequence

from gevar.om.graph_writer import output_names
from gevar.om.inout_info import RECORD_HEAD, TENSOR_BASE, InOutType, TensorInfo
from gevar.om.model_spec import DATA, NETOUTPUT, OmModelSpec
from gevar.types.tensor_desc import TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes


def pack_inout_info(model: OmModelSpec) -> bytes:
    """Encode the inputs and outputs of a model; no bytes for a model without any."""
    nodes = {node.name: node for node in model.nodes}
    inputs = [_tensor_info(node.name, node.outputs[0]) for node in model.nodes if node.type == DATA]
    refs = [ref for node in model.nodes if node.type == NETOUTPUT for ref in node.inputs]
    outputs = [
        _tensor_info(text, nodes[name].outputs[index])
        for text, (name, index) in zip(output_names(model), refs, strict=True)
    ]
    return _record(InOutType.INPUTS, inputs) + _record(InOutType.OUTPUTS, outputs)


def _tensor_info(name: str, desc: TensorDesc) -> TensorInfo:
    size_bytes = tensor_size_in_bytes(desc)
    return TensorInfo(name, size_bytes, desc.format, desc.dtype, desc.shape, desc.shape, ())


def _record(kind: InOutType, tensors: Sequence[TensorInfo]) -> bytes:
    if not tensors:
        return b""
    value = struct.pack("<I", len(tensors)) + b"".join(map(_pack_tensor, tensors))
    return RECORD_HEAD.pack(kind, len(value)) + value


def _pack_tensor(info: TensorInfo) -> bytes:
    name = info.name.encode()
    dims = struct.pack(f"<{len(info.dims)}q", *info.dims)
    dims_v2 = struct.pack(f"<{len(info.dims_v2)}q", *info.dims_v2)
    lengths = (len(name), len(dims), len(dims_v2), 0)
    return TENSOR_BASE.pack(info.size_bytes, info.format, info.data_type, *lengths) + name + dims + dims_v2
