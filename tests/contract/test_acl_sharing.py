"""Memory that processes and devices share: keys, imports, peer access, registered host memory."""

import gc
import mmap
from collections.abc import Iterator

import numpy as np
import pytest

from acl_shim import Device, DeviceBuffer
from acl_shim.codes import MemcpyKind, MemLocationType, MemMallocPolicy
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls
from acl_shim.memory_codes import HostRegisterFlag
from tests.helpers.child import talk_to_python
from tests.helpers.runtime import BACKENDS, host_runtime, live_now

MIB = 1 << 20
PAGE = 2 * MIB

IMPORTER = """
    import sys
    from acl_shim import open_runtime
    from acl_shim.errors import AclError
    device = open_runtime({backend!r}).device({device_id})

    def answer(text):
        print(text, flush=True)

    def line():
        return sys.stdin.readline().strip()

    assert line() == "pid?"
    answer(device.bare_tgid())
"""
IMPORT_BLOCK = """
    def use(key, size):
        with device.import_block(key, int(size)) as block:
            content = block.read(8)
            block.copy_from(b"from the other side", offset_bytes=100)
            return content.decode()

    try:
        answer(use(*line().split()))
    except AclError as error:
        answer(error.code)
    line()
    answer("done")
"""
IMPORT_HANDLE = """
    def use(key, size):
        with device.import_handle(int(key), int(size)) as handle, device.reserve(int(size)) as reservation:
            with reservation.map(handle) as mapping:
                content = mapping.read(8)
                mapping.copy_from(b"from the other side", offset_bytes=100)
                return content.decode()

    try:
        answer(use(*line().split()))
    except AclError as error:
        answer(error.code)
    line()
    answer("done")
"""


def importer(code: str, device_id: int = 0) -> str:
    return IMPORTER.format(backend=BACKENDS[0], device_id=device_id) + code


@pytest.fixture
def block(device: Device) -> Iterator[DeviceBuffer]:
    with device.malloc(PAGE, MemMallocPolicy.HUGE_ONLY) as made:
        device.memset(made.addr, PAGE, 0, PAGE)
        made.copy_from(b"exported")
        yield made


class TestBlocks:
    @pytest.mark.parametrize("check_pid", [True, False])
    def test_another_process_reads_and_writes(self, device: Device, block: DeviceBuffer, check_pid: bool) -> None:
        with talk_to_python(importer(IMPORT_BLOCK)) as talk, block.export_key(check_pid=check_pid) as export:
            pid = int(talk("pid?"))
            if check_pid:
                export.allow_import([pid])
            assert talk(f"{export.key} {block.size_bytes}") == "exported"
            assert block.read(19, offset_bytes=100) == b"from the other side"
            assert talk("end") == "done"

    def test_a_process_that_is_not_named_is_refused(self, device: Device, block: DeviceBuffer) -> None:
        with talk_to_python(importer(IMPORT_BLOCK)) as talk, block.export_key() as export:
            pid = int(talk("pid?"))
            export.allow_import([pid + 1])
            assert int(talk(f"{export.key} {block.size_bytes}")) != 0
            assert talk("end") == "done"
        assert block.read(19, offset_bytes=100) == bytes(19)

    def test_the_same_key_as_long_as_it_is_open(self, block: DeviceBuffer) -> None:
        with block.export_key(check_pid=False) as export:
            assert block.export_key() is export
            assert export.buffer is block
        assert export.closed
        with block.export_key(check_pid=False) as again:
            assert again is not export

    def test_a_key_keeps_its_block(self, device: Device, host: HostControls) -> None:
        export = host_runtime().device().malloc(PAGE, MemMallocPolicy.HUGE_ONLY).export_key(check_pid=False)
        gc.collect()
        assert host.live().blocks == 1
        export.close()
        del export
        assert live_now(host).blocks == 0

    def test_a_block_with_an_open_key_is_not_closed(self, device: Device, block: DeviceBuffer) -> None:
        with block.export_key(check_pid=False) as export, pytest.raises(StateError, match=f"exported as {export.key}"):
            block.close()
        assert block.read(8) == b"exported"

    def test_a_block_in_a_cycle_with_its_key_goes_as_a_whole(self, host: HostControls) -> None:
        for reverse in (False, True):
            block = host_runtime().device().malloc(PAGE, MemMallocPolicy.HUGE_ONLY)
            ring: list[object] = [block, block.export_key(check_pid=False)]
            if reverse:
                ring.reverse()
            ring.append(ring)
            del block, ring
            live = live_now(host)
            assert (live.blocks, live.exports) == (0, 0)

    def test_a_closed_buffer_has_no_key(self, device: Device) -> None:
        made = device.malloc(64)
        made.close()
        with pytest.raises(StateError, match="DeviceBuffer"):
            made.export_key()

    def test_an_unknown_key_is_refused(self, device: Device) -> None:
        with pytest.raises(AclError) as caught:
            device.import_block("nobody's key", 64)
        assert caught.value.call == "aclrtIpcMemImportByKey"
        assert caught.value.arguments["key"] == "nobody's key"
        with pytest.raises(ValueError, match="size_bytes is 0"):
            device.import_block("nobody's key", 0)


class TestPhysicalMemory:
    @pytest.mark.parametrize("check_pid", [True, False])
    def test_another_process_maps_it(self, device: Device, check_pid: bool) -> None:
        with (
            talk_to_python(importer(IMPORT_HANDLE)) as talk,
            device.malloc_physical(PAGE) as handle,
            device.reserve(PAGE) as reservation,
            reservation.map(handle) as mapping,
        ):
            mapping.copy_from(b"exported")
            key = handle.export_key(check_pid=check_pid)
            pid = int(talk("pid?"))
            if check_pid:
                handle.allow_import(key, [pid])
            assert talk(f"{key} {PAGE}") == "exported"
            assert mapping.read(19, offset_bytes=100) == b"from the other side"
            assert talk("end") == "done"

    def test_a_process_that_is_not_named_is_refused(self, device: Device) -> None:
        with talk_to_python(importer(IMPORT_HANDLE)) as talk, device.malloc_physical(PAGE) as handle:
            key = handle.export_key()
            pid = int(talk("pid?"))
            handle.allow_import(key, [pid + 1])
            assert int(talk(f"{key} {PAGE}")) != 0
            assert talk("end") == "done"

    def test_an_unknown_key_is_refused(self, device: Device) -> None:
        with pytest.raises(AclError) as caught:
            device.import_handle(12345, PAGE)
        assert caught.value.call == "aclrtMemImportFromShareableHandle"
        with pytest.raises(ValueError, match="page_bytes is 4096"):
            device.import_handle(12345, PAGE, 4096)


class TestNotifiesAndEvents:
    def test_a_notify_of_another_process(self, device: Device) -> None:
        if not device.runtime.supports("aclrtNotifyImportByKey"):
            pytest.skip("the library shares no notifies")
        code = """
    notify = device.import_notify(line())
    notify.record(device.default_stream)
    device.synchronize()
    notify.close()
    answer("recorded")
"""
        with (
            talk_to_python(importer(code)) as talk,
            device.create_notify() as notify,
            device.create_stream() as stream,
        ):
            talk("pid?")
            key = notify.export_key(check_pid=False)
            notify.wait(stream)
            assert not stream.query()
            assert talk(key) == "recorded"
            stream.synchronize(10)

    def test_an_event_of_another_process(self, device: Device) -> None:
        if not device.runtime.supports("aclrtIpcOpenEventHandle"):
            pytest.skip("the library shares no events")
        code = """
    event = device.import_event(bytes.fromhex(line()))
    event.synchronize(10)
    event.close()
    answer("reached")
"""
        with talk_to_python(importer(code)) as talk, device.create_event(0x40, extended=True) as event:
            talk("pid?")
            event.record(device.default_stream)
            assert talk(event.export_key().hex()) == "reached"


class TestPeers:
    @pytest.fixture
    def peer(self, device: Device) -> Device:
        if device.runtime.device_count() < 2:
            pytest.skip("needs two devices")
        return device.runtime.device(1)

    def test_access_is_enabled_and_disabled(self, device: Device, peer: Device) -> None:
        assert device.can_access_peer(peer.id)
        device.enable_peer_access(peer.id)
        peer.enable_peer_access(device.id)
        with device.malloc(64) as here, peer.malloc(64) as there:
            here.copy_from(b"h" * 64)
            kind = MemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE
            device.memcpy(there.addr, 64, here.addr, 64, kind)
            assert there.read() == b"h" * 64
        device.disable_peer_access(peer.id)
        peer.disable_peer_access(device.id)

    def test_a_device_is_no_peer_of_its_own(self, device: Device) -> None:
        for call in (device.can_access_peer, device.enable_peer_access, device.disable_peer_access):
            with pytest.raises(AclError) as caught:
                call(device.id)
            assert caught.value.arguments["peer_id"] == device.id

    def test_a_mapping_for_two_devices(self, device: Device, peer: Device) -> None:
        device.enable_peer_access(peer.id)
        with (
            device.malloc_physical(PAGE, p2p=True) as handle,
            device.reserve(PAGE) as made,
            made.map(handle) as mapping,
        ):
            mapping.set_access([device.id, peer.id])
            assert mapping.access(peer.id).name == "ACL_RT_MEM_ACCESS_FLAGS_READWRITE"
        device.disable_peer_access(peer.id)


class TestRegisteredMemory:
    @pytest.fixture
    def memory(self) -> Iterator[mmap.mmap]:
        made = mmap.mmap(-1, 4 * 4096)
        yield made
        gc.collect()  # the traceback of an error may hold the memory
        made.close()

    def test_the_device_copies_directly(self, device: Device, memory: mmap.mmap) -> None:
        with device.host_register(memory) as registration, device.malloc(4 * 4096) as block:
            assert registration.size_bytes == 4 * 4096
            found = device.pointer_attributes(registration.addr)
            assert found.location_type is MemLocationType.ACL_MEM_LOCATION_TYPE_HOST
            memory[:5] = b"bytes"
            block.copy_from_async(memory, device.default_stream)
            device.synchronize()
            assert block.read(5) == b"bytes"
        assert registration.closed
        found = device.pointer_attributes(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])
        assert found.location_type is MemLocationType.ACL_MEM_LOCATION_TYPE_UNREGISTERED

    def test_it_keeps_the_memory(self, device: Device, memory: mmap.mmap) -> None:
        with device.host_register(memory), pytest.raises(BufferError):
            memory.close()
        gc.collect()

    def test_a_device_address(self, device: Device, memory: mmap.mmap) -> None:
        flags = HostRegisterFlag.ACL_HOST_REG_PINNED | HostRegisterFlag.ACL_HOST_REG_MAPPED
        with device.host_register(memory, flags) as registration:
            addr = registration.device_addr()
            memory[:4] = b"abcd"
            target = bytearray(4)
            device.memcpy_out(target, addr)
            assert target == b"abcd"

    def test_twice_is_refused(self, device: Device, memory: mmap.mmap) -> None:
        with device.host_register(memory), pytest.raises(AclError, match=r"aclrtHostRegisterV2.* returned 507910"):
            device.host_register(memory)

    def test_memory_that_starts_inside_a_page_is_refused(self, device: Device, memory: mmap.mmap) -> None:
        with pytest.raises(AclError, match="returned 107000"):
            device.host_register(memoryview(memory)[64 : 64 + 4096])

    def test_what_cannot_be_written_is_refused(self, device: Device) -> None:
        with pytest.raises(ValueError, match="read-only"):
            device.host_register(bytes(4096))
        with pytest.raises(TypeError, match="has no buffer"):
            device.host_register([1])  # type: ignore[arg-type]


def test_what_is_shared_is_counted(host: HostControls) -> None:
    device = host_runtime().device()
    with device.malloc(PAGE, MemMallocPolicy.HUGE_ONLY) as block, mmap.mmap(-1, 4096) as memory:
        with block.export_key(check_pid=False), device.host_register(memory):
            live = host.live()
            assert (live.exports, live.registered, live.registered_bytes) == (1, 1, 4096)
        gc.collect()
        live = host.live()
        assert (live.exports, live.registered) == (0, 0)
