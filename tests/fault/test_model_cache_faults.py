"""Every call to the system fails once while a model is stored: the cache stays as it was, and the next try succeeds."""

import errno
import fcntl
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gevar.compile.model_cache_files import CacheFiles
from gevar.errors import ModelFileError
from gevar.var import VarManager
from tests.helpers.cached_models import NCHW, cache_of, model_graph, root_model
from tests.helpers.model_cache_campaign import assert_whole
from tests.helpers.model_cache_writer import make_model
from tests.helpers.var_memory import make_manager
from tests.helpers.var_states import state_bytes


class FailingCalls:
    """Calls to the system that go into the cache directory; the n-th one fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.failing = 0
        for owner, name in ((os, "open"), (os, "fdopen"), (os, "fsync"), (fcntl, "flock"), (os, "replace")):
            monkeypatch.setattr(owner, name, self._wrap(getattr(owner, name)))

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **kwargs)

        return wrapped


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


def store(folder: Path, number: int) -> None:
    vm = make_manager()
    with cache_of(folder, vm, model_graph({})) as cache:
        vm.assign_var_mem(f"v{number}", None, NCHW)
        cache.try_cache_model(make_model(number))


def test_storing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that does no harm, such as that of a lock on a draft, is passed over; then the entry is there."""
    store(tmp_path, 0)
    calls, named, stored = FailingCalls(monkeypatch), list[str](), [0]
    for failing in count(1):
        before, calls.count, calls.failing = content(tmp_path), 0, failing
        try:
            store(tmp_path, failing)
        except ModelFileError as error:
            named.append(error.file or "")
            calls.failing = 0
            assert content(tmp_path) == before
        else:
            stored.append(failing)
        calls.failing = 0
        if calls.count < failing:
            break
    assert len(named) >= 10
    assert all(str(tmp_path) in file for file in named)
    files = CacheFiles(tmp_path, "k")
    files.close()
    assert [assert_whole(entry) for entry in files.entries] == stored


def test_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm: VarManager = make_manager()
    with cache_of(tmp_path, vm, model_graph({})) as cache:
        cache.try_cache_model(root_model(model_graph({"w": NCHW})))
    state, before = state_bytes(vm), content(tmp_path)
    calls, failures, named = FailingCalls(monkeypatch), 0, list[str]()
    while True:
        calls.count, calls.failing = 0, failures + 1
        try:
            with cache_of(tmp_path, vm, model_graph({})) as cache:
                assert cache.try_load_model_from_cache() is not None
        except ModelFileError as error:
            named.append(error.file or "")
            failures += 1
            assert (state_bytes(vm), content(tmp_path)) == (state, before)
        else:
            break
    assert failures >= 2
    assert all(str(tmp_path) in file for file in named)
    assert vm.is_var_exist("w")
