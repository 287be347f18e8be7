"""Messages of package deployer: the serialised state of a variable manager.

Every message of the table below is an attribute of this module (`var_manager.VarManagerInfo`), made at its first use;
the stub file beside this one holds the types. `VarManagerExtension` is gevar's own: it holds what GE's fields have no
place for. GE passes over it, as over every field it does not know.

Fields of `VarManagerExtension`: key names of batch variables; staged descriptions per graph; records whose key in
`var_addr_mgr_map` does not tell their name (they count instead of the entry there); the name that a block was made for;
the variable that a node is a reference to; bytes of the caller's memory per address of a place holder; what blocks
hold, by content (length in bytes, element size code, xxh3-128 digest) and by place in a file; bytes of place holders
and the next offset per kind of memory.

Source: GE source, graph_metadef/proto/var_manager.proto.
"""

from gevar.proto.ge_ir import FILE as GE_IR_FILE
from gevar.proto.pool import ProtoFile, message_class

FILE = ProtoFile(
    name="var_manager.proto",
    package="deployer",
    messages={
        "VarAddrMgrInfo": [
            (1, "desc", ".ge.proto.TensorDescriptor"),
            (2, "address", "uint64"),
            (3, "offset", "uint64"),
            (4, "memory_type", "uint64"),
        ],
        "VarDevAddrMgr": [
            (1, "desc", ".ge.proto.TensorDescriptor"),
            (2, "address", "uint64"),
            (3, "dev_addr", "uint64"),
        ],
        "SingleTransNodeInfo": [
            (1, "node_type", "string"),
            (2, "input", ".ge.proto.TensorDescriptor"),
            (3, "output", ".ge.proto.TensorDescriptor"),
        ],
        "TransNodeMultiInfo": [(1, "node_info", "repeated SingleTransNodeInfo")],
        "BroadcastInfo": [
            (1, "var_name", "string"),
            (2, "broadcast_name", "string"),
            (3, "idx", "int32"),
            (4, "input_offset", "int64"),
            (5, "input_size", "uint64"),
            (6, "output_offset", "int64"),
            (7, "output_size", "uint64"),
        ],
        "BroadcastMultiInfo": [(1, "broadcast_info", "map<string, BroadcastInfo>")],
        "VarDescInfo": [
            (1, "cur_var_tensor_desc_map", "map<string, .ge.proto.TensorDescriptor>"),
            (2, "var_to_trans_road", "map<string, TransNodeMultiInfo>"),
            (3, "changed_var_names", "repeated string"),
            (4, "staged_var_tensor_desc_map", "map<string, .ge.proto.TensorDescriptor>"),
        ],
        "VarMatchInfo": [
            (1, "desc_info_before_compile", "VarDescInfo"),
            (2, "desc_info_after_compile", "VarDescInfo"),
        ],
        "VarResourceInfo": [
            (1, "var_offset_map", "map<uint64, uint32>"),
            (2, "var_addr_mgr_map", "map<string, VarAddrMgrInfo>"),
            (3, "cur_var_tensor_desc_map", "map<string, .ge.proto.TensorDescriptor>"),
            (4, "var_to_trans_road", "map<string, TransNodeMultiInfo>"),
            (5, "var_names_to_changed_graph_id", "map<string, uint32>"),
            (6, "var_names_to_allocated_graph_id", "map<string, uint32>"),
            (7, "var_broad_cast_info", "map<uint32, BroadcastMultiInfo>"),
            (8, "var_dev_addr_mgr_map", "map<uint64, VarDevAddrMgr>"),
        ],
        "MemResourceInfo": [(1, "total_size", "uint64"), (2, "var_mem_size", "uint64")],
        "VarManagerInfo": [
            (1, "version", "uint32"),
            (2, "session_id", "uint64"),
            (3, "device_id", "uint32"),
            (4, "job_id", "uint64"),
            (5, "graph_mem_max_size", "uint64"),
            (6, "var_mem_max_size", "uint64"),
            (7, "var_mem_logic_base", "uint64"),
            (8, "use_max_mem_size", "uint64"),
            (9, "var_resource", "VarResourceInfo"),
            (10, "mem_resource_map", "map<uint32, MemResourceInfo>"),
            (11, "var_mem_auto_malloc", "bool"),
            (1000, "gevar", "VarManagerExtension"),
        ],
        "VarManagerExtension": [
            (1, "batch_var_name_map", "map<string, string>"),
            (2, "staged_var_desc", "map<uint32, VarManagerExtension.StagedVarDescs>"),
            (3, "var_record", "repeated VarManagerExtension.VarRecord"),
            (4, "block_name", "map<uint64, string>"),
            (5, "reference", "repeated VarManagerExtension.Reference"),
            (6, "place_holder_size", "map<uint64, uint64>"),
            (7, "constant", "repeated VarManagerExtension.Constant"),
            (8, "file_constant", "repeated VarManagerExtension.FileConstant"),
            (9, "mem_resource", "map<uint32, VarManagerExtension.MemResource>"),
        ],
        "VarManagerExtension.StagedVarDescs": [(1, "desc", "map<string, .ge.proto.TensorDescriptor>")],
        "VarManagerExtension.VarRecord": [(1, "name", "string"), (2, "info", "VarAddrMgrInfo")],
        "VarManagerExtension.Reference": [
            (1, "name", "string"),
            (2, "format", "int32"),
            (3, "dtype", "int32"),
            (4, "src_var_name", "string"),
        ],
        "VarManagerExtension.Constant": [
            (1, "address", "uint64"),
            (2, "length", "uint64"),
            (3, "size_code", "uint32"),
            (4, "digest", "bytes"),
        ],
        "VarManagerExtension.FileConstant": [
            (1, "address", "uint64"),
            (2, "location", "string"),
            (3, "offset", "int64"),
            (4, "length", "int64"),
        ],
        "VarManagerExtension.MemResource": [
            (1, "const_place_holder_mem_size", "uint64"),
            (2, "next_offset", "uint64"),
        ],
        "MultiVarManagerInfo": [(1, "var_manager_info", "repeated VarManagerInfo")],
        "SharedContentDescription": [
            (1, "session_id", "uint64"),
            (2, "node_name", "string"),
            (3, "head_offset", "uint64"),
            (4, "total_length", "uint64"),
            (5, "current_offset", "uint64"),
            (6, "mem_type", "uint32"),
            (7, "tensor_desc", ".ge.proto.TensorDescriptor"),
            (8, "om_content", "bytes"),
        ],
    },
    enums={},
    imports=(GE_IR_FILE,),
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
