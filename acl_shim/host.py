"""Controls of the host runtime: devices and pools, injected failures, what is alive."""

from dataclasses import dataclass

from acl_shim.errors import StateError
from acl_shim.runtime import Runtime
from acl_shim.table import NULL, new_live, new_text, read_text

_HUGE_PAGE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class DeviceLive:
    """What is alive on one device of the host runtime.

    Attributes
    ----------
    set_count
        `aclrtSetDevice` calls not undone yet.
    pages_4k_used, pages_4k_total, pages_2m_used, pages_2m_total, pages_1g_used, pages_1g_total
        Pages of each class.
    committed_bytes
        Host memory behind the device's pages now, in bytes.
    """

    set_count: int
    pages_4k_used: int
    pages_4k_total: int
    pages_2m_used: int
    pages_2m_total: int
    pages_1g_used: int
    pages_1g_total: int
    committed_bytes: int


@dataclass(frozen=True, slots=True)
class LiveObjects:
    """What is alive in the host runtime.

    Attributes
    ----------
    blocks, bytes
        Device blocks, and their bytes rounded up to whole pages.
    host_blocks, host_bytes
        Pinned host blocks, and their bytes rounded up to whole pages.
    contexts
        Explicit contexts.
    devices_set
        Devices that are set.
    devices
        One entry per device.
    """

    blocks: int
    bytes: int
    host_blocks: int
    host_bytes: int
    contexts: int
    devices_set: int
    devices: tuple[DeviceLive, ...]


class HostControls:
    """Configure the host runtime, make its calls fail, and ask what is alive; `host_controls` makes them.

    Thread safety: any thread may use it; what it changes holds for the whole process.
    Source: native/include/hostacl.h.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._api = runtime.api

    def _check(self, code: int, call: str, arguments: dict[str, str | int]) -> None:
        if code:
            raise self._runtime.error(code, call, arguments, text=self._api.hostacl_error() or "")

    def configure(
        self,
        *,
        devices: int | None = None,
        soc_name: str | None = None,
        capacity_bytes: int | None = None,
        pages_4k_bytes: int | None = None,
        pages_2m: int | None = None,
        pages_1g: int | None = None,
        profile: str | None = None,
        first_address: int | None = None,
    ) -> None:
        """Set options; those left None stay. Gives back the devices this process has set.

        Parameters
        ----------
        devices
            Number of devices, 1 to 64.
        soc_name
            Product, for example ``Ascend910B1``.
        capacity_bytes
            Memory per device in bytes: the pool of 2 MiB pages is resized to it.
        pages_4k_bytes
            Pool of 4 KiB pages per device, in bytes.
        pages_2m, pages_1g
            Number of 2 MiB pages and of 1 GiB pages per device.
        profile
            ``strict`` or ``card``.
        first_address
            Lowest device address.

        Raises
        ------
        StateError
            Buffers are open.
        AclError
            The host runtime refuses a value, or something is alive (148051). Options before it are set.
        """
        options = {
            "devices": devices,
            "soc_name": soc_name,
            "capacity": capacity_bytes,
            "pages_4k": pages_4k_bytes,
            "pages_2m": None if pages_2m is None else pages_2m * _HUGE_PAGE_BYTES,
            "pages_1g": pages_1g,
            "profile": profile,
            "first_address": first_address,
        }
        self._runtime.reset_devices()
        for key, value in options.items():
            if value is not None:
                code = self._api.hostacl_configure(key.encode(), str(value).encode())
                self._check(code, "hostacl_configure", {"key": key, "value": value})

    def fail_nth(self, function: str, n: int, code: int) -> None:
        """Make a call of a function fail before it has any effect.

        Parameters
        ----------
        function
            Name of the C function.
        n
            Which call from now: 1 is the next.
        code
            What it returns.

        Raises
        ------
        ValueError
            `n` is below 1.
        AclError
            There is no such function.
        """
        if n < 1:
            raise ValueError(f"n is {n}: 1 is the next call")
        refused = self._api.hostacl_fail(function.encode(), n, code)
        self._check(refused, "hostacl_fail", {"function": function, "nth": n, "code": code})

    def clear_failures(self) -> None:
        """Take back every failure that `fail_nth` planned."""
        self._check(self._api.hostacl_fail(NULL, 0, 0), "hostacl_fail", {"nth": 0})

    def calls(self, function: str) -> int:
        """Return how often a function was called since the start or the last reset.

        Parameters
        ----------
        function
            Name of the C function.
        """
        return self._api.hostacl_calls(function.encode())

    def live(self) -> LiveObjects:
        """Return what is alive."""
        live = new_live()
        self._check(self._api.hostacl_live(live), "hostacl_live", {})
        fields = DeviceLive.__dataclass_fields__
        entries = [live.devices[number] for number in range(live.device_count)]
        devices = tuple(DeviceLive(*(getattr(entry, name) for name in fields)) for entry in entries)
        return LiveObjects(
            live.blocks,
            live.bytes,
            live.host_blocks,
            live.host_bytes,
            live.contexts,
            live.devices_set,
            devices,
        )

    def live_report(self) -> str:
        """Return one line per live object."""
        return self._text("hostacl_live_report")

    def info(self) -> dict[str, str]:
        """Return what the host runtime is set to: version, profile, address range, pools, devices."""
        pairs = (line.partition(": ") for line in self._text("hostacl_info").splitlines())
        return {key: value for key, _, value in pairs}

    def _text(self, name: str) -> str:
        """Return the text that a control writes."""
        control = self._api.hostacl_info if name == "hostacl_info" else self._api.hostacl_live_report
        size_bytes = control(NULL, 0) + 1
        text = new_text(size_bytes)
        control(text, size_bytes)
        return read_text(text)

    def reset(self) -> None:
        """Bring the host runtime back to its start: everything is freed, options are those of the environment.

        Open buffers are dead afterwards: they close without a call, views of pinned buffers must not be touched.
        """
        with self._runtime.lock:
            self._runtime.forget()
            self._check(self._api.hostacl_reset(), "hostacl_reset", {})


def host_controls(runtime: Runtime) -> HostControls:
    """Return the controls of the host runtime.

    Parameters
    ----------
    runtime
        An opened runtime.

    Raises
    ------
    StateError
        The runtime is a card's library, or was closed.
    """
    if runtime.closed or runtime.backend != "host":
        raise StateError(f"{runtime.path} has no host controls: open the host runtime with open_runtime('host')")
    return HostControls(runtime)
