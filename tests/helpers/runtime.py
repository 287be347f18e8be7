"""Runtimes for tests: which backends to run on, the state that must be back at the end, and the fault loop."""

import gc
import os
from collections.abc import Callable
from itertools import count
from time import monotonic, sleep

from acl_shim import Runtime, open_runtime
from acl_shim.errors import BackendUnavailableError, GevarError
from acl_shim.host import HostControls, host_controls
from acl_shim.host_live import LiveObjects


def _backends() -> tuple[str, ...]:
    """Return what the contract tests run on: the backends that exist, or the card that is asked for."""
    if os.environ.get("GEVAR_TEST_BACKEND") == "npu":
        return ("npu",)
    try:
        open_runtime("npu")
    except BackendUnavailableError:
        return ("host",)
    return ("host", "npu")


BACKENDS = _backends()


def host_runtime() -> Runtime:
    """Return the host runtime."""
    return open_runtime("host")


def controls() -> HostControls:
    """Return the controls of the host runtime."""
    return host_controls(host_runtime())


def live_now(host: HostControls) -> LiveObjects:
    """Return what is alive once everything unreachable is gone and no stream has a task left, for a second at most."""
    gc.collect()
    end = monotonic() + 1
    while (live := host.live()).tasks and monotonic() < end:
        sleep(0.001)
    return live


def alive_text(host: HostControls) -> str:
    """Return what is alive in words, empty where there is nothing."""
    live = host.live()
    return "" if live.nothing else f"{live} {host.live_report()}"


def used_functions(host: HostControls, functions: tuple[str, ...], operation: Callable[[], object]) -> list[str]:
    """Run an operation and return which of the functions it called."""
    before = {function: host.calls(function) for function in functions}
    operation()
    return [function for function in functions if host.calls(function) > before[function]]


def fail_until_passes(
    host: HostControls, function: str, operation: Callable[[], object], *, code: int = 507899, most: int = 1000
) -> int:
    """Fail call 1, 2, 3 … of a function until the operation passes; return how many calls failed.

    After each failure nothing may be left: what is alive must be as before. The operation must undo or return what it
    makes; what it returns is dropped.
    """
    before = live_now(host)
    for n in count(1):
        host.fail_nth(function, n, code)
        try:
            operation()
        except GevarError:
            failed = True
        else:
            failed = False
        host.clear_failures()
        unchanged = host.live() == before or live_now(host) == before
        assert unchanged, f"call {n} of {function} failed and left {host.live_report()}"
        if not failed:
            return n - 1
        assert n < most, f"{function} still fails at call {n}"
    raise AssertionError("unreachable")
