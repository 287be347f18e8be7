"""What the host runtime shows on request: a line for every call, the makers of live objects, unset memory."""

import json
import os
import threading
from pathlib import Path

import pytest

from acl_shim.codes import MemMallocPolicy
from acl_shim.errors import AclError
from acl_shim.host import HostControls
from tests.helpers.child import run_python
from tests.helpers.runtime import host_runtime

LEAKING = """
from acl_shim import open_runtime
from acl_shim.table import new_cell
runtime = open_runtime("host")
api = runtime.api
assert api.aclrtSetDevice(0) == 0
cell = new_cell("uintptr_t *")
assert api.aclrtMalloc(cell, 5000, 0) == 0
"""


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestTrace:
    def test_a_line_per_call_with_arguments_code_and_out_values(self, host: HostControls, tmp_path: Path) -> None:
        device = host_runtime().device()
        device.mem_info()
        trace = tmp_path / "calls.jsonl"
        host.adjust(trace=str(trace))
        with device.malloc(5000, MemMallocPolicy.NORMAL_ONLY) as block:
            addr = block.addr
            block.copy_from(b"12345678")
        host.adjust(trace="off")
        device.mem_info()
        calls = {str(line["function"]): line for line in lines(trace)}
        assert "aclrtGetMemInfo" not in calls
        made = calls["aclrtMalloc"]
        assert isinstance(made["arguments"], dict)
        assert (made["arguments"]["size"], made["arguments"]["policy"]) == (5000, 2)
        assert (made["code"], made["out"]) == (0, {"devPtr": hex(addr)})
        assert made["thread"] == threading.get_native_id()
        copied = calls["aclrtMemcpy"]["arguments"]
        assert isinstance(copied, dict)
        assert (copied["dst"], copied["count"]) == (hex(addr), 8)
        assert calls["aclrtFree"]["arguments"] == {"devPtr": hex(addr)}

    def test_a_refused_call_has_no_out_values(self, host: HostControls, tmp_path: Path) -> None:
        trace = tmp_path / "calls.jsonl"
        host.adjust(trace=str(trace))
        with pytest.raises(AclError):
            host_runtime().device().malloc(1 << 50)
        refused = [line for line in lines(trace) if line["function"] == "aclrtMalloc"][-1]
        assert refused["code"] == 207001
        assert "out" not in refused

    def test_times_are_those_of_the_monotonic_clock_and_in_order(self, host: HostControls, tmp_path: Path) -> None:
        trace = tmp_path / "calls.jsonl"
        host.adjust(trace=str(trace))
        for _ in range(20):
            host_runtime().device_count()
        starts = [line["ns"] for line in lines(trace)]
        assert len(starts) == 20
        assert starts == sorted(starts)  # type: ignore[type-var]

    def test_a_delay_shows_in_the_time_a_call_took(self, host: HostControls, tmp_path: Path) -> None:
        trace = tmp_path / "calls.jsonl"
        host.adjust(trace=str(trace))
        host.delay("aclrtGetDeviceCount", 0.01)
        host_runtime().device_count()
        took = lines(trace)[0]["took_ns"]
        assert isinstance(took, int)
        assert took >= 10_000_000

    def test_a_descriptor_of_the_caller(self, host: HostControls) -> None:
        read_end, write_end = os.pipe()
        host.adjust(trace=f"fd:{write_end}")
        host_runtime().device_count()
        host.adjust(trace="off")
        os.close(write_end)
        with os.fdopen(read_end) as reader:
            assert json.loads(reader.read())["function"] == "aclrtGetDeviceCount"

    def test_a_place_that_cannot_be_opened_is_refused(self, host: HostControls) -> None:
        with pytest.raises(AclError, match="/nowhere/at/all cannot be opened"):
            host.adjust(trace="/nowhere/at/all")


class TestMakers:
    def test_the_report_names_the_calls_that_made_an_object(self, host: HostControls) -> None:
        host.adjust(stacks=True)
        with host_runtime().device().malloc(64):
            report = host.live_report().splitlines()
        block = next(number for number, line in enumerate(report) if line.startswith("block "))
        assert report[block + 1] == "    aclrtMalloc"
        assert any("_acl" in line for line in report[block + 2 :] if line.startswith("    "))

    def test_without_the_option_there_are_objects_only(self, host: HostControls) -> None:
        with host_runtime().device().malloc(64):
            assert not [line for line in host.live_report().splitlines() if line.startswith("    ")]


class TestPoison:
    def test_new_memory_holds_the_byte(self, host: HostControls) -> None:
        host.adjust(poison=0xA5)
        device = host_runtime().device()
        with device.malloc(100) as block, device.malloc_host(100) as pinned:
            assert block.read() == b"\xa5" * 100
            assert bytes(pinned.view) == b"\xa5" * 100

    def test_a_value_that_is_no_byte_is_refused(self, host: HostControls) -> None:
        with pytest.raises(AclError, match="a byte from 0 to 255"):
            host.adjust(poison=256)


class TestLeaks:
    @pytest.mark.parametrize(("leaks", "code"), [("report", 0), ("fail", 99)])
    def test_a_process_that_leaves_a_block_says_so(self, leaks: str, code: int) -> None:
        ended = run_python(LEAKING, HOSTACL_LEAKS=leaks)
        assert ended.returncode == code
        assert "alive at exit" in ended.stderr
        assert "5000 bytes asked" in ended.stderr

    def test_one_that_frees_it_says_nothing(self) -> None:
        ended = run_python(f"{LEAKING}\nassert api.aclrtFree(cell[0]) == 0", HOSTACL_LEAKS="fail")
        assert (ended.returncode, ended.stderr) == (0, "")
