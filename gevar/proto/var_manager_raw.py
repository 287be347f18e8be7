"""The messages of `gevar.proto.var_manager` with the descriptions in the three large maps left as bytes.

A message that holds messages and one that holds their bytes have one wire form. Reading is several times faster this
way, since a model has few distinct descriptions for its many variables.
"""

import re

from gevar.proto.ge_ir import FILE as GE_IR_FILE
from gevar.proto.pool import ProtoFile, Row, message_class
from gevar.proto.var_manager import FILE as VAR_MANAGER_FILE

_RAW = ("VarAddrMgrInfo", "VarDevAddrMgr", "VarResourceInfo", "VarManagerInfo")


def _raw_row(row: Row) -> Row:
    """A row of a message with descriptions as bytes, and all other messages those of the imported file."""

    def raw_type(match: re.Match[str]) -> str:
        word = match[0]
        if word == ".ge.proto.TensorDescriptor":
            return "bytes"
        return f".{VAR_MANAGER_FILE.package}.{word}" if word in VAR_MANAGER_FILE.messages and word not in _RAW else word

    return row[0], row[1], re.sub(r"[.\w]+", raw_type, row[2])


FILE = ProtoFile(
    name="var_manager_raw.proto",
    package="gevar.raw",
    messages={name: [_raw_row(row) for row in VAR_MANAGER_FILE.messages[name]] for name in _RAW},
    enums={},
    imports=(GE_IR_FILE, VAR_MANAGER_FILE),
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
