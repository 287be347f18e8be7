"""Real model files go to the device, and the device holds the file's bytes."""

from pathlib import Path

import pytest

from acl_shim import Runtime
from gevar import Session, load_model, open_om
from gevar.errors import ModelFileError
from tests.helpers.shared import shared_files, shared_path

FILES = [path for folder in ("om", "om_vars") for path in shared_files(f"data/{folder}/*.om")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_device_holds_the_bytes_of_the_file(runtime: Runtime, path: Path) -> None:
    try:
        with open_om(path) as om:
            weights = sum(model.weights.mem_size for model in om.models if model.weights is not None)
            nodes = sum(1 for model in om.models for _ in model.const_nodes())
    except ModelFileError:
        pytest.skip("not a model for the ordinary way of opening; other tests look at the error")
    if path.stem.startswith("refused_"):
        pytest.skip("a model that GE refuses too")
    with Session(runtime) as session, load_model(path, session=session) as loaded:
        report = loaded.verify(path)
        assert report.differences == ()
        assert loaded.upload.size_bytes >= weights
        assert report.tensors <= nodes + len(loaded.rows)
        assert all(row.dev_addr for row in loaded.rows if row.size_bytes and not row.note)
        session.var_manager.check()


@pytest.mark.parametrize("name", ["refused_name_grown", "refused_offset_below_base"])
def test_what_the_graph_engine_refuses(runtime: Runtime, name: str) -> None:
    path = shared_path(f"data/om_vars/{name}.om")
    with Session(runtime) as session:
        with pytest.raises(Exception, match="variable") as caught:
            load_model(path, session=session)
        assert getattr(caught.value, "status", None) is not None


def test_there_are_real_files_where_the_folder_exists() -> None:
    shared_path("data/om")
    assert len(FILES) > 10
