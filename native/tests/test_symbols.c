/* The library exports exactly the intended names. Reads the dynamic symbol table of the file $LIBRARY. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "check.h"

static const char *const intended[] = {
    "aclAppLog",
    "aclCreateDataBuffer",
    "aclDataTypeSize",
    "aclDestroyDataBuffer",
    "aclFinalize",
    "aclFinalizeReference",
    "aclFloat16ToFloat",
    "aclFloatToFloat16",
    "aclGetDataBufferAddr",
    "aclGetDataBufferSize",
    "aclGetDataBufferSizeV2",
    "aclGetRecentErrMsg",
    "aclInit",
    "aclrtAllocatorCreateDesc",
    "aclrtAllocatorDestroyDesc",
    "aclrtAllocatorGetByStream",
    "aclrtAllocatorRegister",
    "aclrtAllocatorSetAllocAdviseFuncToDesc",
    "aclrtAllocatorSetAllocFuncToDesc",
    "aclrtAllocatorSetFreeFuncToDesc",
    "aclrtAllocatorSetGetAddrFromBlockFuncToDesc",
    "aclrtAllocatorSetObjToDesc",
    "aclrtAllocatorUnregister",
    "aclrtCreateContext",
    "aclrtCreateEvent",
    "aclrtCreateEventExWithFlag",
    "aclrtCreateEventWithFlag",
    "aclrtCreateNotify",
    "aclrtCreateStream",
    "aclrtCreateStreamWithConfig",
    "aclrtCtxGetCurrentDefaultStream",
    "aclrtDestroyContext",
    "aclrtDestroyEvent",
    "aclrtDestroyNotify",
    "aclrtDestroyStream",
    "aclrtDestroyStreamForce",
    "aclrtDeviceCanAccessPeer",
    "aclrtDeviceDisablePeerAccess",
    "aclrtDeviceEnablePeerAccess",
    "aclrtDeviceGetBareTgid",
    "aclrtDeviceGetStreamPriorityRange",
    "aclrtDeviceGetUuid",
    "aclrtEventElapsedTime",
    "aclrtEventGetTimestamp",
    "aclrtFree",
    "aclrtFreeHost",
    "aclrtFreeHostWithDevSync",
    "aclrtFreePhysical",
    "aclrtFreeWithDevSync",
    "aclrtGetCurrentContext",
    "aclrtGetDevice",
    "aclrtGetDeviceCapability",
    "aclrtGetDeviceCount",
    "aclrtGetDeviceIdFromExceptionInfo",
    "aclrtGetDeviceInfo",
    "aclrtGetErrorCodeFromExceptionInfo",
    "aclrtGetLastError",
    "aclrtGetLogicDevIdByUserDevId",
    "aclrtGetMemInfo",
    "aclrtGetPhyDevIdByLogicDevId",
    "aclrtGetPrimaryCtxState",
    "aclrtGetRunMode",
    "aclrtGetSocName",
    "aclrtGetStreamIdFromExceptionInfo",
    "aclrtGetTaskIdFromExceptionInfo",
    "aclrtGetThreadIdFromExceptionInfo",
    "aclrtGetThreadLastTaskId",
    "aclrtGetUserDevIdByLogicDevId",
    "aclrtHostGetDevicePointer",
    "aclrtHostRegister",
    "aclrtHostRegisterV2",
    "aclrtHostUnregister",
    "aclrtIpcGetEventHandle",
    "aclrtIpcMemClose",
    "aclrtIpcMemGetExportKey",
    "aclrtIpcMemImportByKey",
    "aclrtIpcMemSetImportPid",
    "aclrtIpcOpenEventHandle",
    "aclrtLaunchCallback",
    "aclrtLaunchHostFunc",
    "aclrtMalloc",
    "aclrtMallocAlign32",
    "aclrtMallocCached",
    "aclrtMallocHost",
    "aclrtMallocHostWithCfg",
    "aclrtMallocPhysical",
    "aclrtMallocWithCfg",
    "aclrtMapMem",
    "aclrtMemAllocManaged",
    "aclrtMemExportToShareableHandle",
    "aclrtMemExportToShareableHandleV2",
    "aclrtMemGetAccess",
    "aclrtMemGetAddressRange",
    "aclrtMemGetAllocationGranularity",
    "aclrtMemGetAllocationPropertiesFromHandle",
    "aclrtMemImportFromShareableHandle",
    "aclrtMemImportFromShareableHandleV2",
    "aclrtMemMapNoAccess",
    "aclrtMemPoolCreate",
    "aclrtMemPoolDestroy",
    "aclrtMemPoolFreeAsync",
    "aclrtMemPoolGetAttr",
    "aclrtMemPoolMallocAsync",
    "aclrtMemPoolSetAttr",
    "aclrtMemPoolTrimTo",
    "aclrtMemRetainAllocationHandle",
    "aclrtMemSetAccess",
    "aclrtMemSetPidToShareableHandle",
    "aclrtMemSetPidToShareableHandleV2",
    "aclrtMemcpy",
    "aclrtMemcpy2d",
    "aclrtMemcpy2dAsync",
    "aclrtMemcpyAsync",
    "aclrtMemcpyBatch",
    "aclrtMemcpyBatchAsync",
    "aclrtMemset",
    "aclrtMemsetAsync",
    "aclrtMemsetD32",
    "aclrtMemsetD32Async",
    "aclrtNotifyGetExportKey",
    "aclrtNotifyImportByKey",
    "aclrtNotifySetImportPid",
    "aclrtPeekAtLastError",
    "aclrtPointerGetAttributes",
    "aclrtProcessReport",
    "aclrtQueryDeviceStatus",
    "aclrtQueryEventStatus",
    "aclrtQueryEventWaitStatus",
    "aclrtRecordEvent",
    "aclrtRecordEventWithFlag",
    "aclrtRecordNotify",
    "aclrtRegStreamStateCallback",
    "aclrtReleaseMemAddress",
    "aclrtReserveMemAddress",
    "aclrtReserveMemAddressNoUCMemory",
    "aclrtResetDevice",
    "aclrtResetDeviceForce",
    "aclrtResetEvent",
    "aclrtSetCurrentContext",
    "aclrtSetDevice",
    "aclrtSetExceptionInfoCallback",
    "aclrtSetOpWaitTimeout",
    "aclrtSetStreamFailureMode",
    "aclrtStreamAbort",
    "aclrtStreamGetFlags",
    "aclrtStreamGetId",
    "aclrtStreamGetPriority",
    "aclrtStreamQuery",
    "aclrtStreamWaitEvent",
    "aclrtStreamWaitEventWithFlag",
    "aclrtSubscribeReport",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeDeviceWithTimeout",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeEventWithTimeout",
    "aclrtSynchronizeStream",
    "aclrtSynchronizeStreamWithTimeout",
    "aclrtUnSubscribeReport",
    "aclrtUnmapMem",
    "aclrtValueWait",
    "aclrtValueWrite",
    "aclrtWaitAndResetNotify",
    "hostacl_calls",
    "hostacl_configure",
    "hostacl_delay",
    "hostacl_delay_task",
    "hostacl_error",
    "hostacl_fail",
    "hostacl_fail_above",
    "hostacl_fail_task",
    "hostacl_hold",
    "hostacl_info",
    "hostacl_live",
    "hostacl_live_report",
    "hostacl_release",
    "hostacl_reset",
    "hostacl_short_copy",
    "hostacl_version",
};

enum { INTENDED = sizeof(intended) / sizeof(intended[0]) };

static bool seen[INTENDED];

static void note(const char *name) {
    size_t i = 0;
    while (i < INTENDED && strcmp(intended[i], name))
        i++;
    if (i < INTENDED)
        seen[i] = true;
    else if (!CHECK(i < INTENDED))
        printf("    %s is exported and not intended\n", name);
}

/* Names of the sanitizers' own making are no business of the library. */
static bool ours(const Elf64_Sym *symbol, const char *name) {
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && name[0] && name[0] != '_';
}

static void read_symbols(const char *file) {
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + elf->e_shoff);
    for (int i = 0; i < elf->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(file + sections[i].sh_offset);
        const char *names = file + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
            if (ours(&symbols[k], names + symbols[k].st_name))
                note(names + symbols[k].st_name);
        }
    }
}

int main(void) {
    const char *path = getenv("LIBRARY");
    struct stat stat;
    int fd = path ? open(path, O_RDONLY) : -1;
    if (!CHECK(fd >= 0 && !fstat(fd, &stat)))
        return check_done();
    const char *file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (CHECK(file != MAP_FAILED))
        read_symbols(file);
    for (int i = 0; i < INTENDED; i++) {
        if (!CHECK(seen[i]))
            printf("    %s is not exported\n", intended[i]);
    }
    return check_done();
}
