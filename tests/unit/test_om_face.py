"""What `gevar.om` gives by name, and what reading imports."""

import subprocess
import sys

import pytest

import gevar.om
from gevar.cli.commands import COMMANDS, commands

WRITERS = ("gevar.om.builder", "gevar.om.writer", "gevar.session", "gevar.var", "gevar.memory")


@pytest.mark.parametrize("name", gevar.om.__all__)
def test_every_name_is_there(name: str) -> None:
    found = getattr(gevar.om, name)
    assert found.__module__.startswith("gevar.om.") or name == "Blob"
    assert name in dir(gevar.om)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'gevar\.om' has no attribute 'nothing'"):
        _ = gevar.om.nothing


@pytest.mark.parametrize("words", ["from gevar.om import open_om", "import gevar.cli.inspect"])
def test_reading_needs_nothing_of_what_writes_or_loads(words: str) -> None:
    code = f"import sys; {words}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(WRITERS) & set(done.stdout.split()) == set()


def test_the_commands_are_told_in_order() -> None:
    assert commands.list_commands(None) == list(COMMANDS)
    assert [commands.get_command(None, name).name for name in COMMANDS] == list(COMMANDS)
    assert commands.get_command(None, "nothing") is None
    assert commands.get_command(None, "commands") is None
