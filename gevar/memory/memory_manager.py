"""What the variable manager asks of memory: blocks of a kind on a device, and copies to and from them."""

from typing import Protocol

from acl_shim.host_memory import HostBuffer
from gevar.types import DevAddr, DeviceId, MemType


class MemoryManager(Protocol):
    """Source of memory on devices.

    An implementation makes the device current on the calling thread by itself, so any thread may call.

    Source: GE source, base/graph/manager/memory_manager.h, MemoryManager.
    """

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Allocate a block of device memory; its content is not defined.

        Parameters
        ----------
        mem_type
            Kind of memory.
        purpose
            What the block is for, in words.
        size_bytes
            Size in bytes, at least 1.
        device_id
            The device.

        Raises
        ------
        OutOfMemoryError
            The device has not enough memory of this kind. Nothing is left allocated.
        AclError
            The runtime refuses. Nothing is left allocated.
        """

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Free a block that `malloc_memory` gave, by its first address.

        Raises
        ------
        StateError
            There is no such block; nothing is freed.
        AclError
            The runtime refuses; the block is alive still.
        """

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Return memory of a device that is registered for network transfer; it stays with its pool.

        It is asked for under the variable manager's lock, so the pool must be at hand.

        Parameters
        ----------
        mem_type
            Kind of memory that the pool was made of.
        size_bytes
            Size in bytes.
        device_id
            The device.

        Raises
        ------
        StateError
            There is no such pool.
        AclError, OutOfMemoryError
            The pool has no room.
        """

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        """Return the address of zeroed host memory; it stays with its pool.

        Two pieces never start at one address, even with a size of 0.

        Parameters
        ----------
        mem_type
            Kind of memory under which the pool is kept.
        size_bytes
            Size in bytes, from 0.

        Raises
        ------
        StateError
            There is no such pool.
        AclError, OutOfMemoryError
            There is no memory.
        """

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        """Copy host bytes to a device address and wait until they are there.

        Parameters
        ----------
        dev_addr
            First byte to write.
        max_bytes
            Room there in bytes.
        data
            Contiguous host memory.
        device_id
            The device.

        Raises
        ------
        ValueError
            `data` has more than `max_bytes`, or `dev_addr` is plain host memory.
        AclError
            The runtime refuses. After failure the range holds old bytes, new bytes or both.
        """

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Copy as many bytes from a device address as the host memory holds, and wait until they are there.

        Parameters
        ----------
        data
            Writable contiguous host memory.
        dev_addr
            First byte to read.
        device_id
            The device.

        Raises
        ------
        ValueError
            `dev_addr` is plain host memory.
        AclError
            The runtime refuses. After failure `data` holds old bytes, new bytes or both.
        """
