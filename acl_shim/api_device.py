"""Typed face of the C table: start, end, errors, devices, contexts."""

from typing import Protocol

from acl_shim.api_types import Cell, ContextHandle, Null, UuidStruct


class StartApi(Protocol):
    """Start, end, errors, what the program runs on."""

    def aclInit(self, config_path: bytes | Null, /) -> int:
        """Start the runtime; 100002 where it is started already."""

    def aclFinalize(self) -> int:
        """End the runtime for everybody in the process."""

    def aclFinalizeReference(self, ref_count: Cell | Null, /) -> int:
        """Undo one `aclInit`; writes how many are left."""

    def aclGetRecentErrMsg(self) -> str | None:
        """Return and clear the newest message of the calling thread."""

    def aclrtGetLastError(self, level: int, /) -> int:
        """Return and clear the last error of the calling thread."""

    def aclrtPeekAtLastError(self, level: int, /) -> int:
        """Return the last error of the calling thread."""

    def aclrtGetRunMode(self, run_mode: Cell, /) -> int:
        """Write a `RunMode`."""

    def aclrtGetSocName(self) -> str | None:
        """Return the product's name."""

    def aclAppLog(self, level: int, function: bytes, file: bytes, line: int, text: bytes, /) -> None:
        """Write a line to the runtime's log."""

    def aclDataTypeSize(self, data_type: int, /) -> int:
        """Return the size of one element in bytes; 0 where it does not fill whole bytes."""

    def aclFloat16ToFloat(self, value: int, /) -> float:
        """Return the number that the bits of a float16 mean."""

    def aclFloatToFloat16(self, value: float, /) -> int:
        """Return the bits of the nearest float16."""

    def aclCreateDataBuffer(self, addr: int, size_bytes: int, /) -> int:
        """Return a new description of the caller's memory; 0 where there is none."""

    def aclDestroyDataBuffer(self, data_buffer: int, /) -> int:
        """Destroy a description."""

    def aclGetDataBufferAddr(self, data_buffer: int, /) -> int:
        """Return the address of a description."""

    def aclGetDataBufferSize(self, data_buffer: int, /) -> int:
        """Return the size of a description in bytes, cut to 32 bits."""

    def aclGetDataBufferSizeV2(self, data_buffer: int, /) -> int:
        """Return the size of a description in bytes."""


class DeviceApi(Protocol):
    """Devices and contexts; time-outs in milliseconds, -1 for ever."""

    def aclrtSetDevice(self, device_id: int, /) -> int:
        """Make a device's default context current on the calling thread and raise the device's count."""

    def aclrtResetDevice(self, device_id: int, /) -> int:
        """Lower the device's count; its memory and context end at 0."""

    def aclrtResetDeviceForce(self, device_id: int, /) -> int:
        """End the device's memory and context whatever the count."""

    def aclrtGetDevice(self, device_id: Cell, /) -> int:
        """Write the device that is current on the calling thread."""

    def aclrtGetDeviceCount(self, count: Cell, /) -> int:
        """Write the number of devices."""

    def aclrtGetDeviceInfo(self, device_id: int, attr: int, value: Cell, /) -> int:
        """Write a figure of a device, a `DevAttr`."""

    def aclrtSynchronizeDevice(self) -> int:
        """Wait for every stream of the current context."""

    def aclrtSynchronizeDeviceWithTimeout(self, timeout_ms: int, /) -> int:
        """Wait for every stream of the current context; 507046 where the time is over first."""

    def aclrtDeviceCanAccessPeer(self, can_access: Cell, device_id: int, peer_device_id: int, /) -> int:
        """Write whether a device can reach the memory of another."""

    def aclrtDeviceEnablePeerAccess(self, peer_device_id: int, flags: int, /) -> int:
        """Let the current device reach the memory of another."""

    def aclrtDeviceDisablePeerAccess(self, peer_device_id: int, /) -> int:
        """End what `aclrtDeviceEnablePeerAccess` began."""

    def aclrtDeviceGetBareTgid(self, pid: Cell, /) -> int:
        """Write the process id that exporters name."""

    def aclrtDeviceGetUuid(self, device_id: int, uuid: UuidStruct, /) -> int:
        """Write the id of the device's hardware."""

    def aclrtQueryDeviceStatus(self, device_id: int, status: Cell, /) -> int:
        """Write a `DeviceStatus`."""

    def aclrtCreateContext(self, context: Cell, device_id: int, /) -> int:
        """Write a new context of a device and make it current on the calling thread."""

    def aclrtDestroyContext(self, context: ContextHandle, /) -> int:
        """Destroy a context made by `aclrtCreateContext`."""

    def aclrtSetCurrentContext(self, context: ContextHandle, /) -> int:
        """Make a context, and so its device, current on the calling thread."""

    def aclrtGetCurrentContext(self, context: Cell, /) -> int:
        """Write the context that is current on the calling thread."""

    def aclrtCtxGetCurrentDefaultStream(self, stream: Cell, /) -> int:
        """Write the default stream of the current context."""

    def aclrtGetDeviceCapability(self, device_id: int, feature: int, value: Cell, /) -> int:
        """Write whether a device has a feature."""

    def aclrtGetLogicDevIdByUserDevId(self, user_device_id: int, logic_device_id: Cell, /) -> int:
        """Write the number among all devices of one of this process."""

    def aclrtGetUserDevIdByLogicDevId(self, logic_device_id: int, user_device_id: Cell, /) -> int:
        """Write the number in this process of a device."""

    def aclrtGetPhyDevIdByLogicDevId(self, logic_device_id: int, physical_device_id: Cell, /) -> int:
        """Write the number of the hardware of a device."""

    def aclrtGetPrimaryCtxState(self, device_id: int, flags: Cell, active: Cell, /) -> int:
        """Write whether a device's default context lives."""
