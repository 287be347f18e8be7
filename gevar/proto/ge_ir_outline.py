"""The messages `ModelDef`, `GraphDef` and `OpDef` of `gevar.proto.ge_ir` with little known of an operator.

Everything else of an operator is an unknown field: kept as bytes, and known again to `ge_ir.OpDef` when these are
parsed. Of a model with many operators few are looked at, and reading it is many times faster this way.
"""

from typing import Final

from gevar.proto.ge_ir import FILE as GE_IR_FILE
from gevar.proto.pool import ProtoFile, message_class

_KNOWN: Final = {
    "OpDef": ("name", "type", "subgraph_name"),
    "GraphDef": ("name", "op"),
    "ModelDef": ("name", "version", "custom_version", "graph", "attr"),
}

FILE = ProtoFile(
    name="ge_ir_outline.proto",
    package="gevar.outline",
    messages={
        message: [
            (row[0], row[1], row[2].replace("AttrDef", f".{GE_IR_FILE.package}.AttrDef"))
            for row in GE_IR_FILE.messages[message]
            if row[1] in names
        ]
        for message, names in _KNOWN.items()
    },
    enums={},
    imports=(GE_IR_FILE,),
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
