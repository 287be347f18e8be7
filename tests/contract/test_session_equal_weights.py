"""Equal weights of all models on request: found by place or by bytes, counted, given back, never written to."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from gevar import Session, load_model, load_weights
from gevar.errors import AclError, LoadError, ModelFileError, StateError
from gevar.om import OmBuilder
from gevar.session import equal_weights
from gevar.session.equal_weights import EqualWeights
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, lasting_model, write_model
from tests.helpers.weight_files import ARRAYS, CountingReader, weight_file

BYTES = bytes(range(256)) * 8
KERNEL = ARRAYS["kernel"]


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


@pytest.fixture
def other(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


@pytest.fixture(autouse=True)
def all_given_back(runtime: Runtime) -> Iterator[None]:
    yield
    assert EqualWeights.instance(runtime).device_bytes == 0


def shared_bytes(runtime: Runtime) -> int:
    return EqualWeights.instance(runtime).device_bytes


def test_sessions_share_what_is_equal(runtime: Runtime, session: Session, other: Session, tmp_path: Path) -> None:
    """Files of different kinds, one tensor that only one of them has."""
    one = weight_file(tmp_path / "one", "safetensors")
    two = weight_file(tmp_path / "two", "packed", ARRAYS | {"bias": ARRAYS["bias"] + 1})
    with load_weights(one, session=session, share_equal=True) as first:
        assert first.tensor("tied").dev_addr == first.tensor("kernel").dev_addr
        assert first.statistics.saved_bytes == ARRAYS["tied"].nbytes
        held = shared_bytes(runtime)
        assert held == first.statistics.device_bytes == KERNEL.nbytes + ARRAYS["bias"].nbytes + 3
        with load_weights(two, session=other, share_equal=True) as second:
            assert shared_bytes(runtime) == held + ARRAYS["bias"].nbytes
            assert second.statistics.saved_bytes == 2 * KERNEL.nbytes + 3
            assert second.statistics.device_bytes == second.upload.size_bytes == ARRAYS["bias"].nbytes
            assert second.tensor("kernel").sharing == "shared: equal weights"
            assert second.tensor("bias").sharing == ""
            first.close()
            for name, array in (ARRAYS | {"bias": ARRAYS["bias"] + 1}).items():
                assert second.read(name).tolist() == array.tolist()
            assert second.verify(two).differences == ()
    assert session.memory_manager.counts.mallocs == other.memory_manager.counts.mallocs == 0


def test_without_the_request_nothing_is_shared_between_sessions(
    session: Session, other: Session, tmp_path: Path
) -> None:
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session) as first, load_weights(path, session=other) as second:
        assert not {row.dev_addr for row in first.rows if row.dev_addr} & {row.dev_addr for row in second.rows}
        assert (second.statistics.saved_bytes, second.upload.size_bytes) == (0, first.upload.size_bytes)


def test_the_same_file_is_not_read_in_another_session(session: Session, other: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session, share_equal=True):
        CountingReader.start()
        with load_weights(path, session=other, share_equal=True, open_file=CountingReader) as second:
            assert (CountingReader.reads, second.upload.reads) == (0, 0)


def test_what_the_session_has_already_comes_first(runtime: Runtime, session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session) as first, load_weights(path, session=session, share_equal=True) as second:
        assert [row.dev_addr for row in second.rows] == [row.dev_addr for row in first.rows]
        assert shared_bytes(runtime) == 0


def model(path: Path, *, seed: int = 1) -> Path:
    builder = OmBuilder("m")
    builder.const("w", np.random.default_rng(seed).random(1000, np.float32))
    builder.write(path)
    return path


def test_weights_of_models(session: Session, other: Session, tmp_path: Path) -> None:
    """A weights partition is shared as a whole, from a file or from memory."""
    one = model(tmp_path / "one.om")
    two = tmp_path / "two.om"
    shutil.copyfile(one, two)
    with (
        load_model(one, session=session, share_equal=True) as first,
        load_model(two, session=other, share_equal=True) as second,
        load_model(one.read_bytes(), session=other, share_equal=True) as third,
        load_model(model(tmp_path / "three.om", seed=2), session=other, share_equal=True) as fourth,
    ):
        addrs = [loaded.tensor("w").dev_addr for loaded in (first, second, third, fourth)]
        assert addrs[0] == addrs[1] == addrs[2] != addrs[3]
        assert [loaded.tensor("w").sharing for loaded in (first, second, third)] == [
            "",
            "shared: equal weights",
            "shared: equal weights",
        ]
        saved = [loaded.statistics.saved_bytes for loaded in (first, second, third, fourth)]
        assert saved[0] == saved[3] == 0
        assert saved[1] == saved[2] == first.statistics.device_bytes
        assert second.verify(two).differences == ()
        assert fourth.verify(tmp_path / "three.om").differences == ()


def external(folder: Path, data: bytes = BYTES) -> Path:
    ops = [
        file_constant("a", BASE, 8, location="a.bin", offset=4, length=32),
        file_constant("b", BASE + 2048, 8, location="b.bin"),
    ]
    return write_model(folder, ops, {"a.bin": data[:100], "b.bin": data[4:36]})


def test_external_weights_of_models(session: Session, other: Session, tmp_path: Path) -> None:
    one, two = external(tmp_path / "one"), external(tmp_path / "two")
    with load_model(one, session=session, share_equal=True) as first:
        assert first.tensor("a").dev_addr == first.tensor("b").dev_addr  # equal bytes in two files
        with load_model(two, session=other, share_equal=True) as second:
            assert [row.sharing for row in second.rows] == ["shared: equal weights"] * 2
            assert (second.upload.size_bytes, second.statistics.device_bytes) == (0, 0)
            assert second.read("b").tobytes() == BYTES[4:36]
            assert second.verify(two).differences == ()


def test_a_file_of_all_weights_is_shared_as_a_whole(session: Session, other: Session, tmp_path: Path) -> None:
    ops = [
        file_constant(name, BASE + at * 8, 8, location="w.bin", offset=at, length=32)
        for name, at in (("a", 0), ("b", 512))
    ]
    one, two = (write_model(tmp_path / name, ops, {"w.bin": BYTES[:1024]}) for name in ("one", "two"))
    with load_model(one, session=session, share_equal=True), load_model(two, session=other, share_equal=True) as second:
        assert (second.upload.size_bytes, second.statistics.saved_bytes) == (0, 1024)
        assert second.read("b").tobytes() == BYTES[512:544]


@pytest.mark.parametrize("first_closed", [0, 1])
def test_a_block_must_have_room(session: Session, other: Session, tmp_path: Path, first_closed: int) -> None:
    """Of one slice a model may want more memory than another; both have what they want, and both go."""
    paths = []
    for size in (64, 256):
        ops = [file_constant("w", BASE, 8, location="w.bin", length=32, size=size)]
        ops.append(file_constant("v", BASE + 2048, 8, location="v.bin", length=32))
        paths.append(write_model(tmp_path / str(size), ops, {"w.bin": BYTES[:32], "v.bin": BYTES[40:72]}))
    models = [load_model(path, session=s, share_equal=True) for path, s in zip(paths, (session, other), strict=True)]
    assert models[0].tensor("w").dev_addr != models[1].tensor("w").dev_addr
    assert models[0].tensor("v").dev_addr == models[1].tensor("v").dev_addr
    with load_model(paths[0], session=other, share_equal=True) as third:
        assert third.upload.size_bytes == 0
    models.pop(first_closed).close()
    assert models[0].read("w").tobytes() == BYTES[:32]
    with load_model(paths[0], session=session, share_equal=True) as again:
        assert again.read("w").tobytes() == BYTES[:32]
    models[0].close()


def test_bytes_decide_where_digests_are_equal(
    session: Session, other: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_weights, "head_digest", lambda content: bytes(16))
    arrays = {"one": np.arange(8), "two": np.arange(8) + 1, "three": np.arange(8)}
    path = weight_file(tmp_path, "npz", arrays)
    with (
        load_weights(path, session=session, share_equal=True) as first,
        load_weights(weight_file(tmp_path, "safetensors", arrays), session=other, share_equal=True) as second,
    ):
        assert first.tensor("one").dev_addr == first.tensor("three").dev_addr != first.tensor("two").dev_addr
        assert second.tensor("two").dev_addr == first.tensor("two").dev_addr
        for name, array in arrays.items():
            assert first.read(name).tolist() == second.read(name).tolist() == array.tolist()


def test_weights_that_begin_alike_differ(session: Session, other: Session, tmp_path: Path) -> None:
    """The digest is that of the head; what lies behind decides."""
    arrays = {name: np.zeros(200_000) for name in ("zeros", "last", "again", "whole")}
    arrays["last"][-1] = arrays["again"][-1] = 1
    arrays["whole"][40_000:] = 2
    one = weight_file(tmp_path, "safetensors", arrays)
    two = weight_file(tmp_path, "packed", arrays)
    CountingReader.start()
    with load_weights(one, session=session, share_equal=True, open_file=CountingReader) as first:
        assert CountingReader.read_bytes == 3 * 1_600_000
        assert first.tensor("again").dev_addr == first.tensor("last").dev_addr
        assert len({row.dev_addr for row in first.rows}) == 3
        with load_weights(two, session=other, share_equal=True) as second:
            assert {row.name: row.dev_addr for row in second.rows} == {row.name: row.dev_addr for row in first.rows}
            assert second.verify(two).differences == ()


def test_memory_that_a_device_refuses_is_given_back_later(
    runtime: Runtime, session: Session, tmp_path: Path, host: HostControls
) -> None:
    if runtime.backend != "host":
        pytest.skip("failures can be planned on the host runtime only")
    path = weight_file(tmp_path, "safetensors", {"w": np.ones(1000)})
    weights = load_weights(path, session=session, share_equal=True)
    host.fail_nth("aclrtFree", 1, 507899)
    with pytest.raises(AclError, match="aclrtFree"):
        weights.close()
    host.clear_failures()
    assert shared_bytes(runtime) == 8000
    load_weights(path, session=session, share_equal=True).close()
    assert shared_bytes(runtime) == 0


def test_writing_never_changes_another_model(session: Session, other: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    copy = weight_file(tmp_path / "copy", "safetensors")
    with load_weights(path, session=session, share_equal=True) as first:
        with pytest.raises(StateError, match="2 tensors or models share"):
            first.write("kernel", np.zeros((3, 4), np.float32))  # would change `tied`
        with load_weights(copy, session=other, share_equal=True) as second:
            for weights in (first, second):
                with pytest.raises(StateError, match=r"bias of .* a write would change them all"):
                    weights.write("bias", np.zeros(300, np.float16))
        first.write("bias", np.zeros(300, np.float16))
        with load_weights(copy, session=other, share_equal=True) as third:
            assert third.read("bias").tolist() == ARRAYS["bias"].tolist()
            assert third.tensor("bias").sharing == ""
            assert third.tensor("mask").sharing == "shared: equal weights"
            assert not first.read("bias").any()


def test_what_was_damaged_on_the_device_is_not_shared(
    runtime: Runtime, session: Session, other: Session, tmp_path: Path
) -> None:
    """Bytes are compared with those on the device, not with what should be there."""
    path, copy = weight_file(tmp_path, "safetensors"), weight_file(tmp_path / "copy", "safetensors")
    with load_weights(path, session=session, share_equal=True) as first:
        row = first.tensor("bias")
        assert row.dev_addr is not None
        runtime.device(0).memcpy_in(row.dev_addr, 2, np.array([7], np.float16))
        with load_weights(copy, session=other, share_equal=True) as second:
            assert second.tensor("bias").dev_addr != row.dev_addr
            assert second.verify(copy).differences == ()


def test_a_session_that_is_closed_first_gives_its_part_back(runtime: Runtime, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    first, second = Session(runtime), Session(runtime)
    one, two = (load_weights(path, session=session, share_equal=True) for session in (first, second))
    held = shared_bytes(runtime)
    first.close()
    assert shared_bytes(runtime) == held
    assert two.read("bias").tolist() == ARRAYS["bias"].tolist()
    with pytest.raises(StateError, match="closed"):
        one.read("bias")
    one.close()
    assert two.read("kernel").tolist() == KERNEL.tolist()
    second.close()
    two.close()


def test_devices_do_not_share(runtime: Runtime, session: Session, tmp_path: Path) -> None:
    if runtime.device_count() < 2:
        pytest.skip("one device only")
    path = weight_file(tmp_path, "safetensors")
    with (
        load_weights(path, session=session, share_equal=True),
        load_weights(path, session=session, device_id=1, share_equal=True) as second,
    ):
        assert second.statistics.saved_bytes == ARRAYS["tied"].nbytes
        assert second.read("bias").tolist() == ARRAYS["bias"].tolist()


def test_variables_that_sleep_leave_shared_weights_alone(session: Session, other: Session, tmp_path: Path) -> None:
    data = lasting_model([build.variable("v", (4,), BASE)])
    path = weight_file(tmp_path, "safetensors")
    with (
        load_model(data, session=session) as variables,
        load_weights(path, session=session, share_equal=True) as weights,
    ):
        variables.write("v", np.arange(4, dtype=np.float32))
        if not session.sleep():
            pytest.skip("the runtime has no memory that grows")
        assert weights.read("bias").tolist() == ARRAYS["bias"].tolist()
        with load_weights(path, session=session, share_equal=True) as again:
            assert again.upload.size_bytes == 0
        session.wake()
        assert variables.read("v").tolist() == [0, 1, 2, 3]


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Run work in threads; fail with the first error of one."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_that_share_have_one_block(runtime: Runtime, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors", {"w": np.arange(200_000)})
    copies = [shutil.copyfile(path, tmp_path / f"{number}.safetensors") for number in range(6)]
    together = threading.Barrier(len(copies), timeout=30)
    addrs: list[int | None] = []

    def work(number: int) -> None:
        together.wait()
        with Session(runtime) as session, load_weights(copies[number], session=session, share_equal=True) as weights:
            addrs.append(weights.tensor("w").dev_addr)
            together.wait()  # all have loaded
            assert shared_bytes(runtime) == 1_600_000
            assert np.array_equal(weights.read("w"), np.arange(200_000))
            together.wait()

    in_threads(work, len(copies))
    assert len(addrs) == 6
    assert len(set(addrs)) == 1


def test_a_block_that_is_compared_stays(
    session: Session, other: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = (weight_file(tmp_path / name, "safetensors", {"w": np.arange(9)}) for name in ("one", "two"))
    first = load_weights(path, session=session, share_equal=True)
    addr, compare = first.tensor("w").dev_addr, equal_weights.first_difference

    def close_and_compare(*arguments: Any) -> object:
        with pytest.raises(StateError, match="share these weights"):
            first.write("w", np.zeros(9))
        first.close()
        return compare(*arguments)

    monkeypatch.setattr(equal_weights, "first_difference", close_and_compare)
    with load_weights(copy, session=other, share_equal=True) as second:
        assert second.tensor("w").dev_addr == addr
        assert second.read("w").tolist() == list(range(9))


def test_blocks_that_go_while_others_look_at_them(runtime: Runtime, tmp_path: Path) -> None:
    """A block that is compared stays until that is done, though its last user closes."""
    path = weight_file(tmp_path, "safetensors", {"w": np.arange(200_000)})
    copies = [shutil.copyfile(path, tmp_path / f"{number}.safetensors") for number in range(4)]

    def work(number: int) -> None:
        for _ in range(12):
            with (
                Session(runtime) as session,
                load_weights(copies[number], session=session, share_equal=True) as weights,
            ):
                assert np.array_equal(weights.read("w"), np.arange(200_000))

    in_threads(work, len(copies))


def test_a_load_that_fails_takes_nothing_from_the_others(session: Session, other: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    bad = weight_file(tmp_path / "bad", "npz", ARRAYS | {"more": np.arange(3_000_000)})
    data = bytearray(bad.read_bytes())
    data[data.index(np.arange(2_999_990, 3_000_000).tobytes())] ^= 1
    with load_weights(path, session=session, share_equal=True) as first:
        bad.write_bytes(data)
        with pytest.raises(ModelFileError, match="CRC"):
            load_weights(bad, session=other, share_equal=True)
        bad.unlink()
        with pytest.raises((ModelFileError, LoadError)):
            load_weights(bad, session=other, share_equal=True)
        assert first.verify(path).differences == ()
        first.write("bias", np.ones(300, np.float16))  # nobody else uses it
        assert first.read("bias").all()


def test_a_load_inside_a_load_is_refused(session: Session, other: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")

    def again(done: int, total: int) -> None:
        load_weights(path, session=other, share_equal=True)

    with pytest.raises(StateError, match="is under way in this thread"):
        load_weights(path, session=session, share_equal=True, on_progress=again)
    with load_weights(path, session=session, share_equal=True) as weights:
        assert weights.verify(path).differences == ()
