"""For every block of `docs/differences.md` a sequence that it matches, with GE's results, written by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.status import GE_GRAPH_OPTIONS_INVALID
from tests.golden.var.hand_made import (
    BASE,
    FAILS,
    HOLDER_ADDR,
    MISSES,
    REFUSED,
    Made,
    asked_of_model,
    assign,
    bad_holder,
    begun,
    constant,
    device_free,
    device_malloc,
    expandable,
    expandable_malloc,
    file_constant,
    found,
    hold,
    holder,
    loaded,
    node,
    piece,
    pool_malloc,
    resolve,
    restore,
    set_addr,
    step,
    stored,
    tensor,
    with_init,
)
from tests.golden.var.values import tensor_desc

W, W1 = tensor(fmt=12), tensor(fmt="ND")
"""Descriptions under which `w` and `w1` have one key."""
SMALL, LARGE, MIDDLE = tensor(16), tensor(600, "NCHW"), tensor(300)
HIGH = {"space": "absolute", "off": HOLDER_ADDR}
REGION = step("SetExternalVar", size=1 << 20)
ZEROS = "00" * 4


def block(size: int, **more: Any) -> Any:
    """A description as messages have it."""
    return tensor_desc_to_proto(tensor_desc(tensor(size, **more)))


def holder_state(addr: int) -> Mapping[str, Any]:
    """Fields of a message with one variable, which has a device address."""
    record = {"desc": block(16), "address": BASE, "offset": 0, "memory_type": 2}
    return {
        "var_resource": {
            "var_offset_map": {BASE: 2},
            "var_addr_mgr_map": {"p2_0": record},
            "cur_var_tensor_desc_map": {"p": block(16)},
            "var_dev_addr_mgr_map": {BASE: {"desc": block(16), "address": BASE, "dev_addr": addr}},
        }
    }


SHRUNK = begun(assign("v", tensor(100)), assign("v", tensor(50, "NCHW")))
GROWN = begun(assign("v", SMALL), assign("v", LARGE))
PROMISED = begun(assign("u", SMALL), set_addr("v", tensor(600), 0))
"""The current description of `v` says more bytes than the block has."""
MAPPED = begun(step("SetBatchVariablesKeyName", batch_var="b", key_name="w"))
EDGES: Mapping[str, Sequence[Made]] = {
    "edge 1.1": [step("Init", version=0, device_id=0, job_id=0, session_id=5)],
    "edge 1.2": [stored(session=9, session_id=1), assign("v", tensor(), session=9)],
    "edge 2.1": begun(assign("w", W), assign("w1", W1, FAILS), found("w1", W1, 0)),
    "edge 2.2": begun(assign("w", W), assign("w1", LARGE), assign("w1", W1)),
    "edge 2.3": begun(assign("w", W), step("IsVarExist", {"value": True}, var="w1", tensor=W1)),
    "edge 2.4": begun(
        assign("w", W),
        step("SetVarIsReady", var="w", tensor=W),
        step("IsVarReady", {"value": True}, var="w1", tensor=W1),
    ),
    "edge 2.5": begun(assign("w", W), found("w1", W1, 0)),
    "edge 2.6": begun(assign("w", W), assign("w1", LARGE), assign("w1", W1), found("w1", W1, 0)),
    "edge 2.7": begun(assign("w", W), assign("w1", LARGE), step("RenewCurVarDesc", var="w1", tensor=W1)),
    "edge 2.8": begun(assign("w", W), set_addr("w1", W1, 4096)),
    "edge 2.9": begun(assign("w", W), restore("w1", W1, 8192, REFUSED)),
    "edge 2.10": asked_of_model(begun(assign("w", W), assign("w1", W1, FAILS), step("VarManagerToSerial"))),
    "edge 4.1": begun(assign("v", SMALL), step("Destroy"), found("v", SMALL, 0)),
    "edge 4.2": begun(
        assign("v", SMALL),
        hold("kept"),
        step("RemoveVarManager"),
        found("v", SMALL, 0, handle="kept"),
    ),
    "edge 4.3": begun(
        assign("v", SMALL),
        resolve(0, {"addr": piece("device", 0), "events": [device_malloc(0)]}),
        step("SetMemManager", enabled=False),
        step("Destroy"),
    ),
    "edge 7.1": begun(assign("h", tensor(0), {**FAILS, "events": [pool_malloc("host_pool", 0)]}, memory_type=129)),
    "edge 7.2": begun(
        assign("h", tensor(3 << 30), {**FAILS, "events": [pool_malloc("host_pool", 3 << 30)]}, memory_type=129),
    ),
    "edge 7.3": begun(
        restore("h", SMALL, 1024, memory_type=129),
        resolve(1024 - BASE, {"addr": piece("device", 0), "events": [device_malloc(0, kind=129)]}, 129),
    ),
    "edge 8.1": [*SHRUNK, assign("v", tensor(100), FAILS), found("v", tensor(100), 0)],
    "edge 8.2": begun(assign("v", SMALL), assign("v", tensor(600), FAILS), found("v", SMALL, 0)),
    "edge 8.3": [*GROWN, assign("v", MIDDLE), found("v", MIDDLE, 0)],
    "edge 8.4": [*PROMISED, assign("v", tensor(300, "NCHW")), found("v", tensor(300, "NCHW"), 0)],
    "edge 8.5": [*PROMISED, assign("v", tensor(300, "NCHW"), op=bad_holder())],
    "edge 8.6": [*GROWN, restore("v", MIDDLE, 0), found("v", MIDDLE, 0)],
    "edge 8.7": [*PROMISED, restore("v", tensor(300, "NCHW"), 0)],
    "edge 9.1": begun(assign("v", SMALL), assign("v", SMALL, memory_type=3)),
    "edge 9.2": begun(assign("v", SMALL), set_addr("x", SMALL, 0, memory_type=3)),
    "edge 9.3": begun(set_addr("x", SMALL, 64, memory_type=77)),
    "edge 9.4": begun(assign("c", SMALL, op=constant()), assign("d", SMALL, op=constant(), memory_type=3)),
    "edge 9.5": begun(
        assign("c", SMALL, op=constant()),
        step("SetMemManager", enabled=False),
        assign("d", SMALL, op=constant(), memory_type=3),
    ),
    "edge 10.1": begun(assign("p", SMALL, FAILS, op=bad_holder()), found("p", SMALL, 0)),
    "edge 10.2": begun(restore("p", SMALL, 0, REFUSED, op=bad_holder())),
    "edge 10.3": begun(assign("p", SMALL, op=holder((-1, 4)))),
    "edge 10.4": begun(restore("p", SMALL, 0, op=holder((-1, 4)))),
    "edge 11.1": begun(
        assign("c", SMALL, op=constant()),
        assign("v", SMALL, op={**constant(), "type": "Variable"}),
        found("v", SMALL, 0),
    ),
    "edge 11.2": begun(
        assign("c", SMALL, op=constant()),
        assign("d", LARGE, op=constant()),
        found("d", LARGE, 0),
    ),
    "edge 11.3": begun(
        assign("v", SMALL),
        assign("v", tensor(fmt="NCHW"), op=constant()),
        assign("c", SMALL, op=constant()),
    ),
    "edge 12.1": begun(assign("f", SMALL, op=file_constant()), assign("g", LARGE, op=file_constant())),
    "edge 12.2": begun(assign("f", SMALL, op=file_constant()), assign("g", SMALL, op=file_constant(8))),
    "edge 12.3": begun(
        assign("f", SMALL, op=file_constant()),
        step("RenewCurVarDesc", var="f", tensor=LARGE),
        assign("g", SMALL, op=file_constant()),
        found("g", SMALL, 1536),
    ),
    "edge 12.4": begun(
        assign("v", SMALL),
        assign("v", tensor(fmt="NCHW"), op=file_constant()),
        assign("f", SMALL, op=file_constant()),
    ),
    "edge 13.1": begun(
        REGION,
        assign("p", SMALL, op=holder()),
        resolve(0, {"addr": {"space": "external", "off": 0}}),
    ),
    "edge 13.2": begun(
        REGION,
        assign("v", SMALL),
        resolve(8, {"addr": {"space": "external", "off": 8}}, device_id=1),
    ),
    "edge 13.3": begun(
        step("SetExternalVar", size=100),
        assign("v", SMALL),
        resolve(0, {"addr": None}, device_id=1),
    ),
    "edge 13.4": begun(
        step("SetExternalVar", size=5000),
        restore("v", SMALL, 4096),
        resolve(4096, {"addr": {"space": "external", "off": 4096}}),
    ),
    "edge 13.5": begun(
        REGION,
        assign("v", with_init(SMALL)),
        resolve(0, {"addr": {"space": "external", "off": 0}, "bytes_hex": ZEROS}, read=4),
    ),
    "edge 13.6": begun(
        REGION,
        assign("v", with_init(SMALL, shape=[2])),
        resolve(0, {"addr": {"space": "external", "off": 0}}),
    ),
    "edge 15.1": begun(assign("p", SMALL, op=holder()), resolve(4, {"addr": HIGH})),
    "edge 15.2": begun(assign("p", LARGE, op=holder()), resolve(100, {"addr": HIGH})),
    "edge 16.1": begun(
        expandable(2000),
        assign("v", SMALL),
        assign("u", SMALL),
        resolve(0, {"addr": piece("expandable", 0), "events": [expandable_malloc(0)]}),
        resolve(1536, {"addr": piece("device", 0), "events": [expandable_malloc(None), device_malloc(0)]}),
        step("FreeVarMemory", {"status": 0, "events": [device_free("device"), device_free("expandable")]}),
    ),
    "edge 17.1": begun(
        assign("v", with_init(SMALL, shape=[2])),
        resolve(0, {"addr": None, "events": [device_malloc(0)]}),
        resolve(0, {"addr": piece("device", 0)}),
    ),
    "edge 17.2": begun(
        assign("v", with_init(SMALL)),
        resolve(4, {"addr": piece("device", 0, 516), "events": [device_malloc(0)], "bytes_hex": "01020304"}, read=4),
    ),
    "edge 18.1": begun(
        step("SetVarIsReady", var="v", tensor=SMALL),
        step("FreeVarMemory"),
        step("IsVarReady", {"value": True}, var="v", tensor=SMALL),
    ),
    "edge 19.1": begun(restore("v", SMALL, 0), assign("u", SMALL), found("u", SMALL, 0)),
    "edge 19.2": begun(restore("v", LARGE, 0), restore("u", SMALL, 512)),
    "edge 19.3": begun(
        assign("c", SMALL, op=constant()),
        restore("d", tensor(shape=[2, 2]), 0, op=constant()),
    ),
    "edge 20.1": begun(
        assign("v", SMALL),
        assign("v", tensor(fmt="NCHW")),
        step("RenewCurVarDesc", var="v", tensor=SMALL),
    ),
    "edge 20.2": begun(
        assign("v", SMALL),
        step("SetVarIsReady", var="v", tensor=SMALL),
        step("RenewCurVarDesc", var="v", tensor=LARGE),
        step("IsVarReady", {"value": True}, var="v", tensor=SMALL),
    ),
    "edge 20.3": [
        stored(var_resource={"cur_var_tensor_desc_map": {"v": block(16)}}),
        step("RenewCurVarDescByOp", MISSES, var="v", op=node("Variable", outputs=[LARGE])),
    ],
    "edge 21.1": [*MAPPED, step("SetChangedGraphId", var="b", graph_id=1), step("GetChangedGraphId", MISSES, var="b")],
    "edge 21.2": begun(
        step("SetChangedGraphId", var="w", graph_id=1),
        step("SetChangedGraphId", var="w", graph_id=2),
        step("GetChangedVarNames", {"names": ["w"]}, graph_id=1),
    ),
    "edge 21.3": [
        *MAPPED,
        step("SetChangedGraphId", var="w", graph_id=1),
        step("RemoveChangedGraphId", var="b"),
        step("GetChangedVarNames", {"names": ["w"]}, graph_id=1),
    ],
    "edge 22.1": begun(loaded("c", 0, False), assign("v", SMALL), loaded("c", 0, True)),
    "edge 22.2": begun(assign("v", SMALL), loaded("", 0, False), loaded("", 0, False)),
    "edge 23.1": [
        step("Init", version=0, device_id=0, job_id=0),
        step("SetMemoryMallocSize", {"status": GE_GRAPH_OPTIONS_INVALID}, total=300 << 30),
    ],
    "edge 24.1": [stored(version=7)],
    "edge 24.2": [
        stored(var_resource={"var_names_to_changed_graph_id": {"v": 3}}),
        step("GetChangedVarNames", {"names": []}, graph_id=3),
    ],
    "edge 24.3": [stored(**holder_state(HOLDER_ADDR)), found("p", SMALL, 0)],
    "edge 24.4": begun(
        restore("h", SMALL, 1024, memory_type=129),
        stored(
            session=9,
            var_resource={
                "var_offset_map": {64: 129},
                "var_dev_addr_mgr_map": {64: {"desc": block(16), "address": 64}},
            },
        ),
        step("GetVarMemType", {"value": 129}, addr=64 - BASE, session=9),
    ),
    "edge 24.5": begun(
        assign("v", SMALL),
        stored(mem_resource_map={2: {"var_mem_size": 512}}),
        step("GetVarMemSize", {"value": 512}),
    ),
    "edge 24.6": [stored(**holder_state(HOLDER_ADDR)), assign("p", tensor(fmt="NCHW"), op=bad_holder())],
    "edge 24.7": [stored(**holder_state(HOLDER_ADDR)), restore("p", SMALL, 0, op=bad_holder())],
    "edge 24.8": [
        stored(**holder_state(HOLDER_ADDR)),
        step("SetMemManager", enabled=True),
        resolve(0, {"addr": {"space": "absolute", "off": HOLDER_ADDR + 512}}),
    ],
    "edge 41.1": begun(
        expandable(1 << 30),
        assign("v", SMALL),
        resolve(0, {"addr": piece("expandable", 0), "events": [expandable_malloc(0)]}, device_id=1),
    ),
    "edge 44.1": begun(step("SetVarMemMaxSize", {}, value=10), assign("v", SMALL), found("v", SMALL, 0)),
    "edge 44.2": begun(assign("v", SMALL), assign("v", tensor(-1))),
    "edge 44.3": begun(step("GetVarMallocSize", {"status": 0, "size": 1024}, tensor=tensor(-1))),
}
