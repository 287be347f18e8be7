"""Settings of an upload: argument before variable before default."""

import os
from pathlib import Path

import pytest

from gevar.weights import LoadSettings

NAMES = {
    "workers": "GEVAR_LOAD_WORKERS",
    "block_bytes": "GEVAR_LOAD_BLOCK",
    "buffers": "GEVAR_LOAD_BUFFERS",
    "past_cache": "GEVAR_LOAD_DIRECT",
}


def test_defaults() -> None:
    small = LoadSettings.choose(1 << 20, 1, is_card=False, environ={})
    assert (small.workers, small.block_bytes, small.buffers, small.past_cache) == (1, 256 << 10, 1, False)
    assert LoadSettings.choose(1 << 20, 1, is_card=True, environ={}).buffers == 3
    assert LoadSettings.choose((64 << 20) - 1, 1, is_card=True, environ={}).block_bytes == 256 << 10
    assert LoadSettings.choose(64 << 20, 1, is_card=True, environ={}).block_bytes == 2 << 20
    huge = LoadSettings.choose(1 << 60, 1, is_card=False, environ={})
    assert huge.past_cache
    assert 1 <= huge.workers <= 4


@pytest.mark.parametrize("setting", NAMES)
def test_argument_before_variable_before_default(setting: str) -> None:
    environ = {NAMES[setting]: "1"}
    assert getattr(LoadSettings.choose(1 << 30, 1, is_card=True, environ=environ), setting) == 1
    chosen = LoadSettings.choose(
        1 << 30, 1, is_card=True, workers=7, block_bytes=7, buffers=7, past_cache=False, environ=environ
    )
    assert getattr(chosen, setting) == (0 if setting == "past_cache" else 7)


@pytest.mark.parametrize("setting", ["workers", "block_bytes", "buffers"])
@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5"])
def test_wrong_variables_are_refused(setting: str, value: str) -> None:
    with pytest.raises(ValueError, match=NAMES[setting]):
        LoadSettings.choose(1, 1, is_card=False, environ={NAMES[setting]: value})


def test_direct_is_yes_or_no() -> None:
    with pytest.raises(ValueError, match="give 0 or 1"):
        LoadSettings.choose(1, 1, is_card=False, environ={"GEVAR_LOAD_DIRECT": "2"})


def test_files_that_fit_twice_into_memory_go_through_the_page_cache() -> None:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(lines["MemAvailable"].split()[0]) << 10
    assert not LoadSettings.choose(available // 8, 1, is_card=False, environ={}).past_cache
    assert LoadSettings.choose(available * 2, 1, is_card=False, environ={}).past_cache


def test_small_copies_have_one_reader() -> None:
    cores = min(len(os.sched_getaffinity(0)), 4)
    assert LoadSettings.choose(1 << 30, 1 << 15, is_card=False, environ={}).workers == cores
    assert LoadSettings.choose(1 << 30, (1 << 15) + 1, is_card=False, environ={}).workers == 1
    assert LoadSettings.choose(1 << 30, 1 << 20, is_card=False, workers=3, environ={}).workers == 3
