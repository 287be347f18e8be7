"""What graphs do to variables: formats that change, conversions, the graphs that use and change a variable."""

import logging
from collections.abc import Iterable

from gevar.errors import VariableError
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import Format, TensorDesc
from gevar.var.graph_statistics import GraphVarMemStatistic
from gevar.var.graph_tables import TransNodeInfo, TransRoad, VarBroadCastInfo, checked_graph_id
from gevar.var.session_state import state_error
from gevar.var.var_memory import VarMemory
from gevar.var.var_op import VarOp
from gevar.var.var_request import refuse_size

_log = logging.getLogger("gevar.var")


class VarGraphs(VarMemory):
    """The part of the variable manager that follows variables through graphs."""

    def renew_cur_var_desc(self, name: str, desc: TensorDesc | None = None, *, op: VarOp | None = None) -> None:
        """Give the current form of a variable the format and origin format of a description; the rest of it stays.

        The form is found by its new format from now on, at the same address; what was called ready stays so. A name
        without a current description is passed over.

        Parameters
        ----------
        name
            Name of the variable.
        desc
            The description; None to take it from the node.
        op
            A node, whose output 0 is the description; one without outputs counts as ND.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR; PARAM_INVALID where neither is given).
        ValueError
            Description and node are given.
        VariableError
            Neither is given, the current form has no address (status FAILED), or the variable is there in the other
            format already (status PARAM_INVALID).

        After failure: nothing has changed.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::RenewCurVarDesc.
        Differs: edges 6 and 20 of docs/differences.md.
        """
        if desc is not None and op is not None:
            raise ValueError(f"variable {name!r} is given a description and a node: give one of them")
        with self._lock:
            resource = self._require(PARAM_INVALID if desc is None and op is None else INTERNAL_ERROR)
            key_name = resource.key_name(name)
            if key_name not in resource.cur_descs:
                return
            if desc is None and op is None:
                raise VariableError(name, "there is no description to renew it with; give one", status=FAILED)
            if desc is None and op is not None and op.output_desc:
                desc = op.output_desc[0]
            new_format, origin_format = (
                (Format.FORMAT_ND, Format.FORMAT_ND) if desc is None else (desc.format, desc.origin_format)
            )
            self._device_records.rename_ready(*resource.renew(key_name, new_format, origin_format))

    def record_staged_var_desc(self, graph_id: int, name: str, desc: TensorDesc) -> None:
        """Record what a graph will make of a variable once it is compiled; the last record of a name counts.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            `graph_id` is not an unsigned 32-bit number.
        SizeOverflowError
            The size of the description does not fit into 63 bits (status INTERNAL_ERROR).

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::RecordStagedVarDesc.
        """
        refuse_size(name, desc)
        with self._lock:
            graphs = self._require(INTERNAL_ERROR).graphs
            graphs.staged_descs.setdefault(checked_graph_id(graph_id), {})[name] = desc

    def get_staged_var_descs(self, graph_id: int) -> dict[str, TensorDesc]:
        """Return what a graph will make of variables, by name as given; empty where nothing was recorded.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetStagedVarDescs.
        Differs: edge 5 of docs/differences.md.
        """
        with self._lock:
            return {} if self._resource is None else dict(self._resource.graphs.staged_descs.get(graph_id, {}))

    def set_trans_road(self, name: str, road: Iterable[TransNodeInfo]) -> bool:
        """Record the conversions that a variable's data goes through; the first record of a variable stays.

        Returns
        -------
        bool
            False when there is a record already; nothing is changed then.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        SizeOverflowError
            The size of a description does not fit into 63 bits (status INTERNAL_ERROR).

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetTransRoad.
        Differs: edge 39 of docs/differences.md.
        """
        road = tuple(road)
        for node in road:
            refuse_size(name, node.input)
            refuse_size(name, node.output)
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            key_name, known = resource.key_name(name), resource.graphs.trans_roads
            if key_name in known:
                return False
            known[key_name] = road
            return True

    def get_trans_road(self, name: str) -> TransRoad | None:
        """Return the conversions that were recorded for a variable; None where none were."""
        resource = self._resource
        return None if resource is None else resource.graphs.trans_roads.get(resource.key_name(name))

    def set_changed_graph_id(self, name: str, graph_id: int) -> None:
        """Record the graph that changed a variable last.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            `graph_id` is not an unsigned 32-bit number.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetChangedGraphId.
        Differs: edge 21 of docs/differences.md.
        """
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            resource.graphs.set_changed_graph_id(resource.key_name(name), checked_graph_id(graph_id))

    def get_changed_graph_id(self, name: str) -> int | None:
        """Return the graph that changed a variable last; None where none is recorded.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        """
        resource = self._require(INTERNAL_ERROR)
        return resource.graphs.changed_graph_ids.get(resource.key_name(name))

    def get_changed_var_names(self, graph_id: int) -> set[str]:
        """Return the names of the variables that a graph changed last, as they are kept (batch key names)."""
        with self._lock:
            return set() if self._resource is None else set(self._resource.graphs.changed_var_names.get(graph_id, ()))

    def remove_changed_graph_id(self, name: str) -> None:
        """Forget the graph that changed a variable; does nothing where none is recorded."""
        with self._lock:
            if self._resource is not None:
                self._resource.graphs.remove_changed_graph_id(self._resource.key_name(name))

    def set_allocated_graph_id(self, name: str, graph_id: int) -> bool:
        """Record the first graph that uses a variable.

        Returns
        -------
        bool
            False when a graph is recorded already; nothing is changed then.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            `graph_id` is not an unsigned 32-bit number.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetAllocatedGraphId.
        Differs: edge 39 of docs/differences.md.
        """
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            key_name, known = resource.key_name(name), resource.graphs.allocated_graph_ids
            if key_name in known:
                return False
            known[key_name] = checked_graph_id(graph_id)
            return True

    def get_allocated_graph_id(self, name: str) -> int | None:
        """Return the first graph that uses a variable; None where none is recorded.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        """
        resource = self._require(INTERNAL_ERROR)
        return resource.graphs.allocated_graph_ids.get(resource.key_name(name))

    def save_broad_cast_info(self, graph_id: int, info: VarBroadCastInfo) -> None:
        """Record where a graph broadcasts a variable; the last record of a variable counts.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            `graph_id` is not an unsigned 32-bit number.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SaveBroadCastInfo.
        """
        with self._lock:
            graphs = self._require(INTERNAL_ERROR).graphs
            graphs.broad_casts.setdefault(checked_graph_id(graph_id), {})[info.var_name] = info

    def get_broad_cast_info(self, graph_id: int, var_name: str) -> VarBroadCastInfo | None:
        """Return where a graph broadcasts a variable; None where nothing is recorded."""
        with self._lock:
            return None if self._resource is None else self._resource.graphs.broad_casts.get(graph_id, {}).get(var_name)

    def get_all_variables(self) -> dict[str, TensorDesc]:
        """Return a description of every batch key name, in the order the names came.

        It is what the variable was before its first conversion where conversions are recorded, else its current form.

        Raises
        ------
        StateError
            The manager is not initialised, or has no variable (status INTERNAL_ERROR).

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAllVariables.
        """
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            roads = {name: resource.graphs.trans_roads.get(resource.key_name(name)) for name in resource.cur_descs}
            descs = {name: road[0].input if road else resource.cur_descs[name] for name, road in roads.items()}
        if not descs:
            raise state_error(f"session {self.session_id} has no variables: assign some first", INTERNAL_ERROR)
        return descs

    def get_graph_var_mem_statistics(self) -> dict[str, GraphVarMemStatistic]:
        """Return how many bytes each graph that named itself allocated, and found there; freeing does not reset it.

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::graph_var_mem_statistic_.
        Differs: edge 14 of docs/differences.md.
        """
        return self._statistics.totals()

    def log_graph_var_mem_info(self) -> None:
        """Write a line for each graph that named itself to the log `gevar.var`.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::LogGraphVarMemInfo.
        """
        for name, one in sorted(self._statistics.totals().items()):
            _log.info("graph %r: alloc_var_mem %d B, shared_var_mem %d B", name, one.alloc_size, one.shared_size)
