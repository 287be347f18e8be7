"""Files that appear under their name complete, or not at all."""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(
    path: Path,
    write: Callable[[BinaryIO], None],
    *,
    before_naming: Callable[[], None] | None = None,
    mode: int = 0o666,
    draft_name: str | None = None,
) -> None:
    """Write a new file beside the path and give it the name when it is complete and on the disk.

    Parameters
    ----------
    path
        The file; one that exists is replaced.
    write
        Writes the content to an empty file.
    before_naming
        Called when the content is on the disk and the name is not given yet.
    mode
        Permissions of the new file, of which the process takes its umask.
    draft_name
        Name that the file has while it is written, so that whoever knows that nobody writes finds what a killed process
        left; a random one where None.

    Raises
    ------
    OSError
        The file cannot be written; its folder is not there. What `write` and `before_naming` raise goes through.

    After failure: `path` is as it was before; nothing else is left.
    Thread safety: may be called from several threads, also for one path; the last to finish wins.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder to write to is not there", str(path))
    draft = path.with_name(draft_name or f".gevar-{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if before_naming is not None:
            before_naming()
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
