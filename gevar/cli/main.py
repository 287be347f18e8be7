"""Entry of the command line: run a command until it ends, or is stopped.

Exit codes: 0 good, 1 a finding or bad input, 2 wrong usage, 3 a device, or memory; 130 where Ctrl-C stopped the
command, 143 where SIGTERM did. What takes time to import is imported by `main`, so that it can be stopped too.
"""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper


class _Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments
        Words after the program's name; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.__stdout__, TextIOWrapper):  # whose encoding may not have every character of a name
        sys.__stdout__.reconfigure(errors="backslashreplace")
    try:
        with _sigterm_stops():
            from gevar.cli.run import run

            code = run(words)
    except KeyboardInterrupt as error:
        print("gevar: stopped", file=sys.stderr)
        code = 128 + (signal.SIGTERM if isinstance(error, _Terminated) else signal.SIGINT)
    sys.exit(code)


@contextmanager
def _sigterm_stops() -> Iterator[None]:
    """Let SIGTERM stop a command as Ctrl-C does: what it has got is given back, and the terminal is as before."""

    def stop(*_: object) -> None:
        raise _Terminated

    is_main = threading.current_thread() is threading.main_thread()  # no other may say what a signal does
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
