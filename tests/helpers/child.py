"""Python in a process of its own, for what happens at its end, after a fork, or under another environment."""

import os
import subprocess
import sys
import textwrap

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
