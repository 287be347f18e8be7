"""Descriptions of variables that are stored with a cached model: whether it is still right, and what it changes.

A model is stored with what the session's variables were before it was compiled, and after. It is right where every
stored variable is now as it was after, and then nothing is to be done; or as it was before, and then what compiling did
to the variables is done again from what is stored.

Source: GE source, compiler/graph/build/model_cache.cc.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gevar.compile.model_cache_files import cache_error
from gevar.errors import ModelFileError
from gevar.om.regular_file import MAX_MESSAGE_BYTES, open_inside, read_whole
from gevar.types import TensorDesc
from gevar.var import TransNodeInfo, VarManager
from gevar.var.graph_tables import DATA_UNCHANGED_TYPES

if TYPE_CHECKING:
    from gevar.proto.ge_ir import TensorDescriptor
    from gevar.proto.var_manager import TransNodeMultiInfo, VarDescInfo

TransRoad = tuple[TransNodeInfo, ...]
_WHAT: Final = "VarMatchInfo"


@dataclass(frozen=True, slots=True)
class VarDescs:
    """Variables of a session at one time.

    Attributes
    ----------
    cur_descs : mapping
        Current description by name.
    trans_roads : mapping
        Conversions by name.
    changed_names : tuple of str
        Variables that the graph changed; only after compilation.
    staged_descs : mapping
        What the graph made of variables before it changed them, by name; only after compilation.
    """

    cur_descs: Mapping[str, TensorDesc]
    trans_roads: Mapping[str, TransRoad]
    changed_names: tuple[str, ...] = ()
    staged_descs: Mapping[str, TensorDesc] = field(default_factory=dict)

    def match(self, var_manager: VarManager) -> bool:
        """Tell whether every variable here is in the session, and described there as here.

        User attributes do not count, nor do variables that only the session has.

        Source: GE source, compiler/graph/build/model_cache.cc, ModelCache::MatchVariableDesc.
        """
        return all(
            var_manager.is_var_exist(name)
            and _stored_fields(var_manager.get_cur_var_desc(name)) == _stored_fields(desc)
            for name, desc in self.cur_descs.items()
        )

    def other_road(self, var_manager: VarManager) -> str | None:
        """Return a variable that the graph changed and that went another road in the session; None where none did."""
        for name in self.changed_names:
            known, road = var_manager.get_trans_road(name), self.trans_roads.get(name)
            if known and road and not _is_gone(known, road):
                return name
        return None


def _stored_fields(desc: TensorDesc) -> TensorDesc:
    """A description without its user attributes."""
    return desc.replace(attrs={}, attr_groups=b"")


def read_var_match_info(file: Path) -> tuple[VarDescs, VarDescs]:
    """Return what a file, given by its real path, says of the variables before and after compilation.

    Raises
    ------
    ModelFileError
        The file cannot be read, has a name outside its folder, or is not what it should be (status FAILED).
    """
    from gevar.proto.parse import parse_message
    from gevar.proto.var_manager import VarMatchInfo

    try:
        info = parse_message(VarMatchInfo, read_whole(open_inside(file.parent, file), MAX_MESSAGE_BYTES, file))
    except (OSError, ModelFileError) as error:
        raise cache_error(file, _WHAT, f"cannot be read: {error}; remove the entry") from error
    return (
        _var_descs(file, "desc_info_before_compile", info.desc_info_before_compile),
        _var_descs(file, "desc_info_after_compile", info.desc_info_after_compile),
    )


def _var_descs(file: Path, which: str, info: "VarDescInfo") -> VarDescs:
    def desc(message: "TensorDescriptor") -> TensorDesc:
        from gevar.proto.tensor_descriptor import tensor_desc_from_proto

        try:
            return tensor_desc_from_proto(message)
        except (ModelFileError, ValueError) as error:
            raise cache_error(file, f"{_WHAT}.{which}", f"{error}; remove the entry") from error

    return VarDescs(
        {name: desc(message) for name, message in info.cur_var_tensor_desc_map.items()},
        {name: _road(road, desc) for name, road in info.var_to_trans_road.items()},
        tuple(info.changed_var_names),
        {name: desc(message) for name, message in info.staged_var_tensor_desc_map.items()},
    )


def _road(road: "TransNodeMultiInfo", desc: "Callable[[TensorDescriptor], TensorDesc]") -> TransRoad:
    return tuple(TransNodeInfo(step.node_type, desc(step.input), desc(step.output)) for step in road.node_info)


def var_match_info(before: "VarDescInfo", var_manager: VarManager, graph_id: int) -> bytes | None:
    """Return what is stored with a model that was compiled now; None where there were and are no variables.

    Parameters
    ----------
    before
        The variables before compilation.
    var_manager
        Variables of the session, as they are after it.
    graph_id
        The graph: its changes and staged descriptions are stored.
    """
    from gevar.proto.var_manager import VarMatchInfo
    from gevar.var.var_info_writer import write_descs

    after = var_manager.var_desc_info_to_serial()
    if not before.cur_var_tensor_desc_map and not after.cur_var_tensor_desc_map:
        return None
    after.changed_var_names.extend(sorted(var_manager.get_changed_var_names(graph_id)))
    write_descs(after.staged_var_tensor_desc_map, var_manager.get_staged_var_descs(graph_id))
    info = VarMatchInfo(desc_info_before_compile=before, desc_info_after_compile=after)
    return info.SerializeToString(deterministic=True)


def refresh(file: Path, after: VarDescs, var_manager: VarManager, graph_id: int) -> tuple[str, ...]:
    """Do to the variables what compiling the model did: staged formats, then roads and graph of each changed one.

    For a caller that takes everything back when it fails (`VarManager.transaction`), and that tells the rebuild control
    of the changes afterwards. A variable that went this road already is left as it is.

    Returns
    -------
    tuple of str
        The variables that have changed now.

    Raises
    ------
    ModelFileError
        A changed variable has no road, or no description after compilation (status FAILED); names the file.
    VariableError
        As `VarManager.renew_cur_var_desc`.

    Source: GE source, compiler/graph/build/model_cache.cc, ModelCache::RefreshVariableDesc.
    Differs: row changed-already of docs/differences.md.
    """
    changed = []
    for name, desc in after.staged_descs.items():
        var_manager.renew_cur_var_desc(name, desc)
    for name in after.changed_names:
        road = after.trans_roads.get(name)
        if not road or name not in after.cur_descs:
            what = "conversions" if not road else "description after compilation"
            raise cache_error(file, _WHAT, f"changed variable {name!r} has no {what}; remove the entry")
        if _is_gone(var_manager.get_trans_road(name) or (), road):
            continue
        changed.append(name)
        var_manager.set_trans_road(name, road)
        var_manager.set_changed_graph_id(name, graph_id)
        if _moves_no_data(road):
            var_manager.renew_cur_var_desc(name, road[-1].output)
    return tuple(changed)


def _is_gone(known: TransRoad, road: TransRoad) -> bool:
    """Tell whether the road of a variable is this one."""
    return len(known) == len(road) and all(
        one.node_type == other.node_type
        and one.input.same_description(other.input)
        and one.output.same_description(other.output)
        for one, other in zip(known, road, strict=True)
    )


def _moves_no_data(road: Iterable[TransNodeInfo]) -> bool:
    return all(step.node_type in DATA_UNCHANGED_TYPES for step in road)
