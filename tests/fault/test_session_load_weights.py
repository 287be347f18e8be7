"""Calls of the runtime and reads of files fail one after the other while weights are loaded: nothing is left."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import LoadedModel, LoadedWeights, Session, load_model, load_weights
from gevar.errors import LoadError
from gevar.session.equal_weights import EqualWeights
from gevar.weights import PreadReader
from tests.helpers.runtime import fail_until_passes, host_runtime
from tests.helpers.weight_files import ARRAYS, weight_file

FUNCTIONS = ("aclrtMallocWithCfg", "aclrtMallocHost", "aclrtMemcpy")
KINDS = ("safetensors", "npz", "om1", "om2")


def open_file(path: Path, session: Session, reader: type[PreadReader] = PreadReader) -> LoadedModel | LoadedWeights:
    """Load a file so that what is equal is shared."""
    load = load_model if path.suffix == ".om" else load_weights
    return load(path, session=session, share_equal=True, open_file=reader)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_the_runtime(host: HostControls, tmp_path: Path, kind: str, function: str) -> None:
    """Beside weights that are shared, and that a failed load leaves as they are."""
    path = weight_file(tmp_path / "one", kind)
    known = weight_file(tmp_path / "two", "packed", {name: ARRAYS[name] for name in ("bias", "mask")})
    equal = EqualWeights.instance(host_runtime())
    with Session(host_runtime()) as session, open_file(known, session) as first:
        held = equal.device_bytes

        def operation() -> None:
            with Session(host_runtime()) as another, open_file(path, another) as loaded:
                assert loaded.verify(path).differences == ()
            assert equal.device_bytes == held

        operation()
        if function == "aclrtMallocHost" and kind == "npz":
            return  # nothing is staged
        assert fail_until_passes(host, function, operation) >= 1
        assert equal.device_bytes == held
        assert first.verify(known).differences == ()
    assert equal.device_bytes == 0


class Faulty(PreadReader):
    """Does something before read number `at_call`; gives at most `most_bytes` at a time."""

    descriptor = None
    calls = 0
    at_call = 0
    most_bytes = 1 << 30

    @staticmethod
    def act(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def read_into(self, offset: int, view: memoryview) -> int:
        cls = type(self)
        cls.calls += 1
        if cls.calls == cls.at_call:
            cls.act(self._path)
        return super().read_into(offset, view[: cls.most_bytes])


def faulty(*, at_call: int = 0, most_bytes: int = 1 << 30, act: Callable[[Path], None] | None = None) -> type[Faulty]:
    class Reader(Faulty):
        pass

    Reader.at_call, Reader.most_bytes = at_call, most_bytes
    if act is not None:
        Reader.act = staticmethod(act)  # type: ignore[method-assign]
    return Reader


def left(session: Session) -> int:
    return session.memory_manager.counts.live_blocks + EqualWeights.instance(session.runtime).device_bytes


@pytest.mark.parametrize("kind", ["safetensors", "om", "om1", "om2"])
def test_every_read_that_fails(tmp_path: Path, kind: str) -> None:
    path = weight_file(tmp_path, kind)
    with Session(host_runtime()) as session:
        counting = faulty()
        with open_file(path, session, counting) as loaded:
            assert loaded.verify(path).differences == ()
        assert counting.calls >= 1
        for number in range(1, counting.calls + 1):
            with pytest.raises(LoadError, match="Input/output error") as caught:
                open_file(path, session, faulty(at_call=number))
            assert (caught.value.got, caught.value.path.startswith(str(tmp_path))) == (0, True)
            assert caught.value.wanted > 0
            assert left(session) == 0


@pytest.mark.parametrize("kind", ["safetensors", "om2"])
def test_short_reads_are_gone_on_with(tmp_path: Path, kind: str) -> None:
    path = weight_file(tmp_path, kind)
    reader = faulty(most_bytes=7)
    with Session(host_runtime()) as session, open_file(path, session, reader) as loaded:
        assert loaded.verify(path).differences == ()
        assert reader.calls > 50


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 2)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.rename(path)


def damage(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(5 << 20)
        file.write(b"damage")


@pytest.mark.parametrize("act", [cut, grow, replace, damage, Path.unlink])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_an_archive_that_does_not_stay_as_it_was(tmp_path: Path, call: int, act: Callable[[Path], None]) -> None:
    path, calls = weight_file(tmp_path, "npz", {name: np.arange(1 << 20) for name in ("a", "b")}), 0

    def on_progress(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            act(path)

    with Session(host_runtime()) as session:
        with pytest.raises(LoadError, match="changed while it was loaded") as caught:
            load_weights(path, session=session, on_progress=on_progress)
        error, now = caught.value, path.stat().st_size if path.exists() else 0
        assert (error.path, error.offset, error.got) == (str(path), 0, min(error.wanted, now))
        assert error.wanted > 16 << 20
        assert left(session) == 0


@pytest.mark.parametrize("act", [cut, grow, replace, Path.unlink])
@pytest.mark.parametrize("kind", ["safetensors", "om", "om1", "om2"])
def test_a_file_that_does_not_stay_as_it_was(tmp_path: Path, kind: str, act: Callable[[Path], None]) -> None:
    path = weight_file(tmp_path, kind, {"w": np.arange(1000)})
    with Session(host_runtime()) as session:
        with pytest.raises(LoadError) as caught:
            open_file(path, session, faulty(at_call=1, act=act))
        error = caught.value
        assert error.path.startswith(str(tmp_path))
        assert error.wanted > 0
        assert 0 <= error.got <= error.wanted
        assert left(session) == 0
