from google.protobuf.internal.containers import RepeatedScalarFieldContainer
from google.protobuf.message import Message

from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class OpDef(Message):
    name: str
    type: str
    id: int
    stream_id: int
    @property
    def input(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def attr(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def input_desc(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def output_desc(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def subgraph_name(self) -> RepeatedScalarFieldContainer[str]: ...

class AttrEntry(Message):
    key: str
    value: bytes
