"""Saved states of variable managers: GE's and gevar's, and where they differ as documented."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from gevar.proto import var_manager
from gevar.var import VarManager
from tests.golden.facts import Json, Report
from tests.golden.var.differences import sections
from tests.golden.var.values import message_json, same_json

REPLACED_BLOCK_EDGE = 19


def saved_state(
    vm: VarManager, expected: str | None, restored: Iterable[dict[str, Json]], report: Report | None = None
) -> Json:
    """Return the state as the file has it where gevar's is the same, but for the number of the session.

    Variables that share an address by their weight are one block, made for the first; GE makes it anew for each. With a
    report that is counted as a documented difference.
    """
    if not vm.is_var_resource_inited:
        return None
    found = var_manager.VarManagerInfo.FromString(vm.var_manager_to_bytes(extension=False))
    if expected is not None:
        wanted = var_manager.VarManagerInfo.FromString(b64decode(expected))
        found.session_id = wanted.session_id
        replaced = _replace_blocks(found, restored)
        if same_json(message_json(wanted), message_json(found)):
            if report is not None and replaced:
                accept(report, REPLACED_BLOCK_EDGE, 1)
            return expected
    return b64encode(found.SerializeToString(deterministic=True)).decode()


def _replace_blocks(info: Any, restored: Iterable[dict[str, Json]]) -> bool:
    """Describe a block by the variable that was restored there last, if it is described by the first one.

    Returns whether that changes anything.
    """
    told: dict[Any, list[Any]] = {}
    for facts in restored:
        if facts.get("new_name"):
            record = info.var_resource.var_addr_mgr_map[facts["key"]]
            told.setdefault(facts["logical_address"], []).append(record.desc)
    changed = False
    for addr, (first, *others) in told.items():
        block = info.var_resource.var_dev_addr_mgr_map[addr]
        if others and block.desc == first != others[-1]:
            block.desc.CopyFrom(others[-1])
            changed = True
    return changed


def accept(report: Report, edge: int, count: int) -> None:
    """Count a difference that the page states."""
    assert any(section.edge == edge for section in sections())
    report.accepted[f"edge {edge}"] += count
