"""Any order of allocations, copies, fills and closes gives what a plain dictionary of bytes gives."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from acl_shim import Device, DeviceBuffer
from acl_shim.codes import MemMallocPolicy
from tests.helpers.runtime import controls, host_runtime

SIZES = st.integers(1, 9000)
POLICIES = st.sampled_from([MemMallocPolicy.HUGE_FIRST, MemMallocPolicy.HUGE_ONLY, MemMallocPolicy.NORMAL_ONLY])


class Buffers(RuleBasedStateMachine):
    """Device blocks of two devices against bytearrays."""

    blocks = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.devices: list[Device] = [host_runtime().device(number) for number in range(2)]
        self.open: list[DeviceBuffer] = []
        self.contents: dict[int, bytearray] = {}  # id of the block -> what it must hold

    @rule(target=blocks, number=st.integers(0, 1), size_bytes=SIZES, policy=POLICIES, fill=st.integers(0, 255))
    def malloc(self, number: int, size_bytes: int, policy: int, fill: int) -> DeviceBuffer:
        block = self.devices[number].malloc(size_bytes, policy)
        block.device.memset(block.addr, size_bytes, fill, size_bytes)
        self.open.append(block)
        self.contents[id(block)] = bytearray([fill]) * size_bytes
        return block

    @rule(block=blocks, data=st.data())
    def copy_from(self, block: DeviceBuffer, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, block.size_bytes))
        content = data.draw(st.binary(max_size=block.size_bytes - offset))
        block.copy_from(content, offset_bytes=offset)
        self.contents[id(block)][offset : offset + len(content)] = content

    @rule(block=blocks, data=st.data())
    def copy_to(self, block: DeviceBuffer, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, block.size_bytes))
        target = bytearray(data.draw(st.integers(0, block.size_bytes - offset)))
        block.copy_to(target, offset_bytes=offset)
        assert target == self.contents[id(block)][offset : offset + len(target)]

    @rule(first=blocks, second=blocks)
    def copy_between(self, first: DeviceBuffer, second: DeviceBuffer) -> None:
        if first is second or first.device is not second.device:
            return
        count = min(first.size_bytes, second.size_bytes)
        second.device.memcpy(second.addr, second.size_bytes, first.addr, count)
        self.contents[id(second)][:count] = self.contents[id(first)][:count]

    @rule(block=blocks)
    def read(self, block: DeviceBuffer) -> None:
        assert block.read() == self.contents[id(block)]

    @rule(block=consumes(blocks))
    def close(self, block: DeviceBuffer) -> None:
        assert block.read() == self.contents.pop(id(block))
        self.open.remove(block)
        block.close()

    @invariant()
    def as_many_blocks_as_the_model_has(self) -> None:
        live = controls().live()
        assert live.blocks == len(self.contents)
        assert (live.blocks == 0) == (live.bytes == 0)

    def teardown(self) -> None:
        for block in self.open:
            block.close()
        for device in self.devices:
            device.reset()


TestBuffers = Buffers.TestCase
TestBuffers.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
