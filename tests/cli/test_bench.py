"""`gevar bench`, with few and small rounds; no test looks at a time."""

import json
from pathlib import Path

import pytest

from acl_shim import open_runtime
from gevar.memory import DeviceMemoryManager, LoggingResourceAdaptor
from gevar.types import DeviceId, MemType
from tests.cli.test_commands import gevar, refused


def _rows(*words: str | Path, **environment: str) -> list[dict[str, object]]:
    done = gevar("bench", *words, "--rounds", "2", "--json", **environment)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["backend"] == "host"
    rows: list[dict[str, object]] = facts["rows"]
    for row in rows:
        assert row["rounds"] in (1, 2)
        assert float(str(row["min"])) <= float(str(row["median"])) <= float(str(row["max"]))
        assert isinstance(row["reference"], dict)
        assert float(row["reference"]["median"]) > 0
    return rows


def test_alloc_measures_each_size_in_each_memory() -> None:
    names = [row["name"] for row in _rows("alloc", "--size", "4K", "--size", "3M", "--blocks", "3")]
    kinds = ["plain", "growing, 2 MiB pages", "growing, 1 GiB pages"]
    assert len(names) == 6
    assert [str(name).rpartition(", ")[0] for name in names] == [kind for kind in kinds for _ in range(2)]


def test_alloc_leaves_out_pages_that_there_are_not() -> None:
    names = [str(row["name"]) for row in _rows("alloc", "--size", "4K", "--blocks", "1", HOSTACL_PAGES_1G="0")]
    assert len(names) == 2
    assert not any("1 GiB" in name for name in names)


def test_alloc_repeats_a_log(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with DeviceMemoryManager(open_runtime("host")) as manager, log.open("w", encoding="utf-8") as file:
        plain = LoggingResourceAdaptor(manager.resource(MemType.RT_MEMORY_HBM, DeviceId(0)), file)
        kept = plain.allocate(4096, "kept")
        plain.free(plain.allocate(100, "short"))
        plain.free(kept)
    names = [row["name"] for row in _rows("alloc", "--size", "1K", "--blocks", "1", "--replay", log)]
    assert [name for name in names if str(name).endswith("requests.jsonl")] == [
        "plain, requests.jsonl",
        "growing, 2 MiB pages, requests.jsonl",
        "growing, 1 GiB pages, requests.jsonl",
    ]


def test_copy_measures_each_direction() -> None:
    rows = _rows("copy", "--size", "64K")
    assert len(rows) == 5
    assert {row["unit"] for row in rows} == {"GB/s"}
    assert str(rows[-1]["name"]).startswith("device to device")


def test_resolve_measures_one_and_many() -> None:
    assert [row["name"] for row in _rows("resolve", "--variables", "50")] == [
        "first question, with its memory",
        "get_var_memory_addr",
        "resolve_many",
    ]


def test_the_table_names_its_backend() -> None:
    done = gevar("bench", "copy", "--size", "4K", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "the host runtime" in done.stdout
    assert "numpy.copyto" in done.stdout


@pytest.mark.parametrize("size", ["0", "-1", "4T", "x", ""])
def test_a_wrong_size_is_named(size: str) -> None:
    done = gevar("bench", "copy", "--size", size)
    assert done.returncode == 2
    assert "no size" in done.stderr


def test_a_device_that_there_is_not() -> None:
    refused(gevar("bench", "copy", "--device", "9"), 3, "9")
