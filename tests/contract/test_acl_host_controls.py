"""Controls of the host runtime."""

import re
from pathlib import Path

import pytest

from acl_shim import open_runtime
from acl_shim.api_types import ContextHandle
from acl_shim.codes import MemAttr, MemMallocPolicy
from acl_shim.errors import AclError, OutOfMemoryError, StateError
from acl_shim.host import HostControls, host_controls
from acl_shim.host_live import DeviceLive, LiveObjects
from acl_shim.table import new_cell
from tests.helpers.fake_acl import fake_library
from tests.helpers.runtime import host_runtime
from tests.helpers.shared import REPOSITORY

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class TestWhoHasThem:
    def test_a_cards_library_has_none(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libascendcl.so")
        with pytest.raises(StateError, match=f"{library} has no host controls: open the host runtime"):
            host_controls(open_runtime(str(library)))

    def test_a_closed_runtime_has_none(self) -> None:
        runtime = host_runtime()
        runtime.close()
        with pytest.raises(StateError, match="has no host controls"):
            host_controls(runtime)


class TestConfigure:
    def test_devices_and_product(self, host: HostControls) -> None:
        host.configure(devices=5, soc_name="Ascend910_9391")
        runtime = host_runtime()
        assert runtime.device_count() == 5
        assert runtime.soc_name() == "Ascend910_9391"
        assert len(host.live().devices) == 5
        with pytest.raises(AclError, match="device_count=5"):
            runtime.device(5)

    def test_pools(self, host: HostControls) -> None:
        host.configure(pages_4k_bytes=8 * MIB, pages_2m=16, pages_1g=3)
        device = host_runtime().device()
        assert device.mem_info(MemAttr.ACL_HBM_MEM_NORMAL).total_bytes == 8 * MIB
        assert device.mem_info(MemAttr.ACL_HBM_MEM_HUGE).total_bytes == 32 * MIB
        assert device.mem_info(MemAttr.ACL_HBM_MEM_HUGE1G).total_bytes == 3 * GIB
        assert device.mem_info().total_bytes == 40 * MIB

    def test_first_address(self, host: HostControls) -> None:
        host.configure(first_address=(1 << 63) + (1 << 40))
        with host_runtime().device().malloc(64) as block:
            assert block.addr >= (1 << 63) + (1 << 40)
            block.copy_from(b"h" * 64)
            assert block.read() == b"h" * 64

    def test_profile(self, host: HostControls) -> None:
        assert host.info()["profile"] == "strict"
        host.configure(profile="card")
        assert host.info()["profile"] == "card"

    @pytest.mark.parametrize(
        "options", [{"devices": 0}, {"devices": 65}, {"profile": "lenient"}, {"soc_name": "Ascend1"}, {"pages_1g": -1}]
    )
    def test_a_wrong_value_is_refused_with_the_reason(self, host: HostControls, options: dict[str, object]) -> None:
        ((key, value),) = options.items()
        with pytest.raises(AclError) as caught:
            host.configure(**options)  # type: ignore[arg-type]
        assert caught.value.call == "hostacl_configure"
        assert caught.value.arguments == {"key": key, "value": value}
        assert caught.value.text

    def test_the_device_is_given_back_first(self, host: HostControls) -> None:
        host_runtime().device().mem_info()
        assert host.live().devices_set == 1
        host.configure(devices=1)
        assert host.live().devices_set == 0

    def test_it_is_refused_while_a_buffer_is_open(self, host: HostControls) -> None:
        with host_runtime().device().malloc(64), pytest.raises(StateError, match="in use by 1 DeviceBuffer"):
            host.configure(devices=1)

    def test_it_is_refused_while_other_code_holds_a_device(self, host: HostControls) -> None:
        api = host_runtime().api
        assert api.aclrtSetDevice(0) == 0
        with pytest.raises(AclError) as caught:
            host.configure(devices=1)
        assert caught.value.code == 148051
        assert api.aclrtResetDevice(0) == 0


class TestFailures:
    def test_the_nth_call_from_now_fails_once(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.malloc(64) as block:
            host.fail_nth("aclrtMemcpy", 3, 507052)
            block.copy_from(b"1")
            block.copy_from(b"2")
            with pytest.raises(AclError) as caught:
                block.copy_from(b"3")
            assert (caught.value.code, caught.value.call) == (507052, "aclrtMemcpy")
            block.copy_from(b"4")
            assert block.read(1) == b"4"

    def test_a_failed_allocation_looks_like_a_real_one(self, host: HostControls) -> None:
        device = host_runtime().device()
        host.fail_nth("aclrtMalloc", 1, 207001)
        with pytest.raises(OutOfMemoryError) as caught:
            device.malloc(64, MemMallocPolicy.NORMAL_ONLY)
        assert caught.value.page_kind == "4 KiB pages"
        assert caught.value.free_bytes == device.mem_info(MemAttr.ACL_HBM_MEM_NORMAL).free_bytes

    def test_figures_that_cannot_be_had_are_unknown(self, host: HostControls) -> None:
        host.fail_nth("aclrtMalloc", 1, 207001)
        host.fail_nth("aclrtGetMemInfo", 1, 507899)
        with pytest.raises(OutOfMemoryError, match="figures unknown") as caught:
            host_runtime().device().malloc(64)
        assert (caught.value.requested_bytes, caught.value.free_bytes, caught.value.total_bytes) == (64, None, None)

    def test_cleared_failures_do_not_happen(self, host: HostControls) -> None:
        for function in ("aclrtMalloc", "aclrtFree"):
            host.fail_nth(function, 1, 507899)
        host.clear_failures()
        host_runtime().device().malloc(64).close()

    @pytest.mark.parametrize("n", [0, -1])
    def test_calls_count_from_one(self, host: HostControls, n: int) -> None:
        with pytest.raises(ValueError, match=f"n is {n}: 1 is the next call"):
            host.fail_nth("aclrtMalloc", n, 1)

    def test_an_unknown_function_is_refused(self, host: HostControls) -> None:
        with pytest.raises(AclError, match="hostacl_fail"):
            host.fail_nth("aclrtNobodyHasThis", 1, 1)


class TestCounts:
    def test_calls_are_counted(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.malloc(64) as block:
            before = host.calls("aclrtMemcpy")
            for _ in range(4):
                block.read()
            assert host.calls("aclrtMemcpy") == before + 4
        assert host.calls("aclrtNobodyHasThis") == 0

    def test_the_device_is_set_once_for_all_threads_and_uses(self, host: HostControls) -> None:
        device = host_runtime().device()
        for _ in range(5):
            device.mem_info()
        assert host.calls("aclrtSetDevice") == 1
        assert host.live().devices[0].set_count == 1


class TestLive:
    def test_blocks_and_pages(self, host: HostControls) -> None:
        device = host_runtime().device(1)
        start = host.live()
        assert (start.blocks, start.bytes, start.host_blocks, start.host_bytes) == (0, 0, 0, 0)
        with (
            device.malloc(3 * MIB, MemMallocPolicy.HUGE_ONLY),
            device.malloc(5000, MemMallocPolicy.NORMAL_ONLY),
            device.malloc_host(100),
        ):
            live = host.live()
            assert (live.blocks, live.host_blocks, live.devices_set) == (2, 1, 1)
            assert live.bytes == 4 * MIB + 8 * KIB
            assert live.host_bytes == 4 * KIB
            assert (live.devices[1].pages_2m_used, live.devices[1].pages_4k_used) == (2, 2)
            assert live.devices[0].set_count == 0
            assert len(host.live_report().splitlines()) >= 3
        assert host.live().blocks == 0

    def test_every_count_of_the_library_is_there(self) -> None:
        header = (REPOSITORY / "native/include/hostacl.h").read_text()
        struct = header[header.index("/* What is alive in the process. */") : header.index("} hostacl_live_t;")]
        fields = set(re.findall(r"uint(?:64|32)_t (\w+);", struct)) - {"device_count"}
        assert len(fields) > 20
        assert {name for name in LiveObjects.__dataclass_fields__ if name != "devices"} == fields

    def test_data_buffers(self, host: HostControls) -> None:
        api = open_runtime("host").api
        buffer = api.aclCreateDataBuffer(4096, 8)
        assert host.live().data_buffers == 1
        assert not host.live().nothing
        assert api.aclDestroyDataBuffer(buffer) == 0
        assert host.live().nothing

    def test_pages_of_1_gib(self, host: HostControls) -> None:
        with host_runtime().device().malloc(GIB, MemMallocPolicy.HUGE1G_ONLY):
            assert host.live().devices[0].pages_1g_used == 1
        assert isinstance(host.live().devices[0], DeviceLive)
        assert host.live().devices[0].pages_1g_used == 0

    def test_an_explicit_context(self, host: HostControls) -> None:
        runtime = host_runtime()
        context = new_cell("uintptr_t *")
        runtime.check(runtime.api.aclrtCreateContext(context, 0), "aclrtCreateContext", {})
        assert host.live().contexts == 1
        runtime.check(runtime.api.aclrtDestroyContext(ContextHandle(context[0])), "aclrtDestroyContext", {})
        assert host.live().contexts == 0

    def test_info_says_what_it_is_set_to(self, host: HostControls) -> None:
        info = host.info()
        assert info["version"] == host_runtime().version
        assert info["devices"] == str(host_runtime().device_count())


class TestReset:
    def test_it_frees_everything_and_forgets_what_was_set(self, host: HostControls) -> None:
        device = host_runtime().device()
        block, pinned = device.malloc(1 << 20), device.malloc_host(4096)
        host.fail_nth("aclrtMalloc", 1, 507899)
        host.reset()
        live = host.live()
        assert (live.blocks, live.host_blocks, live.devices_set, live.contexts) == (0, 0, 0, 0)
        with device.malloc(64) as again:
            block.close()
            pinned.close()
            assert (block.closed, pinned.closed) == (True, True)
            again.copy_from(b"r" * 64)
            assert again.read() == b"r" * 64

    def test_options_are_those_of_the_environment(self, host: HostControls) -> None:
        before = host.info()["devices"]
        host.configure(devices=9)
        host.reset()
        assert host.info()["devices"] == before
