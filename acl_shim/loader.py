"""Choice of the ACL library: an NPU's, the host runtime, or a path; every refusal with its reason."""

import atexit
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acl_shim import _acl
from acl_shim.api import AclApi
from acl_shim.api_types import Table
from acl_shim.codes import code_name
from acl_shim.errors import Attempt, BackendUnavailableError, StateError
from acl_shim.queued import end_host_functions
from acl_shim.runtime import BackendName, Runtime
from acl_shim.table import bind, close_table, has_function, new_cell, open_table, table_path

_log = logging.getLogger("acl_shim")

VARIABLE = "GEVAR_ACL"
"""Environment variable that names the backend where the argument does not."""

NEEDED = (
    "aclInit",
    "aclrtGetDeviceCount",
    "aclrtGetSocName",
    "aclrtSetDevice",
    "aclrtResetDevice",
    "aclrtGetCurrentContext",
    "aclrtSetCurrentContext",
    "aclrtMalloc",
    "aclrtFree",
    "aclrtMallocHost",
    "aclrtFreeHost",
    "aclrtMemcpy",
    "aclrtMemset",
    "aclrtGetMemInfo",
)
"""Functions without which a library does not serve; every release of CANN has them."""

_LIBRARY_NAMES = ("libascendcl.so", "libacl_rt.so")
_HOME_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_HOMES = (
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/latest",
    "/usr/local/Ascend/nnae/latest",
    "/usr/local/Ascend/nnrt/latest",
    "~/Ascend/ascend-toolkit/latest",
    "~/Ascend/cann",
)
_LIBRARY_FOLDERS = ("lib64", "runtime/lib64", f"{os.uname().machine}-linux/lib64")

_lock = threading.RLock()
_by_request: dict[str, Runtime] = {}
_by_path: dict[Path, Runtime] = {}
_parent_id: int | None = None  # the process this one was forked from, where that had opened a runtime


@dataclass(frozen=True, slots=True)
class _Library:
    """A library that is loaded and has the needed functions."""

    table: Table
    path: Path
    face: AclApi
    is_host: bool


def _load(name: str) -> _Library | Attempt:
    """Load a library by file or bare name."""
    table = open_table(name)
    if isinstance(table, str):
        return Attempt(name, table.removeprefix(f"{name}: "))
    missing = tuple(function for function in NEEDED if not has_function(table, function))
    if missing:
        close_table(table)
        reason = "is no ACL library" if len(missing) == len(NEEDED) else f"lacks {', '.join(missing)}"
        return Attempt(name, reason, missing)
    path = Path(table_path(table) or name)
    return _Library(table, path.resolve(), bind(table, str(path)), has_function(table, "hostacl_version"))


def _device_count(library: _Library) -> int | str:
    """Return the number of devices, or why there are none."""
    count = new_cell("uint32_t *")
    code = library.face.aclrtGetDeviceCount(count)
    if code:
        return f"aclrtGetDeviceCount returned {code} {code_name(code)}"
    return count[0] or "reports no device"


def _libraries(folder: Path) -> list[str]:
    """Return the files of a folder that have the name of an ACL library."""
    return [str(folder / name) for name in _LIBRARY_NAMES if (folder / name).exists()]


def _npu_places() -> Iterator[str | Attempt]:
    """Yield where CANN's libraries may be, in the order of the search, and what rules a place out."""
    yield from _LIBRARY_NAMES  # what the process has loaded, or LD_LIBRARY_PATH and the loader's cache give
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        yield from _libraries(Path(folder))  # a host runtime that is loaded already hides them from the bare names
    homes = []
    for variable in _HOME_VARIABLES:
        if home := os.environ.get(variable):
            homes.append(home)
        else:
            yield Attempt(variable, "is not set")
    for home in dict.fromkeys((*homes, *_HOMES)):
        top = Path(home).expanduser()
        found = [file for sub in _LIBRARY_FOLDERS for file in _libraries(top / sub)]
        yield from found
        if not found:
            yield Attempt(home, "has no ACL library" if top.exists() else "no such folder")


def _find_npu() -> tuple[_Library, str] | tuple[Attempt, ...]:
    """Return the first NPU's library that serves and why, or every attempt."""
    tried = []
    for place in _npu_places():
        library = _load(place) if isinstance(place, str) else place
        if isinstance(library, Attempt):
            tried.append(library)
        elif library.is_host:
            close_table(library.table)
            tried.append(Attempt(str(place), "is the host runtime, not an NPU's library"))
        elif isinstance(count := _device_count(library), str):
            tried.append(Attempt(str(place), count))
        else:
            return library, f"{library.path} reports {count} devices"
    return tuple(tried)


def host_library() -> Path:
    """Return where the host runtime is installed: beside the extension module, which an editable install moves."""
    return Path(_acl.__file__).resolve().parent / "hostacl" / "libascendcl.so"


def _open_npu(asked: str) -> tuple[_Library, str]:
    found = _find_npu()
    if isinstance(found[0], _Library):
        library, reason = found
        return library, f"{asked}: {reason}"
    raise BackendUnavailableError(f"{asked}: no NPU's library serves, install CANN or ask for 'host'", found)


def _open_file(asked: str, file: str, step: str = "name another") -> tuple[_Library, str]:
    library = _load(file)
    if not isinstance(library, Attempt):
        count = _device_count(library)
        if isinstance(count, int):
            return library, asked
        library = Attempt(file, count)
    raise BackendUnavailableError(f"{asked}: the library does not serve, {step}", (library,))


def _open_host(asked: str) -> tuple[_Library, str]:
    return _open_file(asked, str(host_library()), "install gevar again")


def _open_auto(asked: str) -> tuple[_Library, str]:
    found = _find_npu()
    if isinstance(found[0], _Library):
        library, reason = found
        _log.info("%s: took the NPU's library, %s", asked, reason)
        return library, f"{asked}: {reason}"
    reason = f"{asked}: none of {len(found)} places has an NPU's library with a device"
    library, _ = _open_host(reason)
    _log.warning("%s, took the host runtime %s; backend 'npu' says what was tried", reason, library.path)
    return library, reason


def _resolve(backend: str, asked: str) -> tuple[_Library, str]:
    """Return the library that a backend text means, and why it was taken."""
    if backend == "auto":
        return _open_auto(asked)
    if backend == "npu":
        return _open_npu(asked)
    if backend == "host":
        return _open_host(asked)
    file = os.path.expanduser(backend)  # noqa: PTH111 - pathlib raises for users that are not there
    if os.sep not in backend and not os.path.lexists(file):
        raise BackendUnavailableError(f"{asked}: give 'auto', 'npu', 'host' or the path of a library")
    try:
        path = os.path.realpath(file)
    except ValueError as error:
        raise BackendUnavailableError(asked, (Attempt(backend, f"is no name of a file: {error}"),)) from error
    if os.path.lexists(path) and not os.path.isfile(path) and not os.path.isdir(path):  # noqa: PTH112, PTH113
        raise BackendUnavailableError(asked, (Attempt(path, "is a device, pipe or socket"),))  # which might never end
    return _open_file(asked, path)


def open_runtime(backend: str | None = None) -> Runtime:
    """Open the ACL runtime; one `Runtime` per library and process.

    Parameters
    ----------
    backend
        ``auto``: an NPU's library when one loads and reports a device, else the host runtime, which is logged once.
        ``npu``: an NPU's library. ``host``: the host runtime. Anything else is the path of a library. None takes the
        text of the environment variable ``GEVAR_ACL``, else ``auto``.

    Returns
    -------
    Runtime
        `backend`, `path` and `reason` say what was taken and why.

    Raises
    ------
    BackendUnavailableError
        Nothing serves; `tried` holds each place and why it failed.
    StateError
        A parent of this forked process has opened the library.

    Notes
    -----
    Thread safety: any thread may call it.
    """
    if backend is not None:
        text, asked = backend, f"backend={backend!r}"
    elif text := os.environ.get(VARIABLE, ""):
        asked = f"{VARIABLE}={text!r}"
    else:
        text, asked = "auto", "default backend='auto'"
    with _lock:
        if _parent_id is not None:
            raise StateError(
                f"process {os.getpid()} is a fork of process {_parent_id}, which opened an ACL runtime: start workers"
                ' with multiprocessing.get_context("spawn")'
            )
        runtime = _by_request.get(text)
        if runtime is None or runtime.closed:
            library, reason = _resolve(text, asked)
            runtime = _by_path.get(library.path)
            if runtime is None or runtime.closed:
                name: BackendName = "host" if library.is_host else "npu"
                runtime = _by_path[library.path] = Runtime(library.table, name, library.path, reason)
            _by_request[text] = runtime
        return runtime


def opened() -> list[Runtime]:
    """Return the runtimes this process has open."""
    with _lock:
        return [runtime for runtime in _by_path.values() if not runtime.closed]


@atexit.register
def _end_at_exit() -> None:
    end_host_functions()
    for runtime in opened():
        runtime.end_at_exit()


def _end_in_child() -> None:
    global _lock, _parent_id
    _lock = threading.RLock()  # another thread of the parent may have held the old one
    if _by_path:
        _parent_id = os.getppid()
    for runtime in opened():
        runtime.end_in_child()


os.register_at_fork(after_in_child=_end_in_child)
