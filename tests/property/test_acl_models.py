"""The host runtime takes exactly those model definitions that protobuf takes."""

import random
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError

from acl_shim.device_model import load_model
from acl_shim.errors import AclError
from acl_shim.model_codes import GeErrorCode
from gevar.om import open_om
from gevar.om.partition import PartitionType
from gevar.proto import ge_ir
from tests.helpers.models import small_model
from tests.helpers.runtime import host_runtime
from tests.helpers.shared import shared_path

EXAMPLES = 400
BYTES = (0, 1, 2, 3, 4, 5, 8, 10, 18, 0x7F, 0x80, 0xC3, 0xE2, 0xFF)


def is_message(data: bytes) -> bool:
    try:
        ge_ir.ModelDef.FromString(data)
    except DecodeError:
        return False
    return True


def is_taken(data: bytes) -> bool:
    """Return whether the host runtime reads a definition; what else it may refuse in it is no matter here."""
    try:
        load_model(host_runtime().device(0), data).close()
    except AclError as error:
        return error.code != GeErrorCode.ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED
    return True


@pytest.mark.parametrize("name", ["made here", "om/ge_root_model.om", "om_vars/static_32g_plain.om"])
def test_damaged_definitions(name: str, tmp_path: Path) -> None:
    path = tmp_path / "small.om"
    if name == "made here":
        small_model(path)
    else:
        path = shared_path(f"data/{name}")
    with open_om(path) as om:
        part = om.models[0].partition(PartitionType.MODEL_DEF)
    assert part is not None
    whole, start, end = path.read_bytes(), part.file_offset, part.file_offset + part.mem_size
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    seen = set()
    for _ in range(EXAMPLES):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data[chance.randrange(start, end)] = chance.choice((*BYTES, chance.randrange(256)))
        good = is_message(bytes(data[start:end]))
        assert is_taken(bytes(data)) is good, f"seed {seed}: {bytes(data[start:end]).hex()}"
        seen.add(good)
    assert seen == {True, False}
