"""One opened ACL library: its devices, its errors, its life in this process."""

import logging
import os
import threading
from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Literal

from acl_shim.api_types import Table
from acl_shim.codes import AclErrorCode, RunMode
from acl_shim.device import Device
from acl_shim.errors import AclError, Argument, Shortage, StateError, error_from_code
from acl_shim.table import NULL, bind, has_function, new_cell, refusing

_log = logging.getLogger("acl_shim")

BackendName = Literal["host", "npu"]


class Runtime:
    """One opened library of the ACL runtime; `open_runtime` makes them.

    Attributes
    ----------
    backend
        ``npu`` for a card's library, ``host`` for the host runtime.
    path
        File of the library.
    reason
        Why this backend was taken.
    version
        Version text of the host runtime; None for a card's library.
    api
        The functions of the library under their C names; every code they return must be checked.
    lock
        Held while devices are taken or given back.

    Thread safety: any thread may use it. After a fork it refuses every call in the child.
    """

    def __init__(self, table: Table, backend: BackendName, path: Path, reason: str) -> None:
        self.backend: BackendName = backend
        self.path = path
        self.reason = reason
        self.api = bind(table, str(path))
        self.lock = threading.RLock()
        self.version = self.api.hostacl_version() if backend == "host" else None
        self._table = table
        self._devices: dict[int, Device] = {}
        self._started = False
        self._process_id = os.getpid()
        self._end_reason: str | None = None

    @property
    def closed(self) -> bool:
        """Whether the runtime refuses every call: closed, or forked."""
        return self._end_reason is not None

    def supports(self, function: str) -> bool:
        """Return whether the library has a function, for example ``aclrtMapMem``.

        Parameters
        ----------
        function
            Name of a C function.
        """
        return has_function(self._table, function)

    def recent_text(self) -> str | None:
        """Return and clear the runtime's newest message for the calling thread; None where there is none."""
        return self.api.aclGetRecentErrMsg() if self.supports("aclGetRecentErrMsg") else None

    def error(
        self,
        code: int,
        call: str,
        arguments: Mapping[str, Argument],
        *,
        text: str | None = None,
        shortage: Shortage | None = None,
    ) -> AclError:
        """Return the exception for a failed call.

        Parameters
        ----------
        code
            What the call returned, not 0.
        call
            Name of the C function.
        arguments
            Arguments that matter, by name; a name that ends in ``_bytes`` is shown as a size.
        text
            The runtime's own message, empty where it gave none; fetched where None.
        shortage
            Figures of the device, for an allocation that did not fit.
        """
        said = self.recent_text() if text is None else text
        return error_from_code(code, call, arguments, said, shortage=shortage)

    def check(self, code: int, call: str, arguments: Mapping[str, Argument]) -> None:
        """Raise where a call failed.

        Parameters
        ----------
        code
            What the call returned.
        call
            Name of the C function.
        arguments
            Arguments that matter, by name.

        Raises
        ------
        OutOfMemoryError
            The code is 207001.
        AclError
            The code is another than 0.
        """
        if code:
            raise self.error(code, call, arguments)

    def device_count(self) -> int:
        """Return the number of devices; sets none.

        Raises
        ------
        AclError
            The runtime cannot tell.
        """
        count = new_cell("uint32_t *")
        self.check(self.api.aclrtGetDeviceCount(count), "aclrtGetDeviceCount", {})
        return count[0]

    def soc_name(self) -> str:
        """Return the product's name, for example ``Ascend910B1``; sets no device.

        Raises
        ------
        StateError
            The runtime does not know it.
        """
        name = self.api.aclrtGetSocName()
        if name is None:
            raise StateError(f"{self.path} gives no product name: check the driver with npu-smi info")
        return name

    def run_mode(self) -> RunMode:
        """Return which processor runs the program.

        Raises
        ------
        AclError
            The runtime cannot tell.
        """
        mode = new_cell("int *")
        self.check(self.api.aclrtGetRunMode(mode), "aclrtGetRunMode", {})
        return RunMode(mode[0])

    def device(self, device_id: int = 0) -> Device:
        """Return a device; the same object for the same id. The device is not set before it is used.

        Parameters
        ----------
        device_id
            Number of the device, from 0.

        Raises
        ------
        AclError
            107001: there is no such device.
        """
        number, count = index(device_id), self.device_count()
        if not 0 <= number < count:
            arguments = {"device_id": number, "device_count": count}
            code = AclErrorCode.ACL_ERROR_RT_INVALID_DEVICEID
            raise error_from_code(code, "aclrtSetDevice", arguments)
        with self.lock:
            return self._devices.setdefault(number, Device(self, number))

    def start(self) -> None:
        """Call `aclInit` once; another caller's earlier `aclInit` is fine.

        Raises
        ------
        AclError
            The runtime does not start.
        StateError
            The runtime is closed or forked.
        """
        with self.lock:
            if self._started:
                return
            code = self.api.aclInit(NULL)
            if code != AclErrorCode.ACL_ERROR_REPEAT_INITIALIZE:  # counted all the same
                self.check(code, "aclInit", {})
            self._started = True

    def reset_devices(self) -> None:
        """Give back every device this process has set; the next use sets it again.

        Raises
        ------
        StateError
            Buffers are open. Devices before the one in use are given back already.
        AclError
            The runtime refuses.
        """
        with self.lock:
            for device in self._devices.values():
                device.reset()

    def forget(self) -> None:
        """End every hold without a call, for a runtime that has dropped everything by itself; open buffers are dead."""
        with self.lock:
            for device in self._devices.values():
                device.forget()
            self._started = False

    def close(self) -> None:
        """Give back the devices and the `aclInit`; the runtime refuses every later call. Harmless when repeated.

        Raises
        ------
        StateError
            Buffers are open. The runtime is open still.
        AclError
            The runtime refuses. The runtime is open still.
        """
        with self.lock:
            if self.closed:
                return
            self.reset_devices()
            if self._started and self.supports("aclFinalizeReference"):
                left = new_cell("uint64_t *")
                self.check(self.api.aclFinalizeReference(left), "aclFinalizeReference", {})
            self._end(f"the runtime {self.path} was closed; open it again with open_runtime()")

    def _end(self, reason: str) -> None:
        self.forget()
        self._end_reason = reason
        self.api = refusing(reason)

    def end_in_child(self) -> None:
        """Refuse every call in a forked child: threads and device handles of the parent do not exist there."""
        self.lock = threading.RLock()  # another thread of the parent may have held the old one
        self._end(
            f"the runtime was opened by process {self._process_id} and process {os.getpid()} is its fork; start workers"
            ' with multiprocessing.get_context("spawn")'
        )

    def end_at_exit(self) -> None:
        """Give back what is not in use as the process ends; the rest goes with the process."""
        with self.lock:
            if self.closed:
                return
            for device in self._devices.values():
                try:
                    if device.idle():
                        device.reset()
                except (AclError, StateError) as error:
                    _log.debug("left to the end of the process: %s", error)
            self._end("the process ends")

    def __repr__(self) -> str:
        return f"<Runtime {self.backend} {self.path}>"
