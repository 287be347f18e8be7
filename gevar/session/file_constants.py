"""FileConstants on the device: one block for each slice of a file, or one for a file that has all of a model.

Where all FileConstants of a model are in one file, the file goes to one block and each lies at its offset there
(combined); else each has a block of its own (individual). Memory that the caller gave for a file comes first.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, InitFileConstant and what it calls.
Differs: edges 32 and 33 of docs/differences.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from gevar.errors import VariableError
from gevar.session.file_tensors import FileTensor
from gevar.session.loading import ExternalWeightAddress, Loading
from gevar.status import ACL_ERROR_GE_PARAM_INVALID, PARAM_INVALID
from gevar.types import DevAddr, LogicAddr, MemType
from gevar.var import VarOp
from gevar.weights import FileConstantInfo, FileRegion, WeightSlice, file_constant_info

SHARED_SLICE: Final = "shared: same file slice"
EQUAL_WEIGHTS: Final = "shared: equal weights"
SHARED_FILE: Final = "shared: block of its file"
IN_VARIABLES: Final = "shared: variable of the session"
CALLERS: Final = "memory of the caller"


class PlacedWeight(NamedTuple):
    """Where a FileConstant lies.

    `region` has its bytes in the file; None where the caller brought them.
    """

    logic_addr: LogicAddr
    dev_addr: DevAddr | None
    region: FileRegion | None
    sharing: str


class _Asked(NamedTuple):
    """A FileConstant to be placed."""

    op: VarOp
    info: FileConstantInfo
    logic_addr: LogicAddr
    given: ExternalWeightAddress | None


def place_file_constants(tensors: Sequence[FileTensor], loading: Loading) -> list[PlacedWeight]:
    """Give the FileConstants of one model their places, and ask for their bytes.

    Raises
    ------
    VariableError
        A node does not say where it lies or where its bytes are; or memory of the caller's is too small for it, or is
        given for a name that two files have; or two nodes have one logical address and other bytes.
    LoadError
        A file is not there, ends too early, or leads out of its directory.
    AclError, OutOfMemoryError
        The device refuses memory.
    """
    asked = [_asked(tensor, loading) for tensor in tensors]
    for one in asked:
        if one.given is not None:
            loading.weight_dir.check_given(one.info)
    own = [one for one in asked if not _is_variable(one, loading)]
    is_combined = len({one.info.base_name if one.given else _path_of(one, loading) for one in own}) == 1
    place = _place_in_file if is_combined else partial(_place_alone, _widest(own, loading))
    for one in asked:
        loading.will_be_ready(one.op.name, one.op.output_desc[0], is_variable=_is_variable(one, loading))
    placed = [_place_variable(one, loading) if _is_variable(one, loading) else place(one, loading) for one in asked]
    _check_addresses(asked, placed)
    return placed


def _asked(tensor: FileTensor, loading: Loading) -> _Asked:
    op = tensor.var_op()
    if len(op.output_offsets) != 1:
        reason = f"it has {len(op.output_offsets)} output offsets; a FileConstant has one"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    if op.output_offsets[0] < 0:
        reason = f"its logical address is {op.output_offsets[0]}: give a number from 0"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    info = file_constant_info(op, loading.paths_by_id)
    return _Asked(op, info, LogicAddr(op.output_offsets[0]), loading.external_weights.get(info.base_name))


def _check_addresses(asked: Sequence[_Asked], placed: Sequence[PlacedWeight]) -> None:
    """Refuse other bytes at one logical address, which leads operators to one of them."""
    known: dict[LogicAddr, tuple[str, str]] = {}
    for one, found in zip(asked, placed, strict=True):
        if found.dev_addr is not None:
            given = f"the caller's memory at {found.dev_addr:#x}"
            where = given if found.region is None else found.region.place
            name, before = known.setdefault(found.logic_addr, (one.op.name, where))
            if where != before:
                reason = f"it has {where} at the logical address {found.logic_addr}, where {name} has {before}"
                raise VariableError(one.op.name, reason, status=PARAM_INVALID)


def _is_variable(one: _Asked, loading: Loading) -> bool:
    return loading.session.var_manager.is_var_exist(one.op.name, one.op.output_desc[0])


def _path_of(one: _Asked, loading: Loading) -> str:
    return str(loading.weight_dir.find(one.info).path)


def _place_variable(one: _Asked, loading: Loading) -> PlacedWeight:
    """A FileConstant that the session has as a variable already."""
    manager, desc = loading.session.var_manager, one.op.output_desc[0]
    logic_addr = manager.get_var_addr(one.op.name, desc)
    dev_addr = manager.get_var_memory_addr(logic_addr, MemType.RT_MEMORY_HBM, loading.device_id)
    region = one.info.region(loading.weight_dir.find(one.info))
    _check_listed(one, region, region, loading)
    loading.request_once(one.op.name, region, logic_addr, dev_addr, loading.digests, region.content)
    return PlacedWeight(logic_addr, dev_addr, region, IN_VARIABLES)


def _place_given(one: _Asked, given: ExternalWeightAddress) -> PlacedWeight:
    """A FileConstant in memory of the caller's, which holds the file from its start."""
    end = one.info.offset + one.info.tensor_bytes
    if end > given.size_bytes:
        reason = f"{one.info.tensor_bytes} B at {one.info.offset} do not lie in the {given.size_bytes} B that are given"
        raise VariableError(one.op.name, f"{reason} for {one.info.base_name}", status=ACL_ERROR_GE_PARAM_INVALID)
    return PlacedWeight(one.logic_addr, DevAddr(given.dev_addr + one.info.offset), None, CALLERS)


def _place_in_file(one: _Asked, loading: Loading) -> PlacedWeight:
    """A FileConstant in the block of its whole file."""
    if one.given is not None:
        return _place_given(one, one.given)
    file, info = loading.weight_dir.find(one.info), one.info
    info.check_room(file.path, file.size_bytes)
    if info.offset + info.tensor_bytes > file.size_bytes:
        reason = f"{info.tensor_bytes} B at {info.offset} do not lie in the {file.size_bytes} B of {file.path}"
        raise VariableError(one.op.name, reason, status=PARAM_INVALID)
    region = FileRegion(file.path, info.offset, info.length or info.tensor_bytes, file.state)
    whole = WeightSlice(file, 0, file.size_bytes)
    return _in_block(one, whole, file.size_bytes, info.offset, region, SHARED_FILE, loading)


def _widest(own: Sequence[_Asked], loading: Loading) -> dict[tuple[LogicAddr, str], tuple[int, int]]:
    """Bytes to read, and of the block, for each logical address and place in a file.

    Two of one place have one address where they were compiled, and one block, whatever their lengths.
    """
    found: dict[tuple[LogicAddr, str], tuple[int, int]] = {}
    for one in own:
        if one.given is None:
            region = one.info.region(loading.weight_dir.find(one.info))
            read, block = found.get((one.logic_addr, region.place), (0, 0))
            found[one.logic_addr, region.place] = max(read, region.size_bytes), max(block, one.info.alloc_bytes)
    return found


def _place_alone(
    widest: Mapping[tuple[LogicAddr, str], tuple[int, int]], one: _Asked, loading: Loading
) -> PlacedWeight:
    """A FileConstant in a block of its own, or of its address."""
    if one.given is not None:
        return _place_given(one, one.given)
    file = loading.weight_dir.find(one.info)
    region = one.info.region(file)
    read_bytes, block_bytes = widest[one.logic_addr, region.place]
    piece = WeightSlice(file, region.offset, read_bytes)
    return _in_block(one, piece, block_bytes, 0, region, SHARED_SLICE, loading)


def _in_block(
    one: _Asked,
    piece: WeightSlice,
    size_bytes: int,
    offset: int,
    region: FileRegion,
    sharing: str,
    loading: Loading,
) -> PlacedWeight:
    """A FileConstant at an offset of the block that holds a slice of its file."""
    if not size_bytes:
        return PlacedWeight(one.logic_addr, None, region, "")
    _check_listed(one, region, replace(region, offset=piece.offset, size_bytes=piece.size_bytes), loading)
    block, is_new = loading.weight_block(piece, size_bytes)
    if block.key != piece:
        sharing = EQUAL_WEIGHTS
    return PlacedWeight(one.logic_addr, DevAddr(block.dev_addr + offset), region, "" if is_new else sharing)


def _check_listed(one: _Asked, region: FileRegion, brought: FileRegion, loading: Loading) -> None:
    """Refuse a weight of which bytes have no digest in what is brought, where digests are to be compared."""
    if loading.digests is not None:
        loading.digests.check_listed(replace(region, size_bytes=one.info.needed_bytes), brought)
