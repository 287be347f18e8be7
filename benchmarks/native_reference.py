"""The C references of ``native/bench``: built on first use, called through ctypes."""

import ctypes
import subprocess
from functools import cache

from benchmarks.harness import BUILD, REPOSITORY


@cache
def _library() -> ctypes.CDLL:
    """Build and load the references."""
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
    u64 = ctypes.c_uint64
    library.bench_pread_memcpy.argtypes = [ctypes.c_int, u64, u64, ctypes.c_void_p, u64, ctypes.c_uint]
    library.bench_pread_memcpy.restype = ctypes.c_int64
    return library


def pread_memcpy(file: int, size_bytes: int, destination: int, *, block_bytes: int, threads: int) -> float:
    """Move the first ``size_bytes`` of an open file to an address of this process and return the seconds that took."""
    result: int = _library().bench_pread_memcpy(file, 0, size_bytes, destination, block_bytes, threads)
    if result < 0:
        raise OSError(-result, "bench_pread_memcpy failed")
    return result / 1e9
