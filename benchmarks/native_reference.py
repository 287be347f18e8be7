"""The C loops of ``native/bench``: built on first use, called through ctypes."""

import ctypes
import subprocess
from functools import cache

from benchmarks.harness import BUILD, REPOSITORY

_U64, _U32, _DOUBLE = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_double
#: Loops of runtime_costs.c and the types of their arguments.
_LOOPS = {
    "bench_malloc_free": [_U64, _U32],
    "bench_mmap_munmap": [_U64, _U32],
    "bench_map_unmap": [_U32],
    "bench_device_copy": [_U64, _U32],
    "bench_memcpy": [_U64, _U32],
    "bench_get_device": [_U32],
    "bench_small_copy": [_U64, _U32],
    "bench_pointer_query": [_U32],
    "bench_set_context": [_U32],
    "bench_mem_info": [_U32],
    "bench_stream_query": [_U32],
    "bench_event_query": [_U32],
    "bench_event_record": [_U32],
}


@cache
def _library() -> ctypes.CDLL:
    """Build and load the loops."""
    folder = BUILD / "native-bench"
    configure = ["cmake", "-S", "native", "-B", str(folder), "-G", "Ninja", "-DGEVAR_BENCH=ON"]
    for command in (
        [*configure, "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", str(folder), "--target", "gevar_bench"],
    ):
        result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"building the C references failed: {' '.join(command)}\n{result.stdout}{result.stderr}")
    library = ctypes.CDLL(str(folder / "bench" / "libgevar_bench.so"))
    library.bench_pread_memcpy.argtypes = [ctypes.c_int, _U64, _U64, ctypes.c_void_p, _U64, ctypes.c_uint]
    library.bench_pread_memcpy.restype = ctypes.c_int64
    for name, arguments in _LOOPS.items():
        loop = getattr(library, name)
        loop.argtypes, loop.restype = arguments, _DOUBLE
    return library


def pread_memcpy(file: int, size_bytes: int, destination: int, *, block_bytes: int, threads: int) -> float:
    """Move the first ``size_bytes`` of an open file to an address of this process and return the seconds that took."""
    result: int = _library().bench_pread_memcpy(file, 0, size_bytes, destination, block_bytes, threads)
    if result < 0:
        raise OSError(-result, "bench_pread_memcpy failed")
    return result / 1e9


def loop_ns(name: str, *arguments: int) -> float:
    """Run a loop of ``runtime_costs.c`` and return the nanoseconds of one round."""
    result: float = getattr(_library(), name)(*arguments)
    if result < 0:
        raise RuntimeError(f"{name}{arguments} failed with {-result:.0f}")
    return result


def hold(kind: str, count: int) -> None:
    """Make ``count`` live "blocks" or "mappings" in the host runtime of the loops, or drop "nothing": all of them."""
    library = _library()
    code: int = library.bench_drop_all() if kind == "nothing" else getattr(library, f"bench_hold_{kind}")(count)
    if code:
        raise RuntimeError(f"holding {count} {kind} failed with {-code}")
