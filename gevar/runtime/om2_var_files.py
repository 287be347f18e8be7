"""The files of an OM2 package that say what its variables are: one JSON text, and the bytes they start with.

Source: GE source, runtime/om2, RTVarResource; files `data/variables/var_resource.json` and `var_weight_data`,
`model_<i>_variables_config.json`.
Differs: edge 30 of docs/differences.md: beside the text of a format, which has no C0, stands its whole number.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from acl_shim.errors import printable
from gevar.errors import GevarError, ModelFileError
from gevar.om.json_fields import JsonObject, checked, get_field, optional_field, parsed
from gevar.runtime.om2_var_resource import CopyInfo, RTVarEntry, RTVarResource
from gevar.types import DataType, MemType, TensorDesc
from gevar.types.format import format_from_serial, format_to_serial
from gevar.var.graph_tables import TransNodeInfo

VAR_RESOURCE_FILE: Final = "data/variables/var_resource.json"

_log = logging.getLogger("gevar.runtime")


@dataclass(frozen=True, slots=True)
class VarMeta:
    """A variable of a model: which output of which node it is.

    Attributes
    ----------
    index : int
        Its number among the variables of the model.
    var_name, op_type, op_name : str
        Variable, and type and name of the node.
    tensor_desc : TensorDesc
        Description.
    """

    index: int
    var_name: str
    op_type: str
    op_name: str
    tensor_desc: TensorDesc


def write_var_resource(resource: RTVarResource) -> tuple[bytes, bytes]:
    """Return the text of the variables, and the bytes that they start with one after the other.

    Memory of the caller's is not written down.
    """
    entries: JsonObject = {}
    weights = bytearray()
    for entry in resource:
        data = entry.init_data or b""
        copy = entry.copy_info
        entries[entry.var_key] = {
            "var_name": entry.var_name,
            "var_key": entry.var_key,
            "op_type": entry.op_type,
            "logic_addr": entry.logic_addr,
            "size": entry.size,
            "memory_type": int(entry.memory_type),
            "changed_graph_id": entry.changed_graph_id,
            "allocated_graph_id": entry.allocated_graph_id,
            "tensor_desc": _desc_object(entry.tensor_desc),
            "trans_road": [
                {"node_type": step.node_type, "input": _desc_object(step.input), "output": _desc_object(step.output)}
                for step in entry.trans_road
            ],
            "copy_info": None
            if copy is None
            else {"src_var_name": copy.src_var_name, "src_tensor_desc": _desc_object(copy.src_tensor_desc)},
            "init_data_offset": len(weights),
            "init_data_size": len(data),
        }
        weights += data
    return json.dumps({"entries": entries}, indent=1).encode(), bytes(weights)


def read_var_resource(text: bytes, weights: bytes, file: str = VAR_RESOURCE_FILE) -> RTVarResource:
    """Return the variables of a package; a range outside the weights is passed over with a warning, as in GE.

    Parameters
    ----------
    text, weights
        Content of the two files.
    file
        Name of the first one, for errors.

    Raises
    ------
    ModelFileError
        The text is not as it should be; names the field.
    """
    entries = get_field(file, parsed(file, text), "entries", dict, "")
    resource = RTVarResource()
    for key, value in entries.items():
        where = f"entries.{key}"
        try:
            resource.add(_entry(file, checked(file, value, dict, where), where, weights))
        except ModelFileError:
            raise
        except (GevarError, ValueError) as error:
            raise ModelFileError(file, None, where, str(error)) from error
    return resource


def write_variables_config(graph_id: int, var_metas: list[VarMeta]) -> bytes:
    """Return the text of the variables of one model."""
    metas = [
        {
            "index": meta.index,
            "var_name": meta.var_name,
            "op_type": meta.op_type,
            "op_name": meta.op_name,
            "tensor_desc": _desc_object(meta.tensor_desc),
        }
        for meta in var_metas
    ]
    return json.dumps({"graph_id": graph_id, "var_metas": metas}, indent=1).encode()


def read_variables_config(text: bytes, file: str) -> tuple[int, list[VarMeta]]:
    """Return graph id and variables of one model, by their numbers.

    Raises
    ------
    ModelFileError
        The text is not as it should be, or the numbers are not 0, 1, 2… each once.
    """
    whole = parsed(file, text)
    found: dict[int, VarMeta] = {}
    metas = get_field(file, whole, "var_metas", list, "")
    for number, value in enumerate(metas):
        where = f"var_metas.{number}"
        meta = checked(file, value, dict, where)
        index = get_field(file, meta, "index", int, where)
        if index in found or not 0 <= index < len(metas):
            reason = f"{index} of {len(metas)} variables: each number from 0 must be there once"
            raise ModelFileError(file, None, f"{where}.index", reason)
        name, op_type, op_name = (
            get_field(file, meta, field, str, where) for field in ("var_name", "op_type", "op_name")
        )
        found[index] = VarMeta(index, name, op_type, op_name, _desc(file, meta, "tensor_desc", where))
    return get_field(file, whole, "graph_id", int, ""), [found[index] for index in range(len(metas))]


def _entry(file: str, value: JsonObject, where: str, weights: bytes) -> RTVarEntry:
    name, key, op_type = (get_field(file, value, field, str, where) for field in ("var_name", "var_key", "op_type"))
    copy = optional_field(file, value, "copy_info", dict, where)
    road = []
    for number, step in enumerate(optional_field(file, value, "trans_road", list, where) or []):
        at = f"{where}.trans_road.{number}"
        stored = checked(file, step, dict, at)
        kind = get_field(file, stored, "node_type", str, at)
        road.append(TransNodeInfo(kind, _desc(file, stored, "input", at), _desc(file, stored, "output", at)))
    return RTVarEntry(
        name,
        key,
        op_type,
        get_field(file, value, "logic_addr", int, where),
        get_field(file, value, "size", int, where),
        MemType(get_field(file, value, "memory_type", int, where)),
        _desc(file, value, "tensor_desc", where),
        tuple(road),
        optional_field(file, value, "changed_graph_id", int, where),
        optional_field(file, value, "allocated_graph_id", int, where),
        None
        if not copy
        else CopyInfo(
            get_field(file, copy, "src_var_name", str, f"{where}.copy_info"),
            _desc(file, copy, "src_tensor_desc", f"{where}.copy_info"),
        ),
        init_data=_init_data(file, value, where, weights),
    )


def _init_data(file: str, value: JsonObject, where: str, weights: bytes) -> bytes | None:
    offset = optional_field(file, value, "init_data_offset", int, where) or 0
    size = optional_field(file, value, "init_data_size", int, where) or 0
    if not size:
        return None
    if offset < 0 or size < 0 or offset + size > len(weights):
        text = "%s: %s starts with %d B at %d of %d B of weights: it starts with nothing"
        _log.warning(text, printable(file), printable(where), size, offset, len(weights))
        return None
    return weights[offset : offset + size]


def _desc_object(desc: TensorDesc) -> JsonObject:
    return {
        "name": "",
        "shape": list(desc.shape),
        "data_type": desc.dtype.to_serial(),
        "format": format_to_serial(desc.format),
        "format_value": int(desc.format),
        "size": desc.size,
        "shape_range": [],
    }


def _desc(file: str, owner: Mapping[str, object], field: str, where: str) -> TensorDesc:
    value, at = get_field(file, owner, field, dict, where), f"{where}.{field}"
    shape = [checked(file, dim, int, f"{at}.shape") for dim in get_field(file, value, "shape", list, at)]
    number = optional_field(file, value, "format_value", int, at)
    try:
        text = get_field(file, value, "data_type", str, at)
        dtype = DataType.from_serial(text)
        if dtype is DataType.DT_UNDEFINED:
            raise ModelFileError(file, None, f"{at}.data_type", f"{text!r:.60} is no data type")
        fmt = format_from_serial(get_field(file, value, "format", str, at)) if number is None else number
        return TensorDesc(dtype, fmt, tuple(shape), size=get_field(file, value, "size", int, at))
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(file, None, at, str(error)) from error
