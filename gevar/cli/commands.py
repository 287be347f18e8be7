"""The group of commands. A command is imported when it is used, so that each starts quickly."""

from importlib import import_module
from typing import Final

import click

COMMANDS: Final = ("info", "inspect", "load", "build", "extract", "relocate", "diff", "verify", "bench", "passes")
"""Names of the commands, which are those of their modules, in the order in which they are told."""


class _CommandGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"gevar.cli.{cmd_name}"), cmd_name)
        return found


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gevar", message="gevar %(version)s")
def commands() -> None:
    """GE's variable manager: look at OM models and load them into device memory."""
