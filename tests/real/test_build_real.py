"""Models made from real weights: they load, verify, share, and give everything back."""

from pathlib import Path

import numpy as np
import pytest

from acl_shim.device_model import query_model_size
from gevar.om import OmBuilder
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.named_tensor import NamedTensor, read_tensors
from gevar.om.stored_bytes import read_all
from gevar.om.weights_model import KINDS, WeightKind, weights_model
from gevar.session import Session, load_model
from tests.helpers.om_rules import check_file, check_sizes
from tests.helpers.real_weights import real_weights
from tests.helpers.runtime import controls, host_runtime, live_now

SAFETENSORS, ONNX = "silero_vad_16k.safetensors", "silero_vad.onnx"
MODES: tuple[ExternalWeightMode, ...] = (0, 1, 2)


def tensors(name: str) -> list[NamedTensor]:
    if name.endswith(".onnx"):
        pytest.importorskip("onnx")
    return read_tensors(real_weights(name))


def built(folder: Path, name: str, mode: ExternalWeightMode, kind: WeightKind = "const") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "m.om"
    weights_model("real", tensors(name), kind).write(path, external_weight=mode)
    return path


@pytest.mark.parametrize("policy", ["0", "1", "2"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [SAFETENSORS, ONNX])
def test_a_model_loads_verifies_shares_and_unloads(
    tmp_path: Path, name: str, mode: ExternalWeightMode, policy: str
) -> None:
    path = built(tmp_path, name, mode)
    expected = {tensor.name: read_all(tensor.data) for tensor in tensors(name)}
    host = controls()
    with Session(host_runtime(), options={"ge.variableUse1gHugePage": policy}) as session:
        one = load_model(path, session=session)
        two = load_model(path, session=session)
        for model in (one, two):
            report = model.verify(path)
            assert report.tensors == len(expected)
            assert report.differences == ()
        for row in one.rows:
            data = np.asarray(one.read(row)).tobytes()
            assert data == expected[row.name if mode == 0 else row.name[:-65]]
        if mode:
            assert [row.dev_addr for row in two.rows] == [row.dev_addr for row in one.rows]
            assert all(row.sharing for row in two.rows)
        two.close()
        one.close()
    live = live_now(host)
    assert (live.bytes, live.handle_bytes, live.reserved_bytes, live.host_bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_built_keeps_the_rules(tmp_path: Path, kind: WeightKind, mode: ExternalWeightMode) -> None:
    for name in (SAFETENSORS, ONNX):
        path = built(tmp_path / name, name, mode, kind)
        (model,) = check_file(path.read_bytes(), path.parent / "weight")
        check_sizes(model)
        size = query_model_size(host_runtime(), path)
        assert size == (0, len(model.parts[1])), "what the runtime's own reader finds"


def test_variables_of_two_models_are_shared(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        net: OmBuilder = weights_model(f"m{number}", tensors(SAFETENSORS), "variable")
        paths.append(tmp_path / f"m{number}.om")
        net.write(paths[-1], compress=number == 2)
    with Session(host_runtime()) as session:
        one, two = (load_model(path, session=session) for path in paths)
        assert {row.name: row.dev_addr for row in one.rows} == {row.name: row.dev_addr for row in two.rows}
