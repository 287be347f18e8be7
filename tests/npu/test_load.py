"""Loading on the card: a model that only carries weights, and one that was compiled for it, which then runs."""

from pathlib import Path

import numpy as np

from acl_shim import Runtime
from acl_shim.device_model import load_model as load_device_model
from acl_shim.device_model import query_model_size
from gevar import Session, load_model
from tests.helpers.models import small_model


def free_bytes(card: Runtime) -> int:
    return card.device(0).mem_info().free_bytes


def test_the_card_says_what_it_is(card: Runtime) -> None:
    assert card.backend == "npu"
    assert card.soc_name().startswith("Ascend")
    assert card.device_count() >= 1
    assert free_bytes(card) > 0


def test_weights_and_variables_get_to_the_card_and_back(card: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "weights.om"
    values = small_model(path, kernel_bytes=8 << 20)
    with Session(card) as session, load_model(path, session=session) as loaded:
        assert loaded.acl_model is None
        for name, value in values.items():
            assert np.array_equal(loaded.read(name), value), name
        assert loaded.verify(path).differences == ()
        loaded.write("start", np.full((3, 5), 7, np.float32))
        assert loaded.read("start").tolist() == [[7.0] * 5] * 3


def test_variables_in_giant_pages_or_what_is_instead(card: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "weights.om"
    values = small_model(path)
    with (
        Session(card, options={"ge.variableUse1gHugePage": "1"}) as session,
        load_model(path, session=session) as loaded,
    ):
        assert np.array_equal(loaded.read("start"), values["start"])
        session.sleep()
        session.wake()
        assert np.array_equal(loaded.read("start"), values["start"])


def test_the_runtime_describes_a_model(card: Runtime, card_model: Path) -> None:
    size = query_model_size(card, card_model)
    assert size == query_model_size(card, card_model.read_bytes())
    with load_device_model(card.device(0), card_model) as model:
        desc = model.desc()
    assert desc.outputs
    assert all(tensor.name for tensor in (*desc.inputs, *desc.outputs))


def test_a_model_runs_on_the_weights_of_gevar(card: Runtime, card_model: Path) -> None:
    with Session(card) as session, load_model(card_model, session=session) as loaded:
        assert loaded.acl_model is not None
        desc = loaded.acl_model.desc
        random = np.random.default_rng(1)
        inputs = [random.integers(0, 2, tensor.size_bytes, np.uint8) for tensor in desc.inputs]
        first, second = loaded.execute(inputs), loaded.execute(inputs)
        assert [output.nbytes for output in first] == [tensor.size_bytes for tensor in desc.outputs]
        for one, other in zip(first, second, strict=True):
            assert one.tobytes() == other.tobytes()
        assert loaded.verify(card_model).differences == (), "running a model changes none of its weights"


def test_a_closed_model_gives_all_memory_back(card: Runtime, card_model: Path) -> None:
    with Session(card) as session:
        load_model(card_model, session=session).close()
        before = free_bytes(card)
        for _ in range(3):
            load_model(card_model, session=session).close()
        assert free_bytes(card) >= before - (32 << 20), "what the driver keeps for itself settles at the first load"
