"""The recorded calls of the runtime, made again on the card."""

import json
from pathlib import Path

import pytest

from acl_shim import Runtime
from acl_shim.loader import VARIABLE
from tests.golden import acl_calls
from tests.golden.facts import Report, place_text
from tests.helpers.shared import shared_path

SHOWN = 40


def test_recorded_calls(card: Runtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = json.loads(shared_path("golden/acl_calls.json").read_text(encoding="utf-8"))
    monkeypatch.setenv(VARIABLE, str(card.path))
    report = Report(document)
    acl_calls.check(document, tmp_path, report)
    shown = [f"{place_text(place)}: {text}" for place, text in report.differences[:SHOWN]]
    print("\n".join(shown))
    assert not report.differences, f"{len(report.differences)} differences between this card and the recording"
