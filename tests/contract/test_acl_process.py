"""Ends and forks of processes: each in an interpreter of its own, on the host runtime."""

import pytest

from tests.helpers.child import expect_output, run_python

OPEN = """
    import os, sys, gc
    from acl_shim import open_runtime
    from acl_shim.errors import StateError
    from acl_shim.host import host_controls
    runtime = open_runtime("host")
    device = runtime.device()
"""
FORK = (
    OPEN
    + """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # an interpreter from 3.12 on warns of a fork with threads
    block, pinned = device.malloc(4096), device.malloc_host(4096)
    block.copy_from(b"p" * 4096)
    pinned.view[:] = b"q" * 4096

    def refused(use):
        try:
            use()
        except StateError as error:
            return "start workers with multiprocessing.get_context(\\"spawn\\")" in str(error)
        return False

    def in_child(work):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if work() else 2
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
)


class TestEndOfTheInterpreter:
    @pytest.mark.parametrize(
        "code",
        [
            "block, pinned = device.malloc(4096), device.malloc_host(4096)",
            "block = device.malloc(4096); ring = [block]; ring.append(ring)",
            "view = device.malloc_host(4096).view",
            "import numpy; part = numpy.frombuffer(device.malloc_host(4096).view, 'u1')",
            "sys.modules['kept'] = device.malloc(4096)",
            "blocks = [device.malloc(64) for _ in range(100)]; blocks[50].close()",
            "import threading; block = device.malloc(64); threading.Thread(target=block.read).start()",
            "import atexit; block = device.malloc(64); atexit.register(block.read)",
            "import weakref; block = device.malloc(64); weakref.finalize(device, block.close)",
            "gc.disable(); ring = [device.malloc(64)]; ring += [ring]",
            "stream = device.create_stream(); event = device.create_event(); event.record(stream)",
            "block = device.malloc(64); block.copy_from_async(bytes(64), device.create_stream())",
            "block = device.malloc(64); block.copy_from_async(device.malloc_host(64).view, device.default_stream)",
            "memory = device.map_memory(5 << 20, piece_bytes=2 << 20); memory.copy_from(b'x')",
            "handle = device.malloc_physical(2 << 20); mapping = device.reserve(4 << 20).map(handle)",
            "context = device.create_context(); ring = [context.create_stream(), context]; ring += [ring]",
            "import numpy; part = numpy.from_dlpack(device.malloc_host(4096))",
            "capsule = device.malloc(64).__dlpack__(); sys.modules['kept_capsule'] = capsule",
            "import mmap; registration = device.host_register(mmap.mmap(-1, 4096))",
            "export = device.malloc(2 << 20, 1).export_key(check_pid=False)",
            "runtime.close()",
            "device.mem_info(); device.reset(); runtime.close(); runtime.close()",
        ],
    )
    def test_it_is_silent(self, code: str) -> None:
        expect_output(f"{OPEN}\n    {code}\n    print('end')", "end")

    def test_a_finaliser_after_the_runtime_is_gone_is_silent(self) -> None:
        code = """
    class Late:
        def __init__(self, *kept):
            self.kept = kept
        def __del__(self):
            for one in self.kept:
                one.close()
            print("late", [one.closed for one in self.kept])

    late = Late(device.malloc(64), device.malloc_host(64))
"""
        expect_output(OPEN + code, "late [True, True]")

    def test_devices_that_are_not_in_use_are_given_back(self) -> None:
        code = """
    import atexit
    atexit._clear()  # what is registered from here on runs as if before the package was imported
    from acl_shim import loader
    host = host_controls(runtime)
    device.mem_info()
    atexit.register(lambda: print(runtime.closed, host.live().devices_set))
    atexit.register(loader._end_at_exit)
    print(host.live().devices_set)
"""
        expect_output(OPEN + code, "1\nTrue 0")

    def test_an_exit_code_stays_as_it_is(self) -> None:
        done = run_python(OPEN + "    block = device.malloc(64)\n    raise SystemExit(7)")
        assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


class TestFork:
    def test_the_child_gets_a_clear_error_for_every_use(self) -> None:
        code = """
    uses = [
        device.mem_info, runtime.device_count, runtime.device, runtime.soc_name, block.read, runtime.start,
        lambda: device.malloc(64), lambda: device.malloc_host(64), lambda: block.copy_from(b"x"),
        lambda: runtime.api.aclrtFree(0), lambda: open_runtime("host"), lambda: open_runtime(),
    ]
    print(in_child(lambda: all([refused(use) for use in uses])))
    print(block.read() == b"p" * 4096, device.mem_info().free_bytes > 0)
"""
        expect_output(FORK + code, "0\nTrue True")

    def test_the_message_names_both_processes(self) -> None:
        code = """
    parent = os.getpid()

    def names_both():
        try:
            device.mem_info()
        except StateError as error:
            return f"opened by process {parent}" in str(error) and f"process {os.getpid()} is its fork" in str(error)

    print(in_child(names_both))
    block.close(); pinned.close()
"""
        expect_output(FORK + code, "0")

    def test_what_the_child_inherits_closes_without_a_call(self) -> None:
        code = """
    def close():
        block.close(); pinned.close()
        return block.closed and pinned.closed

    print(in_child(close))
    print(block.read() == b"p" * 4096, bytes(pinned.view) == b"q" * 4096)
    block.close(); pinned.close()
    live = host_controls(runtime).live()
    print(live.blocks, live.host_blocks)
"""
        expect_output(FORK + code, "0\nTrue True\n0 0")

    def test_every_kind_of_owner_closes_without_a_call(self) -> None:
        code = """
    import mmap
    stream, context = device.create_stream(), device.create_context()
    owners = [stream, context.create_stream(), device.create_event(), device.create_notify(), context]
    owners += [device.map_memory(2 << 20), device.malloc_physical(2 << 20), device.reserve(2 << 20)]
    owners += [device.host_register(mmap.mmap(-1, 4096))]
    block.copy_from_async(pinned.view, stream)

    def close():
        for owner in owners:
            owner.close()
        return all(owner.closed for owner in owners) and refused(device.create_stream) and refused(device.synchronize)

    print(in_child(close))
    stream.synchronize()
    print(block.read() == b"q" * 4096)
    for owner in owners:
        owner.close()
    block.close(); pinned.close(); device.reset()
    print(host_controls(runtime).live().nothing)
"""
        expect_output(FORK + code, "0\nTrue\nTrue")

    def test_a_child_that_ends_as_an_interpreter_is_silent(self) -> None:
        code = """
    child = os.fork()
    if child == 0:
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), block.read(1))
"""
        expect_output(FORK + code, "0 b'p'")

    def test_a_fork_while_another_thread_takes_a_device(self) -> None:
        code = """
    import threading
    held, done = threading.Event(), threading.Event()

    def hold():
        with runtime.lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    code = in_child(lambda: refused(device.mem_info) and refused(lambda: open_runtime("host")))
    done.set()
    thread.join()
    print(code)
"""
        expect_output(FORK + code, "0")

    def test_a_grandchild_is_refused_as_well(self) -> None:
        code = "    print(in_child(lambda: in_child(lambda: refused(device.mem_info)) == 0))\n"
        expect_output(FORK + code, "0")

    def test_a_runtime_that_was_closed_before_the_fork_is_not_opened_again(self) -> None:
        code = """
    block.close(); pinned.close(); runtime.close()
    print(in_child(lambda: refused(lambda: open_runtime("host"))))
"""
        expect_output(FORK + code, "0")

    def test_a_child_of_a_process_without_a_runtime_may_open_one(self) -> None:
        code = """
            import os
            from acl_shim import open_runtime
            child = os.fork()
            if child == 0:
                with open_runtime("host").device().malloc(64) as block:
                    block.copy_from(b"c" * 64)
                    os._exit(0 if block.read() == b"c" * 64 else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
        expect_output(code, "0")

    def test_spawned_workers_have_a_runtime_of_their_own(self) -> None:
        code = """
            import multiprocessing
            from tests.helpers.spawned import round_trip
            from acl_shim import open_runtime
            if __name__ == "__main__":
                open_runtime("host").device().mem_info()
                with multiprocessing.get_context("spawn").Pool(2) as pool:
                    print(pool.map(round_trip, [b"a", b"bb", b"ccc"]))
        """
        expect_output(code, "[b'a', b'bb', b'ccc']")
