"""Host memory that processes share by the name of a variable.

Source: GE source, runtime/v1/graph/manager, HostMemManager.
Differs: edge 25 of docs/differences.md.
"""

import contextlib
import hashlib
import mmap
import os
import stat
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from acl_shim import Device
from acl_shim.memory_codes import HostRegisterFlag
from gevar.align import INT64_MAX
from gevar.errors import AclError
from gevar.memory.memory_resource import state_error
from gevar.status import FAILED, PARAM_INVALID

SHARED_MEMORY_FOLDER: Final = Path("/dev/shm")
"""Where shm_open of the C library keeps its objects."""

_OPEN_TRIES: Final = 8


def shared_memory_name(op_name: str) -> str:
    """Return the name of the shared memory of a variable; the same in every process.

    Examples
    --------
    >>> shared_memory_name("w")
    'Ascend_50e721e49c013f00c62cf59f2163542a'
    """
    return f"Ascend_{hashlib.sha256(op_name.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class SharedMemInfo:
    """Shared memory of one variable.

    Attributes
    ----------
    op_name : str
        The variable.
    name : str
        Name of the shared memory.
    size_bytes : int
        Size in bytes.
    host_addr : int
        Address in this process.
    device_addr : int
        Address by which the device reaches it; 0 where it is not registered.
    is_creator : bool
        Whether this process made it, and will unlink its name.
    view : numpy.ndarray
        Its bytes.
    """

    op_name: str
    name: str
    size_bytes: int
    host_addr: int
    device_addr: int
    is_creator: bool
    view: NDArray[np.uint8]


class HostMemManager:
    """Hold the shared memory of variables.

    Parameters
    ----------
    device
        Device that the memory is registered with; None for host use only.

    Notes
    -----
    Closed by `finalize`.
    Thread safety: all methods, from any thread.
    Source: as the module.
    """

    def __init__(self, device: Device | None = None) -> None:
        self._device = device
        self._lock = threading.RLock()
        self._entries: dict[str, tuple[SharedMemInfo, ExitStack]] = {}

    def malloc_host_shared_memory(self, op_name: str, size_bytes: int) -> SharedMemInfo:
        """Make or open the shared memory of a variable; new memory is zeroed.

        Parameters
        ----------
        op_name
            The variable.
        size_bytes
            Size in bytes, the same in every process.

        Raises
        ------
        ValueError
            The name is empty, or the size is below 1 or above 2^63 - 1.
        StateError
            The variable has shared memory here already (status FAILED), or another process made it with another size,
            or another user owns it (status PARAM_INVALID).
        OSError
            The machine has no room.
        AclError
            The device refuses to register it.

        After failure: nothing is left here; memory that another process made is as before.
        """
        size = index(size_bytes)
        if not op_name or not 1 <= size <= INT64_MAX:
            raise ValueError(f"shared memory {op_name!r} of {size} B: give a name and a size from 1 to {INT64_MAX} B")
        with self._lock:
            if op_name in self._entries:
                raise state_error(f"variable {op_name!r} has shared memory already: free it first", FAILED)
            with ExitStack() as undo:
                info = self._open(op_name, size, undo)
                self._entries[op_name] = info, undo.pop_all()
            return info

    def _open(self, op_name: str, size: int, undo: ExitStack) -> SharedMemInfo:
        path = SHARED_MEMORY_FOLDER / shared_memory_name(op_name)
        descriptor, is_creator = _open_object(path, op_name, size)
        try:
            if is_creator:
                undo.callback(path.unlink, missing_ok=True)
            elif (found := os.fstat(descriptor).st_size) != size:
                raise state_error(
                    f"shared memory {path.name} of {op_name!r} has {found} B, not {size} B: use its size", PARAM_INVALID
                )
            memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        view = np.frombuffer(memory, np.uint8)  # unmapped with the last array over it
        with contextlib.suppress(OSError):  # kernels without such pages refuse the advice
            memory.madvise(mmap.MADV_HUGEPAGE)
        device_addr = 0
        if self._device is not None:
            registration = undo.enter_context(self._device.host_register(view, HostRegisterFlag.ACL_HOST_REG_MAPPED))
            device_addr = registration.device_addr()
        return SharedMemInfo(op_name, path.name, size, view.ctypes.data, device_addr, is_creator, view)

    def query_var_mem_info(self, op_name: str) -> SharedMemInfo | None:
        """Return the shared memory of a variable; None where it has none here."""
        with self._lock:
            entry = self._entries.get(op_name)
            return None if entry is None else entry[0]

    def free_host_shared_memory(self, op_name: str) -> None:
        """Let go of the shared memory of a variable; its creator unlinks the name, others keep what they mapped.

        Raises
        ------
        StateError
            It has none here (status PARAM_INVALID).
        AclError
            The device refuses; it is let go of nevertheless.
        """
        with self._lock:
            entry = self._entries.pop(op_name, None)
        if entry is None:
            raise state_error(f"variable {op_name!r} has no shared memory here", PARAM_INVALID)
        entry[1].close()

    def finalize(self) -> None:
        """Let go of all shared memory.

        Raises
        ------
        AclError
            The device refuses one; all are let go of. The first refusal is raised.
        """
        with self._lock:
            entries, self._entries = self._entries, {}
        failures: list[AclError] = []
        for _, undo in entries.values():
            try:
                undo.close()
            except AclError as error:
                failures.append(error)
        if failures:
            raise failures[0]


def _open_object(path: Path, op_name: str, size: int) -> tuple[int, bool]:
    """Open a shared memory object, or make it; say whether it was made now. Others never see it half made."""
    flags = os.O_RDWR | os.O_CLOEXEC
    for _ in range(_OPEN_TRIES):
        try:
            descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            pass
        except OSError as error:
            text = f"shared memory {path.name} of {op_name!r} is there and cannot be opened ({error.strerror})"
            raise state_error(f"{text}: its owner must remove it", PARAM_INVALID) from error
        else:
            if _is_own(os.fstat(descriptor)):
                return descriptor, False
            os.close(descriptor)
            text = f"shared memory {path.name} of {op_name!r} is no file, or that of another user"
            raise state_error(f"{text}: its owner must remove it", PARAM_INVALID)
        descriptor = os.open(path.parent, flags | os.O_TMPFILE, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # a full machine is an error here, not a signal at the first touch
            _give_name(descriptor, path)
        except FileExistsError:  # another process was faster
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor, True
    raise state_error(f"shared memory {path.name} of {op_name!r} comes and goes: try again", FAILED)


def _is_own(found: os.stat_result) -> bool:
    """Tell whether a file is one of this user, which nobody else can cut while it is mapped."""
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _give_name(descriptor: int, path: Path) -> None:
    """Give an unnamed file a name that nothing has."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # with a folder given, os.link follows the link in /proc; else it does not, whatever its arguments say
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
