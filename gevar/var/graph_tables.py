"""What graphs did, or will do, to variables: conversions, changed and first graphs, staged forms, broadcasts.

Every table but the broadcasts and the staged descriptions goes by batch key name.

Source: GE source, base/graph/manager/graph_var_manager.h, VarResource, TransNodeInfo, VarBroadCastInfo.
"""

from dataclasses import dataclass
from typing import Final

from gevar.align import INT64_MAX, UINT64_MAX
from gevar.types import TensorDesc

UINT32_MAX: Final = (1 << 32) - 1
_INT32_MAX: Final = (1 << 31) - 1

DATA_UNCHANGED_TYPES: Final = frozenset({"Reshape", "ReFormat", "SqueezeV2", "UnsqueezeV2"})
"""Types of converting ops that move no byte."""


@dataclass(frozen=True, slots=True)
class TransNodeInfo:
    """One step of the conversions that a variable's data goes through.

    Attributes
    ----------
    node_type : str
        Type of the converting op (`TransData`, `Cast`, ...).
    input, output : TensorDesc
        The variable before and after the step.

    Source: GE source, base/graph/manager/graph_var_manager.h, TransNodeInfo.
    """

    node_type: str
    input: TensorDesc
    output: TensorDesc


TransRoad = tuple[TransNodeInfo, ...]
"""All conversions of a variable, the first one first."""


@dataclass(frozen=True, slots=True)
class VarBroadCastInfo:
    """Where a broadcast reads and writes a variable.

    Attributes
    ----------
    var_name : str
        Name of the variable.
    broadcast_name : str
        Name of the broadcasting node.
    idx : int
        Number of the input that the variable is.
    input_offset, output_offset : int
        Offsets of that input and output in bytes.
    input_size, output_size : int
        Their sizes in bytes.

    Source: GE source, base/graph/manager/graph_var_manager.h, VarBroadCastInfo.
    """

    var_name: str
    broadcast_name: str
    idx: int
    input_offset: int
    input_size: int
    output_offset: int
    output_size: int

    def __post_init__(self) -> None:
        """Refuse numbers that GE's integers cannot hold."""
        for name, lowest, highest in (
            ("idx", -_INT32_MAX - 1, _INT32_MAX),
            ("input_offset", -INT64_MAX - 1, INT64_MAX),
            ("output_offset", -INT64_MAX - 1, INT64_MAX),
            ("input_size", 0, UINT64_MAX),
            ("output_size", 0, UINT64_MAX),
        ):
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise ValueError(
                    f"{name} of the broadcast of {self.var_name!r} is {value}, outside {lowest}..{highest}"
                )


class GraphTables:
    """What is known of variables and graphs in one session.

    Attributes
    ----------
    trans_roads : dict
        Conversions per key name.
    changed_graph_ids : dict
        Per key name, the graph that changed the variable last.
    changed_var_names : dict
        The same the other way round: key names per graph; a graph without one has no entry.
    allocated_graph_ids : dict
        Per key name, the first graph that used the variable.
    staged_descs : dict
        Per graph, descriptions per name as given.
    broad_casts : dict
        Per graph, broadcasts per name as given.

    Thread safety: none of its own; changed under the manager's lock. A look-up of one key may run beside it.
    """

    def __init__(self) -> None:
        self.trans_roads: dict[str, TransRoad] = {}
        self.changed_graph_ids: dict[str, int] = {}
        self.changed_var_names: dict[int, set[str]] = {}
        self.allocated_graph_ids: dict[str, int] = {}
        self.staged_descs: dict[int, dict[str, TensorDesc]] = {}
        self.broad_casts: dict[int, dict[str, VarBroadCastInfo]] = {}

    def copy(self) -> "GraphTables":
        """Return tables with the same content, apart from these."""
        copied = GraphTables()
        copied.trans_roads, copied.changed_graph_ids = dict(self.trans_roads), dict(self.changed_graph_ids)
        copied.changed_var_names = {graph_id: set(names) for graph_id, names in self.changed_var_names.items()}
        copied.allocated_graph_ids = dict(self.allocated_graph_ids)
        copied.staged_descs = {graph_id: dict(descs) for graph_id, descs in self.staged_descs.items()}
        copied.broad_casts = {graph_id: dict(infos) for graph_id, infos in self.broad_casts.items()}
        return copied

    def set_changed_graph_id(self, key_name: str, graph_id: int) -> None:
        """Record the graph that changed a variable, in place of the one recorded so far."""
        before = self.changed_graph_ids.get(key_name)
        self.changed_graph_ids[key_name] = graph_id
        if before is not None:
            self._drop_changed_name(key_name, before)
        self.changed_var_names.setdefault(graph_id, set()).add(key_name)

    def remove_changed_graph_id(self, key_name: str) -> None:
        """Forget the graph that changed a variable; does nothing for a name without one."""
        graph_id = self.changed_graph_ids.pop(key_name, None)
        if graph_id is not None:
            self._drop_changed_name(key_name, graph_id)

    def _drop_changed_name(self, key_name: str, graph_id: int) -> None:
        names = self.changed_var_names[graph_id]
        names.remove(key_name)
        if not names:
            del self.changed_var_names[graph_id]


def checked_graph_id(graph_id: int) -> int:
    """Return the number of a graph.

    Raises
    ------
    ValueError
        It is not an unsigned 32-bit number.
    """
    if not 0 <= graph_id <= UINT32_MAX:
        raise ValueError(f"graph_id is {graph_id}: give a number in 0..{UINT32_MAX}")
    return graph_id
