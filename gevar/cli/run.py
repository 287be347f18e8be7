"""Running a command: the group of commands, and how an error reaches the user, as one line on stderr.

`--debug` adds the traceback.
"""

import os
import sys
import traceback

from acl_shim.errors import one_line, printable
from gevar.errors import AclError, BackendUnavailableError, GevarError

_FINDING, _USAGE, _DEVICE = 1, 2, 3


def run(words: list[str]) -> int:
    """Run a command and return its exit code, its error printed in one line.

    Parameters
    ----------
    words
        The words after the program's name.

    Raises
    ------
    KeyboardInterrupt
        The command was stopped.
    """
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
    except click.exceptions.Abort as error:  # what click makes of an interrupt
        cause = error.__cause__
        raise cause if isinstance(cause, KeyboardInterrupt) else KeyboardInterrupt from error
    except click.UsageError as error:
        _show_usage(error.format_message(), error.ctx.command_path if error.ctx else "gevar")
        return _USAGE
    except click.ClickException as error:
        _show(error, "--debug" in words)
        return error.exit_code
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        print("gevar: reading ONNX needs the package onnx; install gevar[models]", file=sys.stderr)
        return _USAGE
    except (GevarError, OSError, ValueError, MemoryError) as error:
        _show(error, "--debug" in words)
        return _DEVICE if isinstance(error, AclError | BackendUnavailableError | MemoryError) else _FINDING
    return result if isinstance(result, int) else 0


def _show_usage(text: str, command: str) -> None:
    """Say what is wrong with the words, or print the help that takes the place of a missing command."""
    if text.startswith("Usage: "):
        print(text, file=sys.stderr)
    else:
        print(f"gevar: {one_line(text).rstrip('.')}; {command} --help tells what it takes", file=sys.stderr)


def _show(error: Exception, debug: bool) -> None:
    """Print one line for an error."""
    if debug:
        for line in traceback.format_exc().splitlines():
            print(printable(line), file=sys.stderr)
    print(f"gevar: {one_line(error_text(error))}", file=sys.stderr)


def error_text(error: Exception) -> str:
    """Return what an error says, with its notes; of one of the system the file and the reason, without its number."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, GevarError):
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    return "; ".join((text, *getattr(error, "__notes__", ())))
