"""Scripts in pyACL's manner, run by `scripts/hostacl` as their users would."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.helpers.shared import REPOSITORY

KEEP = ("PATH", "HOME", "LANG", "TMPDIR")

RESOURCES = """
    import acl
    import numpy as np

    ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST = 0, 1, 2
    ACL_HOST = 1


    def check_ret(message, ret):
        if ret != 0:
            raise Exception("{} failed ret={}".format(message, ret))


    class Resource:
        def __init__(self, device_id=0):
            self.device_id = device_id
            check_ret("acl.init", acl.init())
            check_ret("acl.rt.set_device", acl.rt.set_device(self.device_id))
            self.context, ret = acl.rt.create_context(self.device_id)
            check_ret("acl.rt.create_context", ret)
            self.stream, ret = acl.rt.create_stream()
            check_ret("acl.rt.create_stream", ret)
            self.run_mode, ret = acl.rt.get_run_mode()
            check_ret("acl.rt.get_run_mode", ret)

        def release(self):
            check_ret("destroy_stream", acl.rt.destroy_stream(self.stream))
            check_ret("destroy_context", acl.rt.destroy_context(self.context))
            check_ret("reset_device", acl.rt.reset_device(self.device_id))
            check_ret("finalize", acl.finalize())


    def to_device(array):
        size = array.itemsize * array.size
        if "bytes_to_ptr" in dir(acl.util):
            array = array.tobytes()
            pointer = acl.util.bytes_to_ptr(array)
        else:
            pointer = acl.util.numpy_to_ptr(array)
        device, ret = acl.rt.malloc(size, ACL_MEM_MALLOC_HUGE_FIRST)
        check_ret("malloc", ret)
        check_ret("memcpy", acl.rt.memcpy(device, size, pointer, size, ACL_MEMCPY_HOST_TO_DEVICE))
        return device, size


    def to_host(device, size, shape, dtype):
        if "ptr_to_bytes" in dir(acl.util):
            content = bytes(size)
            pointer = acl.util.bytes_to_ptr(content)
            check_ret("memcpy", acl.rt.memcpy(pointer, size, device, size, ACL_MEMCPY_DEVICE_TO_HOST))
            return np.frombuffer(content, dtype).reshape(shape)
        raise Exception("no way back")
"""

PIPELINE = """
    resource = Resource()
    assert resource.run_mode == ACL_HOST
    events = [acl.rt.create_event()[0] for _ in range(4)]
    second, ret = acl.rt.create_stream()
    check_ret("create_stream", ret)
    image = np.random.default_rng(7).random((3, 64, 64), np.float32)
    device, size = to_device(image)
    copy, ret = acl.rt.malloc(size, ACL_MEM_MALLOC_HUGE_FIRST)
    for event in events:
        check_ret("memcpy", acl.rt.memcpy_async(copy, size, device, size, 3, resource.stream))
        check_ret("record", acl.rt.record_event(event, resource.stream))
        check_ret("wait", acl.rt.stream_wait_event(second, event))
        check_ret("memset", acl.rt.memset_async(copy, size, 0, 4, second))
        check_ret("synchronize", acl.rt.synchronize_stream(second))
        check_ret("synchronize", acl.rt.synchronize_event(event))
    back = to_host(copy, size, image.shape, np.float32)
    print(back.flat[0], (back.flat[1:] == image.flat[1:]).all())
    for event in events:
        check_ret("destroy_event", acl.rt.destroy_event(event))
    check_ret("free", acl.rt.free(device) or acl.rt.free(copy) or acl.rt.destroy_stream(second))
    resource.release()
"""

EVERY_DEVICE = """
    import threading

    count, ret = acl.rt.get_device_count()
    check_ret("get_device_count", ret)
    sums = {}


    def work(device_id):
        check_ret("set_device", acl.rt.set_device(device_id))
        device, size = to_device(np.full(1000, device_id + 1, np.int32))
        sums[device_id] = int(to_host(device, size, (1000,), np.int32).sum())
        check_ret("free", acl.rt.free(device) or acl.rt.reset_device(device_id))


    check_ret("init", acl.init())
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_ret("finalize", acl.finalize())
    print(sorted(sums.items()))
"""

OUT_OF_MEMORY = """
    resource = Resource()
    free, total, ret = acl.rt.get_mem_info(acl.ACL_HBM_MEM)
    ptr, ret = acl.rt.malloc(total * 2, ACL_MEM_MALLOC_HUGE_FIRST)
    print(ret, "fit" in acl.get_recent_err_msg(), acl.rt.free(12345))
    resource.release()
"""

FORGETFUL = """
    acl.init()
    acl.rt.set_device(0)
    acl.rt.malloc(4096, 0)
"""


@pytest.fixture(scope="module", autouse=True)
def environment_is_made() -> None:
    """Let the first run make or renew the environment, which it says on stderr."""
    script = REPOSITORY / "scripts" / "hostacl"
    subprocess.run([str(script), "true"], check=True, capture_output=True, timeout=600)


def run_script(tmp_path: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(RESOURCES) + textwrap.dedent(code))
    environment = {name: os.environ[name] for name in KEEP if name in os.environ}
    command = [str(REPOSITORY / "scripts" / "hostacl"), *options, "python", "-W", "error", str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("code", "options", "wanted"),
    [
        (PIPELINE, (), "0.0 True"),
        (PIPELINE, ("--profile", "strict"), "0.0 True"),
        (EVERY_DEVICE, ("--devices", "3"), "[(0, 1000), (1, 2000), (2, 3000)]"),
        (OUT_OF_MEMORY, (), "207001 True 107000"),
    ],
)
def test_a_script_runs(tmp_path: Path, code: str, options: tuple[str, ...], wanted: str) -> None:
    done = run_script(tmp_path, code, *options)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, wanted, "")


def test_what_a_script_leaves_alive_is_reported(tmp_path: Path) -> None:
    done = run_script(tmp_path, FORGETFUL)
    assert done.returncode == 0
    assert "4096 bytes asked" in done.stderr
