"""The message `OpDef` of `gevar.proto.ge_ir`, and an entry of its attributes, with the messages inside left as bytes.

A message that holds messages and one that holds their bytes have one wire form. Taking an operator apart is many times
faster this way, since most attributes and descriptions of a model are equal to others.
"""

from typing import Final

from gevar.proto.ge_ir import FILE as GE_IR_FILE
from gevar.proto.pool import ProtoFile, message_class

_BYTES: Final = {
    "map<string, AttrDef>": "repeated bytes",
    "repeated TensorDescriptor": "repeated bytes",
    "AttrGroups": "repeated bytes",  # an empty one is there, and one field of bytes would not show it
}

FILE = ProtoFile(
    name="ge_ir_raw.proto",
    package="gevar.raw_ir",
    messages={
        "OpDef": [(row[0], row[1], _BYTES.get(row[2], row[2])) for row in GE_IR_FILE.messages["OpDef"]],
        "AttrEntry": [(1, "key", "string"), (2, "value", "bytes")],
    },
    enums={},
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
