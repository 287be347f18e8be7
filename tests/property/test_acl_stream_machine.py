"""Any mix of asynchronous tasks on streams, ordered by events, ends as the same tasks in a plain list do."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.runtime import controls, host_runtime

SIZE = 256
STREAMS = st.integers(0, 2)
TASKS = st.one_of(
    st.tuples(st.just("set"), STREAMS, st.integers(0, SIZE - 1), st.integers(0, 255)),
    st.tuples(st.just("in"), STREAMS, st.integers(0, SIZE - 1), st.integers(0, 255)),
    st.tuples(st.just("copy"), STREAMS, st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)),
    st.tuples(st.just("wait"), STREAMS, STREAMS, st.just(0)),
)


def expected(tasks: list[tuple[str, int, int, int]]) -> list[bytes]:
    """Return what each stream's block holds; a stream writes its own block only, and reads any it waited for."""
    blocks = [bytearray(SIZE) for _ in range(3)]
    for kind, stream, first, second in tasks:
        if kind in ("set", "in"):
            blocks[stream][first] = second
        elif kind == "copy":
            blocks[stream][first] = blocks[stream][second]
        else:
            blocks[stream][:64] = blocks[first][:64]
    return [bytes(block) for block in blocks]


@settings(max_examples=60, deadline=None)
@given(tasks=st.lists(TASKS, max_size=60), held=st.booleans())
def test_streams_end_as_a_list_does(tasks: list[tuple[str, int, int, int]], held: bool) -> None:
    device, host = host_runtime().device(), controls()
    streams = [device.create_stream() for _ in range(3)]
    blocks = [device.malloc(SIZE) for _ in range(3)]
    events = []
    with device.malloc_host(256) as values:
        values.view[:] = bytes(range(256))
        for block in blocks:
            device.memset(block.addr, SIZE, 0, SIZE)
        if held:
            host.hold()
        for kind, stream, first, second in tasks:
            addr = blocks[stream].addr
            if kind == "set":
                streams[stream].memset_async(addr + first, 1, second, 1)
            elif kind == "in":
                blocks[stream].copy_from_async(values.view[second : second + 1], streams[stream], offset_bytes=first)
            elif kind == "copy" and first != second:
                streams[stream].memcpy_async(addr + first, 1, addr + second, 1)
            elif kind == "wait" and stream != first:
                # the copy runs between what the other stream did before and what it does afterwards
                ready, done = device.create_event(), device.create_event()
                events += [ready, done]
                streams[first].record(ready)
                streams[stream].wait_event(ready)
                streams[stream].memcpy_async(addr, 64, blocks[first].addr, 64)
                streams[stream].record(done)
                streams[first].wait_event(done)
        host.release()
        for one in streams:
            one.synchronize(20)
        found = [block.read() for block in blocks]
    for owner in (*events, *streams, *blocks):
        owner.close()
    device.reset()
    assert found == expected([task for task in tasks if task[0] != "wait" or task[1] != task[2]])
