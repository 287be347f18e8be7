from collections.abc import Iterable, Mapping

from google.protobuf.internal.containers import (
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.message import Message

from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class ModelTaskDef(Message):
    version: str
    @property
    def attr(self) -> ScalarMap[str, str]: ...
    @property
    def task(self) -> RepeatedCompositeFieldContainer[TaskDef]: ...
    memory_size: int
    stream_num: int
    event_num: int
    weight_size: int
    @property
    def op(self) -> RepeatedScalarFieldContainer[bytes]: ...
    base_addr: int
    weight_addr: int
    batch_num: int
    def __init__(
        self,
        *,
        version: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        task: Iterable[TaskDef] | None = ...,
        memory_size: int | None = ...,
        stream_num: int | None = ...,
        event_num: int | None = ...,
        weight_size: int | None = ...,
        op: Iterable[bytes] | None = ...,
        base_addr: int | None = ...,
        weight_addr: int | None = ...,
        batch_num: int | None = ...,
    ) -> None: ...

class TaskDef(Message):
    id: int
    type: int
    stream_id: int
    def __init__(
        self,
        *,
        id: int | None = ...,
        type: int | None = ...,
        stream_id: int | None = ...,
    ) -> None: ...
