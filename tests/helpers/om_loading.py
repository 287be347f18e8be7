"""Loading damaged files into device memory: a correct result, or one of the project's errors; and nothing is left."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gevar.errors import GevarError
from gevar.om.om_file import Kind
from gevar.session import LoadedModel, Session, load_model
from tests.helpers.runtime import host_runtime
from tests.helpers.shared import shared_files


@cache
def weight_folder() -> Path:
    """A folder with the weight files of the real models, where they are at hand; it goes with the process."""
    folder = TemporaryDirectory(prefix="weights-")
    atexit.register(folder.cleanup)
    for file in shared_files("data/om_vars/weight/*"):
        shutil.copyfile(file, Path(folder.name) / file.name)
    return Path(folder.name)


def load_outcome(data: bytes, kind: Kind = "model") -> GevarError | None:
    """Load a file, read all of it back, and close it; return the error that refused it.

    Any other exception passes through and fails the test.
    """
    with Session(host_runtime()) as session:
        try:
            with _loaded(data, kind, session) as model:
                _read_back(model, data)
                session.var_manager.check()
            refusal = None
        except GevarError as error:
            refusal = error
        assert "\n" not in str(refusal)
        assert session.external_weights.device_bytes == 0
        assert session.memory_manager.counts.live_blocks <= _variables(session)
    assert session.memory_manager.counts.live_blocks == 0
    return refusal


def _loaded(data: bytes, kind: Kind, session: Session) -> LoadedModel:
    """Load with a directory of weights, which a model without external weights refuses."""
    try:
        return load_model(data, kind=kind, session=session, weight_dir=weight_folder())
    except GevarError as error:
        if "leave weight_dir out" not in str(error):
            raise
    return load_model(data, kind=kind, session=session)


def _variables(session: Session) -> int:
    """Blocks that variables may have: memory of variables stays with the session."""
    vm = session.var_manager
    return len({row.logic_addr for row in vm.table()}) if vm.is_var_resource_inited else 0


def _read_back(model: LoadedModel, data: bytes) -> None:
    model.verify(data)
    for row in model.rows:
        if row.note or row.dev_addr is None:
            continue
        try:
            value = model.read(row)
        except GevarError:
            continue
        assert value.nbytes == row.size_bytes
    assert model.statistics.size_bytes == sum(row.size_bytes for row in model.rows)
