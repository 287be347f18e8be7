"""A model as messages: the graph, its nodes and their descriptions, and the attributes of the model.

Source: GE source, graph_metadef/graph/serialization and compiler/graph/build/model_builder.cc; keys, fields and their
places as in files written by GE's own classes.
"""

from collections.abc import Sequence
from typing import Final

from gevar.align import GIB
from gevar.graph.attr_value import AttrValue
from gevar.om.attr_def import attr_def, bool_list, int_list, name_lists
from gevar.om.consts import VALUE_ATTR
from gevar.om.memory_plan import MemoryPlan
from gevar.om.model_spec import DATA, NETOUTPUT, ExternalWeight, NodeSpec, OmModelSpec, TensorRef
from gevar.om.node import CONSTANT, CONSTANTOP, FILECONSTANT, IS_INPUT_CONST_ATTR, VARIABLE
from gevar.om.partition_writer import OM_INFO_LIST_ATTR, OM_INFO_TYPES
from gevar.om.stored_bytes import SparseBytes, read_all
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.types.mem_type import MemType
from gevar.types.tensor_desc import ATTR_INIT_VALUE, TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes

OM_IR_VERSION: Final = 2
PLATFORM_VERSION: Final = "1.11.z.0"
"""As CANN 8 writes it."""
REF_VAR_SRC_VAR_NAME_ATTR: Final = "ref_var_src_var_name"

_VALUE_ATTRS: Final = {CONSTANT: VALUE_ATTR, CONSTANTOP: VALUE_ATTR, VARIABLE: ATTR_INIT_VALUE}
_TASK_GEN_BASE_ADDR: Final = 2 * GIB
_TASK_GEN_HOST_BASE_ADDR: Final = 64 * GIB
_TASK_GEN_HOST_SVM_BASE_ADDR: Final = 128 * GIB
_ZERO_ATTRS: Final = (
    *("core_type", "event_num", "host_memory_size", "host_svm_size", "label_num", "notify_num", "p2p_memory_size"),
    *("session_id", "session_scope_memory_size"),
)
"""Numbers that GE always writes and that are 0 for a model without such parts."""


def output_names(model: OmModelSpec) -> list[str]:
    """Return the name of each output of the model: `node:index`, with `:name` behind it where the framework has one."""
    refs = [ref for node in model.nodes if node.type == NETOUTPUT for ref in node.inputs]
    names = model.output_names or [""] * len(refs)
    return [f"{node}:{index}" + (f":{name}" if name else "") for (node, index), name in zip(refs, names, strict=True)]


class GraphWriter:
    """Makes the messages of one model whose offsets are planned."""

    def __init__(self, model: OmModelSpec, plan: MemoryPlan) -> None:
        self._model = model
        self._plan = plan
        self._nodes = {node.name: node for node in model.nodes}

    def model_def(self) -> ge_ir.ModelDef:
        """Return the model; the sizes in `om_info_list` come when the file is put together."""
        message = ge_ir.ModelDef(name=self._model.name, version=OM_IR_VERSION, custom_version=PLATFORM_VERSION)
        self._write_graph(message.graph.add())
        attrs: dict[str, AttrValue] = {
            **self._sizes(),
            OM_INFO_LIST_ATTR: [0] * len(OM_INFO_TYPES),
            "target_type": "MINI",
            "atc_cmdline": "",
            "sub_memory_info": self._sub_memory_info(),
        }
        if names := output_names(self._model):
            attrs["attr_model_out_nodes_name"] = names
        for key, value in attrs.items():
            message.attr[key].CopyFrom(attr_def(value))
        return message

    def _sizes(self) -> dict[str, int]:
        """Sizes, logical bases and counts: the attributes that are one number."""
        has_variables = any(node.type in (VARIABLE, CONSTANTOP, FILECONSTANT) for node in self._model.nodes)
        sizes = {
            "memory_size": self._plan.memory_size,
            "zero_copy_memory_size": self._plan.zero_copy_memory_size,
            "weight_size": self._plan.weights.size_bytes,
            "variable_size": self._model.variable_size_bytes if has_variables else 0,
            "task_gen_base_addr": _TASK_GEN_BASE_ADDR,
            "task_gen_weight_addr": _TASK_GEN_BASE_ADDR + self._plan.memory_size,
            "task_gen_variable_addr": self._model.logic_base,
            "task_gen_host_base_addr": _TASK_GEN_HOST_BASE_ADDR,
            "task_gen_host_svm_base_addr": _TASK_GEN_HOST_SVM_BASE_ADDR,
            "stream_num": 1,
        }
        return sizes | dict.fromkeys(_ZERO_ATTRS, 0)

    def _sub_memory_info(self) -> list[list[int]]:
        """Rows (memory type, offset, bytes, flag) of work memory; the last one is the zero-copy part."""
        zero_copy = self._plan.zero_copy_memory_size
        internal = self._plan.memory_size - zero_copy
        return [[MemType.RT_MEMORY_HBM, 0, internal, 0], [MemType.RT_MEMORY_HBM, internal, zero_copy, 0]]

    def _write_graph(self, graph: ge_ir.GraphDef) -> None:
        graph.name = f"{self._model.name}_0"
        inputs = [node.name for node in self._model.nodes if node.type == DATA]
        graph.input.extend(f"{name}:0" for name in inputs)
        for number, node in enumerate(self._model.nodes):
            if node.type == NETOUTPUT:
                graph.output.extend(_ref_text(ref) for ref in node.inputs)
            op = graph.op.add(name=node.name, type=node.type, id=number, has_out_attr=True)
            self._write_outputs(op, node)
            if node.type == DATA:
                _write_data_input(op, inputs.index(node.name), node.outputs[0])
            else:
                self._write_inputs(op, node)
            for key, value in node.attrs.items():
                op.attr[key].CopyFrom(attr_def(value))
            self._write_value(op, node)

    def _write_inputs(self, op: ge_ir.OpDef, node: NodeSpec) -> None:
        is_const = [name in self._plan.data_offsets for name, _ in node.inputs]
        op.is_input_const.extend(is_const)
        op.attr[IS_INPUT_CONST_ATTR].CopyFrom(bool_list(is_const))
        for name, index in node.inputs:
            data_offset = self._plan.data_offsets.get(name, 0)
            desc = self._nodes[name].outputs[index]
            op.input.append(_ref_text((name, index)))
            op.src_name.append(name)
            op.src_index.append(index)
            op.input_i.append(data_offset or self._plan.output_offsets[name, index])
            op.input_desc.append(tensor_desc_to_proto(desc.replace(data_offset=data_offset)))
        if node.inputs:
            _write_names(op, "_input", [f"x{index}" for index in range(len(node.inputs))])

    def _write_outputs(self, op: ge_ir.OpDef, node: NodeSpec) -> None:
        for index, desc in enumerate(node.outputs):
            op.output_i.append(self._plan.output_offsets[node.name, index])
            td = tensor_desc_to_proto(desc)
            if index in node.assigns:
                td.attr[REF_VAR_SRC_VAR_NAME_ATTR].CopyFrom(attr_def(node.assigns[index]))
            op.output_desc.append(td)
        if node.outputs:
            _write_names(op, "_output", [f"y{index}" for index in range(len(node.outputs))])

    def _write_value(self, op: ge_ir.OpDef, node: NodeSpec) -> None:
        """Attach the bytes of a constant, or their place, or those a variable starts with."""
        if node.external is not None:
            _write_external(op, node.external, node.outputs[0])
        if node.data is None:
            return
        attr = (op.output_desc[0].attr if node.type == VARIABLE else op.attr)[_VALUE_ATTRS[node.type]]
        desc = node.outputs[0]
        if node.type == CONSTANT:
            desc = desc.replace(weight_size=node.data.nbytes, data_offset=self._plan.data_offsets[node.name])
        else:
            attr.t.data = inline_data(node)
        attr.t.desc.CopyFrom(tensor_desc_to_proto(desc))


def inline_data(node: NodeSpec) -> bytes:
    """Return the bytes of a node that are stored inside its message.

    Raises
    ------
    ValueError
        They are sparse: only those of a Const lie outside the message.
    OSError, ModelFileError
        They cannot be read.
    """
    if node.data is None or isinstance(node.data, SparseBytes):
        raise ValueError(f"{node.type} {node.name!r} has sparse data, which only a Const can have; give it an array")
    return read_all(node.data)


def _write_external(op: ge_ir.OpDef, place: ExternalWeight, desc: TensorDesc) -> None:
    """Say where a FileConstant has its bytes.

    Source: GE source, base/common/file_constant_utils.
    """
    op.attr["location"].s = place.location.encode()
    op.attr["offset"].i = place.offset
    op.attr["length"].i = place.length
    op.attr["dtype"].dt = int(desc.dtype)
    op.attr["shape"].CopyFrom(int_list(desc.shape))
    op.attr["original_shape"].CopyFrom(int_list(desc.origin_shape or ()))


def _write_data_input(op: ge_ir.OpDef, index: int, desc: TensorDesc) -> None:
    """Give a Data node its index and its input, which is linked to nothing and has the exact size."""
    op.input.append("")
    op.attr["index"].i = index
    op.input_desc.append(tensor_desc_to_proto(desc.replace(size=tensor_size_in_bytes(desc))))
    _write_names(op, "_input", ["x0"])


def _write_names(op: ge_ir.OpDef, prefix: str, names: Sequence[str]) -> None:
    keys, values = name_lists(names)
    op.attr[f"{prefix}_name_key"].CopyFrom(keys)
    op.attr[f"{prefix}_name_value"].CopyFrom(values)


def _ref_text(ref: TensorRef) -> str:
    return f"{ref[0]}:{ref[1]}"
