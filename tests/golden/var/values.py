"""Values of the recorded sequences: tensors, operators, data and messages, from JSON and back."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_serial, format_to_serial
from tests.golden.facts import Json

UINT64 = 1 << 64
TENSOR_KEYS = frozenset(
    {"dtype", "format", "shape", "size", "origin_format", "origin_shape", "origin_dtype", "inner_offset", "init_value"}
)
DATA_KEYS = frozenset({"hex", "repeat_hex", "len"})
OP_KEYS = frozenset({"name", "type", "outputs", "weight", "attrs", "output_offset"})
RESERVED_FORMATS = ("FORMAT_RESERVED", "RESERVED", "UNDEFINED")
ATTR_KINDS = frozenset({"int", "ints", "str", "dtype", "bool"})

Tree = Mapping[str, Any]
"""An object of JSON."""

AttrValue = int | str | bool | tuple[int, ...]


class UnknownForm(ValueError):
    """A file writes something that this schema does not know."""


def known_keys(value: Tree, keys: frozenset[str] | set[str], what: str) -> None:
    """Raise for keys of an object that the schema does not know."""
    if unknown := value.keys() - keys:
        raise UnknownForm(f"{what} has unknown keys: {', '.join(sorted(unknown))}")


def data_bytes(value: Tree) -> bytes:
    """Return the bytes that `hex`, or `repeat_hex` and `len`, give."""
    if "hex" in value:
        return bytes.fromhex(str(value["hex"]))
    pattern, length = bytes.fromhex(str(value["repeat_hex"])), int(value["len"])
    return (pattern * (length // len(pattern) + 1))[:length]


def format_number(value: Json) -> int:
    """Return the number of a format, which is given by it or by name."""
    if isinstance(value, int):
        return value
    number = format_from_serial(str(value))
    if number == Format.FORMAT_RESERVED and value not in RESERVED_FORMATS:
        raise UnknownForm(f"{value} is no format")
    return number


def data_type(value: Json) -> DataType:
    """Return the data type of a name."""
    found = DataType.from_serial(str(value))
    if found == DataType.DT_UNDEFINED and value != "DT_UNDEFINED":
        raise UnknownForm(f"{value} is no data type")
    return found


def tensor_desc(value: Tree, extra: frozenset[str] = frozenset()) -> TensorDesc:
    """Return the description of a tensor."""
    known_keys(value, TENSOR_KEYS | extra, "a tensor")
    attrs = {}
    if "inner_offset" in value:
        attrs["_inner_offset"] = ge_ir.AttrDef(i=value["inner_offset"])
    if "init_value" in value:
        init = value["init_value"]
        message = ge_ir.TensorDef(desc=tensor_desc_to_proto(tensor_desc(init, DATA_KEYS)), data=data_bytes(init))
        attrs["_init_value"] = ge_ir.AttrDef(t=message)
    origin_shape = value.get("origin_shape")
    return TensorDesc(
        data_type(value["dtype"]),
        format_number(value["format"]),
        tuple(value["shape"]),
        origin_format=format_number(value.get("origin_format", "ND")),
        origin_shape=None if origin_shape is None else tuple(origin_shape),
        origin_dtype=data_type(value["origin_dtype"]) if "origin_dtype" in value else DataType.DT_UNDEFINED,
        size=value.get("size", 0),
        attrs=attrs,
    )


def tensor_json(desc: TensorDesc) -> dict[str, Json]:
    """Return a description as a result states it: without the attributes."""
    found: dict[str, Json] = {
        "dtype": desc.dtype.to_serial(),
        "format": format_to_serial(desc.format),
        "format_int": int(desc.format),
        "shape": list(desc.shape),
        "size": desc.size,
        "origin_format": format_to_serial(desc.origin_format),
    }
    if desc.origin_shape is not None:
        found["origin_shape"] = list(desc.origin_shape)
    if desc.origin_dtype != DataType.DT_UNDEFINED:
        found["origin_dtype"] = desc.origin_dtype.to_serial()
    return found


def tensors_json(descs: Mapping[str, TensorDesc]) -> dict[str, Json]:
    return {name: tensor_json(desc) for name, desc in descs.items()}


@dataclass(frozen=True, eq=False)
class Op:
    """An operator description; `output_offsets` are logical addresses."""

    name: str
    op_type: str
    outputs: tuple[TensorDesc, ...] = ()
    output_offsets: tuple[int, ...] = ()
    weight: bytes | None = None
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)

    @property
    def load_addr(self) -> int | None:
        """Address at which its data starts: output offset 0 without the inner offset."""
        if not self.output_offsets:
            return None
        return self.output_offsets[0] - (self.outputs[0].inner_offset if self.outputs else 0)


def operator(value: Tree | None, tensor: TensorDesc | None, logic_base: int) -> Op | None:
    """Return an operator; without outputs of its own it has the step's tensor as its one output."""
    if value is None:
        return None
    known_keys(value, OP_KEYS, "an operator")
    outputs = tuple(tensor_desc(output) for output in value.get("outputs", ()))
    if "outputs" not in value and tensor is not None:
        outputs = (tensor,)
    weight = value.get("weight")
    if weight is not None:
        tensor_desc(weight, DATA_KEYS)
    return Op(
        value["name"],
        value["type"],
        outputs,
        tuple(logic_base + offset for offset in value.get("output_offset", ())),
        None if weight is None else data_bytes(weight),
        {name: _attr_value(attr) for name, attr in value.get("attrs", {}).items()},
    )


def _attr_value(attr: Tree) -> AttrValue:
    if len(attr) != 1 or not attr.keys() <= ATTR_KINDS:
        raise UnknownForm(f"unknown form of an attribute: {attr}")
    ((kind, value),) = attr.items()
    if kind == "dtype":
        return data_type(value)
    return tuple(value) if kind == "ints" else value


def address_json(addr: int, logic_base: int, place: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Return an address as a result states it: where it lies in a source, else from the logic base."""
    if place is not None:
        return dict(place)
    off = (addr - logic_base) % UINT64
    return {"space": "logic", "off": off - UINT64 if off >= UINT64 // 2 else off}


def message_json(message: Any) -> dict[str, Json]:
    """Return a message in the JSON mapping that the files use; nobody changes what is returned."""
    return _json_of(type(message), message.SerializeToString(deterministic=True))  # type: ignore[arg-type]


@lru_cache(maxsize=8)
def _json_of(kind: Any, data: bytes) -> dict[str, Json]:
    """The mapping of a message in wire form: most messages are those of all models and of the file."""
    from google.protobuf import json_format

    found: dict[str, Json] = json_format.MessageToDict(kind.FromString(data), preserving_proto_field_name=True)
    return found


def canonical(value: Json) -> str:
    """Return a text that is equal for equal JSON values, and tells true from 1."""
    return json.dumps(value, sort_keys=True)


def same_json(one: Json, other: Json) -> bool:
    return canonical(one) == canonical(other)


def is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def message_bytes(message: Any) -> str:
    """Return a message in wire form, maps sorted by key, as text."""
    return b64encode(message.SerializeToString(deterministic=True)).decode()
