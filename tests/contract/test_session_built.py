"""Models that are built from a file of weights: they load, verify, share, and give everything back."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.named_tensor import read_tensors
from gevar.om.weights_model import KINDS, WeightKind, weights_model
from tests.helpers.om_rules import check_file
from tests.helpers.runtime import host_runtime, live_now

TYPES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1}


def weights() -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Names, types, shapes and bytes, made up: of every width, scalars, nothing, and two that are equal."""
    rng = np.random.default_rng(6)
    shapes = [(), (0, 3), (7,), (3, 129), (2, 3, 5, 7)]
    found = {
        f"layer.{number}/{kind}": (kind, shape, rng.integers(0, 2, int(np.prod(shape)) * width, np.uint8).tobytes())
        for kind, width in TYPES.items()
        for number, shape in enumerate(shapes)
    }
    return found | {"again": found["layer.3/F32"]}


def safetensors(path: Path) -> Path:
    """Write the file byte by byte."""
    header, data = {}, b""
    for name, (kind, shape, content) in weights().items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize("policy", ["0", "1", "2"])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_built_model_loads_verifies_shares_and_unloads(
    host: HostControls, tmp_path: Path, kind: WeightKind, mode: ExternalWeightMode, policy: str
) -> None:
    path, expected = tmp_path / "m.om", weights()
    weights_model("m", read_tensors(safetensors(tmp_path / "w.safetensors")), kind).write(path, external_weight=mode)
    check_file(path.read_bytes(), tmp_path / "weight")
    with Session(host_runtime(), options={"ge.variableUse1gHugePage": policy}) as session:
        with load_model(path, session=session) as one, load_model(path, session=session) as two:
            assert one.verify(path).differences == two.verify(path).differences == ()
            assert len(one.rows) == len(expected)
            external = {row.name for row in one.rows if row.kind == "FileConstant"}
            moved = [name for name, (_, _, data) in expected.items() if data and mode and kind != "variable"]
            assert len(external) == len(moved), "what is empty stays where it is"
            for row in one.rows:
                name = row.name[:-65] if row.name in external else row.name
                assert np.asarray(one.read(row)).tobytes() == expected[name][2], name
            shared = {row.name for row, other in zip(one.rows, two.rows, strict=True) if row.dev_addr == other.dev_addr}
            lasting = {row.name for row in one.rows if row.kind != "Const"}
            assert {name for name in lasting if name in shared} == lasting
        assert session.external_weights.device_bytes == 0
    live = live_now(host)
    assert (live.bytes, live.handle_bytes, live.reserved_bytes, live.host_bytes) == (0, 0, 0, 0)
