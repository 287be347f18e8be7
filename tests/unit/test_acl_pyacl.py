"""pyACL's facade without a runtime: its table against the C table, conversions of arguments, the utilities."""

import ast
import importlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from acl_shim._acl import ffi, lib

from acl_shim.codes import AclErrorCode
from acl_shim.pyacl import acl
from acl_shim.pyacl.acl import util
from acl_shim.pyacl.acl._calls import BY_MODULE, ROWS, Row
from acl_shim.pyacl.acl._face import make_function
from acl_shim.pyacl.acl._kinds import Call, Config, InStruct, Kind, Numbers, OutKey, Structs, Word
from acl_shim.pyacl.acl._values import as_dict
from acl_shim.table import function_names
from tests.helpers.shared import REPOSITORY, shared_path


def arguments_of(kind: Kind, *given: object) -> list[Any]:
    """Return the C arguments that a kind makes of Python ones."""
    call = Call(given)
    kind.add(call)
    kept.append(call)
    return call.arguments


kept: list[Call] = []  # calls of the running test, whose C values must live


@pytest.fixture(autouse=True)
def drop_calls() -> Any:
    yield
    kept.clear()


class TestTable:
    def test_every_function_of_the_runtime_in_the_c_table_has_a_row(self) -> None:
        names = {name for name in function_names() if name.startswith("acl") and not name.startswith("aclmdl")}
        assert {row.c_name for row in ROWS} == names

    def test_a_name_is_given_once(self) -> None:
        assert sum(len(rows) for rows in BY_MODULE.values()) == len(ROWS)

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
    def test_a_row_makes_the_arguments_that_c_wants(self, row: Row) -> None:
        given: list[object] = [SAMPLES.get(name, 0) for kind in row.kinds for name in kind.takes]
        call = Call(given)
        for kind in row.kinds:
            kind.add(call)
        wrapper = getattr(lib, f"acl_{row.c_name}")
        bare = lib.acl_open(b"libm.so.6", table := ffi.new("acl_table **"), ffi.new("char[64]"), 64)
        assert bare == 0
        answer = wrapper(table[0], *call.arguments)  # C takes them, and finds no function
        nothing = {ffi.NULL, None, 0, 0xFFFFFFFF} if row.c_name in VALUES else {lib.ACL_SHIM_NO_SYMBOL}
        assert answer in nothing
        assert len(call.outputs) == sum(is_out(arg) for arg in OUTS[row.c_name])
        for output in call.outputs:
            output()

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
    def test_a_name_is_that_of_c_in_snake_case(self, row: Row) -> None:
        plain = row.c_name.removeprefix("aclrt").removeprefix("acl")
        short = {"SetCurrentContext": "SetContext", "GetCurrentContext": "GetContext"}.get(plain, plain)
        assert row.name.replace("_", "") == short.lower()
        assert row.name == row.name.lower()

    def test_the_names_of_the_reference_are_there(self) -> None:
        text = shared_path("reference/client_api_usage.md").read_text()
        for module, names in BY_MODULE.items():
            for name in names:
                assert name
            section = text[text.index("## 5.") :]
            wanted = {part.split("(")[0].strip() for part in section.split(module + ".")[1:]}
            wanted = {name for name in wanted if name.isidentifier()} - {"rt", "util"}
            assert wanted <= set(names), module


VALUES = {
    *(
        "aclGetRecentErrMsg",
        "aclrtGetSocName",
        "aclAppLog",
        "aclDataTypeSize",
        "aclFloat16ToFloat",
        "aclFloatToFloat16",
    ),
    *(
        "aclCreateDataBuffer",
        "aclrtAllocatorCreateDesc",
        "aclGetDataBufferAddr",
        "aclGetDataBufferSize",
        "aclGetDataBufferSizeV2",
    ),
    *(f"aclrtGet{what}FromExceptionInfo" for what in ("TaskId", "StreamId", "ThreadId", "DeviceId", "ErrorCode")),
}
"""Functions whose result is no code."""

SAMPLES: dict[str, object] = {
    "config_path": None,
    "reg_name": "n",
    "func": "f",
    "file": "f",
    "message": "m",
    "callback": print,
    "key": "k",
    "pkg_name": "p",
    "soc_version": "s",
    "cfg": {},
    "prop": {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1}, "reserve": 0},
    "desc": [],
    "attrs": [],
    "location": {"id": 0, "type": 1},
    "pids": [1],
    "dsts": [],
    "dest_maxs": [],
    "srcs": [],
    "sizes": [],
    "attrs_indexes": [],
    "function": print,
    "event_handle": {"reserved": bytes(64)},
    "pool_props": {"allocType": 0, "handleType": 0, "location": {"id": 0, "type": 1}, "maxSize": 0},
}


def is_out(c_type: str) -> bool:
    return c_type.endswith("*") and not c_type.startswith("const ")


def _outs() -> dict[str, list[str]]:
    """Return the out parameters of each function, as the reference marks them by their types and names."""
    inputs = {
        ("aclrtMallocWithCfg", "cfg"),
        ("aclrtMallocForTaskScheduler", "cfg"),
        ("aclrtMallocHostWithCfg", "cfg"),
        ("aclrtMemGetAllocationGranularity", "prop"),
        ("aclrtMemSetAccess", "desc"),
        ("aclrtMemGetAccess", "location"),
        ("aclsysGetVersionStr", "pkgName"),
        ("aclsysGetVersionNum", "pkgName"),
    }
    found = {}
    text = (REPOSITORY / "acl_shim/_acl.cdef.h").read_text()
    for name in function_names():
        start = text.index(f"acl_{name}(") + len(f"acl_{name}(")
        parameters = [part.strip() for part in text[start : text.index(");", start)].split(",")][1:]
        outs = []
        for parameter in parameters:
            c_type, _, variable = parameter.rpartition("*")
            pids = variable in ("pid",) and name != "aclrtDeviceGetBareTgid"
            arrays = variable in ("dsts", "destMaxs", "srcs", "sizes", "attrs", "attrsIndexes")
            if c_type and not pids and not arrays and (name, variable) not in inputs:
                outs.append(f"{c_type.strip()} *")
        if name in ("aclrtMemExportToShareableHandleV2", "aclrtMemPoolGetAttr"):
            outs.append("void *")  # given as an address
        found[name] = outs
    return found


OUTS = _outs()


class TestNumbers:
    @pytest.mark.parametrize(
        ("given", "wanted"),
        [(0, 0), (True, 1), (np.int64(5), 5), (1 << 63, 1 << 63), (-1, (1 << 64) - 1), (1 << 64, 0), (-(1 << 64), 0)],
    )
    def test_a_word_has_64_bits(self, given: Any, wanted: int) -> None:
        assert arguments_of(Word("ptr"), given) == [wanted]

    @pytest.mark.parametrize("given", [1.0, "1", None, b"1", [1]])
    def test_what_is_no_int_is_refused_by_name(self, given: Any) -> None:
        with pytest.raises(TypeError, match=f"ptr is an int, not {type(given).__name__}"):
            arguments_of(Word("ptr"), given)

    def test_a_list_becomes_an_array(self) -> None:
        array, count = arguments_of(Numbers("pids", "int32_t", counted=True), [3, 4])
        assert (list(array), count) == ([3, 4], 2)

    @pytest.mark.parametrize("given", [{}, "12", 1, None])
    def test_what_is_no_list_is_refused(self, given: Any) -> None:
        with pytest.raises(TypeError, match="pids is a list, not"):
            arguments_of(Numbers("pids", "int32_t"), given)


class TestStructs:
    PROP = InStruct("prop", "aclrtPhysicalMemProp", ())

    def test_a_dict_becomes_a_struct(self) -> None:
        (struct,) = arguments_of(self.PROP, SAMPLES["prop"])
        assert (struct.memAttr, struct.location.type, struct.reserve) == (4, 1, 0)

    def test_every_key_is_needed(self) -> None:
        for missing in ("handleType", "allocationType", "memAttr", "location", "reserve"):
            content = {key: value for key, value in dict(SAMPLES["prop"]).items() if key != missing}  # type: ignore[call-overload]
            with pytest.raises(TypeError, match=f"prop lacks the key '{missing}'"):
                arguments_of(self.PROP, content)

    def test_a_key_of_an_inner_dict_is_needed(self) -> None:
        content = {**dict(SAMPLES["prop"]), "location": {"id": 0}}  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=r"prop\['location'\] lacks the key 'type'"):
            arguments_of(self.PROP, content)

    def test_a_field_of_a_wrong_type_is_named(self) -> None:
        content = {**dict(SAMPLES["prop"]), "memAttr": "huge"}  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=r"prop\['memAttr'\] is an int, not str"):
            arguments_of(self.PROP, content)

    @pytest.mark.parametrize("given", [[], 1, None, "prop"])
    def test_what_is_no_dict_is_refused(self, given: Any) -> None:
        with pytest.raises(TypeError, match="prop is a dict, not"):
            arguments_of(self.PROP, given)

    def test_reserved_fields_may_be_left_out(self) -> None:
        (array,) = arguments_of(Structs("desc", "aclrtMemAccessDesc"), [{"flags": 3, "location": {"id": 1, "type": 1}}])
        assert (array[0].flags, array[0].location.id, list(array[0].rsv)) == (3, 1, [0] * 12)

    def test_a_struct_becomes_a_dict(self) -> None:
        struct = ffi.new("aclrtPtrAttributes *", {"location": {"id": 3, "type": 1}, "pageSize": 4096})
        names = {"pageSize": "page_size"}
        assert as_dict(struct, names) == {"location": {"id": 3, "type": 1}, "page_size": 4096, "rsv": [0, 0, 0, 0]}

    def test_characters_become_bytes(self) -> None:
        assert as_dict(ffi.new("aclrtUuid *", {"bytes": b"0123456789abcdef"})) == {"bytes": b"0123456789abcdef"}


class TestConfig:
    def test_an_empty_dict_is_null(self) -> None:
        assert arguments_of(Config(), {}) == [ffi.NULL]

    def test_attributes(self) -> None:
        content = {"numAttrs": 1, "attrs": [{"attr": 1, "value": {"moduleId": 33}}]}
        (config,) = arguments_of(Config(), content)
        assert (config.numAttrs, config.attrs[0].attr, config.attrs[0].value.moduleId) == (1, 1, 33)

    def test_no_attributes(self) -> None:
        (config,) = arguments_of(Config(), {"numAttrs": 0, "attrs": []})
        assert (config.numAttrs, config.attrs) == (0, ffi.NULL)

    @pytest.mark.parametrize(
        "content",
        [
            {"numAttrs": 1},
            {"attrs": []},
            {"numAttrs": 1, "attrs": []},
            {"numAttrs": 1, "attrs": [3]},
            {"numAttrs": 1, "attrs": [{"attr": 1}]},
            [],
        ],
    )
    def test_a_config_that_is_not_whole_is_refused(self, content: Any) -> None:
        with pytest.raises(TypeError, match="cfg"):
            arguments_of(Config(), content)


class TestKeys:
    @pytest.mark.parametrize("length", [1024, 1 << 40, -1])
    def test_a_length_without_room_is_a_wrong_parameter(self, length: int) -> None:
        call = Call((length,))
        OutKey().add(call)
        assert call.refusal == AclErrorCode.ACL_ERROR_INVALID_PARAM
        assert [output() for output in call.outputs] == [""]

    def test_a_length_of_65_has_room(self) -> None:
        call = Call((65,))
        OutKey().add(call)
        assert call.refusal is None
        assert call.arguments[1] == 65


class TestFunction:
    @pytest.mark.parametrize("given", [(), (1,), (1, 2, 3)])
    def test_a_wrong_number_of_arguments_is_refused(self, given: tuple[object, ...]) -> None:
        malloc = make_function(BY_MODULE["acl.rt"]["malloc"])
        with pytest.raises(TypeError, match=rf"malloc\(size, policy\) takes 2 arguments, not {len(given)}"):
            malloc(*given)

    def test_it_shows_what_it_is(self) -> None:
        malloc = make_function(BY_MODULE["acl.rt"]["malloc"])
        assert (malloc.__name__, malloc.__qualname__) == ("malloc", "acl.rt.malloc")
        assert malloc.__doc__ == "malloc(size, policy): `aclrtMalloc` in pyACL's manner."

    def test_what_cannot_be_called_is_no_callback(self) -> None:
        with pytest.raises(TypeError, match="function cannot be called: int"):
            make_function(BY_MODULE["acl.rt"]["launch_host_func"])(0, 3, None)


class TestConstants:
    def test_they_have_the_values_of_the_headers(self) -> None:
        assert (acl.ACL_MEM_MALLOC_HUGE_FIRST, acl.ACL_MEMCPY_HOST_TO_DEVICE, acl.ACL_HBM_MEM) == (0, 1, 1)
        assert (acl.ACL_EVENT_TIME_LINE, acl.ACL_ERROR_RT_MEMORY_ALLOCATION, acl.ACL_SUCCESS) == (8, 207001, 0)
        assert type(acl.ACL_MEM_MALLOC_HUGE_FIRST) is int

    def test_no_two_constants_share_a_name(self) -> None:
        from acl_shim.pyacl.acl._constants import CONSTANTS

        header = (REPOSITORY / "native/include/acl/acl_rt.h").read_text()
        for name in ("ACL_STREAM_FAST_SYNC", "ACL_HOST_REG_PINNED", "ACL_RT_MEM_ACCESS_FLAGS_READWRITE"):
            assert name in header
            assert name in CONSTANTS


class TestUtil:
    def test_an_array_and_back(self) -> None:
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        ptr = util.numpy_to_ptr(values)
        again = util.ptr_to_numpy(ptr, (3, 4), np.dtype(np.float32).num)
        assert again.tolist() == values.tolist()
        again[1, 2] = 99
        assert values[1, 2] == 99

    @pytest.mark.parametrize("code", "?bBhHiIlLqQefdFD")
    def test_every_number_type(self, code: str) -> None:
        values = np.ones(3, code)
        again = util.ptr_to_numpy(util.numpy_to_ptr(values), (3,), values.dtype.num)
        assert (again.dtype, again.tolist()) == (values.dtype, values.tolist())

    def test_pyacls_number_of_bytes_is_1(self) -> None:
        content = bytes([1, 2, 255])
        assert util.ptr_to_numpy(util.bytes_to_ptr(content), (3,), 1).tolist() == [1, 2, -1]

    def test_bytes_and_back(self) -> None:
        content = b"some \0 bytes"
        ptr = util.bytes_to_ptr(content)
        copy = util.ptr_to_bytes(ptr, len(content))
        assert copy == content
        assert util.ptr_to_bytes(ptr + 5, 1) == b"\0"

    def test_the_pointer_is_that_of_the_object_itself(self) -> None:
        content = bytes(range(200, 204))
        ffi.cast("unsigned char *", util.bytes_to_ptr(content))[0] = 7
        assert content[0] == 7

    def test_nothing(self) -> None:
        assert util.ptr_to_bytes(0, 0) == b""
        assert util.ptr_to_numpy(0, (0, 4), 1).shape == (0, 4)

    def test_an_array_of_another_type_has_an_address(self) -> None:
        values = np.arange(4).astype(ml_dtypes.bfloat16)
        assert util.ptr_to_bytes(util.numpy_to_ptr(values), 8) == values.tobytes()

    @pytest.mark.parametrize("given", [b"x", [1], None, 3, memoryview(b"x")])
    def test_numpy_to_ptr_takes_arrays_only(self, given: Any) -> None:
        with pytest.raises(TypeError, match="numpy_to_ptr takes a numpy array"):
            util.numpy_to_ptr(given)

    def test_numpy_to_ptr_takes_no_gaps(self) -> None:
        with pytest.raises(ValueError, match="not C-contiguous"):
            util.numpy_to_ptr(np.zeros((4, 4))[:, 1])

    @pytest.mark.parametrize("given", [bytearray(b"x"), "x", np.zeros(1), 0])
    def test_bytes_to_ptr_takes_bytes_only(self, given: Any) -> None:
        with pytest.raises(TypeError, match="bytes_to_ptr takes bytes"):
            util.bytes_to_ptr(given)

    @pytest.mark.parametrize(("shape", "dtype"), [((1,), 17), ((1,), 999), ((-1,), 1)])
    def test_ptr_to_numpy_refuses_what_is_no_array(self, shape: tuple[int, ...], dtype: int) -> None:
        with pytest.raises(ValueError):
            util.ptr_to_numpy(1, shape, dtype)

    @pytest.mark.parametrize(("ptr", "shape", "dtype"), [(1.5, (1,), 1), (1, 3, 1), (1, (1,), "int8"), (1, (1.5,), 1)])
    def test_ptr_to_numpy_refuses_wrong_types(self, ptr: Any, shape: Any, dtype: Any) -> None:
        with pytest.raises(TypeError):
            util.ptr_to_numpy(ptr, shape, dtype)

    def test_ptr_to_bytes_refuses_a_negative_size(self) -> None:
        with pytest.raises(ValueError, match="size is -1 bytes"):
            util.ptr_to_bytes(1, -1)

    def test_scripts_find_the_functions_by_dir(self) -> None:
        assert {"numpy_to_ptr", "bytes_to_ptr", "ptr_to_numpy", "ptr_to_bytes"} <= set(dir(util))


def test_the_folder_on_the_path_holds_nothing_but_the_package() -> None:
    folder = Path(importlib.import_module("acl_shim.pyacl").__file__ or "").parent
    found = {one.name for one in folder.iterdir()} - {"__pycache__"}
    assert found == {"__init__.py", "acl"}
    for module in ("__init__", "rt", "util"):
        tree = ast.parse((folder / "acl" / f"{module}.py").read_text())
        inside = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0]
        assert not [node for node in inside if (node.module or "").startswith("acl_shim.pyacl")]  # else two copies
