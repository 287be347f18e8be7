"""Python in a process of its own, for what happens at its end, after a fork, or under another environment."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.helpers.shared import REPOSITORY


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter with warnings as errors; return what it wrote and how it ended."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def expect_output(code: str, wanted: str, **environment: str) -> None:
    """Run code and expect this on standard output, nothing on standard error, and exit code 0."""
    done = run_python(code, **environment)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", wanted)


@contextmanager
def talk_to_python(code: str, **environment: str) -> Iterator[Callable[[str], str]]:
    """Run code in a new interpreter and yield a function that sends it a line and returns its next line.

    The code reads lines from standard input and must flush what it prints; at the end it must end by itself.
    """
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    standard_input, standard_output = child.stdin, child.stdout

    def talk(line: str) -> str:
        standard_input.write(line + "\n")
        standard_input.flush()
        return standard_output.readline().strip()

    try:
        yield talk
        _, errors = child.communicate(timeout=60)
        assert (child.returncode, errors) == (0, "")
    finally:
        child.kill()
        child.wait()
