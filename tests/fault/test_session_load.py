"""Each call of the runtime fails once while a model is loaded: nothing is left, and a load after it works."""

from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from tests.helpers.models import small_model
from tests.helpers.runtime import fail_until_passes, host_runtime


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMallocHost", "aclrtMemcpy"])
@pytest.mark.parametrize("code", [207001, 507899])
def test_loading(host: HostControls, tmp_path: Path, function: str, code: int) -> None:
    path = tmp_path / "small.om"
    values = small_model(path)

    def operation() -> None:
        with Session(host_runtime()) as session, load_model(path, session=session) as loaded:
            assert np.array_equal(loaded.read("kernel"), values["kernel"])

    operation()  # the first use of a device sets it
    assert fail_until_passes(host, function, operation, code=code) >= 1


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMemcpy"])
def test_loading_into_a_session_that_stays(host: HostControls, tmp_path: Path, function: str) -> None:
    path = tmp_path / "small.om"
    values = small_model(path)
    with Session(host_runtime()) as session:
        load_model(path, session=session).close()  # the variables are there from now on

        def operation() -> None:
            with load_model(path, session=session) as loaded:
                assert np.array_equal(loaded.read("scale"), values["scale"])

        assert fail_until_passes(host, function, operation) >= 1
        session.var_manager.check()
