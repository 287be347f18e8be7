"""Loads of models and of files of tensors that are cancelled while their weights are moved."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from acl_shim import Device
from gevar import LoadedModel, LoadedWeights, Session, load_model, load_weights
from gevar.errors import StateError
from gevar.weights import PreadReader
from tests.helpers.runtime import host_runtime
from tests.helpers.weight_files import weight_file


@pytest.mark.parametrize("kind", ["safetensors", "npz", "om1", "om2"])
@pytest.mark.parametrize("when", ["before", "while it reads"])
def test_a_cancelled_load_leaves_nothing(device: Device, tmp_path: Path, kind: str, when: str) -> None:
    path, cancel = weight_file(tmp_path / "one", kind), threading.Event()
    if when == "before":
        cancel.set()

    class Cancelling(PreadReader):
        def __init__(self, path: Path, past_cache: bool = False) -> None:
            super().__init__(path, past_cache)
            cancel.set()

    def load(cancel: threading.Event, on_progress: Callable[[int, int], None] | None) -> LoadedModel | LoadedWeights:
        call = load_model if path.suffix == ".om" else load_weights
        return call(path, session=session, cancel=cancel, open_file=Cancelling, on_progress=on_progress)

    with Session(host_runtime()) as session:
        free_bytes = device.mem_info().free_bytes
        with pytest.raises(StateError, match=r"cancelled after \d+ B of \d+ B"):
            load(cancel, (lambda *_: cancel.set()) if kind == "npz" else None)  # whose arrays are unpacked
        assert device.mem_info().free_bytes == free_bytes
        with load(threading.Event(), None) as loaded:
            assert loaded.verify(path).differences == ()
