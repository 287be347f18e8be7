from collections.abc import Iterable, Mapping

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.message import Message

from gevar.proto.ge_ir import TensorDescriptor
from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class VarAddrMgrInfo(Message):
    @property
    def desc(self) -> TensorDescriptor: ...
    address: int
    offset: int
    memory_type: int
    def __init__(
        self,
        *,
        desc: TensorDescriptor | None = ...,
        address: int | None = ...,
        offset: int | None = ...,
        memory_type: int | None = ...,
    ) -> None: ...

class VarDevAddrMgr(Message):
    @property
    def desc(self) -> TensorDescriptor: ...
    address: int
    dev_addr: int
    def __init__(
        self,
        *,
        desc: TensorDescriptor | None = ...,
        address: int | None = ...,
        dev_addr: int | None = ...,
    ) -> None: ...

class SingleTransNodeInfo(Message):
    node_type: str
    @property
    def input(self) -> TensorDescriptor: ...
    @property
    def output(self) -> TensorDescriptor: ...
    def __init__(
        self,
        *,
        node_type: str | None = ...,
        input: TensorDescriptor | None = ...,
        output: TensorDescriptor | None = ...,
    ) -> None: ...

class TransNodeMultiInfo(Message):
    @property
    def node_info(self) -> RepeatedCompositeFieldContainer[SingleTransNodeInfo]: ...
    def __init__(
        self,
        *,
        node_info: Iterable[SingleTransNodeInfo] | None = ...,
    ) -> None: ...

class BroadcastInfo(Message):
    var_name: str
    broadcast_name: str
    idx: int
    input_offset: int
    input_size: int
    output_offset: int
    output_size: int
    def __init__(
        self,
        *,
        var_name: str | None = ...,
        broadcast_name: str | None = ...,
        idx: int | None = ...,
        input_offset: int | None = ...,
        input_size: int | None = ...,
        output_offset: int | None = ...,
        output_size: int | None = ...,
    ) -> None: ...

class BroadcastMultiInfo(Message):
    @property
    def broadcast_info(self) -> MessageMap[str, BroadcastInfo]: ...
    def __init__(
        self,
        *,
        broadcast_info: Mapping[str, BroadcastInfo] | None = ...,
    ) -> None: ...

class VarDescInfo(Message):
    @property
    def cur_var_tensor_desc_map(self) -> MessageMap[str, TensorDescriptor]: ...
    @property
    def var_to_trans_road(self) -> MessageMap[str, TransNodeMultiInfo]: ...
    @property
    def changed_var_names(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def staged_var_tensor_desc_map(self) -> MessageMap[str, TensorDescriptor]: ...
    def __init__(
        self,
        *,
        cur_var_tensor_desc_map: Mapping[str, TensorDescriptor] | None = ...,
        var_to_trans_road: Mapping[str, TransNodeMultiInfo] | None = ...,
        changed_var_names: Iterable[str] | None = ...,
        staged_var_tensor_desc_map: Mapping[str, TensorDescriptor] | None = ...,
    ) -> None: ...

class VarMatchInfo(Message):
    @property
    def desc_info_before_compile(self) -> VarDescInfo: ...
    @property
    def desc_info_after_compile(self) -> VarDescInfo: ...
    def __init__(
        self,
        *,
        desc_info_before_compile: VarDescInfo | None = ...,
        desc_info_after_compile: VarDescInfo | None = ...,
    ) -> None: ...

class VarResourceInfo(Message):
    @property
    def var_offset_map(self) -> ScalarMap[int, int]: ...
    @property
    def var_addr_mgr_map(self) -> MessageMap[str, VarAddrMgrInfo]: ...
    @property
    def cur_var_tensor_desc_map(self) -> MessageMap[str, TensorDescriptor]: ...
    @property
    def var_to_trans_road(self) -> MessageMap[str, TransNodeMultiInfo]: ...
    @property
    def var_names_to_changed_graph_id(self) -> ScalarMap[str, int]: ...
    @property
    def var_names_to_allocated_graph_id(self) -> ScalarMap[str, int]: ...
    @property
    def var_broad_cast_info(self) -> MessageMap[int, BroadcastMultiInfo]: ...
    @property
    def var_dev_addr_mgr_map(self) -> MessageMap[int, VarDevAddrMgr]: ...
    def __init__(
        self,
        *,
        var_offset_map: Mapping[int, int] | None = ...,
        var_addr_mgr_map: Mapping[str, VarAddrMgrInfo] | None = ...,
        cur_var_tensor_desc_map: Mapping[str, TensorDescriptor] | None = ...,
        var_to_trans_road: Mapping[str, TransNodeMultiInfo] | None = ...,
        var_names_to_changed_graph_id: Mapping[str, int] | None = ...,
        var_names_to_allocated_graph_id: Mapping[str, int] | None = ...,
        var_broad_cast_info: Mapping[int, BroadcastMultiInfo] | None = ...,
        var_dev_addr_mgr_map: Mapping[int, VarDevAddrMgr] | None = ...,
    ) -> None: ...

class MemResourceInfo(Message):
    total_size: int
    var_mem_size: int
    def __init__(
        self,
        *,
        total_size: int | None = ...,
        var_mem_size: int | None = ...,
    ) -> None: ...

class VarManagerInfo(Message):
    version: int
    session_id: int
    device_id: int
    job_id: int
    graph_mem_max_size: int
    var_mem_max_size: int
    var_mem_logic_base: int
    use_max_mem_size: int
    @property
    def var_resource(self) -> VarResourceInfo: ...
    @property
    def mem_resource_map(self) -> MessageMap[int, MemResourceInfo]: ...
    var_mem_auto_malloc: bool
    @property
    def gevar(self) -> VarManagerExtension: ...
    def __init__(
        self,
        *,
        version: int | None = ...,
        session_id: int | None = ...,
        device_id: int | None = ...,
        job_id: int | None = ...,
        graph_mem_max_size: int | None = ...,
        var_mem_max_size: int | None = ...,
        var_mem_logic_base: int | None = ...,
        use_max_mem_size: int | None = ...,
        var_resource: VarResourceInfo | None = ...,
        mem_resource_map: Mapping[int, MemResourceInfo] | None = ...,
        var_mem_auto_malloc: bool | None = ...,
        gevar: VarManagerExtension | None = ...,
    ) -> None: ...

class VarManagerExtension(Message):
    @property
    def batch_var_name_map(self) -> ScalarMap[str, str]: ...
    @property
    def staged_var_desc(self) -> MessageMap[int, VarManagerExtension_StagedVarDescs]: ...
    @property
    def var_record(self) -> RepeatedCompositeFieldContainer[VarManagerExtension_VarRecord]: ...
    @property
    def block_name(self) -> ScalarMap[int, str]: ...
    @property
    def reference(self) -> RepeatedCompositeFieldContainer[VarManagerExtension_Reference]: ...
    @property
    def place_holder_size(self) -> ScalarMap[int, int]: ...
    @property
    def constant(self) -> RepeatedCompositeFieldContainer[VarManagerExtension_Constant]: ...
    @property
    def file_constant(self) -> RepeatedCompositeFieldContainer[VarManagerExtension_FileConstant]: ...
    @property
    def mem_resource(self) -> MessageMap[int, VarManagerExtension_MemResource]: ...
    def __init__(
        self,
        *,
        batch_var_name_map: Mapping[str, str] | None = ...,
        staged_var_desc: Mapping[int, VarManagerExtension_StagedVarDescs] | None = ...,
        var_record: Iterable[VarManagerExtension_VarRecord] | None = ...,
        block_name: Mapping[int, str] | None = ...,
        reference: Iterable[VarManagerExtension_Reference] | None = ...,
        place_holder_size: Mapping[int, int] | None = ...,
        constant: Iterable[VarManagerExtension_Constant] | None = ...,
        file_constant: Iterable[VarManagerExtension_FileConstant] | None = ...,
        mem_resource: Mapping[int, VarManagerExtension_MemResource] | None = ...,
    ) -> None: ...

class VarManagerExtension_StagedVarDescs(Message):
    @property
    def desc(self) -> MessageMap[str, TensorDescriptor]: ...
    def __init__(
        self,
        *,
        desc: Mapping[str, TensorDescriptor] | None = ...,
    ) -> None: ...

class VarManagerExtension_VarRecord(Message):
    name: str
    @property
    def info(self) -> VarAddrMgrInfo: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        info: VarAddrMgrInfo | None = ...,
    ) -> None: ...

class VarManagerExtension_Reference(Message):
    name: str
    format: int
    dtype: int
    src_var_name: str
    def __init__(
        self,
        *,
        name: str | None = ...,
        format: int | None = ...,
        dtype: int | None = ...,
        src_var_name: str | None = ...,
    ) -> None: ...

class VarManagerExtension_Constant(Message):
    address: int
    length: int
    size_code: int
    digest: bytes
    def __init__(
        self,
        *,
        address: int | None = ...,
        length: int | None = ...,
        size_code: int | None = ...,
        digest: bytes | None = ...,
    ) -> None: ...

class VarManagerExtension_FileConstant(Message):
    address: int
    location: str
    offset: int
    length: int
    def __init__(
        self,
        *,
        address: int | None = ...,
        location: str | None = ...,
        offset: int | None = ...,
        length: int | None = ...,
    ) -> None: ...

class VarManagerExtension_MemResource(Message):
    const_place_holder_mem_size: int
    next_offset: int
    def __init__(
        self,
        *,
        const_place_holder_mem_size: int | None = ...,
        next_offset: int | None = ...,
    ) -> None: ...

class MultiVarManagerInfo(Message):
    @property
    def var_manager_info(self) -> RepeatedCompositeFieldContainer[VarManagerInfo]: ...
    def __init__(
        self,
        *,
        var_manager_info: Iterable[VarManagerInfo] | None = ...,
    ) -> None: ...

class SharedContentDescription(Message):
    session_id: int
    node_name: str
    head_offset: int
    total_length: int
    current_offset: int
    mem_type: int
    @property
    def tensor_desc(self) -> TensorDescriptor: ...
    om_content: bytes
    def __init__(
        self,
        *,
        session_id: int | None = ...,
        node_name: str | None = ...,
        head_offset: int | None = ...,
        total_length: int | None = ...,
        current_offset: int | None = ...,
        mem_type: int | None = ...,
        tensor_desc: TensorDescriptor | None = ...,
        om_content: bytes | None = ...,
    ) -> None: ...
