"""Controls of the host runtime: devices and pools, injected failures, what is alive."""

from collections.abc import Mapping

from acl_shim.errors import StateError
from acl_shim.host_failures import HostFailures
from acl_shim.host_live import LiveObjects, live_objects
from acl_shim.runtime import Runtime
from acl_shim.table import NULL, new_live, new_text, read_text

_HUGE_PAGE_BYTES = 2 << 20


class HostControls(HostFailures):
    """Configure the host runtime, make its calls fail, and ask what is alive; `host_controls` makes them.

    Thread safety: any thread may use it; what it changes holds for the whole process.
    Source: native/include/hostacl.h.
    """

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
        mode: str | None = None,
        virtual_memory: bool | None = None,
        hugetlb: bool | None = None,
        cann_version: str | None = None,
        cube_cores: int | None = None,
        vector_cores: int | None = None,
        l2_cache_bytes: int | None = None,
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
        mode
            ``isolated``, or ``unified``: device memory can also be touched at its address.
        virtual_memory
            Whether there are reserved ranges.
        hugetlb
            Whether pools consist of huge pages of the host where it has them.
        cann_version
            Version of the installation that is played, for example ``9.1.0``.
        cube_cores, vector_cores
            What a device says it has; nothing runs on them.
        l2_cache_bytes
            What a device says it has, in bytes.

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
            "mode": mode,
            "virtual_memory": None if virtual_memory is None else "on" if virtual_memory else "off",
            "hugetlb": None if hugetlb is None else int(hugetlb),
            "cann_version": cann_version,
            "cube_cores": cube_cores,
            "vector_cores": vector_cores,
            "l2_cache": l2_cache_bytes,
        }
        self._runtime.reset_devices()
        self._set_options(options)

    def _set_options(self, options: Mapping[str, str | int | None]) -> None:
        for key, value in options.items():
            if value is not None:
                code = self._api.hostacl_configure(key.encode(), str(value).encode())
                self._check(code, "hostacl_configure", {"key": key, "value": value})

    def adjust(
        self,
        *,
        poison: int | str | None = None,
        poison_free: int | str | None = None,
        stacks: bool | None = None,
        leaks: str | None = None,
        trace: str | None = None,
        app_log: str | None = None,
        hold: bool | None = None,
    ) -> None:
        """Set options that may change at any time; those left None stay.

        Parameters
        ----------
        poison, poison_free
            Byte that new memory and freed memory is filled with, or ``off``.
        stacks
            Whether live objects keep the calls that made them, for `live_report`.
        leaks
            What happens when objects are alive at the end of the process: ``off``, ``report`` or ``fail``.
        trace, app_log
            Where a line for every call and the lines of `aclAppLog` go: ``off``, ``stderr``, ``fd:N`` or a path.
        hold
            Whether streams are made held, until `release`.

        Raises
        ------
        AclError
            The host runtime refuses a value. Options before it are set.
        """
        flags = {True: "on", False: "off", None: None}
        self._set_options(
            {
                "poison": poison,
                "poison_free": poison_free,
                "stacks": flags[stacks],
                "leaks": leaks,
                "trace": trace,
                "app_log": app_log,
                "hold": flags[hold],
            }
        )

    def define_symbol(self, symbol: int, size_bytes: int) -> None:
        """Name a variable that every device then has, zero at first, as the device's compiler does on a card.

        Parameters
        ----------
        symbol
            Number the variable is called by, not 0; in C the address of its stand-in on the host.
        size_bytes
            Its size in bytes; 0 takes the variable away.

        Raises
        ------
        AclError
            The symbol is 0, has another size, or is to be taken away and not known.
        """
        code = self._api.hostacl_symbol(symbol, size_bytes)
        self._check(code, "hostacl_symbol", {"symbol": symbol, "size_bytes": size_bytes})

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
        return live_objects(live)

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
