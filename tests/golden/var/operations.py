"""The operations of a recorded sequence: arguments in, results out, for whoever does them.

Every operation and every argument of the schema is known; anything else raises `UnknownForm`.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gevar.proto import var_manager
from tests.golden.facts import Json
from tests.golden.var.faces import Manager, Pool, Road
from tests.golden.var.ge_state import RDMA, GeError, Sizes
from tests.golden.var.steps import Result, Step
from tests.golden.var.values import (
    Op,
    Tree,
    UnknownForm,
    known_keys,
    message_bytes,
    message_json,
    tensor_desc,
    tensor_json,
    tensors_json,
)

BROADCAST_KEYS = frozenset(
    {"var_name", "broadcast_name", "idx", "input_offset", "input_size", "output_offset", "output_size"}
)


@dataclass
class Replay:
    """Do the steps of one sequence on a pool.

    `recorded` returns the bytes of the message that the file has at an earlier step.
    """

    pool: Pool
    recorded: Callable[[int], bytes] = lambda step: b""
    held: dict[str, Manager] = field(default_factory=dict)

    def step(self, op: str, args: Tree) -> Result:
        """Do one operation; return what the file calls its result.

        Raises
        ------
        UnknownForm
            The operation, or one of its arguments, is not in the schema.
        """
        operation = OPERATIONS.get(op)
        if operation is None:
            raise UnknownForm(f"{op} is no operation of the schema")
        known_keys(args, operation.keys | COMMON_KEYS, op)
        result = operation.act(Step(self, args, op))
        events = self.pool.sources.take_events()
        return {**result, "events": events} if events else result


def _status(call: Callable[[], Mapping[str, Json] | None]) -> Result:
    """Return the status of a call and, where it is SUCCESS, what else there is to state."""
    try:
        found = call()
    except GeError as error:
        return {"status": error.status}
    return {"status": 0, **(found or {})}


def _plain(call: Callable[[], None]) -> Result:
    call()
    return {}


def _get_var_addr(step: Step) -> Result:
    def look() -> Result:
        addr, mem_type = step.manager.get_var_addr(step.name, step.tensor)
        return {"addr": step.address(addr), "memory_type": mem_type}

    return _status(look)


def _get_var_memory_addr(step: Step) -> Result:
    manager, sources = step.manager, step.pool.sources
    addr = manager.get_var_memory_addr(step.addr, step.mem_type, step.device, step.args.get("graph_name"))
    if addr is None:
        return {"addr": None}
    absolute: Result = {"space": "absolute", "off": addr}
    place = sources.place(addr)
    found: Result = {"addr": step.address(addr) if step.mem_type == RDMA else place or absolute}
    if "read" in step.args:
        found["bytes_hex"] = sources.read(addr, step.args["read"]).hex()
    return found


def _road(step: Step) -> Road:
    road = step.args["road"]
    for node in road:
        known_keys(node, {"node_type", "input", "output"}, "a step of a road")
    return tuple((node["node_type"], tensor_desc(node["input"]), tensor_desc(node["output"])) for node in road)


def _get_trans_road(step: Step) -> Result:
    road = step.manager.get_trans_road(step.name)
    if road is None:
        return {"road": None}
    keys = ("node_type", "input", "output")
    return {"road": [dict(zip(keys, (kind, tensor_json(a), tensor_json(b)), strict=True)) for kind, a, b in road]}


def _broadcast(step: Step) -> Mapping[str, int | str]:
    info: Mapping[str, int | str] = step.args["info"]
    known_keys(info, BROADCAST_KEYS, "a broadcast")
    return info


def _loaded_op(step: Step) -> Op:
    op = step.op
    if op is None:
        raise UnknownForm("CheckAndSetVarLoaded has no operator")
    return op


def _sizes(args: Tree) -> Sizes:
    return Sizes(**{name: args[name] for name in Sizes.__dataclass_fields__})


def _serial(call: Callable[[int], Any], session_id: int) -> Result:
    def write() -> Result:
        message = call(session_id)
        return {"bytes_b64": message_bytes(message), "message": message_json(message)}

    return _status(write)


def message_of(step: Step) -> Any:
    """Return the message that a step is fed with: that of an earlier step, or the one it has itself."""
    if "from_step" in step.args:
        return var_manager.VarManagerInfo.FromString(step.replay.recorded(step.args["from_step"]))
    return var_manager.VarManagerInfo.FromString(b64decode(step.args["bytes_b64"]))


def _from_serial(step: Step) -> Result:
    session_id = step.args.get("session_id", step.session_id)
    return _status(lambda: step.manager.from_serial(session_id, message_of(step)))


def _hold(step: Step) -> Result:
    step.replay.held[step.args["as"]] = step.manager
    return {}


def _same(step: Step) -> Result:
    label = step.args["as"]
    if label not in step.replay.held:
        raise UnknownForm(f"no step before this one holds a manager as {label}")
    return {"value": step.pool.same(step.manager, step.replay.held[label])}


def _set_device_limit(step: Step) -> None:
    step.pool.sources.device_limit_bytes = step.args["bytes"]


def _expandable(step: Step) -> None:
    supported = None if step.args.get("null") else step.args.get("supported", True)
    step.manager.init_expandable(supported, step.args.get("capacity"))


@dataclass(frozen=True)
class Operation:
    """How a step is done, and the arguments it may have beside the common ones."""

    act: Callable[[Step], Result]
    keys: frozenset[str]


def _operation(act: Callable[[Step], Result], *keys: str) -> Operation:
    return Operation(act, frozenset(keys))


def _value(ask: Callable[[Step], Json], *keys: str) -> Operation:
    return _operation(lambda step: {"value": ask(step)}, *keys)


def _act(call: Callable[[Step], None], *keys: str) -> Operation:
    return _operation(lambda step: _plain(lambda: call(step)), *keys)


def _try(call: Callable[[Step], Mapping[str, Json] | None], *keys: str) -> Operation:
    return _operation(lambda step: _status(lambda: call(step)), *keys)


COMMON_KEYS = frozenset({"session", "handle"})
VARIABLE = ("var", "tensor", "op", "memory_type")
OPERATIONS: Mapping[str, Operation] = {
    "Init": _try(
        lambda s: s.manager.init(
            s.args["version"], s.args.get("session_id", s.session_id), s.device, s.args.get("job_id", 0)
        ),
        *("version", "session_id", "device_id", "job_id"),
    ),
    "SetMemManager": _act(lambda s: s.manager.set_mem_manager(s.args["enabled"]), "enabled"),
    "SetAllMemoryMaxValue": _try(lambda s: s.manager.set_all_memory_max_value()),
    "SetMemoryMallocSize": _try(lambda s: s.manager.set_memory_malloc_size(s.args["total"]), "total"),
    "UpdateMemoryConfig": _act(lambda s: s.manager.update_memory_config(_sizes(s.args)), *Sizes.__dataclass_fields__),
    "SetVarMemLogicBase": _act(lambda s: s.manager.set_var_mem_logic_base(s.args["value"]), "value"),
    "SetVarMemMaxSize": _act(lambda s: s.manager.set_var_mem_max_size(s.args["value"]), "value"),
    "GetMemoryConfig": _operation(lambda s: dict(s.manager.memory_config())),
    "AssignVarMem": _try(lambda s: s.manager.assign_var_mem(s.name, s.tensor, s.op, s.mem_type), *VARIABLE),
    "RestoreVarMem": _try(lambda s: s.manager.restore_var_mem(s.name, s.tensor, s.op, s.mem_type), *VARIABLE),
    "SetVarAddr": _try(lambda s: s.manager.set_var_addr(s.name, s.tensor, s.addr, s.mem_type, s.op), *VARIABLE, "addr"),
    "GetVarAddr": _operation(_get_var_addr, "var", "tensor"),
    "GetCurVarDesc": _try(lambda s: {"tensor": tensor_json(s.manager.get_cur_var_desc(s.name))}, "var"),
    "RenewCurVarDesc": _try(lambda s: s.manager.renew_cur_var_desc(s.name, s.tensor), "var", "tensor"),
    "RenewCurVarDescByOp": _try(lambda s: s.manager.renew_cur_var_desc_by_op(s.name, s.op), "var", "op"),
    "RecordStagedVarDesc": _try(
        lambda s: s.manager.record_staged_var_desc(s.graph_id, s.name, s.tensor), "graph_id", "var", "tensor"
    ),
    "GetStagedVarDescs": _operation(
        lambda s: {"descs": tensors_json(s.manager.get_staged_var_descs(s.graph_id))}, "graph_id"
    ),
    "SaveBroadCastInfo": _try(lambda s: s.manager.save_broad_cast_info(s.graph_id, _broadcast(s)), "graph_id", "info"),
    "SetTransRoad": _try(lambda s: s.manager.set_trans_road(s.name, _road(s)), "var", "road"),
    "GetTransRoad": _operation(_get_trans_road, "var"),
    "SetChangedGraphId": _try(lambda s: s.manager.set_changed_graph_id(s.name, s.graph_id), "var", "graph_id"),
    "GetChangedGraphId": _try(lambda s: {"graph_id": s.manager.get_changed_graph_id(s.name)}, "var"),
    "GetChangedVarNames": _operation(
        lambda s: {"names": sorted(s.manager.get_changed_var_names(s.graph_id))}, "graph_id"
    ),
    "RemoveChangedGraphId": _act(lambda s: s.manager.remove_changed_graph_id(s.name), "var"),
    "SetAllocatedGraphId": _try(lambda s: s.manager.set_allocated_graph_id(s.name, s.graph_id), "var", "graph_id"),
    "GetAllocatedGraphId": _try(lambda s: {"graph_id": s.manager.get_allocated_graph_id(s.name)}, "var"),
    "IsVarExist": _value(lambda s: s.manager.is_var_exist(s.name, s.maybe_tensor), "var", "tensor"),
    "IsVarAddr": _value(lambda s: s.manager.is_var_addr(s.addr), "addr"),
    "GetVarMemType": _value(lambda s: s.manager.get_var_mem_type(s.addr), "addr"),
    "CheckAndSetVarLoaded": _value(
        lambda s: s.manager.check_and_set_var_loaded(_loaded_op(s), s.device), "op", "device_id"
    ),
    "SetVarIsReady": _act(
        lambda s: s.manager.set_var_is_ready(s.name, s.tensor, s.device), "var", "tensor", "device_id"
    ),
    "IsVarReady": _value(lambda s: s.manager.is_var_ready(s.name, s.tensor, s.device), "var", "tensor", "device_id"),
    "GetVarMemSize": _value(lambda s: s.manager.get_var_mem_size(s.mem_type), "memory_type"),
    "GetVarConstPlaceHolderMemSize": _value(lambda s: s.manager.get_place_holder_mem_size(s.mem_type), "memory_type"),
    "GetVarMallocMemSize": _value(lambda s: s.manager.get_var_malloc_mem_size()),
    "GetVarMallocSize": _try(lambda s: {"size": s.manager.get_var_malloc_size(s.tensor)}, "tensor"),
    "SetExternalVar": _act(lambda s: s.manager.set_external_var(s.args["size"]), "size"),
    "GetVarMemoryAddr": _operation(_get_var_memory_addr, "addr", "memory_type", "device_id", "graph_name", "read"),
    "InitExpandableMemoryAllocator": _try(_expandable, "null", "supported", "capacity"),
    "FreeVarMemory": _try(lambda s: s.manager.free_var_memory()),
    "Destroy": _act(lambda s: s.manager.destroy()),
    "GetAllVariables": _try(lambda s: {"variables": tensors_json(s.manager.get_all_variables())}),
    "SetBatchVariablesKeyName": _act(
        lambda s: s.manager.set_batch_variables_key_name(s.args["batch_var"], s.args["key_name"]),
        *("batch_var", "key_name"),
    ),
    "HasSharedVarMemBetweenBatch": _value(lambda s: s.manager.has_shared_var_mem_between_batch()),
    "HasMemoryManager": _value(lambda s: s.manager.has_memory()),
    "IsVarResourceInited": _value(lambda s: s.manager.is_initialised()),
    "SessionId": _value(lambda s: s.manager.session()),
    "VarManagerToSerial": _operation(lambda s: _serial(s.manager.to_serial, s.session_id)),
    "VarDescInfoToSerial": _operation(lambda s: _serial(s.manager.desc_info_to_serial, s.session_id)),
    "VarManagerToDeserial": _operation(_from_serial, "session_id", "from_step", "bytes_b64", "message"),
    "Hold": _operation(_hold, "as"),
    "SameManager": _operation(_same, "as"),
    "RemoveVarManager": _act(lambda s: s.pool.remove(s.session_id)),
    "DestroyPool": _act(lambda s: s.pool.destroy()),
    "SetOption": _act(lambda s: s.pool.set_option(s.args["key"], s.args["value"]), "key", "value"),
    "SetEnv": _act(lambda s: s.pool.set_env(s.args["key"], s.args["value"]), "key", "value"),
    "SetCurrentDevice": _act(lambda s: s.pool.set_current_device(s.device), "device_id"),
    "SetDeviceMemoryLimit": _act(_set_device_limit, "bytes"),
    "QueryMemoryPolicy": _operation(lambda s: dict(s.pool.memory_policy())),
}
