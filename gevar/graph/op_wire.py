"""An operator's message taken apart into bytes, without an object for each message inside.

A model has dozens of attributes for each of its many operators, and most of them are equal to others. So an operator
is written once and parsed again as a message that leaves inner ones as bytes; each of these is looked up among what was
met before.

Source: GE source, graph_metadef/proto/ge_ir.proto, OpDef.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from gevar.graph.sharing import Entry, SharedWires, Sharing, StoredTensorDesc
from gevar.proto import ge_ir, ge_ir_raw

_TAKEN: Final = ("name", "type", "input", "attr", "id", "stream_id", "input_desc", "output_desc", "subgraph_name")


class OpParts(NamedTuple):
    """What a message holds; attributes by name in wire form, `rest` all that has no part of its own."""

    name: str
    type: str
    inputs: tuple[str, ...]
    attrs: SharedWires
    id: int
    stream_id: int
    input_descs: list[StoredTensorDesc]
    output_descs: list[StoredTensorDesc]
    subgraph_names: tuple[str, ...]
    rest: bytes


WholeOp = tuple[ge_ir.OpDef, Mapping[str, bytes]]
"""An operator, and those of its attributes that are so large that they stay in wire form."""


def take_apart(op: ge_ir.OpDef, sharing: Sharing, large: Mapping[str, bytes] | None = None) -> OpParts:
    """Return the parts of an operator; the message may go afterwards. `large` are more attributes, in wire form."""
    raw = ge_ir_raw.OpDef.FromString(op.SerializeToString(deterministic=True))
    entries, unread = _entries(raw.attr[:], sharing)
    if large:
        entries = [*(entry for entry in entries if entry[0] not in large), *large.items()]
    parts = (
        *(raw.name, sharing.text(raw.type), tuple(raw.input), sharing.shared_wires(entries), raw.id, raw.stream_id),
        [sharing.desc(desc) for desc in raw.input_desc],
        [sharing.desc(desc) for desc in raw.output_desc],
        tuple(raw.subgraph_name),
    )
    for name in _TAKEN:
        raw.ClearField(name)
    if unread:
        raw.attr.extend(unread)
    return OpParts(*parts, sharing.wire(raw.SerializeToString(deterministic=True)))


def _entries(stored: list[bytes], sharing: Sharing) -> tuple[list[Entry], list[bytes]]:
    """Return names and values of attributes, and the entries that protobuf keeps unread."""
    found = list(map(sharing.entries.get, stored))
    if None not in found:
        return cast("list[Entry]", found), []
    for place, known in enumerate(found):
        if known is None:
            found[place] = sharing.entry(stored[place])
    unread = [entry for known, entry in zip(found, stored, strict=True) if known is None]
    return [known for known in found if known is not None], unread
