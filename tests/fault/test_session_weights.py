"""Each call of the runtime fails once while external weights are loaded: nothing is left, and a load after it works."""

from pathlib import Path

import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import LoadError
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, write_model
from tests.helpers.runtime import fail_until_passes, host_runtime

FUNCTIONS = ("aclrtMallocWithCfg", "aclrtMallocHost", "aclrtMemcpy")
DATA = bytes(range(256)) * 4


def model(folder: Path, *, combined: bool) -> Path:
    """A model with external weights of both kinds, a variable with an initial value, and constants."""
    init = build.tensor(build.tensor_desc((4,), 1), DATA[:16])
    ops = [
        file_constant("a", BASE, 8, location="a.bin", length=32),
        file_constant("b", BASE + 2048, 8, location="a.bin" if combined else "b.bin", offset=64, length=32),
        build.variable("v", (4,), BASE + 4096, {"_init_value": build.attr_t(init)}),
        build.inline_const("k", DATA[:8], address=BASE + 6144),
    ]
    return write_model(folder, ops, {"a.bin": DATA, "b.bin": DATA})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("combined", [True, False])
def test_loading(host: HostControls, tmp_path: Path, function: str, combined: bool) -> None:
    path = model(tmp_path, combined=combined)

    def operation() -> None:
        with Session(host_runtime()) as session, load_model(path, session=session) as loaded:
            assert loaded.read("b").tobytes() == DATA[64:96]
            assert loaded.read("v").tobytes() == DATA[:16]
            assert loaded.verify(path).differences == ()

    operation()  # the first use of a device sets it
    assert fail_until_passes(host, function, operation) >= 1


@pytest.mark.parametrize("function", FUNCTIONS)
def test_loading_beside_a_model_that_shares(host: HostControls, tmp_path: Path, function: str) -> None:
    """A load that fails takes nothing from the model that is there."""
    shared, other = model(tmp_path / "one", combined=False), model(tmp_path / "two", combined=True)
    with Session(host_runtime()) as session, load_model(shared, session=session) as first:

        def operation() -> None:
            with load_model(shared, session=session) as again, load_model(other, session=session) as second:
                assert again.tensor("a").dev_addr == first.tensor("a").dev_addr
                assert second.read("b").tobytes() == DATA[64:96]

        assert fail_until_passes(host, function, operation) >= 1
        assert first.read("a").tobytes() == DATA[:32]
        assert first.verify(shared).differences == ()
        session.var_manager.check()


def test_a_bundle(host: HostControls) -> None:
    from tests.helpers.lasting_models import lasting_model

    models = [
        lasting_model([build.const("c", 512, 64), build.variable("v", (4,), BASE)], weights=build.WEIGHTS, name=name)
        for name in ("one", "two")
    ]
    data = build.bundle(models)

    def operation() -> None:
        with Session(host_runtime()) as session, load_model(data, kind="bundle", session=session) as loaded:
            assert len(loaded.rows) == 4

    operation()
    for function in (FUNCTIONS[0], FUNCTIONS[2]):
        assert fail_until_passes(host, function, operation) >= 1


def test_a_file_that_becomes_shorter_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(tmp_path, combined=False)
    from gevar.session import stream_upload as module

    upload = module.upload

    def cut_and_upload(*args: object, **options: object) -> object:
        (tmp_path / "weight" / "b.bin").write_bytes(b"")
        return upload(*args, **options)

    monkeypatch.setattr(module, "upload", cut_and_upload)
    with Session(host_runtime()) as session:
        with pytest.raises(LoadError, match=r"b\.bin.*changed since it was looked at"):
            load_model(path, session=session)
        assert session.external_weights.device_bytes == 0
        monkeypatch.undo()
        (tmp_path / "weight" / "b.bin").write_bytes(DATA)
        with load_model(path, session=session) as loaded:  # the constant is brought by the second load
            assert loaded.read("k").tobytes() == DATA[:8]
