"""`gevar load` on a terminal: a bar that fits, and what is left when the command is stopped."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from gevar.cli import load as load_module
from gevar.cli.main import main
from tests.helpers.shared import REPOSITORY

AS_STARTED_BY_A_PERSON = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # in a shell
COMMAND = [sys.executable, "-c", f"{AS_STARTED_BY_A_PERSON}from gevar.cli.main import main; main()"]
CURSOR_OFF, CURSOR_ON = b"\x1b[?25l", b"\x1b[?25h"


class Terminal(io.StringIO):
    """Standard error as a person has it."""

    def isatty(self) -> bool:
        return True


def seen_lines(text: str) -> list[str]:
    """Return what a terminal shows of a text, line by line, without its controls."""
    return re.split("[\r\n]", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))


@pytest.mark.parametrize("columns", [200, 80, 30, 1])
@pytest.mark.parametrize("name", ["w.om", "x" * 150, "漢字" * 60, "[/red]", "[bold]b", "\\[", "a\x1b[2Jb"])
@pytest.mark.parametrize(
    "steps", [[], [(1, 1)], [(0, 1 << 40), (1 << 35, 1 << 40)], [(900 << 20, 1000 << 30), (1000 << 30, 1000 << 30)]]
)
def test_a_bar_is_one_line_that_fits(
    monkeypatch: pytest.MonkeyPatch, columns: int, name: str, steps: list[tuple[int, int]]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    with load_module._progress(f"folder/{name}") as on_progress:
        assert on_progress is not None
        for step in steps:
            on_progress(*step)
    text = terminal.getvalue()
    assert max(map(cell_len, seen_lines(text))) <= columns
    assert text.count("\x1b[1A") <= 1  # to take away what there is of it
    assert "\x1b[2J" not in text
    shown = "\n".join(seen_lines(text))
    assert columns < 200 or name not in ("w.om", "[bold]b") or f"\n{name} " in shown
    assert columns < 80 or not steps[1:] or re.search(r"/1.0 TiB .*-:--:--|/1,000.0 GiB .*\d:\d\d:\d\d", shown)


class OnTerminal:
    """The command, with standard error on a terminal."""

    def __init__(self, path: Path) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        slow = {"HOSTACL_DELAY": "aclrtMemcpyAsync:50000", "GEVAR_LOAD_BUFFERS": "2", "GEVAR_LOAD_BLOCK": "16384"}
        env = {**os.environ, "GEVAR_ACL": "host", "TERM": "xterm", **slow}
        words = [*COMMAND, "load", str(path)]
        self.process = subprocess.Popen(words, cwd=REPOSITORY, env=env, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        self.seen = b""

    def read_until(self, text: bytes | None) -> None:
        """Read until something is shown, or to the end."""
        while text is None or text not in self.seen:
            try:
                piece = os.read(self._own, 65536)
            except OSError:  # the other side is closed
                piece = b""
            assert piece or text is None, self.seen
            if not piece:
                break
            self.seen += piece

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_a_load_that_is_stopped(tmp_path: Path, number: signal.Signals, code: int, suffix: str) -> None:
    path = tmp_path / f"w.{suffix}"
    if suffix == "npy":
        np.save(path, np.zeros(1 << 21, np.uint8))
    else:
        np.savez(path, **{f"t{n}": np.zeros(1 << 21, np.uint8) for n in range(100)})
    command = OnTerminal(path)
    try:
        command.read_until(b"MiB")  # of the bar
        command.process.send_signal(number)
        command.read_until(None)
        assert command.process.wait(60) == code
    finally:
        command.close()
    assert [line for line in seen_lines(command.seen.decode()) if line][-1] == "gevar: stopped"
    assert b"Traceback" not in command.seen
    assert 0 <= command.seen.rfind(CURSOR_OFF) < command.seen.rfind(CURSOR_ON)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("during", ["gevar.cli.run", "gevar.cli.commands", "gevar.session.load"])
def test_a_command_that_is_stopped_while_it_is_imported(number: signal.Signals, code: int, during: str) -> None:
    script = f"""
        import os, sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == {during!r}:
                    os.kill(os.getpid(), {int(number)})
        sys.meta_path.insert(0, Finder())
        from gevar.cli.main import main
        main(["load", "none.om"])
    """
    script = AS_STARTED_BY_A_PERSON + textwrap.dedent(script)
    env = {**os.environ, "GEVAR_ACL": "host"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.strip(), done.stdout) == (code, "gevar: stopped", "")


def test_who_does_not_want_to_be_terminated_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "open_runtime", lambda _: signal.raise_signal(signal.SIGTERM) or 1 / 0)
    for before in (signal.SIG_IGN, lambda *_: None):
        signal.signal(signal.SIGTERM, before)
        try:
            with pytest.raises(ZeroDivisionError):
                main(["load", "none.om"])
            assert signal.getsignal(signal.SIGTERM) is before
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.raises(SystemExit) as ended:
        main(["load", "none.om"])
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_the_characters_of_a_name(tmp_path: Path, encoding: str) -> None:
    np.save(tmp_path / "漢字.npy", np.zeros(5))
    env = {**os.environ, "GEVAR_ACL": "host", "PYTHONIOENCODING": encoding}
    for words, wanted in (([], r"\u6f22\u5b57.npy"), (["--json"], r'/\u6f22\u5b57.npy",')):
        command = [*COMMAND, "load", str(tmp_path / "漢字.npy"), *words]
        done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr, wanted in done.stdout) == (0, "", True)


def test_without_standard_error(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.zeros(5))
    line = f"exec {sys.executable} -c 'from gevar.cli.main import main; main()' load {tmp_path}/w.npy --json 2>&-"
    env = {**os.environ, "GEVAR_ACL": "host"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (done.returncode, '"size_bytes": 40' in done.stdout) == (0, True)
