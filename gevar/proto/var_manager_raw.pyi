from google.protobuf.internal.containers import MessageMap, ScalarMap
from google.protobuf.message import Message

from gevar.proto.pool import ProtoFile
from gevar.proto.var_manager import (
    BroadcastMultiInfo,
    MemResourceInfo,
    TransNodeMultiInfo,
    VarManagerExtension,
)

FILE: ProtoFile

class VarAddrMgrInfo(Message):
    desc: bytes
    address: int
    offset: int
    memory_type: int

class VarDevAddrMgr(Message):
    desc: bytes
    address: int
    dev_addr: int

class VarResourceInfo(Message):
    @property
    def var_offset_map(self) -> ScalarMap[int, int]: ...
    @property
    def var_addr_mgr_map(self) -> MessageMap[str, VarAddrMgrInfo]: ...
    @property
    def cur_var_tensor_desc_map(self) -> ScalarMap[str, bytes]: ...
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
