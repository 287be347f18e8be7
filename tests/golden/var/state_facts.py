"""Which facts a step has: `facts_of` asks them, `known_facts` names them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tests.golden.var.careful_blocks import POOL_TYPES
from tests.golden.var.careful_state import Refusal, check, read_state
from tests.golden.var.careful_tables import CarefulManager, CarefulPool
from tests.golden.var.fact_words import Asked, Facts, careful, model
from tests.golden.var.facts_memory import free_all_facts, free_facts, loaded_facts, resolve_facts
from tests.golden.var.facts_names import graphs_facts, look_facts, ready_facts, renew_facts
from tests.golden.var.facts_register import register_facts
from tests.golden.var.ge_pool import ModelPool
from tests.golden.var.ge_state import GeError
from tests.golden.var.operations import Replay, message_of
from tests.golden.var.steps import Step

SAMPLE: Mapping[str, Any] = {
    "tensor": {"dtype": "DT_INT8", "format": "ND", "shape": [1], "size": 1},
    "op": {"name": "a", "type": "Variable", "output_offset": [0]},
    "addr": 0,
    "total": 1,
    "bytes_b64": "",
}
"""Arguments with which every operation that has facts can be asked for them."""


def facts_of(op: str, args: Mapping[str, Any], given: Mapping[str, Any], ge: Replay, gevar: Replay) -> Facts:
    """Return the facts of a step; none for an operation without. gevar does it with the arguments `given`."""
    reader = READERS.get(op)
    if reader is None:
        return {}
    step, other = Step(ge, args, op), Step(gevar, given, op)
    return reader(Asked(step, model(step.manager), other, careful(other.manager)))


@cache
def known_facts(op: str) -> frozenset[str]:
    """Return the names of the facts that conditions for an operation can ask for."""
    return frozenset(facts_of(op, SAMPLE, SAMPLE, Replay(ModelPool()), Replay(CarefulPool())))


def init_facts(asked: Asked) -> Facts:
    step, gevar = asked.step, asked.gevar
    return {**asked.life, "session_differs": step.args.get("session_id", step.session_id) != gevar.pool_key}


def sizes_facts(asked: Asked) -> Facts:
    step, ge = asked.step, asked.ge
    before = ge.sizes
    try:
        if "total" in step.args:
            ge.set_memory_malloc_size(step.args["total"])
        else:
            ge.set_all_memory_max_value()
    except GeError:
        return {"changes_sizes": ge.sizes != before}
    finally:
        ge.sizes = before
    return {"changes_sizes": False}


def serial_facts(asked: Asked) -> Facts:
    gevar = asked.gevar
    texts = [f"{name}{fmt}_{dtype}" for name, fmt, dtype in gevar.tables.entries]
    return {**asked.life, "wire_collision": len(texts) != len(set(texts))}


def deserial_facts(asked: Asked) -> Facts:
    step, ge, gevar = asked.step, asked.ge, asked.gevar
    info, res, sizes = message_of(step), asked.res, ge.spaces
    message = info.var_resource
    changed = message.var_names_to_changed_graph_id.items()
    return {
        **asked.life,
        "refusal": _refusal(info, gevar),
        "has_device": ge.around.current_device >= 0 or (ge.resource is not None and gevar.resource is not None),
        "new_changed_names": any(name not in res.changed_names.get(graph_id, ()) for name, graph_id in changed),
        "new_place_holders": any(
            place.dev_addr and addr not in res.template for addr, place in message.var_dev_addr_mgr_map.items()
        ),
        "new_pool_variables": any(
            kind in POOL_TYPES and addr not in res.addr_types for addr, kind in message.var_offset_map.items()
        ),
        "size_shrinks": any(
            kind in sizes and figures.var_mem_size < sizes[kind].var_mem_size
            for kind, figures in info.mem_resource_map.items()
        ),
    }


def _refusal(info: Any, gevar: CarefulManager) -> str:
    """Why gevar's rules refuse a message; empty where they take it."""
    try:
        incoming, new = read_state(info)
        if gevar.resource is not None:
            same_base = info.var_mem_logic_base == gevar.sizes.var_mem_logic_base
            check(gevar.resource, gevar.tables, incoming, new, same_base)
    except Refusal as refusal:
        return refusal.reason
    return ""


READERS: Mapping[str, Callable[[Asked], Facts]] = {
    "Init": init_facts,
    **dict.fromkeys(("SetAllMemoryMaxValue", "SetMemoryMallocSize"), sizes_facts),
    **dict.fromkeys(("AssignVarMem", "RestoreVarMem", "SetVarAddr"), register_facts),
    **dict.fromkeys(("GetVarAddr", "IsVarExist"), look_facts),
    **dict.fromkeys(("SetVarIsReady", "IsVarReady"), ready_facts),
    **dict.fromkeys(("RenewCurVarDesc", "RenewCurVarDescByOp"), renew_facts),
    "GetVarMemoryAddr": resolve_facts,
    **dict.fromkeys(("FreeVarMemory", "Destroy", "RemoveVarManager"), free_facts),
    "DestroyPool": free_all_facts,
    "CheckAndSetVarLoaded": loaded_facts,
    **dict.fromkeys(("SetChangedGraphId", "RemoveChangedGraphId"), graphs_facts),
    "VarManagerToSerial": serial_facts,
    "VarManagerToDeserial": deserial_facts,
    "GetVarMallocSize": lambda asked: {"size": asked.step.tensor.size},
}
"""How the facts of each operation are found."""
