from collections.abc import Iterable

from google.protobuf.internal.containers import (
    RepeatedScalarFieldContainer,
)
from google.protobuf.message import Message

from gevar.proto.ge_ir import GraphDef
from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class FlowModelDef(Message):
    model_name: str
    @property
    def submodel_name(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        model_name: str | None = ...,
        submodel_name: Iterable[str] | None = ...,
    ) -> None: ...

class SubmodelDef(Message):
    model_name: str
    model_type: str
    om_data: bytes
    @property
    def graph(self) -> GraphDef: ...
    om_data_file_path: str
    is_builtin_udf: bool
    def __init__(
        self,
        *,
        model_name: str | None = ...,
        model_type: str | None = ...,
        om_data: bytes | None = ...,
        graph: GraphDef | None = ...,
        om_data_file_path: str | None = ...,
        is_builtin_udf: bool | None = ...,
    ) -> None: ...
