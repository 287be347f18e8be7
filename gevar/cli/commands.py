"""The group of commands and the options they share."""

import click

from gevar.cli.bench import bench
from gevar.cli.build import build
from gevar.cli.diff import diff
from gevar.cli.extract import extract
from gevar.cli.info import info
from gevar.cli.inspect import inspect
from gevar.cli.load import load
from gevar.cli.passes import passes


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gevar", message="gevar %(version)s")
def commands() -> None:
    """GE's variable manager: look at OM models and load them into device memory."""


for _command in (info, inspect, load, build, extract, diff, bench, passes):
    commands.add_command(_command)
