"""Names of model files whatever the locale, and what describing a model does not do."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import gevar
from tests.helpers.child import expect_output
from tests.helpers.models import small_model


@pytest.mark.parametrize("name", ["model#.om", "模型.om"])
def test_a_name_means_the_same_in_every_locale(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    small_model(path)
    tensors, refusals = [], []
    for locale in ("C", "C.UTF-8"):
        done = gevar("load", path, "--json", LC_ALL=locale)
        assert done.returncode == 0, done.stderr
        files = json.loads(done.stdout)["files"]
        assert [file["file"] for file in files] == [str(path)]
        tensors.append(files[0]["tensors"])
        gone = gevar("inspect", path.with_suffix(".gone"), LC_ALL=locale)
        refusals.append((gone.returncode, gone.stderr))
    assert tensors[0] == tensors[1]
    assert refusals[0] == refusals[1]
    assert refusals[0][0] == 1


def test_describing_a_model_opens_no_runtime(tmp_path: Path) -> None:
    small_model(tmp_path / "small.om")
    code = f"""
        from acl_shim.loader import opened
        from gevar.cli.inspect import inspect
        from gevar.om import open_om
        with open_om({str(tmp_path / "small.om")!r}) as om:
            print(len(om.models))
        inspect.main([{str(tmp_path / "small.om")!r}], standalone_mode=False)
        print("opened", opened())
    """
    child = gevar("inspect", tmp_path / "small.om")
    assert child.returncode == 0
    expect_output(code, f"1\n{child.stdout}opened []", GEVAR_ACL="host")
