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
        assert row["rounds"] == 2
        assert float(str(row["min"])) <= float(str(row["median"])) <= float(str(row["max"]))
        assert isinstance(row["reference"], dict)
        assert float(row["reference"]["median"]) > 0
    return rows


POLICIES = ("huge first", "huge only", "normal only", "1 GiB only")
MEMORIES = ("plain", "growing, 2 MiB pages", "growing, 1 GiB pages")


def test_alloc_measures_each_policy_page_class_and_memory_by_size() -> None:
    names = [
        str(row["name"]) for row in _rows("alloc", "--size", "4K", "--size", "3M", "--blocks", "3", "--random", "20")
    ]
    sizes = ("4.00 KiB (4096 B)", "3.00 MiB (3145728 B)")
    expected = [f"policy {policy}, {size}" for policy in POLICIES for size in sizes if policy != "1 GiB only"]
    expected += [f"growth by {pages} pages, 3 of {size}" for pages in ("2 MiB", "1 GiB") for size in sizes]
    for memory in MEMORIES:
        expected += [*(f"{memory}, {size}" for size in sizes), f"{memory}, 20 random requests"]
    assert [name for name in names if not name.startswith("policy 1 GiB")] == expected


def test_alloc_leaves_out_and_names_what_there_is_no_memory_for() -> None:
    done = gevar("bench", "alloc", "--size", "4K", "--blocks", "1", "--rounds", "1", HOSTACL_PAGES_1G="0")
    assert done.returncode == 0, done.stderr
    left_out = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert left_out == [
        "left out: policy 1 GiB only, 4.00 KiB (4096 B): aclrtMalloc returned 207001",
        "left out: growth by 1 GiB pages, 1 of 4.00 KiB (4096 B): aclrtMallocPhysical returned 207001",
        "left out: growing, 1 GiB pages, 4.00 KiB (4096 B): aclrtMallocPhysical returned 207001",
        "left out: growing, 1 GiB pages, 1000 random requests: aclrtMallocPhysical returned 207001",
    ]
    assert "1 GiB" not in done.stdout


def test_alloc_repeats_a_log(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with DeviceMemoryManager(open_runtime("host")) as manager, log.open("w", encoding="utf-8") as file:
        plain = LoggingResourceAdaptor(manager.resource(MemType.RT_MEMORY_HBM, DeviceId(0)), file)
        kept = plain.allocate(4096, "kept")
        plain.free(plain.allocate(100, "short"))
        plain.free(kept)
    words = ("alloc", "--size", "1K", "--blocks", "1", "--random", "0", "--replay", log)
    names = [row["name"] for row in _rows(*words)]
    assert [name for name in names if str(name).endswith("requests.jsonl")] == [
        "plain, requests.jsonl",
        "growing, 2 MiB pages, requests.jsonl",
        "growing, 1 GiB pages, requests.jsonl",
    ]


def test_copy_measures_each_direction_by_size() -> None:
    rows = _rows("copy", "--size", "64K", "--size", "100")
    assert len(rows) == 10
    assert {row["unit"] for row in rows} == {"GB/s"}
    assert [str(row["name"]) for row in rows][4::5] == [
        "device to device, 64.00 KiB (65536 B)",
        "device to device, 100 B",
    ]


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
