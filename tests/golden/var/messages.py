"""Messages of results: both forms in which a file has them, and addresses of pools in them.

A variable in memory of a pool has the address of that memory as its logical address, which no file can state. Such
numbers are compared as "the n-th piece of that pool": what a file has at the same key is taken for the same piece.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from gevar.proto import var_manager
from tests.golden.var.ge_state import HBM
from tests.golden.var.sources import Sources
from tests.golden.var.steps import Result
from tests.golden.var.values import Tree, canonical, message_json, same_json

RESOURCE = "var_resource"
RECORDS = "var_addr_mgr_map"
ADDRESS_FIELDS = frozenset({"address", "offset"})
ADDRESS_MAPS = frozenset({"var_offset_map", "var_dev_addr_mgr_map"})


def bytes_fit_message(result: Tree) -> bool:
    """Whether the two forms in which a result has its message are there and hold the same; true where it has none."""
    if "bytes_b64" not in result and "message" not in result:
        return True
    if not result.keys() >= {"bytes_b64", "message"}:
        return False
    data, expected = b64decode(result["bytes_b64"]), result["message"]
    kinds = (var_manager.VarManagerInfo, var_manager.VarDescInfo)
    return any(same_json(message_json(kind.FromString(data)), expected) for kind in kinds)


def aligned(recorded: Result, found: Result, sources: Sources) -> tuple[Result, Result]:
    """Return both results with the addresses of pools in their messages by number, and `found` without wire form."""
    result = {key: value for key, value in found.items() if key != "bytes_b64"}
    if "message" not in recorded or "message" not in result:
        return recorded, result
    one: Any = recorded["message"]
    other: Any = result["message"]
    names, theirs = dict[str, str](), dict[str, str]()
    known = one.get(RESOURCE, {}).get(RECORDS, {})
    for key, entry in other.get(RESOURCE, {}).get(RECORDS, {}).items():
        for field in ADDRESS_FIELDS & entry.keys():
            place = sources.place(int(entry[field]))
            if place is not None:
                names[entry[field]] = canonical(place)
                if field in known.get(key, {}):
                    theirs[known[key][field]] = canonical(place)
    return {**recorded, "message": _named(one, theirs)}, {**result, "message": _named(other, names)}


Numbers = dict[int, int]
"""Addresses of pieces of pools, as a file has them in its messages and as GE's model has them."""


def learn_numbers(recorded: Result, found: Result, sources: Sources, numbers: Numbers) -> None:
    """Take up what addresses in memory of pools are called in the message of a file."""
    one: Any = recorded.get("message") or {}
    other: Any = found.get("message") or {}
    known = one.get(RESOURCE, {}).get(RECORDS, {})
    for key, entry in other.get(RESOURCE, {}).get(RECORDS, {}).items():
        if key in known and sources.place(int(entry.get("address", 0))) is not None:
            numbers |= {int(known[key].get(name, 0)): int(entry.get(name, 0)) for name in ADDRESS_FIELDS}


def renumbered(data: bytes, numbers: Numbers) -> bytes:
    """Return a message of a file with the addresses of pools as the model has them."""
    if not any(one != other for one, other in numbers.items()):
        return data
    info = var_manager.VarManagerInfo.FromString(data)
    res = info.var_resource
    for record in res.var_addr_mgr_map.values():
        if record.address in numbers:
            record.address, record.offset = numbers[record.address], numbers.get(record.offset, record.offset)
    for addr in numbers.keys() & set(res.var_offset_map):
        kind = res.var_offset_map.pop(addr)
        res.var_offset_map[numbers[addr]] = kind
    for addr in numbers.keys() & set(res.var_dev_addr_mgr_map):
        res.var_dev_addr_mgr_map[numbers[addr]].CopyFrom(res.var_dev_addr_mgr_map[addr])
        res.var_dev_addr_mgr_map[numbers[addr]].address = numbers[addr]
        del res.var_dev_addr_mgr_map[addr]
    return info.SerializeToString(deterministic=True)


def with_addresses(message: Any, renamed: Callable[[int], int]) -> Any:
    """Return a message with other logical addresses, and the offsets that go with them; pieces of pools stay."""
    if RESOURCE not in message:
        return message
    resource = dict(message[RESOURCE])
    for field in ADDRESS_MAPS & resource.keys():
        entries = resource[field].items()
        resource[field] = {
            str(renamed(int(addr))) if addr.isdecimal() else addr: _moved(entry, renamed) for addr, entry in entries
        }
    resource[RECORDS] = {key: _moved(entry, renamed) for key, entry in resource.get(RECORDS, {}).items()}
    return {**message, RESOURCE: resource}


def _moved(entry: Any, renamed: Callable[[int], int]) -> Any:
    if not isinstance(entry, Mapping) or not entry.get("address", "").isdecimal():
        return entry
    addr = int(entry["address"])
    there = renamed(addr)
    if there == addr:
        return entry
    found = {**entry, "address": str(there)}
    if entry.get("memory_type") == str(HBM):
        found |= {"offset": str(int(entry.get("offset", 0)) + there - addr)}
    return {field: value for field, value in found.items() if value != "0"}


def _named(message: Any, names: Mapping[str, str]) -> Any:
    """Return a message with some addresses replaced."""
    if not names or RESOURCE not in message:
        return message
    resource = dict(message[RESOURCE])
    for field in ADDRESS_MAPS & resource.keys():
        resource[field] = {names.get(addr, addr): _entry(entry, names) for addr, entry in resource[field].items()}
    resource[RECORDS] = {key: _entry(entry, names) for key, entry in resource.get(RECORDS, {}).items()}
    return {**message, RESOURCE: resource}


def _entry(entry: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {field: names.get(value, value) if field in ADDRESS_FIELDS else value for field, value in entry.items()}
