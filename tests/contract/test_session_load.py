"""Loading models: what lies where, reading, writing, sharing, and giving everything back."""

import threading
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import host_controls
from gevar import Session, load_model
from gevar.errors import AclError, ModelFileError, OutOfMemoryError, StateError, VariableError
from tests.helpers.models import small_model

LOGIC_BASE = 128 << 30


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path / "small.om"
    return path, small_model(path)


def test_every_tensor_holds_its_bytes(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    with load_model(path, session=session) as loaded:
        for name, value in values.items():
            got = loaded.read(name)
            assert got.dtype == value.dtype
            assert np.array_equal(got, value), name
        report = loaded.verify(path)
    assert (report.tensors, report.differences) == (len(values), ())
    assert report.size_bytes == sum(value.nbytes for value in values.values())


def test_rows_say_what_lies_where(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    with load_model(path, session=session) as loaded:
        rows = {row.name: row for row in loaded.rows}
        kinds = [(row.name, row.kind) for row in loaded.rows]
    assert sorted(kinds) == [
        ("bias", "Const"),
        ("empty", "Variable"),
        ("kernel", "Const"),
        ("scale", "Constant"),
        ("scale_again", "Constant"),
        ("start", "Variable"),
    ]
    assert rows["kernel"].dev_addr + 4096 == rows["bias"].dev_addr
    assert (rows["start"].shape, rows["start"].size_bytes, rows["start"].format_text) == ((3, 5), 60, "ND")
    variables = [rows[name].logic_addr for name in ("scale", "start", "empty")]
    assert sorted(variables) == [LOGIC_BASE, LOGIC_BASE + 1536, LOGIC_BASE + 3072]
    for name in ("scale", "start", "empty"):
        assert rows[name].dev_addr == session.var_manager.get_var_memory_addr(rows[name].logic_addr, 2, 0)


def test_equal_constants_share_one_place(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    with load_model(path, session=session) as loaded:
        one, two = loaded.tensor("scale"), loaded.tensor("scale_again")
    assert (one.logic_addr, one.dev_addr) == (two.logic_addr, two.dev_addr)


def test_a_model_from_bytes(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    data = path.read_bytes()
    with load_model(data, session=session) as loaded:
        assert np.array_equal(loaded.read("kernel"), values["kernel"])
        assert loaded.verify(data).differences == ()


def test_writing(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    with load_model(path, session=session) as loaded:
        value = np.array([1, -2, np.nan, 4], ml_dtypes.bfloat16)
        loaded.write("empty", value)
        assert loaded.read("empty").tobytes() == value.tobytes()
        assert session.var_manager["empty"].read().tobytes() == value.tobytes()
        loaded.write("bias", np.zeros(7, np.float32))
        assert not loaded.read("bias").any()
        differences = loaded.verify(path).differences
    assert [(d.name, d.on_device) for d in differences] == [("bias", 0)]


def test_writing_the_wrong_size_changes_nothing(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    with load_model(path, session=session) as loaded:
        with pytest.raises(ValueError, match="takes 28 B, not 32 B"):
            loaded.write("bias", np.zeros(8, np.float32))
        assert np.array_equal(loaded.read("bias"), values["bias"])


def test_an_unknown_name_suggests_close_ones(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    with load_model(path, session=session) as loaded, pytest.raises(VariableError, match="'kernel'"):
        loaded.read("kernell")


def test_two_models_share_the_variables_of_a_session(session: Session, tmp_path: Path) -> None:
    one, two = tmp_path / "one.om", tmp_path / "two.om"
    first, second = small_model(one), small_model(two, seed=2)
    with load_model(one, session=session) as a, load_model(two, session=session) as b:
        assert a.tensor("start").dev_addr == b.tensor("start").dev_addr
        assert a.tensor("kernel").dev_addr != b.tensor("kernel").dev_addr
        assert np.array_equal(b.read("kernel"), second["kernel"])
        assert np.array_equal(b.read("start"), first["start"])


def test_models_of_one_file_share_its_weights(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    """They are read once, written by nobody while two have them, and as in the file for who comes later."""
    path, values = model
    with load_model(path, session=session) as first:
        with load_model(path, session=session) as second:
            assert second.tensor("kernel").dev_addr == first.tensor("kernel").dev_addr
            assert second.tensor("kernel").sharing == "shared: same file slice"
            assert (second.upload.reads, second.statistics.device_bytes) == (0, 0)
            assert second.statistics.saved_bytes == first.statistics.device_bytes
            with pytest.raises(StateError, match=r"bias of .*share these weights"):
                second.write("bias", np.zeros(7, np.float32))
            second.write("empty", np.ones(4, ml_dtypes.bfloat16))  # a variable is everybody's
        first.write("bias", np.zeros(7, np.float32))
        with load_model(path, session=session) as third:
            assert np.array_equal(third.read("bias"), values["bias"])
            assert third.tensor("bias").dev_addr != first.tensor("bias").dev_addr
            assert not first.read("bias").any()


def test_closing_gives_weights_back_and_the_session_the_rest(
    runtime: Runtime, model: tuple[Path, dict[str, np.ndarray]]
) -> None:
    path, _ = model
    session = Session(runtime)
    loaded = load_model(path, session=session)
    blocks = session.memory_manager.counts.live_blocks
    loaded.close()
    loaded.close()
    assert session.memory_manager.counts.live_blocks == blocks - 1
    with pytest.raises(StateError, match="closed"):
        loaded.read("kernel")
    session.close()
    session.close()
    assert session.memory_manager.counts.live_blocks == 0
    with pytest.raises(StateError, match="closed"):
        load_model(path, session=session)


def test_a_session_of_its_own_closes_with_the_model(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    with load_model(path, backend="host") as loaded:
        session = loaded.session
        assert np.array_equal(loaded.read("start"), values["start"])
    assert session.closed
    assert loaded.closed


def test_a_model_larger_than_the_device(runtime: Runtime, tmp_path: Path) -> None:
    if runtime.backend != "host":
        pytest.skip("the capacity can be set on the host runtime only")
    host_controls(runtime).configure(pages_4k_bytes=1 << 20, pages_2m=1, pages_1g=0)
    path = tmp_path / "large.om"
    small_model(path, kernel_bytes=5 << 20)
    with Session(runtime) as session:
        with pytest.raises(OutOfMemoryError) as caught:
            load_model(path, session=session)
        assert session.memory_manager.counts.live_blocks == 0
    error = caught.value
    assert (error.code, error.status) == (207001, 207001)
    assert error.requested_bytes >= 5 << 20
    assert error.total_bytes == 3 << 20
    assert error.free_bytes <= 3 << 20
    for number in (error.requested_bytes, error.free_bytes, error.total_bytes):
        assert str(number) in str(error)


def test_an_unknown_device(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    count = session.runtime.device_count()
    with pytest.raises(AclError, match=f"{count}") as caught:
        load_model(model[0], session=session, device_id=count)
    assert caught.value.code == 107001


@pytest.mark.parametrize("kind", ["missing", "directory", "text", "cut"])
def test_files_that_are_no_model(
    session: Session, model: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "bad.om"
    if kind == "directory":
        path.mkdir()
    elif kind == "text":
        path.write_text("no model at all, but as long as a header" * 20)
    elif kind == "cut":
        path.write_bytes(model[0].read_bytes()[:-1])
    with pytest.raises(ModelFileError) as caught:
        load_model(path, session=session)
    assert caught.value.file == str(path)
    assert session.memory_manager.counts.mallocs == 0


def test_verify_refuses_another_file(
    session: Session, model: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    from gevar.om.builder import OmBuilder

    other = tmp_path / "other.om"
    net = OmBuilder("other")
    net.output(net.const("only", np.zeros(4, np.float32)), "y")
    net.write(other)
    with load_model(model[0], session=session) as loaded, pytest.raises(ModelFileError, match="not those"):
        loaded.verify(other)


def test_eight_threads_load_into_one_session(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    loaded, errors = [], []

    def work() -> None:
        try:
            loaded.append(load_model(path, session=session))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({one.tensor("start").dev_addr for one in loaded}) == 1
    assert len({one.tensor("kernel").dev_addr for one in loaded}) == 1  # one file, one block
    for one in loaded:
        assert np.array_equal(one.read("kernel"), values["kernel"])
        one.close()
