"""Taking back registrations, so that many of them happen as one or not at all."""

from typing import TypeVar

from gevar.types import TensorDesc
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_request import VarRequest
from gevar.var.var_tables import VarTables

K = TypeVar("K")
V = TypeVar("V")


class VarUndo:
    """What tables were before some registrations; made, and used, under the manager's lock.

    Parameters
    ----------
    tables
        The tables, before the first registration.
    """

    def __init__(self, tables: VarTables) -> None:
        self._tables = tables
        self._space, self._owned_end = tables.space.copy(), tables.owned_end
        self._extern_memory = dict(tables.extern_memory)
        self._before: list[tuple[VarRequest, VarRecord | None, TensorDesc | None] | list[VarBlock]] = []

    def note(self, request: VarRequest) -> None:
        """Remember what a registration that comes now may replace."""
        tables, key = self._tables, request.key
        self._before.append((request, tables.records.get(key), tables.cur_descs.get(key.name)))

    def note_new(self, blocks: list[VarBlock]) -> None:
        """Remember variables that `assign_new_run` has placed."""
        self._before.append(blocks)

    def take_back(self) -> None:
        """Make the tables what they were; the last registration noted may have failed and changed nothing."""
        placed: list[VarBlock] = []
        for step in reversed(self._before):
            if isinstance(step, list):
                for block in step:
                    del self._tables.records[block.key], self._tables.cur_descs[block.name]
                placed += step
                continue
            request, record, desc = step
            now = self._tables.records.get(request.key)
            if isinstance(now, VarBlock) and now is not record:
                self._forget(request, now, placed)
            _put_back(self._tables.records, request.key, record)
            _put_back(self._tables.cur_descs, request.key.name, desc)
        self._tables.blocks.remove_all(placed)
        self._tables.space.assign(self._space)
        self._tables.owned_end = self._owned_end
        self._tables.extern_memory = self._extern_memory

    def _forget(self, request: VarRequest, block: VarBlock, placed: list[VarBlock]) -> None:
        """Take a block that a registration made out of everything but the address index."""
        if block.placed:
            placed.append(block)
        else:
            self._tables.pool_blocks.pop(block.logic_addr, None)
        if request.probe is not None:
            self._tables.constants.remove_last(request.probe, block)
        if request.file_slice is not None:
            self._tables.file_constants.remove_last(request.file_slice, block)


def _put_back(table: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry to what it was, None for an entry that was not there."""
    if value is not None:
        table[key] = value
    else:
        table.pop(key, None)
