"""`gevar inspect` and `gevar load` for what is not one plain model: packages, bundles, external weights."""

import json
from pathlib import Path

from tests.cli.test_commands import gevar, refused
from tests.helpers import om2_builder, om_builder
from tests.helpers.lasting_models import BASE, file_constant, lasting_model, write_model


def test_inspect_shows_a_package(tmp_path: Path) -> None:
    path = tmp_path / "m.om2"
    path.write_bytes(om2_builder.package())
    done = gevar("inspect", path)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("OM2 package, 1 models", "their models are not loaded", "const_1", "weight_abc", "137438953472"):
        assert words in done.stdout
    facts = json.loads(gevar("inspect", "--json", path).stdout)
    assert [one["name"] for one in facts["variables"]] == ["v", "w"]
    refused(gevar("load", path), 1, "OM2 package", "cannot be loaded")


def test_load_a_bundle(tmp_path: Path) -> None:
    path = tmp_path / "bundle.om"
    models = [lasting_model([om_builder.variable("v", (4,), BASE)], name=name) for name in ("one", "two")]
    path.write_bytes(om_builder.bundle(models))
    done = gevar("load", "--bundle", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "shared: variable of the session" in done.stdout
    assert "tensors  2, 32 B, 16 B of it shared" in done.stdout
    refused(gevar("load", path), 1, "kind='bundle'")


def test_load_external_weights(tmp_path: Path) -> None:
    ops = [file_constant("w", BASE, 8, location="w.bin", length=32)]
    path = write_model(tmp_path, ops, {"w.bin": bytes(range(32))})
    facts = json.loads(gevar("load", "--json", "--verify", "--one-session", path, path).stdout)
    first, second = facts["files"]
    assert first["verify"]["differences"] == []
    assert (first["device_bytes"], second["device_bytes"]) == (32, 0)
    assert (first["shared_bytes"], second["shared_bytes"]) == (0, 32)
    assert first["tensors"][0]["dev_addr"] == second["tensors"][0]["dev_addr"]
    (tmp_path / "weight").rename(tmp_path / "elsewhere")
    refused(gevar("load", path), 1, "w.bin", "cannot be opened")
    assert gevar("load", "--weight-dir", tmp_path / "elsewhere", path).returncode == 0
