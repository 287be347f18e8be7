from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
)
from google.protobuf.message import Message

from gevar.proto.ge_ir import AttrDef
from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class OpDef(Message):
    name: str
    type: str
    @property
    def subgraph_name(self) -> RepeatedScalarFieldContainer[str]: ...

class GraphDef(Message):
    name: str
    @property
    def op(self) -> RepeatedCompositeFieldContainer[OpDef]: ...

class ModelDef(Message):
    name: str
    version: int
    custom_version: str
    @property
    def graph(self) -> RepeatedCompositeFieldContainer[GraphDef]: ...
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
