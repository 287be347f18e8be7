"""Where reference files live: a folder `shared` beside the repository, or `$GEVAR_SHARED`; absent in a user's clone."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("GEVAR_SHARED", REPOSITORY.parent / "shared"))


def shared_path(relative: str) -> Path:
    """Return the path of a reference file; skip the calling test, with the reason, where it does not exist."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"reference file {relative} is not here (no folder {SHARED.name} beside the repository)")
    return path


def shared_files(pattern: str) -> list[Path]:
    """Return the reference files that match a glob pattern, sorted; an empty list where there are none."""
    return sorted(SHARED.glob(pattern)) if SHARED.exists() else []
