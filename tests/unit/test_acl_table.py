"""The function table: cdef, C table, protocol, public headers and the list of the reference agree."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from acl_shim._acl import ffi, lib

from acl_shim.api import AclApi
from acl_shim.errors import StateError
from acl_shim.structs import new_module_config, new_ptr_attributes
from acl_shim.table import (
    NULL,
    bind,
    close_table,
    function_names,
    has_function,
    new_cell,
    new_figures,
    new_live,
    new_text,
    open_table,
    read_text,
    refusing,
    table_path,
)
from tests.helpers.fake_acl import fake_library
from tests.helpers.shared import REPOSITORY, shared_path

NAMES = tuple(function_names())
OPAQUE = {
    "aclrtAllocatorDesc",
    "aclrtAllocator",
    "aclrtContext",
    "aclrtStream",
    "aclrtEvent",
    "aclrtNotify",
    "aclrtDrvMemHandle",
    "aclrtMemPool",
}
FUNCTIONS = {
    *(f"aclrtAllocator{what}Func" for what in ("Alloc", "Free", "AllocAdvise", "GetAddrFromBlock")),
    "aclrtCallback",
    "aclrtHostFunc",
    "aclrtExceptionInfoCallback",
    "aclrtStreamStateCallback",
}
MODEL_POINTERS = {"aclmdlDesc *", "aclmdlConfigHandle *", "aclmdlDataset *"}
POINTERS = {
    *("void *", "const void *", "aclDataBuffer *", "const aclDataBuffer *", "const aclrtExceptionInfo *"),
    *MODEL_POINTERS,
    *(f"const {pointer}" for pointer in MODEL_POINTERS),
}
VALUES = {
    "hostacl_calls": 0,
    "aclDataTypeSize": 0,
    "aclFloat16ToFloat": 0,
    "aclFloatToFloat16": 0,
    "aclCreateDataBuffer": 0,
    "aclrtAllocatorCreateDesc": 0,
    "aclGetDataBufferAddr": 0,
    "aclGetDataBufferSize": 0,
    "aclGetDataBufferSizeV2": 0,
    "aclAppLog": None,
    **{f"aclmdlCreate{what}": 0 for what in ("ConfigHandle", "Desc", "Dataset")},
    **{f"aclmdlGetNum{side}s": 0 for side in ("Input", "Output")},
    **{f"aclmdlGet{side}SizeByIndex": 0 for side in ("Input", "Output")},
    **{f"aclmdlGet{side}{what}": -1 for side in ("Input", "Output") for what in ("Format", "DataType")},
    **{
        f"aclrtGet{what}FromExceptionInfo": 0xFFFFFFFF
        for what in ("TaskId", "StreamId", "ThreadId", "DeviceId", "ErrorCode")
    },
}
"""Functions whose result is no code -> what stands for the result where the library lacks them."""
STRUCTS = (
    "aclrtMemLocation",
    "aclrtPtrAttributes",
    "aclrtMallocAttribute",
    "aclrtMallocConfig",
    "aclrtMemUsageInfo",
    "aclrtMemcpyBatchAttr",
    "aclrtPhysicalMemProp",
    "aclrtMemAccessDesc",
    "aclrtMemFabricHandle",
    "aclrtUuid",
    "aclrtUtilizationInfo",
    "aclrtIpcEventHandle",
    "aclrtMemPoolProps",
)
UNLISTED = {
    "aclGetDataBufferSize",
    "aclGetDataBufferSizeV2",
    "aclrtGetUserDevIdByLogicDevId",
    "aclrtGetPhyDevIdByLogicDevId",
}
"""Functions of the public headers that the reference has without their prototypes."""
Prototype = tuple[str, list[tuple[str, str]]]


def prototypes(text: str, prefix: str) -> dict[str, Prototype]:
    """Return name -> (result, [(type, parameter)]) of the C prototypes in a text."""
    found: dict[str, Prototype] = {}
    text = re.sub(r"/\*.*?\*/|\s*__attribute__\(\([^;\n]*?\)\)(?=;)", "", text, flags=re.DOTALL)
    for result, name, inside in re.findall(rf"([\w ]+[\s*]+)\b({prefix}\w+)\s*\(([^;{{}}]*)\);", text):
        inside = inside.replace(", ...", "")
        parameters = [] if inside.strip() in ("", "void") else [parameter(part) for part in inside.split(",")]
        found[name] = (spelled(result), parameters)
    return found


def spelled(c_type: str) -> str:
    return re.sub(r"\s*\*", " *", " ".join(c_type.split())).replace("* *", "**").replace("* const", "*const").strip()


def parameter(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?)(\w+)", text.strip(), flags=re.DOTALL)
    assert match, text
    return spelled(match[1]), match[2]


def shim_type(c_type: str) -> str:
    """Return how a type of the public header is spelled in the cdef."""
    if c_type == "aclrtIpcEventHandle":
        return "const aclrtIpcEventHandle *"  # a struct by value
    if c_type.removeprefix("const ") in OPAQUE | FUNCTIONS or c_type in POINTERS:
        return "uintptr_t"
    if c_type == "aclFloat16":
        return "uint16_t"
    if c_type in ("const int32_t", "int32_t *const"):
        return c_type.removeprefix("const ").removesuffix("const")
    if c_type in ("void **", *(f"{opaque} *" for opaque in OPAQUE | FUNCTIONS)):
        return "uintptr_t *"
    if c_type == "aclError" or c_type in C_ENUMS:
        return "int"
    if c_type.removesuffix(" *") in C_ENUMS:
        return "int *"
    return c_type


HEADERS = "\n".join(
    re.sub(r"\b(ACL_FUNC_VISIBILITY|HOSTACL_API)\b", "", (REPOSITORY / "native/include" / name).read_text())
    for name in ("acl/acl_base.h", "acl/acl_rt.h", "acl/acl_rt_allocator.h", "acl/acl_mdl.h", "hostacl.h")
)
C_ENUMS = set(re.findall(r"typedef enum \w*\s*\{[^}]*\}\s*(\w+);", HEADERS))
HEADER = prototypes(HEADERS, "(?:acl|hostacl_)")
CDEF = prototypes((REPOSITORY / "acl_shim/_acl.cdef.h").read_text(), "acl_(?:acl|hostacl_)")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("whole") / "libascendcl.so")


@pytest.fixture(scope="module")
def table(whole: Path) -> Any:
    opened = open_table(str(whole))
    assert not isinstance(opened, str)
    return opened


class TestAgreement:
    def test_the_table_has_functions(self) -> None:
        assert len(NAMES) == len(set(NAMES)) >= 140

    def test_cdef_and_table_name_the_same_functions(self) -> None:
        assert set(CDEF) == {f"acl_{name}" for name in NAMES}

    def test_the_protocol_names_the_same_functions(self) -> None:
        methods = [name for name in dir(AclApi) if name.startswith(("acl", "hostacl_"))]
        assert sorted(methods) == sorted(NAMES)

    @pytest.mark.parametrize("name", NAMES)
    def test_the_protocol_has_the_parameters_of_the_cdef(self, name: str) -> None:
        parameters = list(inspect.signature(getattr(AclApi, name)).parameters.values())[1:]
        assert len(parameters) == len(CDEF[f"acl_{name}"][1]) - 1
        assert all(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in parameters)

    @pytest.mark.parametrize("name", NAMES)
    def test_the_protocol_returns_a_code_a_count_or_a_text(self, name: str) -> None:
        wanted = {"const char *": str | None, "float": float, "void": None}.get(CDEF[f"acl_{name}"][0], int)
        assert inspect.signature(getattr(AclApi, name)).return_annotation == wanted

    @pytest.mark.parametrize("name", NAMES)
    def test_the_cdef_has_the_prototype_of_the_public_header(self, name: str) -> None:
        result, parameters = HEADER[name]
        wanted = (shim_type(result), [("const acl_table *", "table"), *((shim_type(t), p) for t, p in parameters)])
        assert CDEF[f"acl_{name}"] == wanted

    @pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("hostacl_")])
    def test_the_public_header_has_the_prototype_of_the_reference(self, name: str) -> None:
        functions = json.loads(shared_path("reference/acl_runtime.json").read_text())["functions"]
        entries = [function for function in functions if function["name"] == name]
        if name in UNLISTED or name.startswith("aclmdl"):  # the reference is of the runtime part
            assert not entries
            return
        (entry,) = entries
        wanted = spelled(entry["returns"]), [(spelled(p["type"]), p["name"]) for p in entry["params"]]
        assert HEADER[name] == wanted

    @pytest.mark.parametrize("name", NAMES)
    def test_the_compiled_function_takes_the_parameters_of_the_cdef(self, name: str) -> None:
        compiled = ffi.typeof(getattr(lib, f"acl_{name}"))
        assert [spelled(arg.cname) for arg in compiled.args] == [
            spelled(ffi.getctype(c_type.removeprefix("const "))) for c_type, _ in CDEF[f"acl_{name}"][1]
        ]

    @pytest.mark.parametrize("struct", STRUCTS)
    def test_a_struct_has_the_layout_of_the_reference(self, struct: str) -> None:
        layout = json.loads(shared_path("reference/acl_runtime.json").read_text())["struct_layout"][struct]
        assert ffi.sizeof(struct) == layout["size"]
        assert ffi.alignof(struct) == layout["align"]
        assert {name: ffi.offsetof(struct, name) for name, _ in ffi.typeof(struct).fields} == layout["offsets"]


class TestOpenTable:
    def test_a_library_is_found_by_its_path(self, table: Any, whole: Path) -> None:
        assert table_path(table) == str(whole)

    @pytest.mark.parametrize("name", ["/nowhere/libx.so", "libnobodyhasthis.so"])
    def test_a_missing_library_gives_the_loaders_reason(self, name: str) -> None:
        assert "No such file" in str(open_table(name))

    def test_a_file_that_is_no_library_gives_the_loaders_reason(self, tmp_path: Path) -> None:
        file = tmp_path / "text.so"
        file.write_text("no library" * 100)
        assert "invalid ELF header" in str(open_table(str(file)))

    def test_a_path_with_bytes_that_are_no_text_is_passed_on(self, whole: Path, tmp_path: Path) -> None:
        odd = tmp_path / "od\udce9.so"
        odd.write_bytes(whole.read_bytes())
        opened = open_table(str(odd))
        assert not isinstance(opened, str)
        assert table_path(opened) == str(odd)

    def test_a_closed_library_is_unloaded(self, tmp_path: Path) -> None:
        file = fake_library(tmp_path / "libgone.so")
        opened = open_table(str(file))
        assert not isinstance(opened, str)
        assert bytes(file) in Path("/proc/self/maps").read_bytes()
        close_table(opened)
        assert bytes(file) not in Path("/proc/self/maps").read_bytes()

    def test_two_libraries_have_a_table_each(self, tmp_path: Path) -> None:
        counts = []
        for devices in (3, 5):
            opened = open_table(str(fake_library(tmp_path / f"lib{devices}.so", devices=devices)))
            assert not isinstance(opened, str)
            cell = new_cell("uint32_t *")
            assert bind(opened, "x").aclrtGetDeviceCount(cell) == 0
            counts.append(cell[0])
        assert counts == [3, 5]


class TestMissingFunction:
    def test_presence_is_known_for_any_name(self, table: Any) -> None:
        assert has_function(table, "aclrtMalloc")
        assert not has_function(table, "aclrtMallocAlign32")
        assert not has_function(table, "aclrtMapMem")
        assert not has_function(table, "")

    def test_the_face_says_function_and_library_before_the_call(self, table: Any) -> None:
        face = bind(table, "/lib/libascendcl.so")
        with pytest.raises(StateError, match=r"/lib/libascendcl\.so has no aclrtMallocAlign32: ask supports"):
            face.aclrtMallocAlign32(new_cell("uintptr_t *"), 32, 0)
        with pytest.raises(StateError, match="has no aclGetRecentErrMsg"):
            face.aclGetRecentErrMsg()

    @pytest.mark.parametrize("name", ["query_stream", "query_event", "record_event"])
    def test_calls_in_a_context_say_the_same(self, table: Any, name: str) -> None:
        with pytest.raises(StateError, match=r"x has no aclrt\w+(Query|Event)\w*: ask supports"):
            getattr(bind(table, "x"), name)(1, 2, 3)

    @pytest.mark.parametrize("name", NAMES)
    def test_c_answers_a_code_of_its_own_and_never_calls_null(self, name: str) -> None:
        bare = open_table("libm.so.6")
        wrapper = getattr(lib, f"acl_{name}")
        zeros = [ffi.NULL if arg.kind == "pointer" else 0 for arg in ffi.typeof(wrapper).args[1:]]
        answer = wrapper(bare, *zeros)
        if ffi.typeof(wrapper).result.kind == "pointer":
            assert answer == ffi.NULL
        else:
            assert answer == VALUES.get(name, lib.ACL_SHIM_NO_SYMBOL)

    def test_its_code_is_no_acl_code(self) -> None:
        codes = {int(value) for value in re.findall(r"#define ACL_\w+ (\d+)", HEADERS)}
        assert lib.ACL_SHIM_NO_SYMBOL < 0
        assert lib.ACL_SHIM_NO_SYMBOL not in codes


class TestFace:
    def test_numbers_pass_as_they_are(self, table: Any) -> None:
        face = bind(table, "x")
        cell = new_cell("uintptr_t *")
        assert face.aclrtMallocHost(cell, 64) == 0
        addr = cell[0]
        assert face.aclrtMemset(addr, 64, 0x5A, 64) == 0
        assert ffi.buffer(ffi.cast("char *", addr), 64)[:] == b"\x5a" * 64
        assert face.aclrtMemset(addr, 8, 0, 9) == 107000
        assert face.aclrtFreeHost(addr) == 0

    @pytest.mark.parametrize("addr", [0, 1 << 44, (1 << 63) + 5, (1 << 64) - 1])
    def test_an_address_of_64_bits_keeps_all_of_them(self, table: Any, addr: int) -> None:
        face = bind(table, "x")
        assert face.aclrtSetCurrentContext(addr) == 0
        cell = new_cell("uintptr_t *")
        assert face.aclrtGetCurrentContext(cell) == 0
        assert cell[0] == addr

    @pytest.mark.parametrize("addr", [-1, 1 << 64])
    def test_a_number_that_is_no_address_is_refused_before_the_call(self, table: Any, addr: int) -> None:
        with pytest.raises(OverflowError):
            bind(table, "x").aclrtFree(addr)

    def test_figures_of_memory_come_in_one_crossing(self, table: Any) -> None:
        figures = new_figures()
        assert bind(table, "x").mem_info(1, 1, figures) == 0
        assert list(figures) == [1, 2]

    def test_a_text_comes_back_as_text(self, table: Any) -> None:
        assert bind(table, "x").aclrtGetSocName() == "Ascend-made-here"

    def test_the_null_pointer_passes(self, table: Any) -> None:
        assert bind(table, "x").aclInit(NULL) == 0

    def test_a_refusing_face_gives_its_reason(self) -> None:
        with pytest.raises(StateError, match="aclrtFree was not called: it is over"):
            refusing("it is over").aclrtFree(1)


class TestCells:
    @pytest.mark.parametrize("ctype", ["uintptr_t *", "int *", "int32_t *", "uint32_t *", "uint64_t *", "size_t *"])
    def test_a_cell_starts_at_zero(self, ctype: Any) -> None:
        assert new_cell(ctype)[0] == 0

    def test_structs_start_zeroed(self) -> None:
        attributes = new_ptr_attributes()
        assert (attributes.location.id, attributes.location.type, attributes.pageSize) == (0, 0, 0)
        assert new_live().devices[63].set_count == 0

    def test_a_text_ends_at_its_first_zero(self) -> None:
        text = new_text(8)
        assert read_text(text) == ""
        ffi.memmove(text, b"ab\xff\0cd", 6)
        assert read_text(text) == "ab\ufffd"

    def test_a_module_config_names_the_module(self) -> None:
        config, attributes = new_module_config(33)
        assert (config.numAttrs, config.attrs[0].attr, config.attrs[0].value.moduleId) == (1, 1, 33)
        assert config.attrs == attributes
