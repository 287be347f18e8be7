"""The table of pyACL's calls: each is a C function and the kinds of its parameters, in the order of C.

Out parameters are no arguments; their values come first in the result, in the order of C, the code last.

Source: CANN, pyACL API reference; CANN runtime, include/external/acl/acl_rt.h.
"""

from dataclasses import dataclass

from ._kinds import (
    Config,
    ExceptionFunction,
    Float,
    Function,
    InShareKey,
    InStruct,
    Int,
    InWord,
    Kind,
    Numbers,
    Out,
    OutKey,
    OutShareKey,
    OutStruct,
    OutText,
    OutUsage,
    OutWord,
    StreamStateFunction,
    Structs,
    Text,
    Word,
)

_VERSION_BYTES = 128


@dataclass(frozen=True, slots=True)
class Row:
    """One call.

    Attributes
    ----------
    module
        ``acl`` or ``acl.rt``.
    name
        Name of the Python function.
    c_name
        Name of the C function.
    kinds
        Its parameters.
    defaults
        Values of the last Python arguments that may be left out.
    """

    module: str
    name: str
    c_name: str
    kinds: tuple[Kind, ...]
    defaults: tuple[object, ...] = ()


def _acl(name: str, c_name: str, *kinds: Kind, defaults: tuple[object, ...] = ()) -> Row:
    return Row("acl", name, c_name, kinds, defaults)


def _rt(name: str, c_name: str, *kinds: Kind) -> Row:
    return Row("acl.rt", name, c_name, kinds)


OUT_POINTER, OUT_INT, OUT_SIZE = Out("uintptr_t *"), Out("int *"), Out("size_t *")
OUT_I32, OUT_U32, OUT_I64, OUT_U64 = Out("int32_t *"), Out("uint32_t *"), Out("int64_t *"), Out("uint64_t *")
OUT_FLOAT = Out("float *")
PTR, SIZE, STREAM, EVENT, HANDLE = Word("ptr"), Word("size"), Word("stream"), Word("event"), Word("handle")
POLICY, KIND, DEVICE, FLAG, TIMEOUT = Int("policy"), Int("kind"), Int("device_id"), Int("flag"), Int("timeout")
COPY = (Word("dst"), Word("dest_max"), Word("src"), Word("count"), KIND)
ROWS_2D = (Word("dst"), Word("dpitch"), Word("src"), Word("spitch"), Word("width"), Word("height"), KIND)
FILL = (PTR, Word("max_count"), Int("value"), Word("count"))
WORDS = (PTR, Word("mem_size"), Int("value"), Word("n"))
BATCH = (
    Numbers("dsts", "uintptr_t"),
    Numbers("dest_maxs", "size_t"),
    Numbers("srcs", "uintptr_t"),
    Numbers("sizes", "size_t"),
    Word("num_batches"),
    Structs("attrs", "aclrtMemcpyBatchAttr"),
    Numbers("attrs_indexes", "size_t"),
    Word("num_attrs"),
    OUT_SIZE,
)
RESERVE = (OUT_POINTER, SIZE, Word("alignment"), Word("expect_ptr"), Word("flags"))
MAP = (PTR, SIZE, Word("offset"), HANDLE, Word("flags"))
PROP = InStruct("prop", "aclrtPhysicalMemProp", ())
BUFFER, INFO, DESC = Word("data_buffer"), Word("exception_info"), Word("allocator_desc")
FUNCTION = Word("function_address")
LIMIT, SYMBOL = Int("type"), Word("symbol")
PIDS = Numbers("pids", "int32_t", counted=True)
KEY = Text("key")
ATTRIBUTES = OutStruct("aclrtPtrAttributes", {"pageSize": "page_size"})

ROWS = (
    _acl("init", "aclInit", Text("config_path"), defaults=(None,)),
    _acl("finalize", "aclFinalize"),
    _acl("finalize_reference", "aclFinalizeReference", OUT_U64),
    _acl("get_recent_err_msg", "aclGetRecentErrMsg"),
    _acl("app_log", "aclAppLog", Int("log_level"), Text("func"), Text("file"), Int("line"), Text("message")),
    _acl("data_type_size", "aclDataTypeSize", Int("data_type")),
    _acl("float16_to_float", "aclFloat16ToFloat", Int("value")),
    _acl("float_to_float16", "aclFloatToFloat16", Float("value")),
    _acl("create_data_buffer", "aclCreateDataBuffer", PTR, SIZE),
    _acl("destroy_data_buffer", "aclDestroyDataBuffer", BUFFER),
    _acl("get_data_buffer_addr", "aclGetDataBufferAddr", BUFFER),
    _acl("get_data_buffer_size", "aclGetDataBufferSize", BUFFER),
    _acl("get_data_buffer_size_v2", "aclGetDataBufferSizeV2", BUFFER),
    _acl("get_soc_name", "aclrtGetSocName"),
    _acl("sys_get_version_str", "aclsysGetVersionStr", Text("pkg_name"), OutText(_VERSION_BYTES)),
    _acl("sys_get_version_num", "aclsysGetVersionNum", Text("pkg_name"), OUT_I32),
    _acl("get_cann_attribute", "aclGetCannAttribute", Int("cann_attr"), OUT_I32),
    _acl("get_device_capability", "aclGetDeviceCapability", DEVICE, Int("device_info"), OUT_I64),
    _rt("get_soc_name", "aclrtGetSocName"),
    _rt("get_last_error", "aclrtGetLastError", Int("level")),
    _rt("peek_at_last_error", "aclrtPeekAtLastError", Int("level")),
    _rt("get_run_mode", "aclrtGetRunMode", OUT_INT),
    # devices and contexts
    _rt("set_device", "aclrtSetDevice", DEVICE),
    _rt("reset_device", "aclrtResetDevice", DEVICE),
    _rt("reset_device_force", "aclrtResetDeviceForce", DEVICE),
    _rt("get_device", "aclrtGetDevice", OUT_I32),
    _rt("get_device_count", "aclrtGetDeviceCount", OUT_U32),
    _rt("get_device_info", "aclrtGetDeviceInfo", DEVICE, Int("attr"), OUT_I64),
    _rt("synchronize_device", "aclrtSynchronizeDevice"),
    _rt("synchronize_device_with_timeout", "aclrtSynchronizeDeviceWithTimeout", TIMEOUT),
    _rt("device_can_access_peer", "aclrtDeviceCanAccessPeer", OUT_I32, DEVICE, Int("peer_device_id")),
    _rt("device_enable_peer_access", "aclrtDeviceEnablePeerAccess", Int("peer_device_id"), Int("flags")),
    _rt("device_disable_peer_access", "aclrtDeviceDisablePeerAccess", Int("peer_device_id")),
    _rt("device_get_bare_tgid", "aclrtDeviceGetBareTgid", OUT_I32),
    _rt("device_get_uuid", "aclrtDeviceGetUuid", DEVICE, OutStruct("aclrtUuid")),
    _rt("query_device_status", "aclrtQueryDeviceStatus", DEVICE, OUT_INT),
    _rt("get_device_capability", "aclrtGetDeviceCapability", DEVICE, Int("dev_feature_type"), OUT_I32),
    _rt("get_logic_dev_id_by_user_dev_id", "aclrtGetLogicDevIdByUserDevId", Int("user_dev_id"), OUT_I32),
    _rt("get_user_dev_id_by_logic_dev_id", "aclrtGetUserDevIdByLogicDevId", Int("logic_dev_id"), OUT_I32),
    _rt("get_phy_dev_id_by_logic_dev_id", "aclrtGetPhyDevIdByLogicDevId", Int("logic_dev_id"), OUT_I32),
    _rt("create_context", "aclrtCreateContext", OUT_POINTER, DEVICE),
    _rt("destroy_context", "aclrtDestroyContext", Word("context")),
    _rt("set_context", "aclrtSetCurrentContext", Word("context")),
    _rt("get_context", "aclrtGetCurrentContext", OUT_POINTER),
    _rt("ctx_get_current_default_stream", "aclrtCtxGetCurrentDefaultStream", OUT_POINTER),
    _rt("get_primary_ctx_state", "aclrtGetPrimaryCtxState", DEVICE, OUT_U32, OUT_I32),
    # device and host memory
    _rt("malloc", "aclrtMalloc", OUT_POINTER, SIZE, POLICY),
    _rt("malloc_align32", "aclrtMallocAlign32", OUT_POINTER, SIZE, POLICY),
    _rt("malloc_cached", "aclrtMallocCached", OUT_POINTER, SIZE, POLICY),
    _rt("malloc_with_cfg", "aclrtMallocWithCfg", OUT_POINTER, SIZE, POLICY, Config()),
    _rt("malloc_for_task_scheduler", "aclrtMallocForTaskScheduler", OUT_POINTER, SIZE, POLICY, Config()),
    _rt("free", "aclrtFree", PTR),
    _rt("free_with_dev_sync", "aclrtFreeWithDevSync", PTR),
    _rt("get_mem_info", "aclrtGetMemInfo", Int("attr"), OUT_SIZE, OUT_SIZE),
    _rt("get_mem_usage_info", "aclrtGetMemUsageInfo", DEVICE, OutUsage()),
    _rt("pointer_get_attributes", "aclrtPointerGetAttributes", PTR, ATTRIBUTES),
    _rt("malloc_host", "aclrtMallocHost", OUT_POINTER, SIZE),
    _rt("malloc_host_with_cfg", "aclrtMallocHostWithCfg", OUT_POINTER, SIZE, Config()),
    _rt("free_host", "aclrtFreeHost", PTR),
    _rt("free_host_with_dev_sync", "aclrtFreeHostWithDevSync", PTR),
    _rt("host_register", "aclrtHostRegister", PTR, SIZE, Int("type"), OUT_POINTER),
    _rt("host_register_v2", "aclrtHostRegisterV2", PTR, SIZE, FLAG),
    _rt("host_get_device_pointer", "aclrtHostGetDevicePointer", PTR, OUT_POINTER, FLAG),
    _rt("host_unregister", "aclrtHostUnregister", PTR),
    _rt("mem_alloc_managed", "aclrtMemAllocManaged", OUT_POINTER, SIZE, FLAG),
    # copies and fills
    _rt("memcpy", "aclrtMemcpy", *COPY),
    _rt("memcpy_async", "aclrtMemcpyAsync", *COPY, STREAM),
    _rt("memcpy_2d", "aclrtMemcpy2d", *ROWS_2D),
    _rt("memcpy_2d_async", "aclrtMemcpy2dAsync", *ROWS_2D, STREAM),
    _rt("memcpy_batch", "aclrtMemcpyBatch", *BATCH),
    _rt("memcpy_batch_async", "aclrtMemcpyBatchAsync", *BATCH, STREAM),
    _rt("memset", "aclrtMemset", *FILL),
    _rt("memset_async", "aclrtMemsetAsync", *FILL, STREAM),
    _rt("memset_d32", "aclrtMemsetD32", *WORDS),
    _rt("memset_d32_async", "aclrtMemsetD32Async", *WORDS, STREAM),
    # virtual memory
    _rt("reserve_mem_address", "aclrtReserveMemAddress", *RESERVE),
    _rt("reserve_mem_address_no_uc_memory", "aclrtReserveMemAddressNoUCMemory", *RESERVE),
    _rt("release_mem_address", "aclrtReleaseMemAddress", PTR),
    _rt("malloc_physical", "aclrtMallocPhysical", OUT_POINTER, SIZE, PROP, Word("flags")),
    _rt("free_physical", "aclrtFreePhysical", HANDLE),
    _rt("map_mem", "aclrtMapMem", *MAP),
    _rt("mem_map_no_access", "aclrtMemMapNoAccess", *MAP),
    _rt("unmap_mem", "aclrtUnmapMem", PTR),
    _rt("mem_set_access", "aclrtMemSetAccess", PTR, SIZE, Structs("desc", "aclrtMemAccessDesc"), Word("count")),
    _rt("mem_get_access", "aclrtMemGetAccess", PTR, InStruct("location", "aclrtMemLocation"), OUT_U64),
    _rt("mem_get_allocation_granularity", "aclrtMemGetAllocationGranularity", PROP, Int("option"), OUT_SIZE),
    _rt("mem_retain_allocation_handle", "aclrtMemRetainAllocationHandle", PTR, OUT_POINTER),
    _rt(
        "mem_get_allocation_properties_from_handle",
        "aclrtMemGetAllocationPropertiesFromHandle",
        HANDLE,
        OutStruct("aclrtPhysicalMemProp"),
    ),
    _rt("mem_get_address_range", "aclrtMemGetAddressRange", PTR, OUT_POINTER, OUT_SIZE),
    # sharing between processes
    _rt(
        "mem_export_to_shareable_handle",
        "aclrtMemExportToShareableHandle",
        HANDLE,
        Int("handle_type"),
        Word("flags"),
        OUT_U64,
    ),
    _rt(
        "mem_export_to_shareable_handle_v2",
        "aclrtMemExportToShareableHandleV2",
        HANDLE,
        Word("flags"),
        OutShareKey(),
    ),
    _rt(
        "mem_import_from_shareable_handle",
        "aclrtMemImportFromShareableHandle",
        Word("shareable_handle"),
        DEVICE,
        OUT_POINTER,
    ),
    _rt(
        "mem_import_from_shareable_handle_v2",
        "aclrtMemImportFromShareableHandleV2",
        InShareKey(),
        Int("share_type"),
        Word("flags"),
        OUT_POINTER,
    ),
    _rt("mem_set_pid_to_shareable_handle", "aclrtMemSetPidToShareableHandle", Word("shareable_handle"), PIDS),
    _rt(
        "mem_set_pid_to_shareable_handle_v2",
        "aclrtMemSetPidToShareableHandleV2",
        InShareKey(),
        Int("share_type"),
        PIDS,
    ),
    _rt("ipc_mem_get_export_key", "aclrtIpcMemGetExportKey", PTR, SIZE, OutKey(), Word("flag")),
    _rt("ipc_mem_import_by_key", "aclrtIpcMemImportByKey", OUT_POINTER, KEY, Word("flag")),
    _rt("ipc_mem_close", "aclrtIpcMemClose", KEY),
    _rt("ipc_mem_set_import_pid", "aclrtIpcMemSetImportPid", KEY, PIDS),
    # streams
    _rt("create_stream", "aclrtCreateStream", OUT_POINTER),
    _rt("create_stream_with_config", "aclrtCreateStreamWithConfig", OUT_POINTER, Int("priority"), FLAG),
    _rt("destroy_stream", "aclrtDestroyStream", STREAM),
    _rt("destroy_stream_force", "aclrtDestroyStreamForce", STREAM),
    _rt("synchronize_stream", "aclrtSynchronizeStream", STREAM),
    _rt("synchronize_stream_with_timeout", "aclrtSynchronizeStreamWithTimeout", STREAM, TIMEOUT),
    _rt("stream_query", "aclrtStreamQuery", STREAM, OUT_INT),
    _rt("stream_get_id", "aclrtStreamGetId", STREAM, OUT_I32),
    _rt("stream_get_priority", "aclrtStreamGetPriority", STREAM, OUT_U32),
    _rt("stream_get_flags", "aclrtStreamGetFlags", STREAM, OUT_U32),
    _rt("device_get_stream_priority_range", "aclrtDeviceGetStreamPriorityRange", OUT_I32, OUT_I32),
    _rt("set_stream_failure_mode", "aclrtSetStreamFailureMode", STREAM, Word("mode")),
    _rt("stream_abort", "aclrtStreamAbort", STREAM),
    _rt("reg_stream_state_callback", "aclrtRegStreamStateCallback", Text("reg_name"), StreamStateFunction()),
    _rt("get_thread_last_task_id", "aclrtGetThreadLastTaskId", OUT_U32),
    _rt("value_write", "aclrtValueWrite", PTR, Word("value"), FLAG, STREAM),
    _rt("value_wait", "aclrtValueWait", PTR, Word("value"), FLAG, STREAM),
    _rt("launch_callback", "aclrtLaunchCallback", Function(), Int("block_type"), STREAM),
    _rt("subscribe_report", "aclrtSubscribeReport", Word("thread_id"), STREAM),
    _rt("unsubscribe_report", "aclrtUnSubscribeReport", Word("thread_id"), STREAM),
    _rt("process_report", "aclrtProcessReport", TIMEOUT),
    _rt("launch_host_func", "aclrtLaunchHostFunc", STREAM, Function()),
    _rt("subscribe_host_func", "aclrtSubscribeHostFunc", Word("thread_id"), STREAM),
    _rt("unsubscribe_host_func", "aclrtUnSubscribeHostFunc", Word("thread_id"), STREAM),
    _rt("process_host_func", "aclrtProcessHostFunc", TIMEOUT),
    _rt("set_exception_info_callback", "aclrtSetExceptionInfoCallback", ExceptionFunction()),
    _rt("get_task_id_from_exception_info", "aclrtGetTaskIdFromExceptionInfo", INFO),
    _rt("get_stream_id_from_exception_info", "aclrtGetStreamIdFromExceptionInfo", INFO),
    _rt("get_thread_id_from_exception_info", "aclrtGetThreadIdFromExceptionInfo", INFO),
    _rt("get_device_id_from_exception_info", "aclrtGetDeviceIdFromExceptionInfo", INFO),
    _rt("get_error_code_from_exception_info", "aclrtGetErrorCodeFromExceptionInfo", INFO),
    # events and notifies
    _rt("create_event", "aclrtCreateEvent", OUT_POINTER),
    _rt("create_event_with_flag", "aclrtCreateEventWithFlag", OUT_POINTER, FLAG),
    _rt("create_event_ex_with_flag", "aclrtCreateEventExWithFlag", OUT_POINTER, FLAG),
    _rt("destroy_event", "aclrtDestroyEvent", EVENT),
    _rt("record_event", "aclrtRecordEvent", EVENT, STREAM),
    _rt("record_event_with_flag", "aclrtRecordEventWithFlag", EVENT, STREAM, FLAG),
    _rt("reset_event", "aclrtResetEvent", EVENT, STREAM),
    _rt("stream_wait_event", "aclrtStreamWaitEvent", STREAM, EVENT),
    _rt("stream_wait_event_with_flag", "aclrtStreamWaitEventWithFlag", STREAM, EVENT, TIMEOUT, FLAG),
    _rt("set_op_wait_timeout", "aclrtSetOpWaitTimeout", TIMEOUT),
    _rt("query_event_status", "aclrtQueryEventStatus", EVENT, OUT_INT),
    _rt("query_event_wait_status", "aclrtQueryEventWaitStatus", EVENT, OUT_INT),
    _rt("synchronize_event", "aclrtSynchronizeEvent", EVENT),
    _rt("synchronize_event_with_timeout", "aclrtSynchronizeEventWithTimeout", EVENT, TIMEOUT),
    _rt("event_elapsed_time", "aclrtEventElapsedTime", OUT_FLOAT, Word("start"), Word("end")),
    _rt("event_get_timestamp", "aclrtEventGetTimestamp", EVENT, OUT_U64),
    _rt("ipc_get_event_handle", "aclrtIpcGetEventHandle", EVENT, OutStruct("aclrtIpcEventHandle")),
    _rt(
        "ipc_open_event_handle",
        "aclrtIpcOpenEventHandle",
        InStruct("event_handle", "aclrtIpcEventHandle", ()),
        OUT_POINTER,
    ),
    _rt("create_notify", "aclrtCreateNotify", OUT_POINTER, FLAG),
    _rt("destroy_notify", "aclrtDestroyNotify", Word("notify")),
    _rt("record_notify", "aclrtRecordNotify", Word("notify"), STREAM),
    _rt("wait_and_reset_notify", "aclrtWaitAndResetNotify", Word("notify"), STREAM, TIMEOUT),
    _rt("notify_get_export_key", "aclrtNotifyGetExportKey", Word("notify"), OutKey(), Word("flags")),
    _rt("notify_import_by_key", "aclrtNotifyImportByKey", OUT_POINTER, KEY, Word("flags")),
    _rt("notify_set_import_pid", "aclrtNotifySetImportPid", Word("notify"), PIDS),
    # custom allocators
    _rt("allocator_create_desc", "aclrtAllocatorCreateDesc"),
    _rt("allocator_destroy_desc", "aclrtAllocatorDestroyDesc", DESC),
    _rt("allocator_set_obj_to_desc", "aclrtAllocatorSetObjToDesc", DESC, Word("allocator")),
    _rt("allocator_set_alloc_func_to_desc", "aclrtAllocatorSetAllocFuncToDesc", DESC, FUNCTION),
    _rt("allocator_set_free_func_to_desc", "aclrtAllocatorSetFreeFuncToDesc", DESC, FUNCTION),
    _rt("allocator_set_alloc_advise_func_to_desc", "aclrtAllocatorSetAllocAdviseFuncToDesc", DESC, FUNCTION),
    _rt(
        "allocator_set_get_addr_from_block_func_to_desc",
        "aclrtAllocatorSetGetAddrFromBlockFuncToDesc",
        DESC,
        FUNCTION,
    ),
    _rt("allocator_register", "aclrtAllocatorRegister", STREAM, DESC),
    _rt("allocator_get_by_stream", "aclrtAllocatorGetByStream", STREAM, *(6 * (OUT_POINTER,))),
    _rt("allocator_unregister", "aclrtAllocatorUnregister", STREAM),
    # memory pools
    _rt("mem_pool_create", "aclrtMemPoolCreate", OUT_POINTER, InStruct("pool_props", "aclrtMemPoolProps")),
    _rt("mem_pool_destroy", "aclrtMemPoolDestroy", Word("mem_pool")),
    _rt("mem_pool_malloc_async", "aclrtMemPoolMallocAsync", OUT_POINTER, SIZE, Word("mem_pool"), STREAM),
    _rt("mem_pool_free_async", "aclrtMemPoolFreeAsync", PTR, STREAM),
    _rt("mem_pool_trim_to", "aclrtMemPoolTrimTo", Word("mem_pool"), Word("min_bytes_to_keep")),
    _rt("mem_pool_get_attr", "aclrtMemPoolGetAttr", Word("mem_pool"), Int("attr"), OutWord()),
    _rt("mem_pool_set_attr", "aclrtMemPoolSetAttr", Word("mem_pool"), Int("attr"), InWord()),
    # figures, limits, modes, memory in stream order, variables
    _rt("check_arch_compatibility", "aclrtCheckArchCompatibility", Text("soc_version"), OUT_I32),
    _rt("get_device_utilization_rate", "aclrtGetDeviceUtilizationRate", DEVICE, OutStruct("aclrtUtilizationInfo")),
    _rt("host_mem_map_capabilities", "aclrtHostMemMapCapabilities", DEVICE, Int("hac_type"), OUT_INT),
    _rt("set_device_res_limit", "aclrtSetDeviceResLimit", DEVICE, LIMIT, Int("value")),
    _rt("get_device_res_limit", "aclrtGetDeviceResLimit", DEVICE, LIMIT, OUT_U32),
    _rt("reset_device_res_limit", "aclrtResetDeviceResLimit", DEVICE),
    _rt("set_stream_res_limit", "aclrtSetStreamResLimit", STREAM, LIMIT, Int("value")),
    _rt("get_stream_res_limit", "aclrtGetStreamResLimit", STREAM, LIMIT, OUT_U32),
    _rt("reset_stream_res_limit", "aclrtResetStreamResLimit", STREAM),
    _rt("use_stream_res_in_current_thread", "aclrtUseStreamResInCurrentThread", STREAM),
    _rt("unuse_stream_res_in_current_thread", "aclrtUnuseStreamResInCurrentThread", STREAM),
    _rt("get_res_in_current_thread", "aclrtGetResInCurrentThread", LIMIT, OUT_U32),
    _rt("set_device_sat_mode", "aclrtSetDeviceSatMode", Int("mode")),
    _rt("get_device_sat_mode", "aclrtGetDeviceSatMode", OUT_INT),
    _rt("set_stream_overflow_switch", "aclrtSetStreamOverflowSwitch", STREAM, FLAG),
    _rt("get_stream_overflow_switch", "aclrtGetStreamOverflowSwitch", STREAM, OUT_U32),
    _rt("get_overflow_status", "aclrtGetOverflowStatus", Word("output_addr"), Word("output_size"), STREAM),
    _rt("reset_overflow_status", "aclrtResetOverflowStatus", STREAM),
    _rt("set_op_execute_time_out", "aclrtSetOpExecuteTimeOut", TIMEOUT),
    _rt("set_op_execute_time_out_v2", "aclrtSetOpExecuteTimeOutV2", Word("timeout"), OUT_U64),
    _rt("device_task_abort", "aclrtDeviceTaskAbort", DEVICE, TIMEOUT),
    _rt("stream_stop", "aclrtStreamStop", STREAM),
    _rt("memcpy_async_with_condition", "aclrtMemcpyAsyncWithCondition", *COPY, STREAM),
    _rt(
        "reduce_async",
        "aclrtReduceAsync",
        Word("dst"),
        Word("src"),
        Word("count"),
        KIND,
        Int("data_type"),
        STREAM,
        Word("reserve"),
    ),
    _rt("cmo_async", "aclrtCmoAsync", Word("src"), SIZE, Int("cmo_type"), STREAM),
    _rt("mem_flush", "aclrtMemFlush", PTR, SIZE),
    _rt("mem_invalidate", "aclrtMemInvalidate", PTR, SIZE),
    _rt("mem_p2p_map", "aclrtMemP2PMap", PTR, SIZE, Int("dst_dev_id"), Word("flags")),
    _rt("ipc_mem_set_attr", "aclrtIpcMemSetAttr", KEY, Int("type"), Word("attr")),
    _rt("mem_map_set_link", "aclrtMemMapSetLink", HANDLE, Int("advice_link")),
    _rt(
        "mem_map_selected_link",
        "aclrtMemMapSelectedLink",
        Word("vir_ptr_dst"),
        SIZE,
        Word("vir_ptr_src"),
        Int("link_idx"),
    ),
    _rt("get_symbol_address", "aclrtGetSymbolAddress", SYMBOL, OUT_POINTER),
    _rt("get_symbol_size", "aclrtGetSymbolSize", SYMBOL, OUT_SIZE),
    _rt("memcpy_to_symbol", "aclrtMemcpyToSymbol", SYMBOL, Word("src"), Word("count"), Word("offset"), KIND),
    _rt(
        "memcpy_to_symbol_async",
        "aclrtMemcpyToSymbolAsync",
        SYMBOL,
        Word("src"),
        Word("count"),
        Word("offset"),
        KIND,
        STREAM,
    ),
    _rt(
        "memcpy_from_symbol",
        "aclrtMemcpyFromSymbol",
        Word("dst"),
        Word("dst_max"),
        SYMBOL,
        Word("count"),
        Word("offset"),
        KIND,
    ),
    _rt(
        "memcpy_from_symbol_async",
        "aclrtMemcpyFromSymbolAsync",
        Word("dst"),
        Word("dst_max"),
        SYMBOL,
        Word("count"),
        Word("offset"),
        KIND,
        STREAM,
    ),
)

BY_MODULE: dict[str, dict[str, Row]] = {
    module: {row.name: row for row in ROWS if row.module == module} for module in ("acl", "acl.rt")
}
"""Rows by module and name."""
