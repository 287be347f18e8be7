"""Codes and enums against the list of the public headers."""

import json
import re
from enum import IntEnum, IntFlag
from types import ModuleType

import pytest

from acl_shim import codes, data_codes, device_codes, memory_codes, stream_codes
from acl_shim.codes import AclErrorCode, MemMallocPolicy, MemTypeFlag, code_name
from acl_shim.model_codes import GeErrorCode, ModelConfigAttr, ModelLoadType
from tests.helpers.shared import REPOSITORY, shared_path

ENUMS = {
    "aclrtMemAttr": codes.MemAttr,
    "aclrtMemcpyKind": codes.MemcpyKind,
    "aclrtMemLocationType": codes.MemLocationType,
    "aclrtMallocAttrType": codes.MallocAttrType,
    "aclrtRunMode": codes.RunMode,
    "aclrtLastErrLevel": codes.LastErrLevel,
    "aclDataType": data_codes.AclDataType,
    "aclLogLevel": data_codes.LogLevel,
    "aclrtDevAttr": device_codes.DevAttr,
    "aclrtDevFeatureType": device_codes.DevFeature,
    "aclrtStreamState": stream_codes.StreamState,
    "aclrtDeviceStatus": device_codes.DeviceStatus,
    "aclrtStreamStatus": stream_codes.StreamStatus,
    "aclrtEventRecordedStatus": stream_codes.EventRecordedStatus,
    "aclrtEventWaitStatus": stream_codes.EventWaitStatus,
    "aclrtCallbackBlockType": stream_codes.CallbackBlockType,
    "aclrtMemHandleType": memory_codes.MemHandleType,
    "aclrtMemAllocationType": memory_codes.MemAllocationType,
    "aclrtMemSharedHandleType": memory_codes.MemSharedHandleType,
    "aclrtMemGranularityOptions": memory_codes.MemGranularity,
    "aclrtMemAccessFlags": memory_codes.MemAccessFlag,
    "aclrtHostRegisterType": memory_codes.HostRegisterType,
    "aclrtMemPoolAttr": memory_codes.MemPoolAttr,
}
CONSTANTS = (
    stream_codes.StreamFlag,
    stream_codes.StreamFailureMode,
    stream_codes.WaitValueFlag,
    stream_codes.EventFlag,
    stream_codes.NotifyExportFlag,
    stream_codes.NotifyImportFlag,
    memory_codes.HostRegisterFlag,
    memory_codes.ExportFlag,
    memory_codes.IpcExportFlag,
    memory_codes.IpcImportFlag,
    memory_codes.ManagedFlag,
)


def reference(key: str) -> dict[str, object]:
    return json.loads(shared_path("reference/acl_runtime.json").read_text())[key]


def test_every_error_code_of_the_headers_is_there_and_no_other() -> None:
    members = {name: int(member) for name, member in AclErrorCode.__members__.items()}
    assert members == reference("errors")
    assert len(members) == 216


@pytest.mark.parametrize("c_name", sorted(ENUMS))
def test_an_enum_has_the_names_and_values_of_the_headers(c_name: str) -> None:
    members = {name: int(member) for name, member in ENUMS[c_name].__members__.items()}
    assert members == reference("enums")[c_name]


@pytest.mark.parametrize("enum", CONSTANTS)
def test_a_constant_has_the_value_of_the_headers(enum: type[IntEnum | IntFlag]) -> None:
    constants = reference("constants")
    assert enum.__members__
    for name, member in enum.__members__.items():
        assert constants[name] == int(member), name


@pytest.mark.parametrize("module", [codes, data_codes, device_codes, memory_codes, stream_codes])
def test_every_enum_is_compared(module: ModuleType) -> None:
    compared = {*ENUMS.values(), *CONSTANTS, AclErrorCode, MemMallocPolicy, MemTypeFlag}
    enums = {
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    }
    assert enums <= compared


def test_policies_and_their_flags_share_one_enum_in_c() -> None:
    members: dict[str, int] = {}
    for enum in (MemMallocPolicy, MemTypeFlag):
        members |= {name: int(member) for name, member in enum.__members__.items() if name.startswith("ACL_")}
    assert members == reference("enums")["aclrtMemMallocPolicy"]


def test_the_short_names_are_aliases_of_the_policies() -> None:
    short = {name: member for name, member in MemMallocPolicy.__members__.items() if not name.startswith("ACL_")}
    assert len(short) == 8
    for name, member in short.items():
        assert member.name == f"ACL_MEM_MALLOC_{name}"


def test_the_codes_in_the_public_header_are_the_same() -> None:
    header = (REPOSITORY / "native/include/acl/acl_base.h").read_text()
    rows = [
        line.split() for line in header.splitlines() if line.startswith(("#define ACL_ERROR_", "#define ACL_SUCCESS"))
    ]
    assert len(rows) > 200
    for _, name, value, *_ in rows:
        assert AclErrorCode[name] == int(value), name


def test_the_codes_of_the_graph_engine_are_those_of_its_header_and_apart_from_the_others() -> None:
    header = (REPOSITORY / "native/include/acl/error_codes/ge_error_codes.h").read_text()
    codes = {name: int(value) for name, value in re.findall(r"#define (ACL_ERROR_GE_\w+) (\d+)", header)}
    assert codes == {name: int(member) for name, member in GeErrorCode.__members__.items()}
    assert len(codes) == 16
    assert not set(codes.values()) & {int(member) for member in AclErrorCode}


@pytest.mark.parametrize("enum", [ModelConfigAttr, ModelLoadType])
def test_the_options_of_a_load_are_those_of_the_header(enum: type[IntEnum]) -> None:
    header = (REPOSITORY / "native/include/acl/acl_mdl.h").read_text()
    numbers = dict(re.findall(r"^(?:#define|   ) (ACL_\w+) (?:= )?(\d+),?$", header, re.M))
    for name, member in enum.__members__.items():
        assert int(numbers[name]) == member, name


def test_zero_is_called_success() -> None:
    assert AclErrorCode(0).name == "ACL_SUCCESS"
    assert AclErrorCode.ACL_ERROR_NONE is AclErrorCode.ACL_RT_SUCCESS is AclErrorCode.ACL_SUCCESS


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, "ACL_SUCCESS"),
        (207001, "ACL_ERROR_RT_MEMORY_ALLOCATION"),
        (507899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR"),
        (145000, "ACL_ERROR_GE_PARAM_INVALID"),
    ],
)
def test_code_name_names_a_code(code: int, name: str) -> None:
    assert code_name(code) == name


@pytest.mark.parametrize("code", [-1, 1, 107999, -1000001])
def test_code_name_of_an_unknown_code_keeps_the_number(code: int) -> None:
    assert code_name(code) == f"unknown code {code}"


def test_a_flag_can_be_added_to_a_policy() -> None:
    combined = MemMallocPolicy.HUGE_ONLY | MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH
    assert combined == 0x1001


def test_every_public_enum_is_an_integer() -> None:
    enums = [value for value in vars(codes).values() if isinstance(value, type) and value.__module__ == codes.__name__]
    assert len(enums) == 9
    assert all(issubclass(enum, IntEnum | IntFlag) for enum in enums)
