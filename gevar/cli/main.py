"""Entry of the command line: the group of commands, and how an error reaches the user.

Exit codes: 0 good, 1 a finding or bad input, 2 wrong usage, 3 a device or its memory. An error is one line on stderr;
`--debug` adds the traceback.
"""

import sys
import traceback
from collections.abc import Sequence

from acl_shim.errors import one_line, printable
from gevar.errors import AclError, BackendUnavailableError, GevarError

_FINDING, _USAGE, _DEVICE = 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments
        Words after the program's name; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(_run(words))


def _run(words: list[str]) -> int:
    try:
        import click

        from gevar.cli.commands import commands
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        print(f"gevar: the command line needs the package {error.name}; install gevar[cli]", file=sys.stderr)
        return _USAGE
    try:
        result = commands.main(words, prog_name="gevar", standalone_mode=False)
    except click.exceptions.Abort:
        print("gevar: stopped", file=sys.stderr)
        return _FINDING
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        print("gevar: reading ONNX needs the package onnx; install gevar[models]", file=sys.stderr)
        return _USAGE
    except (GevarError, OSError, ValueError) as error:
        return _report(error, "--debug" in words)
    return result if isinstance(result, int) else 0


def _report(error: Exception, debug: bool) -> int:
    """Print one line for an error, return the exit code that stands for it."""
    if debug:
        for line in traceback.format_exc().splitlines():
            print(printable(line), file=sys.stderr)
    text = "; ".join((str(error), *getattr(error, "__notes__", ())))
    print(f"gevar: {one_line(text)}", file=sys.stderr)
    return _DEVICE if isinstance(error, AclError | BackendUnavailableError) else _FINDING
