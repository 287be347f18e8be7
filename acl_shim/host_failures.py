"""Failures, delays and halts that the host runtime is told to have."""

from acl_shim.runtime import Runtime
from acl_shim.table import NULL

_ALL_DEVICES = -1


class HostFailures:
    """The controls that make calls and tasks fail, wait or stand still; see `HostControls`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._api = runtime.api

    def _check(self, code: int, call: str, arguments: dict[str, str | int]) -> None:
        if code:
            raise self._runtime.error(code, call, arguments, text=self._api.hostacl_error() or "")

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

    def fail_above(self, size_bytes: int, code: int) -> None:
        """Make allocations of device, host and physical memory above a size fail.

        Parameters
        ----------
        size_bytes
            Largest size in bytes that still works.
        code
            What they return; 0 ends it.
        """
        self._check(self._api.hostacl_fail_above(size_bytes, code), "hostacl_fail_above", {"size_bytes": size_bytes})

    def short_copy(self, n: int, size_bytes: int, code: int = 0) -> None:
        """Make a copy move only its first bytes.

        Parameters
        ----------
        n
            Which copy from now: 1 is the next; 0 ends it.
        size_bytes
            How many bytes it moves.
        code
            What it returns, or reports where it is asynchronous; 0 hides the loss.
        """
        refused = self._api.hostacl_short_copy(n, size_bytes, code)
        self._check(refused, "hostacl_short_copy", {"nth": n, "size_bytes": size_bytes, "code": code})

    def fail_task(self, n: int, code: int) -> None:
        """Make a task of a stream fail instead of running; who synchronises gets the code.

        Parameters
        ----------
        n
            Which task from now, of any stream: 1 is the next; 0 ends it.
        code
            What it fails with.
        """
        self._check(self._api.hostacl_fail_task(n, code), "hostacl_fail_task", {"nth": n, "code": code})

    def delay(self, function: str, delay_s: float) -> None:
        """Make every call of a function wait first.

        Parameters
        ----------
        function
            Name of the C function.
        delay_s
            Seconds, rounded to microseconds; 0 ends it.

        Raises
        ------
        AclError
            There is no such function.
        """
        refused = self._api.hostacl_delay(function.encode(), round(delay_s * 1e6))
        self._check(refused, "hostacl_delay", {"function": function})

    def delay_task(self, function: str, delay_s: float) -> None:
        """Make every task that a function queues wait before it runs.

        Parameters
        ----------
        function
            Name of the C function that queues.
        delay_s
            Seconds, rounded to microseconds; 0 ends it.

        Raises
        ------
        AclError
            There is no such function.
        """
        refused = self._api.hostacl_delay_task(function.encode(), round(delay_s * 1e6))
        self._check(refused, "hostacl_delay_task", {"function": function})

    def clear_failures(self) -> None:
        """Take back every failure and delay that was planned."""
        api = self._api
        self._check(api.hostacl_fail(NULL, 0, 0), "hostacl_fail", {"nth": 0})
        self._check(api.hostacl_fail_above(0, 0), "hostacl_fail_above", {"code": 0})
        self._check(api.hostacl_short_copy(0, 0, 0), "hostacl_short_copy", {"nth": 0})
        self._check(api.hostacl_fail_task(0, 0), "hostacl_fail_task", {"nth": 0})
        self._check(api.hostacl_delay(NULL, 0), "hostacl_delay", {"microseconds": 0})
        self._check(api.hostacl_delay_task(NULL, 0), "hostacl_delay_task", {"microseconds": 0})

    def hold(self, device_id: int | None = None) -> None:
        """Hold the streams that exist: they take tasks and run none; none moves a byte once this returns.

        Parameters
        ----------
        device_id
            The device; None for all.

        Raises
        ------
        AclError
            There is no such device.
        """
        number = _ALL_DEVICES if device_id is None else device_id
        self._check(self._api.hostacl_hold(number), "hostacl_hold", {"device_id": number})

    def release(self, device_id: int | None = None) -> None:
        """Let held streams go on.

        Parameters
        ----------
        device_id
            The device; None for all, and for those that will be made.

        Raises
        ------
        AclError
            There is no such device.
        """
        number = _ALL_DEVICES if device_id is None else device_id
        self._check(self._api.hostacl_release(number), "hostacl_release", {"device_id": number})
