"""A cached model read for another session: its ids, external weights and variables become those of this one.

Source: GE source, compiler/graph/build/model_cache.cc, ModelCache::LoadModelFromCache.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gevar.align import var_block_bytes
from gevar.compile.model_cache_files import cache_error
from gevar.compile.node_kinds import VARIABLE_TYPES
from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.compile.var_mem_assign_util_ops import has_static_memory, manager_name
from gevar.errors import GevarError, GraphError
from gevar.graph import ComputeGraph, Node
from gevar.om import GeModel, GeRootModel, OmFile
from gevar.om.partition import PartitionType
from gevar.om.source import ByteSource
from gevar.proto import task
from gevar.proto.parse import parse_message
from gevar.types import TensorDesc
from gevar.var import FILECONSTANT, VarManager

BATCH_MARK: Final = "_ascend_mbatch_batch_"
"""What stands between the name of a variable and the number of the batch that it was cloned for."""

ATTR_SESSION_ID: Final = "session_id"
ATTR_SESSION_GRAPH_ID: Final = "_session_graph_id"
_ANY_SESSION: Final = "-1"
_LOCATION: Final = "location"


def read_model(file: Path) -> GeRootModel:
    """Return a cached model in parsed form; large parts of it stay in the file, which is open as long as they are used.

    The file is given by its real path.

    Raises
    ------
    ModelFileError
        The file is no model, is damaged, has a name outside its folder, or holds no graph; names the file.
    """
    om: OmFile | None = None
    try:
        om = OmFile(ByteSource.of_file_in(file.parent, file))
        model = GeRootModel.from_om(om)
        if not model.models or any(one.model.graph is None for one in model.models):
            raise cache_error(file, "model", "has no graph; remove the entry")
        for one in model.models:
            one.model.name = one.model.name or graph_of(one).name
    except GraphError as error:
        raise cache_error(file, "model", f"{error}; remove the entry") from error
    except BaseException:
        if om is not None:
            om.close()
        raise
    return model


def graph_of(model: GeModel) -> ComputeGraph:
    """Return the graph of a model that has one."""
    graph = model.model.graph
    if graph is None:
        raise GraphError(model.model.name, "the model has no graph")
    return graph


def map_batch_names(model: GeRootModel, var_manager: VarManager) -> None:
    """Keep the variables that were cloned for batches under the name of what they were cloned from.

    Source: GE source, compiler/graph/build/model_cache.cc; base/graph/manager/graph_var_manager.cc,
    VarManager::SetBatchVariablesKeyName.
    """
    for node in _nodes(model):
        key_name, mark, _ = node.name.partition(BATCH_MARK)
        if mark and key_name and node.type in VARIABLE_TYPES:
            var_manager.set_batch_variables_key_name(node.name, key_name)


def other_form(model: GeRootModel, matched: Mapping[str, TensorDesc], var_manager: VarManager) -> str | None:
    """Return a variable of a model that the session has in another form than the model's nodes; None where none is.

    Variables among the descriptions that have matched are in the right form. Another one came to the session after the
    model was stored: an entry of a graph that brought the variable matches whatever became of it since.
    """
    for node in filter(has_static_memory, _nodes(model)):
        name = manager_name(node)
        is_matched = name in matched or name.partition(BATCH_MARK)[0] in matched
        if is_matched or not var_manager.is_var_exist(name) or not node.op_desc.output_descs:
            continue
        if not var_manager.get_cur_var_desc(name).same_description(node.op_desc.output_desc(0)):
            return name
    return None


def set_ids(model: GeRootModel, root_graph: ComputeGraph, session_id: int) -> None:
    """Give a cached model the ids of the session and of the graph that it stands for."""
    wanted = root_graph.attrs.get_as(ATTR_SESSION_GRAPH_ID, str)
    for one in model.models:
        graph = graph_of(one)
        graph.session_id, graph.graph_id = session_id, root_graph.graph_id
        if one.model.attrs.get_as(ATTR_SESSION_ID, int) != session_id:
            one.model.attrs[ATTR_SESSION_ID] = session_id
        stored = graph.attrs.get_as(ATTR_SESSION_GRAPH_ID, str) or ""
        if wanted and stored != wanted and _ANY_SESSION not in stored:
            graph.attrs[ATTR_SESSION_GRAPH_ID] = wanted


def set_weight_paths(model: GeRootModel, weight_dir: Path) -> None:
    """Let external weights lie in the weight directory, under the names that they have.

    One that lies where its node says, and not in the weight directory, is left there.
    """
    for node in _nodes(model):
        location = node.op_desc.attrs.get_as(_LOCATION, str) if node.type == FILECONSTANT else None
        if not location:
            continue
        path = weight_dir / location.rpartition("/")[2]
        if os.path.lexists(path) or not os.path.lexists(location):
            node.op_desc.attrs[_LOCATION] = str(path)


def assign_addresses(file: Path, model: GeRootModel, var_manager: VarManager) -> bool:
    """Give the variables of a cached model their memory in this session, and its nodes the addresses there.

    Offsets of nodes that lie in a variable follow it.

    Returns
    -------
    bool
        False where variables lie elsewhere than where the model was compiled and the model has tasks: these hold
        addresses in forms that are not known here, so it cannot be used.

    Raises
    ------
    ModelFileError
        A variable of the model gets no memory; names the file.
    """
    before = {node: node.op_desc.output_i for node in _nodes(model) if has_static_memory(node)}
    try:
        for one in model.models:
            VarMemAssignUtil(var_manager, graph_of(one)).assign_var_memory()
    except (GevarError, ValueError) as error:
        raise cache_error(file, "model", f"its variables get no memory: {error}") from error
    moved = _Moved(before)
    if not moved:
        return True
    if any(has_tasks(one) for one in model.models):
        return False
    for node in _nodes(model):
        op_desc = node.op_desc
        if inputs := op_desc.input_i:
            op_desc.input_i = tuple(map(moved.now, inputs))
        if node not in before and (outputs := op_desc.output_i):
            op_desc.output_i = tuple(map(moved.now, outputs))
    return True


class _Moved:
    """Where variables were, and where they are now."""

    def __init__(self, before: dict[Node, tuple[int, ...]]) -> None:
        places: dict[int, tuple[int, int]] = {}
        for node, offsets in before.items():
            now = node.op_desc.output_i
            if offsets and now and offsets[0] > 0:
                places[offsets[0]] = now[0], offsets[0] + var_block_bytes(node.op_desc.output_desc(0).size)
        self._starts = sorted(places)
        self._places = places

    def __bool__(self) -> bool:
        return any(start != now for start, (now, _) in self._places.items())

    def now(self, offset: int) -> int:
        """Return where an offset is now; one that lies in no variable stays."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return offset
        start = self._starts[index]
        now, end = self._places[start]
        return now + offset - start if offset < end else offset


def has_tasks(model: GeModel) -> bool:
    """Tell whether a model has tasks, which hold addresses of its variables."""
    data = model.partition(PartitionType.TASK_INFO).read()
    return bool(parse_message(task.ModelTaskDef, data).task) if data else False


def _nodes(model: GeRootModel) -> Iterator[Node]:
    for one in model.models:
        yield from graph_of(one).all_nodes()
