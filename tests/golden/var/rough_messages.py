"""Stored states with something wrong in them: a field changed, an entry missing or moved."""

from collections.abc import Callable, Sequence
from typing import Any

from gevar.proto import var_manager
from tests.golden.var.writing import Choice

NUMBERS = (0, 1, 2, 3, 129, 77, 512, 1536, 4096, (1 << 37) + 1536, 1 << 62, (1 << 63) + 5, (1 << 64) - 1)
SIZES = (-1, 0, 1, 4000, 1 << 62)


def damaged(data: bytes, choice: Choice) -> Any:
    """Return the message of these bytes after one or two edits."""
    info = var_manager.VarManagerInfo.FromString(data)
    for _ in range(1 + choice.below(2)):
        EDITS[choice.below(len(EDITS))](info, choice)
    return info


def _pick(items: Sequence[Any], choice: Choice) -> Any:
    return items[choice.below(len(items))]


def _number(info: Any, choice: Choice) -> None:
    """Another figure of the manager."""
    field = _pick(("version", "session_id", "job_id", "var_mem_max_size", "var_mem_logic_base"), choice)
    setattr(info, field, _pick(NUMBERS, choice) % (1 << 32 if field == "version" else 1 << 64))


def _space(info: Any, choice: Choice) -> None:
    """Another count of assigned bytes, of a kind of memory that may be none."""
    info.mem_resource_map[_pick((2, 2, 2, 3, 129, 5), choice)].var_mem_size = _pick(NUMBERS, choice)


def _drop(info: Any, choice: Choice) -> None:
    """One entry less."""
    res = info.var_resource
    maps = (res.var_offset_map, res.var_addr_mgr_map, res.var_dev_addr_mgr_map, res.cur_var_tensor_desc_map)
    entries = _pick(maps, choice)
    if entries:
        del entries[_pick(sorted(entries), choice)]


def _record(info: Any, choice: Choice) -> None:
    """Another address, kind of memory or size of a key."""
    entries = info.var_resource.var_addr_mgr_map
    if entries:
        record = entries[_pick(sorted(entries), choice)]
        field = _pick(("address", "offset", "memory_type"), choice)
        setattr(record, field, _pick(NUMBERS, choice))


def _block(info: Any, choice: Choice) -> None:
    """Another size of a block, or the address of a place holder where there was none."""
    entries = info.var_resource.var_dev_addr_mgr_map
    if entries:
        block = entries[_pick(sorted(entries), choice)]
        if choice.below(2):
            block.desc.size = _pick(SIZES, choice)
        else:
            block.dev_addr = 1 << 40


def _graphs(info: Any, choice: Choice) -> None:
    """Another graph of a name."""
    res = info.var_resource
    _pick((res.var_names_to_changed_graph_id, res.var_names_to_allocated_graph_id), choice)["w"] = choice.below(4)


EDITS: Sequence[Callable[[Any, Choice], None]] = (_number, _space, _drop, _record, _block, _graphs)
