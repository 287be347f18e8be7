"""A share of the campaign that reads files of tensors, whole and damaged, beside the packages they are of."""

import random

import pytest

pytest.importorskip("onnx")
pytest.importorskip("safetensors")

from tests.helpers import tensor_files_campaign as campaign
from tests.helpers.tensor_files import MAKERS


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    assert campaign.run(campaign.FULL_EXAMPLES // 50, seed).examples == campaign.FULL_EXAMPLES // 50


def test_every_outcome_is_seen() -> None:
    seen = campaign.run(800, seed=4).outcomes
    assert seen.keys() == MAKERS.keys()
    assert all({"read", "refused", "whole"} <= found.keys() for found in seen.values()), seen
    assert {kind for kind, found in seen.items() if found["of another type"]} == {"npy", "npz", "onnx"}
