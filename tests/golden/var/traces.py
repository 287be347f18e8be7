"""What two models of a manager have in common or not: parts of their state, by name.

A part of gevar's state that is not GE's is a trace. Only an entry of `docs/differences.md` may leave one.
"""

from collections.abc import Hashable, Iterator, Mapping, Set
from typing import Any

from tests.golden.var.careful_blocks import Block, Key
from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import HBM, Resource
from tests.golden.var.sources import Sources

TRACES: Mapping[str, str] = {
    "session": "whether the manager is initialised, and its numbers",
    "sizes": "sizes and logic base",
    "addresses": "what keys and logical addresses stand for",
    "descriptions": "keys, and current descriptions",
    "space": "bytes of logical space that are taken, and where the next variable goes",
    "memory": "device memory, and where it comes from",
    "flags": "what is ready, and what is loaded",
    "graphs": "conversions, graph ids, staged descriptions, broadcasts, batch names",
}
NUMBERS = "numbers"
"""How many pieces the sources have handed out, since results number them: a trace that no block leaves by itself."""
Item = tuple[str, *tuple[Hashable, ...]]
"""Something that differs: the part of the state, and the key of the entry where it is one of a table."""
ALL = frozenset({*TRACES, NUMBERS})
_LOOK = frozenset({"session", "addresses", "descriptions"})
_REGISTER = _LOOK | {"sizes", "space", "memory", NUMBERS}
_GRAPHS = frozenset({"session", "graphs"})
READ_BY: Mapping[str, frozenset[str]] = {
    "Init": frozenset({"session"}),
    "SetAllMemoryMaxValue": frozenset({"sizes"}),
    "SetMemoryMallocSize": frozenset({"sizes"}),
    "SetVarMemLogicBase": frozenset({"sizes"}),
    "SetVarMemMaxSize": frozenset({"sizes"}),
    "GetMemoryConfig": frozenset({"sizes"}),
    "AssignVarMem": _REGISTER,
    "RestoreVarMem": _REGISTER,
    "SetVarAddr": _LOOK | {"sizes"},
    "GetVarAddr": _LOOK | {"sizes", NUMBERS},
    "GetCurVarDesc": _LOOK,
    "RenewCurVarDesc": _LOOK | {"flags"},
    "RenewCurVarDescByOp": _LOOK | {"flags"},
    "IsVarExist": _LOOK,
    "IsVarAddr": _LOOK | {"sizes"},
    "GetVarMemType": _LOOK | {"sizes"},
    "GetAllVariables": _LOOK | {"graphs"},
    "CheckAndSetVarLoaded": _LOOK | {"flags", "sizes"},
    "SetVarIsReady": frozenset({"session", "flags"}),
    "IsVarReady": frozenset({"session", "flags"}),
    "GetVarMemSize": frozenset({"session", "space"}),
    "GetVarConstPlaceHolderMemSize": frozenset({"session", "space"}),
    "GetVarMallocMemSize": frozenset({"memory"}),
    "GetVarMemoryAddr": _REGISTER,
    "InitExpandableMemoryAllocator": frozenset({"memory"}),
    "SetExternalVar": frozenset({"memory"}),
    "FreeVarMemory": frozenset({"session", "memory", "flags", "addresses", NUMBERS}),
    "Destroy": ALL,
    "RemoveVarManager": ALL,
    "DestroyPool": ALL,
    "VarManagerToSerial": ALL,
    "VarDescInfoToSerial": _LOOK | {"graphs"},
    "VarManagerToDeserial": ALL,
    "SessionId": frozenset({"session"}),
    "IsVarResourceInited": frozenset({"session"}),
    **dict.fromkeys(
        (
            *("SetTransRoad", "GetTransRoad", "SetChangedGraphId", "GetChangedGraphId", "GetChangedVarNames"),
            *("RemoveChangedGraphId", "SetAllocatedGraphId", "GetAllocatedGraphId", "RecordStagedVarDesc"),
            *("GetStagedVarDescs", "SaveBroadCastInfo", "SetBatchVariablesKeyName", "HasSharedVarMemBetweenBatch"),
        ),
        _GRAPHS,
    ),
}
"""Parts of the state that an operation depends on; none for an operation that is not here."""


def split_key(text: str, res: Resource) -> Key:
    """Return name, format and data type of one of GE's keys."""
    desc = res.records[text].desc
    suffix = f"{int(desc.format)}_{int(desc.dtype)}"
    return text.removesuffix(suffix), int(desc.format), int(desc.dtype)


def diverging(ge: ModelManager, gevar: CarefulManager) -> frozenset[Item]:
    """Return what of the state is another by gevar's rules than by GE's."""
    one, other = ge_parts(ge), gevar_parts(gevar)
    return frozenset(
        (name, *path) for name in TRACES if one[name] != other[name] for path in _differing(one[name], other[name])
    )


def _differing(one: Any, other: Any) -> Iterator[tuple[Hashable, ...]]:
    """Yield the keys of the entries in which two values differ; nothing where they are no tables."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for mine, theirs in zip(one, other, strict=True):
            yield from _differing(mine, theirs)
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        yield from ((key,) for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    elif isinstance(one, Set) and isinstance(other, Set):
        yield from ((item,) for item in one ^ other)
    elif one != other:
        yield ()


def sources_differ(ge: Sources, gevar: Sources) -> bool:
    """Whether the sources have handed out other numbers of pieces, since results number them, or hold other bytes."""
    counts = [
        [len(source.starts) for source in (one.device, one.expandable, one.host_pool, one.rdma_pool)]
        for one in (ge, gevar)
    ]
    return counts[0] != counts[1] or ge.written != gevar.written


def ge_parts(ge: ModelManager) -> Mapping[str, Any]:
    """Return the parts of GE's state."""
    res = ge.resource or Resource(0)
    keys = {split_key(text, res): record for text, record in res.records.items()}
    pieces = {
        (device, addr): record.dev_addr
        for device, records in res.devices.items()
        for addr, record in records.items()
        if record.dev_addr and record.is_allocated
    }
    hbm = ge.spaces.get(HBM)
    return {
        **_common(ge),
        "addresses": (
            {key: (record.address, record.mem_type, record.offset) for key, record in keys.items()},
            res.addr_types,
            {addr: (record.desc, record.dev_addr, record.is_extern) for addr, record in res.template.items()},
        ),
        "descriptions": ({key: record.desc for key, record in keys.items()}, res.cur_descs),
        "space": (_space(ge), hbm.var_mem_size if hbm else 0),
        "memory": (pieces, ge.malloc_bytes, ge.expandable, ge.external),
        "flags": (
            {(device, key) for device, keys_ in res.ready.items() for key in keys_},
            {(device, addr, bool(name)) for device, flags in res.loaded.items() for name, addr in flags},
        ),
        "graphs": (*_graphs(res), {graph: names for graph, names in res.changed_names.items() if names}),
    }


def gevar_parts(gevar: CarefulManager) -> Mapping[str, Any]:
    """Return the parts of the state that gevar's rules give, in the same form."""
    res, tables = gevar.resource or Resource(0), gevar.tables
    entries, blocks = tables.entries, tables.pool_blocks | tables.blocks
    pieces = {(device, addr): piece.dev_addr for device, one in gevar.on.items() for addr, piece in one.pieces.items()}
    first = gevar.device(0)
    names: dict[int, set[str]] = {}
    for name, graph_id in res.changed.items():
        names.setdefault(graph_id, set()).add(name)
    return {
        **_common(gevar),
        "addresses": (
            {key: (entry.block.addr, entry.block.mem_type, entry.offset) for key, entry in entries.items()},
            {addr: block.mem_type for addr, block in blocks.items()},
            {addr: (block.desc, *_extern(block)) for addr, block in blocks.items()},
        ),
        "descriptions": ({key: entry.desc for key, entry in entries.items()}, res.cur_descs),
        "space": (_space(gevar), tables.next_offset),
        "memory": (
            pieces,
            gevar.get_var_malloc_mem_size(),
            first.expandables[-1] if first.is_usable else None,
            None if first.region is None else (first.region.start, first.region.size_bytes),
        ),
        "flags": (
            {(device, f"{name}{fmt}_{dtype}") for device, one in gevar.on.items() for name, fmt, dtype in one.ready},
            {(device, addr, True) for device, one in gevar.on.items() for addr in one.loaded},
        ),
        "graphs": (*_graphs(res), names),
    }


def _extern(block: Block) -> tuple[int, bool | str]:
    """Address of a place holder's memory, and whether it is known to be the caller's."""
    if block.extern is None:
        return 0, False
    return block.extern[0], block.extern[2] or "of another process"


def _common(manager: ModelManager) -> dict[str, Any]:
    numbers = (manager.version, manager.device_id, manager.job_id) if manager.resource is not None else ()
    return {"session": (manager.session_id, numbers), "sizes": manager.sizes}


def _space(manager: ModelManager) -> dict[int, tuple[int, int]]:
    return {kind: (space.var_mem_size, space.place_holder_size) for kind, space in manager.spaces.items()}


def _graphs(res: Resource) -> tuple[Any, ...]:
    return res.roads, res.changed, res.allocated, res.staged, res.broadcasts, res.batch_names
