"""Names and files that somebody who owns a model, but not the machine, may put in the way of who reads or writes it."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

INSIDE, SECRET = b"inside.." * 8, b"s3cret!!" * 8
"""What may be read, and what may never be seen; of one size, so that no check of sizes helps."""
PATIENCE_S = 30


def make_socket(path: Path) -> None:
    """Make a socket, by a short name, since longer ones do not fit its address."""
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


def make_giant(path: Path) -> None:
    """Make a file of 8 TiB without a byte."""
    with path.open("wb") as file:
        file.truncate(8 << 40)


ODD_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "directory": os.mkdir,
    "device without end": lambda path: path.symlink_to("/dev/zero"),
    "device of this process": lambda path: path.symlink_to("/dev/stdin"),
    "file of the kernel": lambda path: path.symlink_to("/proc/self/maps"),
    "circle": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "empty": Path.touch,
    "giant": make_giant,
}
"""What may lie where a file is expected that the caller names."""

ODD_NAMES = {
    "missing": "missing",
    "zero byte": "a\0b",
    "lone surrogate": "a\ud800b",
    "byte that is no text": "a\udcffb",
    "long": "n" * 300,
    "longer than any path": "/".join(["n" * 200] * 30),
    "terminal": "a\nb\x1b[2J\x9b\u202e",
}
"""Names that no file has, or that the caller would not like to see."""


def _lay(folder: Path, name: str, make: Callable[[Path], object]) -> str:
    make(folder / name)
    return name


def _linked_folder(folder: Path, outside: Path) -> str:
    (folder / "way").symlink_to(outside)
    return "way/secret"


def _inner_link(folder: Path, _: Path) -> str:
    """Only the last of the two links leads out."""
    (folder / "first").symlink_to("second")
    (folder / "second").symlink_to("../outside/secret")
    return "first"


LEADING_OUT: dict[str, Callable[[Path, Path], str]] = {
    "absolute": lambda _, outside: str(outside / "secret"),
    "absolute with more slashes": lambda _, outside: f"//{outside}//secret",
    "upwards": lambda folder, outside: f"../{outside.name}/secret",
    "down and upwards": lambda folder, outside: f"sub/../../{outside.name}/secret",
    "upwards from nowhere": lambda folder, outside: f"none/../../{outside.name}/secret",
    "upwards behind dots": lambda folder, outside: f"./.././{outside.name}/./secret",
    "home": lambda *_: "~/secret",
    "link": lambda folder, outside: _lay(folder, "link", lambda path: path.symlink_to(outside / "secret")),
    "link by a relative path": lambda folder, outside: _lay(
        folder, "link", lambda path: path.symlink_to(f"../{outside.name}/secret")
    ),
    "link over a link": _inner_link,
    "folder that is a link": _linked_folder,
    "hard link": lambda folder, outside: _lay(folder, "hard", lambda path: os.link(outside / "secret", path)),
    "descriptor": lambda *_: "/proc/self/fd/0",
    "root": lambda folder, outside: f"/proc/self/root{outside}/secret",
    "the folder": lambda *_: ".",
    "the folder above": lambda *_: "..",
    "nothing": lambda *_: "",
    **{
        kind: lambda folder, _, make=make: _lay(folder, "odd", make)  # type: ignore[misc]
        for kind, make in ODD_FILES.items()
        if kind != "giant"
    },
    **{kind: lambda *_, name=name: name for kind, name in ODD_NAMES.items()},
}
"""What a file may name in its folder; each prepares folder and outside, and gives the name. All must be refused."""


@contextmanager
def patience() -> Iterator[None]:
    """Fail, instead of waiting for ever, where something waits for a pipe."""

    def stop(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still waiting after {PATIENCE_S} s, in {frame}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
