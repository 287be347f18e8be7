"""Pools of device memory whose blocks are taken and freed in stream order."""

from typing import TYPE_CHECKING

from acl_shim.api_types import DEFAULT_STREAM, MemPoolHandle
from acl_shim.device_memory import DeviceMemory
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.memory_codes import MemPoolAttr
from acl_shim.owner import Owner, SizedOwner, StreamOwner
from acl_shim.stream import Stream
from acl_shim.table import address_of, new_cell

if TYPE_CHECKING:
    from acl_shim.stream_scope import StreamScope
    from acl_shim.stream_tasks import StreamTasks


class MemoryPool(Owner):
    """Own one memory pool; `Device.create_memory_pool` makes them. Only some products have pools.

    Thread safety: any thread may use it.
    Source: aclrtMemPoolCreate, aclrtMemPoolDestroy, aclrtMemPoolMallocAsync.
    """

    __slots__ = ()

    def _give_back(self, handle: int) -> None:
        self._check(self._device.runtime.api.aclrtMemPoolDestroy(MemPoolHandle(handle)), "aclrtMemPoolDestroy", {})

    def _check(self, code: int, call: str, arguments: dict[str, Argument]) -> None:
        if code:
            raise self._device.runtime.error(code, call, {**arguments, "device_id": self._device.id})

    @property
    def handle(self) -> MemPoolHandle:
        """The `aclrtMemPool` as a number.

        Raises
        ------
        StateError
            The pool is closed.
        """
        return MemPoolHandle(self._handle())

    def malloc_async(self, size_bytes: int, stream: "StreamTasks") -> "PoolBlock":
        """Take a block for tasks that are queued on a stream from now on; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.
        stream
            The stream in whose order the block is taken and freed.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        OutOfMemoryError
            The pool cannot grow so far. Nothing is left allocated.
        AclError
            The runtime refuses. Nothing is left allocated.
        StateError
            Pool or stream is closed.
        """
        if size_bytes < 1:
            raise ValueError(f"size_bytes is {size_bytes}: give at least 1 byte")
        pool, cell = self.handle, new_cell("uintptr_t *")
        runtime, handle, _ = stream.enter_stream()
        handle = handle or stream.scope.default_handle()
        code = runtime.api.aclrtMemPoolMallocAsync(cell, size_bytes, pool, handle)
        self._check(code, "aclrtMemPoolMallocAsync", {"size_bytes": size_bytes, "pool": pool, "stream": handle})
        return PoolBlock(self, self._lease, cell[0], size_bytes, stream)

    def trim_to(self, keep_bytes: int) -> None:
        """Give back to the device what the pool holds unused, as far as it then holds this many bytes.

        Parameters
        ----------
        keep_bytes
            What the pool may keep, in bytes.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The pool is closed.
        """
        code = self._device.runtime.api.aclrtMemPoolTrimTo(self.handle, keep_bytes)
        self._check(code, "aclrtMemPoolTrimTo", {"keep_bytes": keep_bytes})

    def get(self, attr: MemPoolAttr) -> int:
        """Return a setting or figure of the pool; sizes in bytes.

        Parameters
        ----------
        attr
            Which.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The pool is closed.
        """
        value = new_cell("uint64_t *")
        code = self._device.runtime.api.aclrtMemPoolGetAttr(self.handle, attr, address_of(value))
        self._check(code, "aclrtMemPoolGetAttr", {"attr": attr})
        return value[0]

    def set(self, attr: MemPoolAttr, value: int) -> None:
        """Change a setting of the pool; sizes in bytes.

        Parameters
        ----------
        attr
            Which.
        value
            Its new value.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The pool is closed.
        """
        cell = new_cell("uint64_t *", value)
        code = self._device.runtime.api.aclrtMemPoolSetAttr(self.handle, attr, address_of(cell))
        self._check(code, "aclrtMemPoolSetAttr", {"attr": attr, "value": value})


class PoolBlock(StreamOwner, SizedOwner, DeviceMemory):
    """Own one block of a memory pool; `MemoryPool.malloc_async` makes them.

    `close` and the finaliser free it in the order of its stream: tasks queued before may still use it. It keeps pool
    and stream alive.

    Thread safety: any thread may use it.
    Source: aclrtMemPoolFreeAsync.
    """

    __slots__ = ("_pool", "_stream")

    def __init__(self, pool: MemoryPool, lease: Lease, addr: int, size_bytes: int, stream: "StreamTasks") -> None:
        self._pool = pool
        self._stream = stream
        super().__init__(pool.device, lease, addr, size_bytes)

    def _home(self) -> "StreamScope":
        return self._stream.scope

    def _give_back(self, handle: int) -> None:
        runtime, stream = self._device.runtime, self._stream
        closed = isinstance(stream, Stream) and stream.closed  # then its tasks are through: any stream serves
        given = DEFAULT_STREAM if closed else stream.handle
        code = runtime.api.aclrtMemPoolFreeAsync(handle, given or stream.scope.default_handle())
        if code:
            raise runtime.error(code, "aclrtMemPoolFreeAsync", {"addr": handle, "size_bytes": self._size_bytes})
