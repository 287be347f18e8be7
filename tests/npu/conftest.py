"""The card under test; every test of this folder is skipped, with the reason, where there is none."""

import os
from pathlib import Path

import pytest

from acl_shim import Runtime, open_runtime
from acl_shim.errors import BackendUnavailableError

MODEL_VARIABLE = "GEVAR_TEST_MODEL"
"""Environment variable with the path of a model that was compiled for this card."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.npu)


@pytest.fixture
def card() -> Runtime:
    """Return the runtime of the card."""
    try:
        return open_runtime("npu")
    except BackendUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def card_model(card: Runtime) -> Path:
    """Return a model that was compiled for the card."""
    named = os.environ.get(MODEL_VARIABLE, "")
    if not named:
        pytest.skip(
            f"no model for this {card.soc_name()}: compile any with atc --soc_version={card.soc_name()}, and set "
            f"{MODEL_VARIABLE} to the path of the .om file"
        )
    path = Path(named)
    assert path.is_file(), f"{MODEL_VARIABLE} is {named}, which is no file"
    return path
