"""Fixtures for every group: a runtime per backend, the host runtime's controls, and the check that nothing is left."""

import gc
import logging
from collections.abc import Iterator

import pytest

from acl_shim import Device, Runtime, loader, open_runtime
from acl_shim.errors import BackendUnavailableError
from acl_shim.host import HostControls, host_controls
from tests.helpers.runtime import BACKENDS, alive_text, controls


def pytest_collection_finish() -> None:
    """Leave what the collection made out of later searches for unreachable objects; there are many, after each test."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the host runtime can do where a card was asked for."""
    if BACKENDS == ("npu",):
        left_out = [item for item in items if "host" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _backend_params() -> list[object]:
    return [pytest.param(name, marks=pytest.mark.npu) if name == "npu" else name for name in BACKENDS]


@pytest.fixture(params=_backend_params())
def runtime(request: pytest.FixtureRequest) -> Runtime:
    """Return the runtime of each backend that exists."""
    try:
        return open_runtime(request.param)
    except BackendUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def device(runtime: Runtime) -> Device:
    """Return device 0 of each backend."""
    return runtime.device(0)


@pytest.fixture
def host() -> HostControls:
    """Return the controls of the host runtime, with no failure planned."""
    return controls()


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """Bring the levels of logs back, which a command sets for its process."""
    levels = {log: log.level for log in (logging.getLogger(), logging.getLogger("acl_shim"))}
    yield
    for log, level in levels.items():
        log.setLevel(level)


@pytest.fixture(autouse=True)
def nothing_left_alive() -> Iterator[None]:
    """Fail a test that leaves anything alive in the host runtime; then bring that back to its start."""
    yield
    for opened in loader.opened():
        if opened.backend == "host" and opened.supports("hostacl_live"):
            left = _bring_back(opened)
            assert not left, f"left alive after the test: {left}"


def _bring_back(runtime: Runtime) -> str:
    """Bring the host runtime back to its start and return what was left alive, in words."""
    host = host_controls(runtime)
    host.clear_failures()
    try:
        if alive_text(host):
            gc.collect()
            runtime.reset_devices()
        return alive_text(host)
    finally:
        host.reset()
