"""Real weights for tests: what the package silero-vad ships, as files. The package itself is never imported."""

import importlib.util
from pathlib import Path

import pytest


def real_weights(name: str) -> Path:
    """Return the path of a file of weights; skip the calling test, with the reason, where the package is not there."""
    found = importlib.util.find_spec("silero_vad")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = Path(folder) / "data" / name
        if path.exists():
            return path
    pytest.skip(f"{name} is not here; pip install --no-deps silero-vad brings it")
