"""Steps written by hand, in the form of recorded ones: descriptions, nodes, operations.

A step that names no result has SUCCESS, or nothing where its operation has no status.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from gevar.proto import var_manager
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from tests.golden.var.ge_pool import ModelPool
from tests.golden.var.operations import OPERATIONS, Replay
from tests.golden.var.values import Tree, message_json

Made = dict[str, Any]
BASE = 1 << 37
"""Logic base once sizes are set."""
HOLDER_ADDR = 87960930222080
PLAIN = frozenset(
    {"SetMemManager", "Destroy", "RemoveVarManager", "DestroyPool", "Hold", "SetExternalVar", "SetOption"}
    | {"SetBatchVariablesKeyName", "SetVarIsReady", "RemoveChangedGraphId", "SetDeviceMemoryLimit", "SetCurrentDevice"}
)
"""Operations used here whose result is empty."""
REFUSED = {"status": PARAM_INVALID}
FAILS = {"status": INTERNAL_ERROR}
MISSES = {"status": FAILED}


def step(operation: str, result: Made | None = None, **args: Any) -> Made:
    """Return one step."""
    assert operation in OPERATIONS
    plain: Made = {} if operation in PLAIN else {"status": 0}
    return {"op": operation, "args": args, "result": plain if result is None else result}


def started() -> list[Made]:
    """A manager with its sizes set and memory behind it."""
    return [
        step("Init", version=0, device_id=0, job_id=0),
        step("SetAllMemoryMaxValue"),
        step("SetMemManager", enabled=True),
    ]


def begun(*steps: Made) -> list[Made]:
    """Steps on such a manager."""
    return [*started(), *steps]


def tensor(size: int = 16, fmt: str | int = "ND", **more: Any) -> Made:
    return {"dtype": "DT_FLOAT", "format": fmt, "shape": [4], "size": size, **more}


def with_init(desc: Made, **value: Any) -> Made:
    """A description with an initial value of eight bytes, 1 to 8."""
    init = {**{key: desc[key] for key in ("dtype", "format", "shape")}, "hex": "0102030405060708", **value}
    return {**desc, "init_value": init}


def node(kind: str, name: str = "n", **more: Any) -> Made:
    return {"name": name, "type": kind, **more}


def constant(data: str = "01020304", **more: Any) -> Made:
    return node("Constant", weight={"dtype": "DT_FLOAT", "format": "ND", "shape": [1], "hex": data}, **more)


def file_constant(length: int = 16, **more: Any) -> Made:
    attrs = {"location": {"str": "/w/a.bin"}, "offset": {"int": 0}, "length": {"int": length}}
    return node("FileConstant", attrs=attrs, **more)


def holder(shape: Sequence[int] = (4,), size: int = 16, **more: Any) -> Made:
    attrs = {"storage_shape": {"ints": list(shape)}, "dtype": {"dtype": "DT_FLOAT"}, "size": {"int": size}}
    return node("ConstPlaceHolder", attrs={**attrs, "placement": {"int": 1}, "addr": {"int": HOLDER_ADDR}}, **more)


def bad_holder(**more: Any) -> Made:
    return node("ConstPlaceHolder", attrs={}, **more)


def assign(name: str, desc: Made, result: Made | None = None, **args: Any) -> Made:
    """A variable is assigned: a `Variable` in device memory where `op` and `memory_type` say nothing else."""
    given = {"op": node("Variable", name), "memory_type": 2, **args}
    return step("AssignVarMem", result, var=name, tensor=desc, **given)


def restore(name: str, desc: Made, offset: int, result: Made | None = None, **args: Any) -> Made:
    """A variable is restored at an offset; arguments as `assign`."""
    given = {"op": node("Variable", name), "memory_type": 2, **args}
    given["op"] = {**given["op"], "output_offset": [offset]}
    return step("RestoreVarMem", result, var=name, tensor=desc, **given)


def set_addr(name: str, desc: Made, addr: int, memory_type: int = 2) -> Made:
    return step("SetVarAddr", var=name, tensor=desc, addr=addr, memory_type=memory_type, op=None)


def found(name: str, desc: Made, offset: int | None, kind: int = 2, **args: Any) -> Made:
    """A look-up that gives an offset from the logic base, or None for none."""
    result: Made = FAILS if offset is None else {"status": 0, "addr": logic(offset), "memory_type": kind}
    return step("GetVarAddr", result, var=name, tensor=desc, **args)


def resolve(addr: int, result: Made, kind: int = 2, **args: Any) -> Made:
    return step("GetVarMemoryAddr", result, addr=addr, memory_type=kind, **args)


def hold(label: str) -> Made:
    args: Made = {"as": label}
    return step("Hold", **args)


def logic(offset: int) -> Made:
    return {"space": "logic", "off": offset}


def piece(space: str, number: int, offset: int = 512) -> Made:
    return {"space": space, "alloc": number, "off": offset}


def device_malloc(number: int | None, size: int = 1536, kind: int = 2) -> Made:
    return {"call": "device_malloc", "memory_type": kind, "size": size, "device": 0, "alloc": number}


def pool_malloc(space: str, size: int) -> Made:
    more = {"device": 0} if space == "rdma_pool" else {}
    return {"call": f"{space}_malloc", "memory_type": 2, "size": size, **more, "alloc": 0}


def expandable(capacity: int) -> Made:
    events = [{"call": f"expandable_set_{what}", "value": False} for what in ("reuse", "share_phy_allocator")]
    return step("InitExpandableMemoryAllocator", {"status": 0, "events": events}, supported=True, capacity=capacity)


def expandable_malloc(number: int | None) -> Made:
    return {"call": "expandable_malloc", "size": 1536, "incremental": True, "alloc": number}


def device_free(space: str) -> Made:
    return {"call": "device_free", "memory_type": 2, "device": 0, "addr": piece(space, 0, 0)}


def loaded(name: str, offset: int, value: bool, **args: Any) -> Made:
    op = node("Constant", name, outputs=[tensor()], output_offset=[offset])
    return step("CheckAndSetVarLoaded", {"value": value}, op=op, **args)


def stored(result: Made | None = None, session: int = 1, **fields: Any) -> Made:
    """A state that is read, with these fields of the message, and those of a manager with its sizes set."""
    sizes = {"var_mem_logic_base": BASE, "var_mem_max_size": 5 << 30}
    info = var_manager.VarManagerInfo(**{**sizes, "session_id": session, **fields})
    data = b64encode(info.SerializeToString(deterministic=True)).decode()
    return step("VarManagerToDeserial", result, session=session, bytes_b64=data, message=message_json(info))


def asked_of_model(steps: Sequence[Made]) -> list[Made]:
    """Return steps of which the last has the result that the model of GE gives: messages are long."""
    replay = Replay(ModelPool())
    results = [replay.step(one["op"], one["args"]) for one in steps]
    return [*steps[:-1], {**steps[-1], "result": results[-1]}]


def document(*sequences: Sequence[Tree]) -> Made:
    """Return a file of sequences."""
    return {"sequences": [{"name": f"made {n}", "steps": list(steps)} for n, steps in enumerate(sequences)]}
