"""The replay of recorded calls: the shared file under both profiles, and small files that must pass or must fail."""

import copy
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.golden import acl_calls, acl_deviations, runner
from tests.golden.acl_headers import INCLUDE, constants, declarations, headers, interface, names
from tests.golden.facts import Report, State, place_text
from tests.helpers.shared import shared_path

Document = dict[str, Any]
Step = dict[str, Any]
Check = Callable[[Document], Report]

PROFILE = {
    "runtime": "a recording on Ascend910B2",
    "devices": 3,
    "memory_per_device": {"normal_pages_4k": 1 << 30, "huge_pages_2m": 4 << 30, "giant_pages_1g": "none here"},
}
CFG_LIBRARY = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdarg.h>
#include <stdio.h>
#include "acl/acl.h"

static char text[64];

void aclAppLog(aclLogLevel level, const char *func, const char *file, uint32_t line, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    text[vsnprintf(text, 60, fmt, args)] = level ? 0 : *func;
    va_end(args);
}
aclError aclInit(const char *path) { return path ? (int)strlen(path) : 0; }
aclError aclFinalize(void) { abort(); }
aclError aclrtResetDevice(int32_t id) { for (;;) pause(); return id; }
aclError aclrtGetDeviceCount(uint32_t *count) { memset(count, 1, 8); return 0; }
aclError aclrtGetDevice(int32_t *id) { *id = -5; return 0; }
const char *aclGetRecentErrMsg(void) { return "EZ0001: new\\nxEZ0002: no\\nEZ0003: old"; }
const char *aclrtGetSocName(void) { return *text ? text : NULL; }
aclError aclrtEventElapsedTime(float *ms, aclrtEvent from, aclrtEvent to) { *ms = from < to ? 2.5f : -1; return 0; }
aclError aclrtMemPoolGetAttr(aclrtMemPool pool, aclrtMemPoolAttr attr, void *value) {
    *(uint64_t *)value = 1ull << 40; return pool ? (int)attr : -1;
}
aclError aclrtIpcMemGetExportKey(void *block, size_t size, char *key, size_t len, uint64_t flags) {
    memset(key, 'k', len - 1); key[len - 1] = 0; return block == (void *)size && flags == UINT64_MAX ? 0 : 1;
}
aclError aclrtIpcMemImportByKey(void **block, const char *key, uint64_t flags) {
    *block = (void *)(strlen(key) + flags); return 0;
}
aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle) {
    memset(handle, 7, sizeof(*handle)); return event != NULL;
}
aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event) {
    *event = (void *)(long)(handle.reserved[0] + handle.reserved[63]); return 0;
}
aclError aclrtMallocWithCfg(void **block, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    *block = (void *)(uintptr_t)cfg->attrs[1].value.deviceId; return cfg->attrs[0].value.moduleId + (int)cfg->numAttrs;
}
aclError aclrtMemGetAccess(void *at, aclrtMemLocation *location, uint64_t *flag) { return at && location && flag; }
aclError aclrtMemSetAccess(void *at, size_t size, aclrtMemAccessDesc *desc, size_t count) {
    return desc[0].rsv[0] + desc[0].rsv[11] + (int)desc[0].location.id + (int)desc[count - 1].flags;
}
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
    *attributes = (aclrtPtrAttributes){.location = {3, ACL_MEM_LOCATION_TYPE_DEVICE}, .pageSize = 4096, .rsv = {1, 2}};
    return ptr == NULL;
}
"""


def call(fn: str, *args: Any, ret: Any = 0, **more: Any) -> Step:
    return {"fn": fn, "args": list(args), "ret": ret, **more}


def out(name: str) -> Mapping[str, str]:
    return {"out": name}


def var(name: str, **add: int) -> Mapping[str, Any]:
    return {"var": name, **add}


def file_of(*sequences: list[Step], **more: Any) -> Document:
    entries = [{"id": f"s{index}", "steps": steps} for index, steps in enumerate(sequences)]
    return {"sequences": entries, **more}


def findings(report: Report) -> str:
    unknown = [f"unknown {place_text(place)}" for place, state in report.states.items() if state is State.UNKNOWN]
    return "\n".join([f"{place_text(place)}: {text}" for place, text in report.differences] + unknown)


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(document: Document) -> Report:
        path = tmp_path / "calls.json"
        path.write_text(json.dumps(document))
        return runner.check_file(path)

    return run


@pytest.fixture
def made_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the calls to a library of this test, which answers every form that the host runtime may not have."""
    source, library = tmp_path / "made.c", tmp_path / "libmade.so"
    source.write_text(CFG_LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-I{INCLUDE}", "-o", library, source], check=True)
    monkeypatch.setenv("GEVAR_ACL", str(library))


# --- the shared file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["card", "strict"])
def test_shared_recording(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_path("golden/acl_calls.json")
    status = runner.main(["--profile", profile, str(path)])
    output = capsys.readouterr().out
    assert status == 0, output
    assert "0 not compared, 0 unknown or unreached, 0 differences" in output
    assert ("differs as documented" in output) == (profile == "strict")


# --- small files that pass --------------------------------------------------------------------------------------------

MALLOC = call("aclrtMalloc", out("p"), 4096, "ACL_MEM_MALLOC_NORMAL_ONLY", out={"p": {"ptr": "nonnull", "align": 4096}})
COPY_IN = call("aclrtMemcpy", var("p", add=8), 64, var("h"), 16, "ACL_MEMCPY_HOST_TO_DEVICE")
COPY_OUT = call("aclrtMemcpy", var("back", add=4), 60, var("p", add=8), 16, "ACL_MEMCPY_DEVICE_TO_HOST")
GOOD = [
    call("aclrtGetDevice", out("d"), ret=107002, name="ACL_ERROR_RT_CONTEXT_NULL", out={"d": "unwritten"}),
    call("aclrtSetDevice", 1, basis="oracle-run", source="x", layer="acl", driver_code=3, errno=2, sim=["kernel"]),
    call("aclrtGetDevice", out("d"), out={"d": {"value": 1}}, also=[{"basis": "b", "agrees": True}], note="n"),
    call("aclrtGetDeviceCount", out("n"), out={"n": {"profile_value": 3}}),
    call("aclrtGetSocName", ret={"profile_value": "Ascend910B2"}),
    call("aclrtGetRunMode", out("m"), out={"m": {"value": 1, "name": "ACL_HOST"}}),
    {"op": "host_buffer", "name": "h", "size": 64, "fill": 17},
    {"op": "host_buffer", "name": "back", "size": 64, "fill": 0},
    call("aclrtGetMemInfo", "ACL_HBM_MEM_NORMAL", out("f0"), out("t"), out={"t": {"profile_value": 1 << 30}}),
    MALLOC,
    call(
        "aclrtGetMemInfo", "ACL_HBM_MEM_NORMAL", out("f1"), None, ret=100000,
        name="ACL_ERROR_INVALID_PARAM", out={"f1": "unwritten"},
    ),
    COPY_IN,
    COPY_OUT,
    {"op": "host_check", "name": "back", "size": 16, "offset": 4, "equals": 17, "ok": True},
    {"op": "host_check", "name": "back", "size": 16, "equals": 17, "ok": False},
    {"op": "host_fill", "name": "back", "size": 64, "fill": 9},
    {"op": "host_check", "name": "back", "size": 64, "equals": 9, "ok": True},
    {"op": "sleep_ms", "ms": 1},
    call(
        "aclrtPointerGetAttributes", var("p"), out("a"),
        out={"a": {"location": {"id": 1, "type": 1}, "pageSize": 4096}}, out_basis="source-read",
    ),
    {
        "op": "thread",
        "steps": [
            call("aclrtGetDevice", out("d"), ret=107002, out={"d": "unwritten"}),
            call("aclrtSetDevice", 1),
            call("aclrtMalloc", out("q"), 64, 0, out={"q": {"ptr": "nonnull", "reused": "p"}}),
            call("aclrtFree", var("p")),
        ],
    },
    call("aclrtFree", var("q")),
    call("aclrtFree", var("d"), ret=100000),
    call("aclrtFree", var("q"), ret=0, ret_any=[0, 107000], name="ACL_SUCCESS"),
    call("aclrtMalloc", out("q"), 1 << 50, -1, ret=207001, out={"q": "null"}),
    call("aclrtSetDevice", 99, ret=107001),
    call("aclGetRecentErrMsg", ret={"message_ids": ["EE1003", "EL0019", "EL0003", "EH0008", "EH0008"]}),
    call("aclGetRecentErrMsg", ret=None),
    call("aclrtResetDevice", 1),
    call("aclrtResetDevice", 1),
]  # fmt: skip


def good_document() -> Document:
    document = file_of(
        copy.deepcopy(GOOD),
        [call("aclrtGetDevice", out("d"), ret=107002), call("aclrtSetDevice", 2), call("aclrtSetDevice", 2)],
        [call("aclrtGetDevice", out("d"), ret=107002)],
        title="made by a test",
        schema={"sequence": "what it is"},
        profile=PROFILE,
        driver_codes={"3": "invalid value"},
        general=[{"topic": "t", "fact": "f"}],
    )
    document["sequences"][0] |= {"group": "g", "title": "t", "note": "n"}
    return document


def test_good_file(check: Check) -> None:
    report = check(good_document())
    assert findings(report) == ""
    assert report.passed
    steps = {place[3] for place, state in report.states.items() if state is State.COMPARED and place[1] == 0}
    silent = {index for index, step in enumerate(GOOD) if step.get("op") not in (None, "host_check", "thread")}
    assert steps == set(range(len(GOOD))) - silent
    assert report.reasons == {"reuse of an address is information only": 1}


def test_the_numbers_a_file_states_about_itself(check: Check) -> None:
    steps = [
        call("aclrtSetDevice", 0, basis="b"),
        call("aclrtSetDevice", 0, basis="c"),
        call("aclrtGetSocName", ret={"profile_value": "Ascend910B1"}, basis="c"),
    ]
    document = file_of(steps, [{"op": "thread", "steps": [call("aclrtSetDevice", 9, ret=107001, basis="b")]}])
    for entry in document["sequences"]:
        entry["group"] = "device"
    document["counts"] = {
        "sequences": 2, "calls": 4, "functions": 2,
        "by_basis": {"b": 2, "c": 2}, "by_group": {"device": 2}, "by_code": {"0": 2, "107001": 1, "text": 1},
    }  # fmt: skip
    assert check(document).passed
    for key, wrong in (("calls", 3), ("functions", 3), ("by_code", {"0": 2, "107001": 1})):
        changed = document | {"counts": document["counts"] | {key: wrong}}
        assert f"counts.{key}" in findings(check(changed))


def test_each_sequence_has_its_own_process_and_pages(check: Check) -> None:
    ask = [
        call("aclrtSetDevice", 0),
        call("aclrtGetMemInfo", "ACL_HBM_MEM_HUGE1G", out("f"), out("t"), out={"t": {"profile_value": 5 << 30}}),
        call("aclrtMalloc", out("p"), 1 << 30, "ACL_MEM_MALLOC_HUGE1G_ONLY"),
    ]
    plain = [ask[0], call("aclrtMalloc", out("p"), 1 << 30, "ACL_MEM_MALLOC_HUGE1G_ONLY", ret=207000)]
    document = file_of(plain, ask, plain, profile=PROFILE)
    document["sequences"][1]["profile_override"] = {"giant_pages_1g": 5}
    report = check(document)
    assert findings(report) == ""
    document["sequences"][1]["profile_override"] |= {"devices": 1}
    assert "aclrtSetDevice: ret: expected 0, found 107001" in findings(
        check(document | {"sequences": [document["sequences"][1] | {"steps": [call("aclrtSetDevice", 1)]}]})
    )
    document["sequences"][1]["profile_override"]["fans"] = 2
    assert findings(check(document)) == "unknown sequences[1].profile_override.fans"


@pytest.mark.usefixtures("made_library")
def test_every_form_of_argument_and_result(check: Check) -> None:
    attrs = {
        "array": "aclrtMallocAttribute",
        "items": [{"value": {"moduleId": 7}}, {"value": {"deviceId": var("size")}}],
    }
    config = {"struct": "aclrtMallocConfig", "fields": {"attrs": attrs, "numAttrs": 2}}
    access = {"array": "aclrtMemAccessDesc", "items": [
        {"rsv": [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5], "location": {"id": 3}}, {"flags": "ACL_RT_MEM_ACCESS_FLAGS_READ"},
    ]}  # fmt: skip
    attributes = {"location": {"id": 3, "type": 1}, "pageSize": 4096, "rsv": [1, 2, 0, 0]}
    steps = [
        call("aclInit", {"string": "four"}, ret=4),
        call("aclInit", None),
        call("aclrtGetDevice", out("d"), out={"d": {"value": -5}}),
        call("aclGetRecentErrMsg", ret={"message_ids": ["EZ0001", "EZ0003"]}),
        call("aclrtGetSocName", ret=None),
        call("aclAppLog", "ACL_INFO", None, None, 3, {"string": "%d%s%lld"}, -7, {"string": "x"}, 1 << 40, ret=None),
        call("aclrtGetSocName", ret={"profile_value": "-7x1099511627776"}),
        call("aclrtEventElapsedTime", out("ms"), 1, 2, out={"ms": {"sign": "positive"}}),
        call("aclrtEventElapsedTime", out("ms"), 2, 1, out={"ms": {"sign": "negative", "nonzero": True}}),
        call("aclrtMemPoolGetAttr", 8, 5, out("v"), ret=5, out={"v": {"value": 1 << 40}}),
        call("aclrtIpcMemGetExportKey", 77, 77, out("key"), 65, -1),
        call("aclrtIpcMemImportByKey", out("size"), var("key"), 4, out={"size": {"value": 68}}),
        call("aclrtIpcMemImportByKey", out("more"), {"string": "ab"}, 100, out={
            "more": {"same_as": "size", "add": 34}}),
        call("aclrtIpcMemImportByKey", out("less"), {"string": "ab"}, 0, out={
            "less": {"profile_value": 5, "delta_from": "size", "delta": -66}}),
        call("aclrtIpcMemImportByKey", out("none"), {"string": ""}, 0, out={"none": "null"}),
        call("aclrtIpcGetEventHandle", None, out("handle")),
        call("aclrtIpcOpenEventHandle", var("handle"), out("event"), out={"event": {"value": 14}}),
        call("aclrtMallocWithCfg", out("p"), 1, 0, config, ret=9, out={"p": {"same_as": "size"}}),
        call("aclrtMemSetAccess", None, 0, access, 2, ret=13),
        call("aclrtMemGetAccess", 2**64 - 1, {"struct": "aclrtMemLocation", "fields": {}}, out("flag"), ret=1, out={
            "flag": "unwritten"}),
        call("aclrtPointerGetAttributes", var("p"), out("a"), out={"a": attributes}),
    ]  # fmt: skip
    report = check(file_of(steps))
    assert findings(report) == ""
    assert report.count(State.DOCUMENTATION) == 2  # the id, and the figure whose change is compared


# --- small files that fail --------------------------------------------------------------------------------------------

SET = call("aclrtSetDevice", 0)
COUNT = ("aclrtGetDeviceCount", out("n"))
BUFFER = {"op": "host_buffer", "name": "h", "size": 8, "fill": 1}
CHECK = {"op": "host_check", "name": "h", "size": 8}


WRONG: list[tuple[list[Step], str]] = [
    ([call("aclrtSetDevice", 0, ret=107001)], "step 0, aclrtSetDevice: ret: expected 107001, found 0"),
    ([SET, call("aclrtSetDevice", 9)], "step 1, aclrtSetDevice: ret: expected 0, found 107001"),
    ([call("aclrtSetDevice", 9, ret_any=[0, 5])], "ret: expected 0, found 107001"),
    ([call("aclrtSetDevice", 9, ret=107001, name="ACL_ERROR_RT_CONTEXT_NULL")], "number of ACL_ERROR_RT_CONTEXT_NULL"),
    ([call("aclrtSetDevice", 9, ret=107001, name="ACL_NO_SUCH")], "number of ACL_NO_SUCH: expected"),
    ([call("aclrtGetSocName", ret=None)], 'ret: expected null, found "Ascend910B1"'),
    ([call("aclrtGetSocName", ret={"profile_value": "x"})], 'ret: expected "x", found "Ascend910B1"'),
    ([call("aclGetRecentErrMsg", ret=None)], "ret: expected null, found"),
    ([call("aclGetRecentErrMsg", ret={"message_ids": ["EE1019"]})], 'expected ["EE1019"], found ["EE1018"]'),
    ([call(*COUNT, out={"n": "unwritten"})], 'out n: expected "unwritten", found 2'),
    ([call(*COUNT, out={"n": "null"})], 'out n: expected "null", found 2'),
    ([call(*COUNT, out={"n": {"value": 3}})], "out n: expected 3, found 2"),
    ([call(*COUNT, out={"n": {"value": 2, "name": "ACL_HOST"}})], "number of ACL_HOST: expected"),
    ([call(*COUNT, out={"n": {"profile_value": 3}})], "out n: expected 3, found 2"),
    ([call(*COUNT, out={"n": {"sign": "negative"}})], 'out n: expected "negative", found 2'),
    ([call(*COUNT, out={"n": {"nonzero": False}})], "out n: expected false, found 2"),
    ([call(*COUNT, out={"n": {"ptr": "null"}})], 'out n: expected "null", found 2'),
    ([call(*COUNT, out={"n": {"ptr": "nonnull", "align": 4}})], "out n: multiple of: expected 4, found 2"),
    ([call(*COUNT), call(*COUNT, out={"n": {"same_as": "n", "add": 1}})], "out n: distance"),
    ([call(*COUNT, out={"n": {"same_as": "m"}})], 'out n: distance: expected "m", found null'),
    ([call(*COUNT), call(*COUNT, out={"n": {"delta_from": "n", "delta": 1}})], "change: expected 1, found 0"),
    ([call(*COUNT, out={"n": {"delta_from": "m", "delta": 0}})], "change: expected 0, found null"),
    ([call(*COUNT, out={"n": "red"})], 'out n: unknown form "red"'),
    ([call(*COUNT, out={"n": 2})], "out n: unknown form 2"),
    ([call(*COUNT, out={"m": {"value": 2}})], "m is no out argument of this call"),
    ([call("aclrtGetDevice", out("d"), ret=107002, out={"d": {"value": 0}})], 'found "unwritten"'),
    ([call("aclrtGetDevice", out("d"), ret=107002, out={"d": "null"})], 'out d: expected "null", found null'),
    ([BUFFER, CHECK | {"equals": 2, "ok": True}], "all bytes equal: expected true, found false"),
    ([BUFFER, CHECK | {"equals": 1, "ok": False}], "all bytes equal: expected false, found true"),
    ([BUFFER, CHECK | {"equals": 1}], "the file states no ok"),
    ([{"op": "thread", "steps": [SET, call("aclrtSetDevice", 5)]}], "step 0.1, aclrtSetDevice: ret: expected 0"),
    ([{"fn": "aclrtSetDevice", "args": [0]}], "the file states no ret, found 0"),
    ([{"fn": "aclrtNoSuch", "args": [], "ret": 0}], "the headers declare no function aclrtNoSuch"),
    ([{"fn": "ACL_HOST", "args": [], "ret": 0}], "the headers declare no function ACL_HOST"),
    ([call("aclrtSetDevice", 0, 1)], "aclrtSetDevice takes 1 arguments, 2 are given"),
    ([call("aclrtSetDevice", "ACL_NO_SUCH")], "the headers have no constant ACL_NO_SUCH"),
    ([call("aclrtSetDevice", 2**32)], "4294967296 does not fit in int32_t"),
    ([call("aclrtSetDevice", True)], "unknown form of an argument: True"),
    ([call("aclrtSetDevice", {"outs": "x"})], "unknown form of an argument of type int32_t"),
    ([call("aclrtSetDevice", out("x"))], "unknown form of an argument of type int32_t"),
    ([call("aclrtFree", var("nothing"))], "no step before this one makes the variable nothing"),
    ([call(*COUNT), call("aclrtFree", {"var": "n", "sub": 1})], "unknown keys beside a variable"),
    ([call("aclrtFree", {"struct": "aclrtMemLocation", "fields": {"colour": 1}})], "has no field colour"),
    ([call("aclrtFree", {"struct": "aclrtMemLocation", "fields": {}, "more": 1})], "unknown form of an argument"),
    ([{"op": "dance"}], "unknown step: 'dance' is no operation"),
    ([{"wait": 1}], "unknown step: None is no operation"),
    ([{"op": "host_fill", "name": "h", "size": 4, "fill": 0}], "no step before this one makes the host buffer h"),
    ([BUFFER, {"op": "host_fill", "name": "h", "size": 9, "fill": 0}], "h has 8 bytes, 9 are wanted"),
    ([{"op": "thread", "steps": [{"op": "dance"}]}], "step 0.0, dance: unknown step"),
    ([{"op": "host_fill"}], "the step is not understood: KeyError('fill')"),
]
"""Steps, and part of the one difference that they must make."""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("wrong") / "calls.json"
    path.write_text(json.dumps(file_of(*(steps for steps, _ in WRONG), [SET])))
    return runner.check_file(path)


@pytest.mark.parametrize("index", range(len(WRONG)), ids=[text for _, text in WRONG])
def test_wrong_sequence(wrong: Report, index: int) -> None:
    texts = [text for place, text in wrong.differences if place[:2] == ("sequences", index)]
    assert len(texts) == 1
    assert f"s{index}" in texts[0]
    assert WRONG[index][1] in texts[0]


def test_sequences_do_not_disturb_each_other(wrong: Report) -> None:
    assert not wrong.passed
    last = ("sequences", len(WRONG))
    assert {wrong.states[place] for place in wrong.states if place[:2] == last} == {
        State.COMPARED,
        State.INPUT,
        State.DOCUMENTATION,
    }
    assert not any(place[:2] == last for place, _ in wrong.differences)


def test_wrong_fields_of_a_struct(check: Check) -> None:
    wanted = {"location": {"id": 1, "type": 1}, "pageSize": 8, "colour": 2}
    report = check(file_of([SET, MALLOC, call("aclrtPointerGetAttributes", var("p"), out("a"), out={"a": wanted})]))
    assert [text.split(": ", 1)[1] for _, text in report.differences] == [
        "out a.location.id: expected 1, found 0",
        "out a.pageSize: expected 8, found 4096",
        "out a.colour: the struct has no such field",
    ]


def test_a_step_that_stops_leaves_the_rest_unknown(check: Check) -> None:
    report = check(file_of([SET, {"op": "thread", "steps": [{"op": "dance"}, SET]}, call("aclrtSetDevice", 0)]))
    unknown = {place[2:] for place, state in report.states.items() if state is State.UNKNOWN}
    inner = ("steps", 1, "steps")
    assert unknown == {
        (*inner, 0, "op"),
        *((*inner, 1, *rest) for rest in (("fn",), ("args", 0), ("ret",))),
        *(("steps", 2, *rest) for rest in (("fn",), ("args", 0), ("ret",))),
    }


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"extra": 1}, "unknown extra"),
        ({"profile": {"colour": "red"}}, "unknown profile.colour"),
        ({"profile": {"memory_per_device": {"huge_pages_8m": 1}}}, "unknown profile.memory_per_device.huge_pages_8m"),
        ({"counts": {"jumps": 1}}, "unknown counts.jumps"),
        ({"profile": {"devices": 0}}, "ret: expected 0, found"),
    ],
)
def test_unknown_keys_of_the_file(check: Check, change: Document, wanted: str) -> None:
    assert wanted in findings(check(file_of([SET]) | change))


def test_unknown_keys_of_steps(check: Check) -> None:
    steps = [
        SET | {"colour": 1},
        SET | {"ok": True},
        BUFFER | {"ret": 0},
        BUFFER | {"equals": 0},
        call(*COUNT, out={"n": {"value": 2, "colour": 1}}),
        call(*COUNT, out={"n": {"value": 2, "add": 1}}),
        call("aclrtGetSocName", ret={"profile_value": "Ascend910B1", "text": "x"}),
    ]
    document = file_of(steps)
    document["sequences"][0]["colour"] = 1
    assert findings(check(document)).splitlines() == [
        "unknown sequences[0].steps[0].colour",
        "unknown sequences[0].steps[1].ok",
        "unknown sequences[0].steps[2].ret",
        "unknown sequences[0].steps[3].equals",
        "unknown sequences[0].steps[4].out.n.colour",
        "unknown sequences[0].steps[5].out.n.add",
        "unknown sequences[0].steps[6].ret.text",
        "unknown sequences[0].colour",
    ]


def test_ids_are_needed_and_unique(check: Check) -> None:
    document = file_of([SET], [SET])
    document["sequences"][1]["id"] = "s0"
    assert "2 sequences have the id 's0'" in findings(check(document))
    del document["sequences"][1]["id"]
    assert "1 sequences have the id None" in findings(check(document))


@pytest.mark.usefixtures("made_library")
def test_what_the_library_does_wrong(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_calls, "LIMIT_S", 1)
    document = file_of(
        [call("aclInit", None), SET, call("aclInit", None)],
        [call("aclInit", None), call("aclFinalize"), call("aclInit", None)],
        [call("aclrtResetDevice", 0)],
        [call("aclrtGetDeviceCount", out("n")), call("aclInit", None)],
        [{"op": "thread", "steps": [SET]}, call("aclInit", None)],
        [call("aclInit", None)],
    )
    report = check(document)
    assert [text for _, text in report.differences] == [
        "s0, step 1, aclrtSetDevice: missing symbol: the library has no aclrtSetDevice",
        "s1, step 0, aclInit: the process ended by SIGABRT after this step",
        "s2: hung for 1 s",
        "s3, step 0, aclrtGetDeviceCount: out n: bytes behind the variable were written",
        "s4, step 0.0, aclrtSetDevice: missing symbol: the library has no aclrtSetDevice",
    ]
    reached = {place[:4] for place, state in report.states.items() if state is State.COMPARED}
    assert ("sequences", 0, "steps", 2) not in reached
    assert ("sequences", 5, "steps", 0) in reached


def test_no_library(check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEVAR_ACL", str(tmp_path / "libnothing.so"))
    with pytest.raises(ValueError, match=r"0 of 1 sequences were run with .*libnothing.so: .*No such file"):
        check(file_of([SET]))


# --- the command ------------------------------------------------------------------------------------------------------


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, other = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "other.json"
    good.write_text(json.dumps(good_document()))
    bad.write_text(json.dumps(file_of([call("aclrtSetDevice", 7)])))
    other.write_text(json.dumps({"files": [], "sequences": [{"steps": [{"op": "Init", "args": {}}]}]}))
    assert runner.main([str(good)]) == 0
    assert "not compared, reuse of an address is information only: 1 facts" in capsys.readouterr().out
    assert runner.main([str(good), str(bad)]) == 1
    output = capsys.readouterr().out
    assert "sequences[0].steps[0].ret: s0, step 0, aclrtSetDevice: ret: expected 0, found 107001" in output
    assert "1 of 2 files passed" in output
    assert runner.main([str(other)]) == 1
    assert "no known schema has this structure" in capsys.readouterr().out


def test_a_profile_is_for_recorded_calls_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"files": [{"name": "a.om", "expect_error": "x"}]}))
    assert runner.main(["--profile", "strict", str(manifest)]) == 1
    assert "a profile is only for recorded calls" in capsys.readouterr().out


# --- the strict profile -----------------------------------------------------------------------------------------------

FREED = [
    SET,
    call("aclrtMalloc", out("p"), 4096, "ACL_MEM_MALLOC_NORMAL_ONLY"),
    call("aclrtFree", var("p")),
    call("aclrtPointerGetAttributes", var("p"), out("a"), out={"a": {"pageSize": 4096}}),
    call("aclrtMemset", var("p"), 16, 1, 16),
]
HEADER = "| deviation | function | part | card | strict |\n|---|---|---|---|---|\n"
REFUSED = "| freed | aclrtPointerGetAttributes | ret | 0 | 107000 |\n| freed | aclrtMemset | ret | 0 | any |\n"


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, list[Step]], Report]:
    def run(table: str, steps: list[Step]) -> Report:
        page, path = tmp_path / "page.md", tmp_path / "calls.json"
        page.write_text(f"# Page\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n{HEADER}{table}\nafter it\n")
        path.write_text(json.dumps(file_of(steps)))
        monkeypatch.setattr(acl_deviations, "PAGE", page)
        acl_deviations.strict_deviations.cache_clear()
        return runner.check_file(path, "strict")

    return run


def test_listed_deviations_are_accepted(strict: Callable[[str, list[Step]], Report], check: Check) -> None:
    report = strict(REFUSED, FREED)
    assert findings(report) == ""
    assert report.passed
    assert report.accepted == {"freed": 2}
    assert report.reasons == {"stated for another of the acceptable codes": 1}
    assert check(file_of(FREED)).accepted == {}  # the card profile needs none


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("| freed | aclrtMemset | ret | 0 | any |\n", ["ret: expected 0, found 107000", 'found "unwritten"']),
        (
            REFUSED.replace("107000", "107001"),
            ["ret: expected 0", "unwritten", "aclrtPointerGetAttributes, ret) did not"],
        ),
        (REFUSED.replace("ret", "change", 1), ["ret: expected 0", "unwritten", "change) did not occur"]),
        (REFUSED.replace("| 0 | 107000", "| 1 | 107000"), ["ret: expected 0", "unwritten", "did not occur"]),
        (REFUSED + "| more | aclrtFree | ret | 0 | 107000 |\n", ["deviation more (aclrtFree, ret) did not occur"]),
        (REFUSED.replace("any", "card + 5"), ["aclrtMemset: ret: expected 0, found 507899", "did not occur"]),
    ],
)
def test_what_is_not_listed_differs(strict: Callable[[str, list[Step]], Report], table: str, wanted: list[str]) -> None:
    report = strict(table, FREED)
    assert not report.passed
    assert len(report.differences) == len(wanted)
    for (_, text), part in zip(report.differences, wanted, strict=True):
        assert part in text


def test_amounts_of_free_memory(strict: Callable[[str, list[Step]], Report]) -> None:
    ask = ("aclrtGetMemInfo", "ACL_HBM_MEM_NORMAL")
    total = 8 << 30
    steps = [
        SET,
        call(*ask, out("f"), out("t"), out={"f": {"profile_value": total - 4096}, "t": {"value": total}}),
        call("aclrtMalloc", out("p"), 4096, "ACL_MEM_MALLOC_NORMAL_ONLY"),
        call(*ask, out("g"), out("t"), out={"g": {"profile_value": 1, "delta_from": "f", "delta": 0}}),
    ]
    table = "| kept | aclrtGetMemInfo | figure | any | card + 4096 |\n"
    table += "| exact | aclrtGetMemInfo | change | 0 | {} |\n"
    for good in ("-8192", "card - 8192", "any"):
        assert strict(table.format(good), steps).accepted == {"kept": 1, "exact": 1}
    for wrong in ("-4096", "8192", "card + 8192"):
        assert "change: expected 0, found -8192" in findings(strict(table.format(wrong), steps))


def test_bytes_that_differ(strict: Callable[[str, list[Step]], Report]) -> None:
    copy_back = call("aclrtMemcpy", var("h"), 8, var("p"), 8, "ACL_MEMCPY_DEVICE_TO_HOST")
    steps = [BUFFER, *FREED[:3], copy_back, CHECK | {"equals": 0, "ok": True}]
    table = "| freed | aclrtMemcpy | ret | 0 | 507899 |\n| freed | host_check | bytes | {} | {} |\n"
    assert strict(table.format("true", "false"), steps).accepted == {"freed": 2}
    assert "all bytes equal: expected true" in findings(strict(table.format("false", "true"), steps))


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("", "no table of deviations"),
        ("| freed | aclrtMemset | ret | 0 |\n", "is not understood: freed | aclrtMemset"),
        ("| freed | aclrtMemset | colour | 0 | 1 |\n", "is not understood"),
        ("| freed | aclrtMemset | ret | none | 1 |\n", "'none' is neither a number, true, false, any, nor card"),
    ],
)
def test_table_that_is_not_understood(strict: Callable[[str, list[Step]], Report], table: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md") as caught:
        strict(table, FREED)
    assert wanted in str(caught.value)


# --- the headers ------------------------------------------------------------------------------------------------------


def test_headers_are_read_whole() -> None:
    text = "".join(path.read_text() for path in headers())
    prototypes = set(re.findall(r"^ACL_FUNC_VISIBILITY [^;(]*?(\w+)\(", text, re.MULTILINE))
    assert len(prototypes) > 120
    assert prototypes - names() == set()
    assert constants()["ACL_ERROR_RT_MEMORY_ALLOCATION"] == 207001
    assert constants()["ACL_EVENT_IPC"] == 64
    assert constants()["ACL_DT_UNDEFINED"] == -1
    assert "aclrtMalloc" not in constants()
    assert "hostacl_version" in names()


def test_layouts_are_those_of_the_compiler(tmp_path: Path) -> None:
    ffi = interface()
    types = {name: ffi.typeof(name) for name in ffi.list_types()[0]}
    structs = [name for name, ctype in types.items() if ctype.kind in ("struct", "union") and ctype.fields is not None]
    lines = [f'printf("{name} %zu %zu\\n", sizeof({name}), _Alignof({name}));' for name in structs]
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    includes = "".join(f'#include "{path}"\n' for path in headers()) + "#include <stdio.h>\n"
    source.write_text(f"{includes}int main(void) {{ {' '.join(lines)} return 0; }}\n")
    subprocess.run(["cc", f"-I{INCLUDE}", "-o", program, source], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert len(structs) >= 15
    assert output.split("\n")[:-1] == [f"{name} {ffi.sizeof(name)} {ffi.alignof(name)}" for name in structs]


def test_declarations_of_headers(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text(
        '#ifndef A\n#define A\n#include <stddef.h>\n#include "b.h"\n#include "b.h"\n#ifdef __cplusplus\nextern "C" {\n'
        "#endif\n#define ONE 1U\n#define TEXT \"x\"\n#define BOTH (ONE | 2)\n/* #define TWO 2\n */\n"
        "ACL_FUNC_VISIBILITY int f(void); /* g */\nint h(int a, ...) __attribute__((format(printf, 1, 2)));\n#endif\n"
    )  # fmt: skip
    (tmp_path / "b.h").write_text("int b;\n")
    lines = [line.strip() for line in declarations([tmp_path / "a.h", tmp_path / "b.h"]).splitlines()]
    assert [line for line in lines if line] == ["int b;", "#define ONE 1U", "int f(void);", "int h(int a, ...) ;"]
