"""ACL libraries made on the spot by the C compiler, for the search and for what a library may lack."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

SIGNATURES = {
    "aclInit": "(const char *path) { (void)path; return 0; }",
    "aclrtGetDeviceCount": "(unsigned *count) { *count = DEVICES; return COUNT_CODE; }",
    "aclrtSetDevice": "(int id) { current = &contexts[id]; return 0; }",
    "aclrtResetDevice": "(int id) { (void)id; return 0; }",
    "aclrtGetCurrentContext": "(void **context) { *context = current; return 0; }",
    "aclrtSetCurrentContext": "(void *context) { current = context; return 0; }",
    "aclrtMalloc": "(void **block, size_t size, int policy) { (void)policy; *block = malloc(size); return 0; }",
    "aclrtFree": "(void *block) { free(block); return 0; }",
    "aclrtMallocHost": "(void **block, size_t size) { *block = malloc(size); return 0; }",
    "aclrtFreeHost": "(void *block) { free(block); return 0; }",
    "aclrtMemcpy": "(void *dst, size_t max, const void *src, size_t n, int kind)"
    " { (void)kind; if (n > max) return 107000; memcpy(dst, src, n); return 0; }",
    "aclrtMemset": "(void *dst, size_t max, int value, size_t n)"
    " { if (n > max) return 107000; memset(dst, value, n); return 0; }",
    "aclrtGetMemInfo": "(int attr, size_t *left, size_t *all) { (void)attr; *left = 1; *all = 2; return 0; }",
}
TEXTS = {"aclrtGetSocName": '"Ascend-made-here"', "hostacl_version": '"made here"'}


def fake_library(
    file: Path,
    *,
    devices: int = 1,
    count_code: int = 0,
    without: Iterable[str] = (),
    host: bool = False,
    soname: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Path:
    """Compile an ACL library over malloc.

    Parameters
    ----------
    file
        Where it goes; its folder is made.
    devices, count_code
        What aclrtGetDeviceCount writes and returns.
    without
        Functions it does not export.
    host
        Whether it exports hostacl_version.
    soname
        Its DT_SONAME.
    more
        Parameters and body, as in `SIGNATURES`, of further functions.
    """
    left_out = set(without) | (set() if host else {"hostacl_version"})
    lines = [
        "#include <stdlib.h>",
        "#include <string.h>",
        "static char contexts[64];",
        "static _Thread_local void *current;",
        "static long noted[4];",
        "struct key { unsigned char bytes[64]; };",
    ]
    lines += [f"int {name}{body}" for name, body in {**SIGNATURES, **(more or {})}.items() if name not in left_out]
    lines += [f"const char *{name}(void) {{ return {text}; }}" for name, text in TEXTS.items() if name not in left_out]
    file.parent.mkdir(parents=True, exist_ok=True)
    source = file.with_suffix(".c")
    source.write_text("\n".join(lines) + "\n")
    flags = [f"-DDEVICES={devices}", f"-DCOUNT_CODE={count_code}", *([f"-Wl,-soname,{soname}"] if soname else [])]
    subprocess.run(["cc", "-shared", "-fPIC", "-O0", *flags, "-o", str(file), str(source)], check=True)
    return file
