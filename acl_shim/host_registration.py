"""Host memory of the caller that is pinned for a device."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acl_shim.lease import Lease
from acl_shim.owner import SizedOwner
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.device import Device


class HostRegistration(SizedOwner):
    """Own the registration of host memory; `Device.host_register` makes them.

    While it is open the device copies from and to the memory directly. It keeps the memory alive and where it is.

    Thread safety: any thread may use it.
    Source: aclrtHostRegisterV2, aclrtHostGetDevicePointer, aclrtHostUnregister.
    """

    __slots__ = ("_values",)

    _lives_on_host = True

    def __init__(self, device: "Device", lease: Lease, addr: int, values: NDArray[np.uint8]) -> None:
        self._values = values
        super().__init__(device, lease, addr, values.nbytes)

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtHostUnregister(handle)
        if code:
            raise runtime.error(code, "aclrtHostUnregister", {"addr": handle, "size_bytes": self._size_bytes})

    @property
    def addr(self) -> int:
        """Host address of the first byte.

        Raises
        ------
        StateError
            The registration is closed.
        """
        return self._handle()

    def device_addr(self) -> int:
        """Return the address under which the device reaches the memory, registered as mapped.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The registration is closed, or the library lacks the function.
        """
        cell, addr, runtime = new_cell("uintptr_t *"), self.addr, self._device.runtime
        code = runtime.api.aclrtHostGetDevicePointer(addr, cell, 0)
        runtime.check(code, "aclrtHostGetDevicePointer", {"addr": addr, "device_id": self._device.id})
        return cell[0]
