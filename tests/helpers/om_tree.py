"""Model definitions as plain trees, by the tables of the format alone: neither gevar nor the protobuf library is used.

A tree is a dict: field name -> value. Fields that are not there and those with the value 0 are one, packed and unpacked
numbers too, the order of fields and of map entries does not count, unknown fields are kept. So two messages are equal
for every reader exactly if their trees are.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from tests.helpers.om_fields import fields, numbers

Tree = dict[str, Any]


def _table(text: str) -> dict[int, tuple[str, str]]:
    """Return number -> (name, kind) from a list of `number name kind`."""
    rows = (row.split() for row in text.split(", "))
    return {int(number): (name, kind) for number, name, kind in rows}


MESSAGES = {
    "ModelDef": _table(
        "1 name text, 2 version int, 3 custom_version text, 7 graph *GraphDef, 11 attr map, 12 attr_groups AttrGroups"
    ),
    "GraphDef": _table(
        "1 name text, 4 input *text, 5 output *text, 6 op *OpDef, 11 attr map, 12 attr_groups AttrGroups"
    ),
    "OpDef": _table(
        "1 name text, 2 type text, 5 input *text, 10 attr map, 11 attr_groups AttrGroups, 20 has_out_attr int, "
        "21 id int, 22 stream_id int, 23 input_name *text, 24 src_name *text, 25 src_index *int, "
        "26 dst_name *text, 27 dst_index *int, 28 input_i *int, 29 output_i *int, 30 workspace *int, "
        "31 workspace_bytes *int, 32 is_input_const *int, 33 input_desc *TensorDescriptor, "
        "34 output_desc *TensorDescriptor, 35 subgraph_name *text"
    ),
    "TensorDescriptor": _table(
        "1 name text, 2 dtype int, 3 shape ShapeDef, 4 layout text, 5 attr map, 6 attr_groups AttrGroups, "
        "9 has_out_attr int, 10 size int, 11 weight_size int, 12 reuse_input int, 13 output_tensor int, "
        "14 device_type text, 15 input_tensor int, 16 real_dim_cnt int, 17 reuse_input_index int, "
        "18 data_offset int, 19 cmps_size int, 20 cmps_tab text, 21 cmps_tab_offset int"
    ),
    "ShapeDef": _table("1 dim *int"),
    "TensorDef": _table("1 desc TensorDescriptor, 2 data text"),
    "ListValue": _table(
        "2 s *text, 3 i *int, 4 f *float, 5 b *int, 7 bt *text, 8 td *TensorDescriptor, 9 t *TensorDef, "
        "10 g *GraphDef, 11 na *NamedAttrs, 12 dt *int, 20 val_type int"
    ),
    "NamedAttrs": _table("1 name text, 2 attr map"),
    "ListListInt": _table("1 list_list_i *ListInt"),
    "ListInt": _table("1 list_i *int"),
    "ListListFloat": _table("1 list_list_f *ListFloat"),
    "ListFloat": _table("1 list_f *float"),
    "AttrGroups": _table("1 other_group_def text, 2 attr_group_def *AttrGroupDef"),
    "AttrGroupDef": _table("3 tensor text, 4 shape_env text"),
}
ATTR = _table(
    "1 list ListValue, 2 s text, 3 i int, 4 f float, 5 b int, 7 bt text, 10 func NamedAttrs, "
    "11 td TensorDescriptor, 12 t TensorDef, 13 g GraphDef, 14 list_list_int ListListInt, 15 dt int, "
    "16 list_list_float ListListFloat, 17 expression text"
)
"""Fields of AttrDef, of which one counts."""
MOBILE_ATTR = {**{n: kind for n, kind in ATTR.items() if n not in (15, 16)}, 15: ATTR[16]}
TABLE_ATTRS = ("om_compress_version", "attr_name_enum", "attr_value_enum", "attrs_use_string_value")


def message_tree(data: bytes, kind: str, *, mobile: bool = False) -> Tree:
    """Return a message of a kind as a tree."""
    known, parts, unknown = MESSAGES[kind], dict[int, list[Any]](), list[tuple[int, Any]]()
    for number, value in fields(data):
        if number in known:
            parts.setdefault(number, []).append(value)
        else:
            unknown.append((number, value))
    tree: Tree = {"?": unknown} if unknown else {}
    for number, values in parts.items():
        name, form = known[number]
        found = _value(data, number, values, form, mobile=mobile)
        if found or form == "TensorDescriptor":
            tree[name] = found
    return tree


def _value(data: bytes, number: int, values: list[Any], form: str, *, mobile: bool) -> Any:
    if form == "map":
        return attr_trees(values, mobile=mobile)
    if form == "*int":
        return numbers(data, number)
    if form == "*float":
        packed = b"".join(values)
        return [packed[at : at + 4] for at in range(0, len(packed), 4)]
    if form in ("int", "text", "float"):
        return values[-1]
    if form == "*text":
        return values
    if form.startswith("*"):
        return [message_tree(value, form[1:], mobile=mobile) for value in values]
    return message_tree(b"".join(values), form, mobile=mobile)


def attr_trees(entries: Iterable[bytes], *, mobile: bool = False) -> Tree:
    """Return a map of attributes: name -> (field, value), of several under one name the last one."""
    found: Tree = {}
    for entry in entries:
        name, value = "", b""
        for number, part in fields(entry):
            name = part.decode() if number == 1 else name
            value = part if number == 2 else value
        found[name] = attr_tree(value, mobile=mobile)
    return found


def attr_tree(data: bytes, *, mobile: bool = False) -> tuple[Any, ...]:
    """Return an attribute as its field, its value and what is unknown in it; a mobile one by server names."""
    known, kind, parts, unknown = MOBILE_ATTR if mobile else ATTR, 0, list[Any](), list[tuple[int, Any]]()
    for number, value in fields(data):
        if number not in known:
            unknown.append((number, value))
        elif number == kind:
            parts.append(value)
        else:
            kind, parts = number, [value]
    if not kind:
        return "", None, unknown
    name, form = known[kind]
    return name, _value(data, kind, parts, form, mobile=mobile), unknown


def model_tree(data: bytes, tables: Iterable[Mapping[str, Any]] = (), *, mobile: bool = False) -> Tree:
    """Return a model definition with plain names of attributes; `tables` are the attributes of the root before it."""
    tree = message_tree(data, "ModelDef", mobile=mobile)
    used = [attrs for attrs in (tree.get("attr", {}), *tables) if TABLE_ATTRS[0] in attrs]
    for graph in tree.get("graph", []):
        for op in graph.get("op", []):
            for owner in (op, *op.get("input_desc", []), *op.get("output_desc", [])):
                if "attr" in owner:
                    owner["attr"] = _plain(owner["attr"], used)
    return tree


def _plain(attrs: Tree, tables: list[Mapping[str, Any]]) -> Tree:
    plain: Tree = {}
    for stored, attr in attrs.items():
        name, found = stored, attr
        for table in tables:
            if name.startswith("\0"):
                name, found = _restored(name, found, table)
        assert not name.startswith("\0"), f"{stored!r} stays compressed"
        if stored == name or name not in plain:
            plain[name] = found
    return plain


def _restored(name: str, attr: tuple[Any, ...], table: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    index = sum((ord(digit) - 1) * 127**place for place, digit in enumerate(name[1:]))
    names, flags, values = (
        table[key][1].get(field, []) if key in table else []
        for key, field in (("attr_name_enum", "s"), ("attrs_use_string_value", "b"), ("attr_value_enum", "s"))
    )
    if flags[index]:
        field, value, unknown = attr
        if field == "i":
            attr = ("s", values[value], unknown)
        else:
            assert field == "list"
            texts = [values[number] for number in value.get("i", [])]
            attr = ("list", {**({"s": texts} if texts else {}), "val_type": 1}, unknown)
    return names[index].decode(), attr


def file_trees(data: bytes) -> list[tuple[Tree, list[tuple[int, bytes]]]]:
    """Return each model of a file with one table or several: its tree, and type and bytes of its other partitions."""
    version, modeltype = struct.unpack_from("<I", data, 8)[0], data[82]
    new = version == 0x20000000
    model_num, model_length = struct.unpack_from("<I", data, 156)[0], struct.unpack_from("<Q", data, 184)[0]
    wide = new and (model_length > 0 or modeltype == 3)
    mobile = not new and (modeltype != 0 or data[156:158] == b"3.")
    count = model_num if new and modeltype != 3 and (model_num > 1 or data[193] == 1) else 1
    at, found, root = 256, list[tuple[Tree, list[tuple[int, bytes]]]](), list[Mapping[str, Any]]()
    for _ in range(count):
        parts, at = _partitions(data, at, wide=wide)
        model_def = next(content for kind, content in parts if kind == 0)
        tree = model_tree(model_def, root, mobile=mobile)
        root = root or [tree.get("attr", {})]
        found.append((tree, [part for part in parts if part[0] != 0]))
    return found


def _partitions(data: bytes, start: int, *, wide: bool) -> tuple[list[tuple[int, bytes]], int]:
    (num,) = struct.unpack_from("<I", data, start)
    layout, head = ("<I4xQQ", 8) if wide else ("<III", 4)
    entries = [struct.unpack_from(layout, data, start + head + struct.calcsize(layout) * n) for n in range(num)]
    base = start + head + struct.calcsize(layout) * num
    parts = [(kind, data[base + offset : base + offset + size]) for kind, offset, size in entries]
    return parts, base + max(offset + size for _, offset, size in entries)


def without_tables(tree: Tree) -> Tree:
    """Return a model without what the writer brings up to date: tables of names, and sizes of partitions."""
    attrs = {name: attr for name, attr in tree.get("attr", {}).items() if name not in (*TABLE_ATTRS, "om_info_list")}
    return {**tree, "attr": attrs}
