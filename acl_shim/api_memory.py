"""Typed face of the C table: device memory, host memory, copies, pools."""

from typing import Protocol

from acl_shim.api_types import (
    BlocksDone,
    Cell,
    IntArray,
    MallocConfig,
    MemcpyBatchAttrArray,
    MemPoolHandle,
    MemPoolPropsStruct,
    MemUsageInfoArray,
    Null,
    PtrAttributes,
    StreamHandle,
)


class MemoryApi(Protocol):
    """Device blocks, pinned and registered host memory, figures."""

    def aclrtMalloc(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block."""

    def aclrtMallocAlign32(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block, its size rounded to 32 bytes without padding."""

    def aclrtMallocCached(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block that the device's processors may cache."""

    def aclrtMallocWithCfg(self, dev_ptr: Cell, size_bytes: int, policy: int, cfg: MallocConfig | Null, /) -> int:
        """Write the address of a new device block with attributes."""

    def aclrtMallocForTaskScheduler(
        self, dev_ptr: Cell, size_bytes: int, policy: int, cfg: MallocConfig | Null, /
    ) -> int:
        """Write the address of a new device block for the task scheduler."""

    def aclrtFree(self, dev_ptr: int, /) -> int:
        """Free a device block."""

    def aclrtFreeWithDevSync(self, dev_ptr: int, /) -> int:
        """Wait for the device, then free a device block."""

    def aclrtGetMemInfo(self, attr: int, free_bytes: Cell, total_bytes: Cell, /) -> int:
        """Write what a pool of the current device has."""

    def aclrtGetMemUsageInfo(
        self, device_id: int, infos: MemUsageInfoArray | Null, count: int, written: Cell, /
    ) -> int:
        """Write what each module holds, the largest first."""

    def aclrtPointerGetAttributes(self, addr: int, attributes: PtrAttributes, /) -> int:
        """Write where an address lives."""

    def aclrtMallocHost(self, host_ptr: Cell, size_bytes: int, /) -> int:
        """Write the address of a new pinned host block."""

    def aclrtMallocHostWithCfg(self, host_ptr: Cell, size_bytes: int, cfg: MallocConfig | Null, /) -> int:
        """Write the address of a new pinned host block with attributes."""

    def aclrtFreeHost(self, host_ptr: int, /) -> int:
        """Free a pinned host block."""

    def aclrtFreeHostWithDevSync(self, host_ptr: int, /) -> int:
        """Wait for the device, then free a pinned host block."""

    def aclrtHostRegister(self, addr: int, size_bytes: int, register_type: int, dev_ptr: Cell, /) -> int:
        """Pin memory of the caller; writes the address the device uses."""

    def aclrtHostRegisterV2(self, addr: int, size_bytes: int, flag: int, /) -> int:
        """Pin memory of the caller."""

    def aclrtHostGetDevicePointer(self, addr: int, dev_ptr: Cell, flag: int, /) -> int:
        """Write the address the device uses for pinned memory."""

    def aclrtHostUnregister(self, addr: int, /) -> int:
        """Undo a registration."""

    def aclrtMemAllocManaged(self, addr: Cell, size_bytes: int, flag: int, /) -> int:
        """Write the address of new memory that host and devices share."""


class CopyApi(Protocol):
    """Copies and fills; the stream 0 is the default stream of the current context."""

    def aclrtMemcpy(self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int, /) -> int:
        """Copy bytes and wait until they are there."""

    def aclrtMemcpyAsync(
        self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int, stream: StreamHandle, /
    ) -> int:
        """Copy bytes in stream order."""

    def aclrtMemcpy2d(
        self, dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int, kind: int, /
    ) -> int:
        """Copy rows and wait until they are there; pitches and width in bytes."""

    def aclrtMemcpy2dAsync(
        self,
        dst: int,
        dst_pitch: int,
        src: int,
        src_pitch: int,
        width: int,
        height: int,
        kind: int,
        stream: StreamHandle,
        /,
    ) -> int:
        """Copy rows in stream order; pitches and width in bytes."""

    def aclrtMemcpyBatch(
        self,
        dsts: IntArray,
        dst_maxs: IntArray,
        srcs: IntArray,
        sizes: IntArray,
        count: int,
        attrs: MemcpyBatchAttrArray,
        attr_starts: IntArray,
        attr_count: int,
        fail_index: Cell,
        /,
    ) -> int:
        """Make many copies and wait until they are there; writes the number of the first that failed."""

    def aclrtMemcpyBatchAsync(
        self,
        dsts: IntArray,
        dst_maxs: IntArray,
        srcs: IntArray,
        sizes: IntArray,
        count: int,
        attrs: MemcpyBatchAttrArray,
        attr_starts: IntArray,
        attr_count: int,
        fail_index: Cell,
        stream: StreamHandle,
        /,
    ) -> int:
        """Make many copies in stream order; writes the number of the first that failed."""

    def aclrtMemset(self, addr: int, max_bytes: int, value: int, count_bytes: int, /) -> int:
        """Fill bytes with the low 8 bits of a value."""

    def aclrtMemsetAsync(self, addr: int, max_bytes: int, value: int, count_bytes: int, stream: StreamHandle, /) -> int:
        """Fill bytes with the low 8 bits of a value in stream order."""

    def aclrtMemsetD32(self, addr: int, max_bytes: int, value: int, count: int, /) -> int:
        """Fill words of 4 bytes with a value."""

    def aclrtMemsetD32Async(self, addr: int, max_bytes: int, value: int, count: int, stream: StreamHandle, /) -> int:
        """Fill words of 4 bytes with a value in stream order."""

    def copy_in(self, context: int, dst: int, dst_max_bytes: int, src: object, count_bytes: int, /) -> int:
        """Make a context current and copy held host memory to a device.

        Returns the code of the copy, or that of the refused context plus `CONTEXT_REFUSED`.
        """

    def copy_out(self, context: int, dst: object, src: int, count_bytes: int, /) -> int:
        """Make a context current and copy device memory to held host memory; the result is that of `copy_in`."""

    def mem_info(self, context: int, attr: int, figures: IntArray, /) -> int:
        """Make a context current and write free and total bytes of a pool; the result is that of `copy_in`."""

    def move_blocks(
        self,
        context: int,
        file: int,
        memory: int,
        blocks: object,
        count: int,
        copies: object,
        stop: Cell,
        done: BlocksDone,
        /,
    ) -> int:
        """Make a context current and move blocks of a file to a device; the result is that of `copy_in`.

        Where it is 0 with fewer blocks done than given, one could not be read, or `stop` was set.
        """

    def copy_block(
        self,
        context: int,
        memory: int,
        copies: object,
        count: int,
        is_queued: bool,
        stream: StreamHandle,
        done: BlocksDone,
        /,
    ) -> int:
        """Make a context current and copy pieces of host memory to a device; the result is that of `copy_in`."""

    def aclrtMemcpyAsyncWithCondition(
        self, dst: int, dst_max: int, src: int, count: int, kind: int, stream: StreamHandle, /
    ) -> int:
        """Copy bytes in stream order, at once where unregistered memory takes part."""

    def aclrtReduceAsync(
        self, dst: int, src: int, count: int, kind: int, data_type: int, stream: StreamHandle, reserve: int, /
    ) -> int:
        """Combine numbers of device memory with others in stream order."""

    def aclrtCmoAsync(self, src: int, size: int, kind: int, stream: StreamHandle, /) -> int:
        """Do something to a cache in stream order."""

    def aclrtMemFlush(self, addr: int, size: int, /) -> int:
        """Write a cache back to memory."""

    def aclrtMemInvalidate(self, addr: int, size: int, /) -> int:
        """Forget what a cache holds of memory."""


class PoolApi(Protocol):
    """Memory pools in stream order."""

    def aclrtMemPoolCreate(self, pool: Cell, props: MemPoolPropsStruct, /) -> int:
        """Write a new pool."""

    def aclrtMemPoolDestroy(self, pool: MemPoolHandle, /) -> int:
        """Destroy a pool."""

    def aclrtMemPoolMallocAsync(self, addr: Cell, size_bytes: int, pool: MemPoolHandle, stream: StreamHandle, /) -> int:
        """Write the address of a block that later tasks of the stream may use."""

    def aclrtMemPoolFreeAsync(self, addr: int, stream: StreamHandle, /) -> int:
        """Free a block of a pool in stream order."""

    def aclrtMemPoolTrimTo(self, pool: MemPoolHandle, keep_bytes: int, /) -> int:
        """Give back what a pool holds unused, down to a size."""

    def aclrtMemPoolGetAttr(self, pool: MemPoolHandle, attr: int, value_addr: int, /) -> int:
        """Write a `MemPoolAttr` to the address of a 64-bit number."""

    def aclrtMemPoolSetAttr(self, pool: MemPoolHandle, attr: int, value_addr: int, /) -> int:
        """Set a `MemPoolAttr` from the address of a 64-bit number."""
