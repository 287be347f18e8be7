"""Typed face of the C table: versions, figures, limits and modes; variables of a device."""

from typing import Protocol

from acl_shim.api_types import Cell, CharArray, StreamHandle, UtilizationStruct


class SystemApi(Protocol):
    """What an installation and a device are, and what operators may use; the stream 0 is the default stream."""

    def aclsysGetVersionStr(self, package: bytes, version: CharArray, /) -> int:
        """Write the version of a package as text."""

    def aclsysGetVersionNum(self, package: bytes, version: Cell, /) -> int:
        """Write the version of a package as a number."""

    def aclGetCannAttribute(self, attribute: int, value: Cell, /) -> int:
        """Write whether the installation has an ability."""

    def aclGetDeviceCapability(self, device_id: int, info: int, value: Cell, /) -> int:
        """Write a figure of a device: cores of both kinds, bytes of its cache."""

    def aclrtCheckArchCompatibility(self, soc_version: bytes, compatible: Cell, /) -> int:
        """Write whether operators made for a product run here."""

    def aclrtGetDeviceUtilizationRate(self, device_id: int, info: UtilizationStruct, /) -> int:
        """Write how much of a device is in use, in percent."""

    def aclrtHostMemMapCapabilities(self, device_id: int, engine: int, can: Cell, /) -> int:
        """Write whether an engine reaches registered host memory."""

    def aclrtSetDeviceResLimit(self, device_id: int, kind: int, value: int, /) -> int:
        """Limit the cores of a device."""

    def aclrtGetDeviceResLimit(self, device_id: int, kind: int, value: Cell, /) -> int:
        """Write the limit on the cores of a device."""

    def aclrtResetDeviceResLimit(self, device_id: int, /) -> int:
        """Take the limits of a device away."""

    def aclrtSetStreamResLimit(self, stream: StreamHandle, kind: int, value: int, /) -> int:
        """Limit the cores of a stream."""

    def aclrtGetStreamResLimit(self, stream: StreamHandle, kind: int, value: Cell, /) -> int:
        """Write the limit on the cores of a stream."""

    def aclrtResetStreamResLimit(self, stream: StreamHandle, /) -> int:
        """Take the limits of a stream away."""

    def aclrtUseStreamResInCurrentThread(self, stream: StreamHandle, /) -> int:
        """Make the limits of a stream those of the calling thread."""

    def aclrtUnuseStreamResInCurrentThread(self, stream: StreamHandle, /) -> int:
        """End what `aclrtUseStreamResInCurrentThread` began."""

    def aclrtGetResInCurrentThread(self, kind: int, value: Cell, /) -> int:
        """Write the limit on cores of the calling thread."""

    def aclrtSetDeviceSatMode(self, mode: int, /) -> int:
        """Say what the current device does with numbers that are too large."""

    def aclrtGetDeviceSatMode(self, mode: Cell, /) -> int:
        """Write what the current device does with numbers that are too large."""

    def aclrtSetStreamOverflowSwitch(self, stream: StreamHandle, flag: int, /) -> int:
        """Say whether a stream looks for numbers that are too large."""

    def aclrtGetStreamOverflowSwitch(self, stream: StreamHandle, flag: Cell, /) -> int:
        """Write whether a stream looks for numbers that are too large."""

    def aclrtGetOverflowStatus(self, output: int, output_bytes: int, stream: StreamHandle, /) -> int:
        """Write in stream order to device memory whether a number was too large."""

    def aclrtResetOverflowStatus(self, stream: StreamHandle, /) -> int:
        """Forget in stream order that a number was too large."""

    def aclrtSetOpExecuteTimeOut(self, timeout_s: int, /) -> int:
        """Say how long an operator may take, in seconds."""

    def aclrtSetOpExecuteTimeOutV2(self, timeout_us: int, actual: Cell, /) -> int:
        """Say how long an operator may take, in microseconds, and write what it comes to."""


class VariableApi(Protocol):
    """Variables of the current device; a symbol is the address of a variable's stand-in on the host."""

    def aclrtGetSymbolAddress(self, symbol: int, addr: Cell, /) -> int:
        """Write where a variable is on the current device."""

    def aclrtGetSymbolSize(self, symbol: int, size: Cell, /) -> int:
        """Write the size of a variable in bytes."""

    def aclrtMemcpyToSymbol(self, symbol: int, src: int, count: int, offset: int, kind: int, /) -> int:
        """Copy bytes into a variable."""

    def aclrtMemcpyToSymbolAsync(
        self, symbol: int, src: int, count: int, offset: int, kind: int, stream: StreamHandle, /
    ) -> int:
        """Copy bytes into a variable in stream order."""

    def aclrtMemcpyFromSymbol(self, dst: int, dst_max: int, symbol: int, count: int, offset: int, kind: int, /) -> int:
        """Copy bytes out of a variable."""

    def aclrtMemcpyFromSymbolAsync(
        self, dst: int, dst_max: int, symbol: int, count: int, offset: int, kind: int, stream: StreamHandle, /
    ) -> int:
        """Copy bytes out of a variable in stream order."""
