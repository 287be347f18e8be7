"""`scripts/hostacl`: programs of other people on the host runtime."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.shared import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "hostacl"
KEEP = ("PATH", "HOME", "LANG", "TMPDIR")
USED = (
    *("aclInit", "aclFinalize", "aclrtSetDevice", "aclrtResetDevice", "aclrtGetDeviceCount"),
    *("aclrtMalloc", "aclrtFree", "aclrtMemcpy", "aclrtMemset"),
)
"""What `ROUND_TRIP` calls."""
Build = Callable[..., Path]

ROUND_TRIP = r"""
#include <stdio.h>
#include <string.h>
#include "acl/acl.h"

int main(int argc, char **argv) {
    char text[16] = "on the device", back[16] = "";
    void *block = NULL;
    uint32_t count = 0;
    if (aclInit(NULL) || aclrtSetDevice(0) || aclrtGetDeviceCount(&count)) return 1;
    if (aclrtMalloc(&block, 16, ACL_MEM_MALLOC_HUGE_FIRST)) return 2;
    if (aclrtMemcpy(block, 16, text, 16, ACL_MEMCPY_HOST_TO_DEVICE)) return 3;
    if (aclrtMemcpy(back, 16, block, 16, ACL_MEMCPY_DEVICE_TO_HOST)) return 4;
    if (argc > 1 && !strcmp(argv[1], "touch")) printf("%s, touched\n", (char *)block);
    int late = aclrtFree(block) ? 0 : aclrtMemset(block, 16, 0, 16);
    printf("%s, %u devices, freed memory %s\n", back, count, late ? "refused" : "answers");
    if (argc > 1 && !strcmp(argv[1], "leak")) aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    else aclrtResetDevice(0);
    aclFinalize();
    return argc > 2 ? argc : 0;
}
"""
BOTH_NAMES = r"""
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *first = dlopen("libascendcl.so", RTLD_NOW), *second = dlopen("libacl_rt.so", RTLD_NOW);
    int (*set)(int) = (int (*)(int))dlsym(first, "aclrtSetDevice");
    int (*get)(int *) = (int (*)(int *))dlsym(second, "aclrtGetDevice");
    const char *(*version)(void) = (const char *(*)(void))dlsym(second, "hostacl_version");
    int device = -1;
    if (!set || !get || !version || set(1) || get(&device)) return 1;
    printf("%s, device %d, %s\n", version(), device, first == second ? "one library" : "two libraries");
    return 0;
}
"""

SCRIPT_FOR_A_CARD = """
import acl
import numpy as np

HUGE_FIRST, TO_DEVICE, TO_HOST = 0, 1, 2


def check(ret):
    assert ret == 0, ret


check(acl.init())
check(acl.rt.set_device(0))
count, ret = acl.rt.get_device_count()
check(ret)
data = np.frombuffer(b"pyACL on the host runtime", np.uint8).copy()
back = np.zeros_like(data)
block, ret = acl.rt.malloc(data.nbytes, HUGE_FIRST)
check(ret)
check(acl.rt.memcpy(block, data.nbytes, acl.util.numpy_to_ptr(data), data.nbytes, TO_DEVICE))
check(acl.rt.memcpy(acl.util.numpy_to_ptr(back), back.nbytes, block, back.nbytes, TO_HOST))
check(acl.rt.free(block))
check(acl.rt.reset_device(0))
check(acl.finalize())
print(f"{count} devices, {back.tobytes()}")
"""


def environment(**more: str) -> dict[str, str]:
    return {**{name: os.environ[name] for name in KEEP if name in os.environ}, **more}


def hostacl(*words: str | Path, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPT), *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=120, check=False
    )


def output(*words: str | Path, cwd: Path | None = None, **more: str) -> str:
    done = hostacl(*words, cwd=cwd, **more)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def environment_is_made() -> None:
    """Let the first run make or renew the environment, which it says on stderr."""
    subprocess.run([SCRIPT, "--cflags"], env=environment(), check=True, capture_output=True, timeout=600)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("programs")

    def run(name: str, text: str, *flags: str, compiler: str = "cc") -> Path:
        source = folder / f"{name}.{'cpp' if compiler == 'c++' else 'c'}"
        source.write_text(text)
        subprocess.run([compiler, source, "-o", folder / name, "-Wall", "-Werror", *flags], check=True)
        return folder / name

    return run


@pytest.fixture(scope="module")
def round_trip(build: Build) -> Path:
    return build("round_trip", ROUND_TRIP, *output("--cflags").split(), *output("--libs").split())


def test_flags() -> None:
    assert output("--cflags") == f"-I{REPOSITORY}/native/include"
    assert output("--libs") == f"-L{REPOSITORY}/build/hostacl -lascendcl"
    assert output("--libs", "--cflags").splitlines() == [output("--libs"), output("--cflags")]


def test_program_runs_under_the_card_profile(round_trip: Path) -> None:
    assert output(round_trip) == "on the device, 2 devices, freed memory answers"
    without = subprocess.run([round_trip], env=environment(), capture_output=True, text=True, check=False)
    assert without.returncode == 127
    assert "libascendcl.so" in without.stderr


def test_options(round_trip: Path) -> None:
    assert output("--profile", "strict", round_trip) == "on the device, 2 devices, freed memory refused"
    assert output("--devices", "5", round_trip) == "on the device, 5 devices, freed memory answers"
    assert output("--devices", "3", "--profile", "strict", "--", round_trip).endswith("3 devices, freed memory refused")
    assert output(round_trip, HOSTACL_PROFILE="strict").endswith("refused")
    assert output("--profile", "card", round_trip, HOSTACL_PROFILE="strict").endswith("answers")
    assert output(round_trip, HOSTACL_DEVICES="7").startswith("on the device, 7 devices")


def test_unified_memory_can_be_touched(round_trip: Path) -> None:
    assert output("--unified", round_trip, "touch").splitlines()[0] == "on the device, touched"
    assert hostacl(round_trip, "touch").returncode == -11


def test_exit_status_arguments_and_folder_are_the_commands_own(round_trip: Path, tmp_path: Path) -> None:
    assert hostacl(round_trip, "a", "b", "c").returncode == 4
    assert hostacl("sh", "-c", "exit 7").returncode == 7
    assert hostacl("no-such-command").returncode == 127
    assert output("pwd", cwd=tmp_path) == str(tmp_path)
    assert output("printf", "%s|", "--devices", "two words", "") == "--devices|two words||"
    (tmp_path / "here").symlink_to(round_trip)
    assert output("./here", cwd=tmp_path).startswith("on the device")


def test_what_is_left_alive_is_reported(round_trip: Path) -> None:
    done = hostacl(round_trip, "leak")
    assert done.returncode == 0
    assert "alive at exit" in done.stderr
    assert "4096 bytes asked" in done.stderr
    assert hostacl(round_trip, "leak", HOSTACL_LEAKS="off").stderr == ""
    assert hostacl(round_trip, "leak", HOSTACL_LEAKS="fail").returncode == 99


def test_both_names_are_one_library(build: Build) -> None:
    found = output(build("both", BOTH_NAMES, "-ldl"))
    assert found.startswith("hostacl ")
    assert found.endswith(", device 1, one library")


def test_program_linked_against_a_cards_library(build: Build, tmp_path: Path) -> None:
    """A program that was linked elsewhere asks for the name it was linked with."""
    for name in ("ascendcl", "acl_rt"):
        stub = tmp_path / f"lib{name}.so"
        functions = "aclInit aclFinalize aclrtSetDevice aclrtResetDevice aclrtGetDeviceCount aclrtMalloc aclrtFree"
        lines = [
            f"int {function}(void) {{ return 99; }}" for function in f"{functions} aclrtMemcpy aclrtMemset".split()
        ]
        stub.with_suffix(".c").write_text("\n".join(lines))
        subprocess.run(
            ["cc", "-shared", "-fPIC", f"-Wl,-soname,{stub.name}", "-o", stub, stub.with_suffix(".c")], check=True
        )
        program = build(f"linked_{name}", ROUND_TRIP, *output("--cflags").split(), f"-L{tmp_path}", f"-l{name}")
        assert output(program, LD_LIBRARY_PATH=str(tmp_path)) == "on the device, 2 devices, freed memory answers"


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_program_in_cpp(build: Build) -> None:
    flags = [*output("--cflags").split(), *output("--libs").split()]
    program = build("cpp", ROUND_TRIP.replace("NULL", "nullptr"), *flags, compiler="c++")
    assert output(program) == "on the device, 2 devices, freed memory answers"


def test_library_path_of_the_caller_is_kept(tmp_path: Path) -> None:
    path = output("sh", "-c", "echo $LD_LIBRARY_PATH", LD_LIBRARY_PATH=str(tmp_path))
    assert path == f"{REPOSITORY}/build/hostacl:{tmp_path}"
    assert output("sh", "-c", "echo $LD_LIBRARY_PATH") == f"{REPOSITORY}/build/hostacl"


def test_python_of_the_environment_finds_the_host_runtime() -> None:
    code = "import acl_shim; runtime = acl_shim.open_runtime(); print(runtime.backend, runtime.device_count())"
    assert output("--devices", "4", "python", "-c", code) == "host 4"
    code = "import sys; print(sys.path[1])"
    assert output("python", "-c", code, PYTHONPATH="/elsewhere") == f"{REPOSITORY}/acl_shim/pyacl"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "a command is missing"),
        (("--devices", "2"), "a command is missing"),
        (("--devices",), "--devices needs a value"),
        (("--profile", "mild", "true"), 'profile "mild" is neither strict nor card'),
        (("--fast", "true"), "unknown option --fast"),
        (("--cflags", "true"), "--cflags goes without a command"),
    ],
)
def test_wrong_use(words: tuple[str, ...], text: str) -> None:
    done = hostacl(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr.splitlines()[0]
    assert "usage: scripts/hostacl" in done.stderr


def test_help() -> None:
    text = output("--help")
    assert all(option in text for option in ("--unified", "--profile", "--devices", "--cflags", "--libs"))
