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
    assert getattr(LoadSettings.choose(1 << 20, 1, is_card=True, environ=environ), setting) == 1
    chosen = LoadSettings.choose(
        1 << 20, 1, is_card=True, workers=7, block_bytes=7, buffers=7, past_cache=False, environ=environ
    )
    assert getattr(chosen, setting) == (0 if setting == "past_cache" else 7)


@pytest.mark.parametrize("setting", ["workers", "block_bytes", "buffers"])
@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5", " ", "2MiB", "1073741825", str(2**63), str(2**70)])
def test_wrong_variables_are_refused(setting: str, value: str) -> None:
    with pytest.raises(ValueError, match=NAMES[setting]):
        LoadSettings.choose(1, 1, is_card=False, environ={NAMES[setting]: value})


@pytest.mark.parametrize(
    ("setting", "value"),
    [("workers", 0), ("workers", 1025), ("buffers", -1), ("block_bytes", 2**70), ("past_cache", 2), ("past_cache", -1)],
)
def test_wrong_arguments_are_named_as_they_were_given(setting: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{setting} is {value}: give [01] (to|or) "):
        LoadSettings.choose(1, 1, is_card=False, environ={NAMES[setting]: "1"}, **{setting: value})


@pytest.mark.parametrize("setting", NAMES)
@pytest.mark.parametrize("value", [1.0, "1", b"1"])
def test_arguments_are_integers(setting: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"^{setting} is .*: give an integer"):
        LoadSettings.choose(1, 1, is_card=False, environ={}, **{setting: value})  # type: ignore[arg-type]


def test_the_largest_settings() -> None:
    chosen = LoadSettings.choose(1, 1, is_card=False, workers=1024, block_bytes=1 << 30, buffers=1024, environ={})
    assert (chosen.workers, chosen.block_bytes, chosen.buffers) == (1024, 1 << 30, 1024)


@pytest.mark.parametrize(
    ("total_bytes", "block_bytes", "wanted"),
    [
        (1 << 20, 1, 1),
        ((1 << 20) + 1, 1, 2),
        (1 << 40, 4096, 1 << 20),
        (1 << 40, 3 << 20, 3 << 20),
        (1 << 43, None, 8 << 20),
    ],
)
def test_blocks_are_not_so_small_that_there_are_very_many(
    total_bytes: int, block_bytes: int | None, wanted: int
) -> None:
    environ = {} if block_bytes is None else {"GEVAR_LOAD_BLOCK": str(block_bytes)}
    for given in ({"environ": environ}, {"environ": {}, "block_bytes": block_bytes}):
        chosen = LoadSettings.choose(total_bytes, 1, is_card=False, **given)  # type: ignore[arg-type]
        assert chosen.block_bytes == wanted


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
