"""Give the tensors of OM files their places on a device, in GE's order.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, RestoreDeviceVariables and what comes before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gevar.errors import ModelFileError
from gevar.om import OmFile
from gevar.om.consts import ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT, CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT
from gevar.session.file_constants import PlacedWeight, place_file_constants
from gevar.session.file_tensors import FileTensor, own_tensors
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.loading import Loading
from gevar.session.model_blocks import ModelBlocks
from gevar.session.model_memory import ModelMemory
from gevar.session.runtime_param import RuntimeParam
from gevar.types import DevAddr, LogicAddr, MemType
from gevar.types.tensor_sizes import padding_bytes
from gevar.var import VarOp
from gevar.var.const_place_holder import read_place_holder
from gevar.var.placing import SHARED_PLACINGS, Placing
from gevar.var.var_key import VarKey
from gevar.weights import FileRegion

OF_SESSION: Final = "shared: variable of the session"
SAME_WEIGHTS: Final = "shared: same place in the weights"


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """A tensor of the n-th OM file of a model in its place; `region` has the bytes of an external weight."""

    row: LoadedTensor
    file_number: int
    region: FileRegion | None = None


class ModelPlacer:
    """Collects the places of all tensors, in the order of `file_tensors`."""

    def __init__(self, loading: Loading) -> None:
        self._loading = loading
        self._consts: set[DevAddr] = set()
        self._file_number = -1
        self.placed: list[PlacedTensor] = []
        self.models: list[ModelMemory] = []

    def place(self, om: OmFile) -> None:
        """Give the tensors of a file their places, and ask for their bytes; not those of the files inside."""
        self._file_number += 1
        for model in om.models:
            model.check_decodes()  # as GE, which refuses a model for any operator
        params = {id(model): RuntimeParam.of_model(model) for model in om.models}
        blocks = {id(model): ModelBlocks(model, params[id(model)], self._loading) for model in om.models}
        tensors = list(own_tensors(om))
        if any(tensor.node.type != CONSTANT for tensor in tensors):
            first = min(om.models, key=lambda model: model.name)  # as in GE, for all models of a file
            self._init_variables(params[id(first)])
        weights: dict[int, PlacedWeight] = {}
        for model, numbers in _weights_by_model(om, tensors):
            placed = place_file_constants([tensors[number] for number in numbers], self._loading)
            weights |= zip(numbers, placed, strict=True)
            by_memory = sorted(placed, key=lambda found: found.dev_addr is not None)  # one without bytes hides none
            external = {found.logic_addr: found.dev_addr for found in by_memory}
            self.models.append(ModelMemory(model.name, params[id(model)], blocks[id(model)].weights, external))
        kinds = {CONSTANT, FILECONSTANT}
        ops = {index: tensor.var_op() for index, tensor in enumerate(tensors) if tensor.node.type not in kinds}
        sharing = self._restore(ops)
        for index, tensor in enumerate(tensors):
            if tensor.node.type == CONSTANT:
                self._place_const(tensor, blocks[id(tensor.model)])
            elif tensor.node.type == FILECONSTANT:
                found = weights[index]
                self._add(tensor, found.logic_addr, found.dev_addr, "", found.sharing, found.region)
            elif tensor.node.type == CONSTPLACEHOLDER:
                self._place_holder(tensor, ops[index])
            else:
                self._place_variable(tensor, ops[index], sharing[index], is_dynamic=om.header.is_dynamic)

    def check_external(self, om: OmFile, argument: str) -> None:
        """Refuse an argument about external weights for a file that has none; GE refuses the directory.

        Raises
        ------
        ModelFileError
            There are none.
        """
        if not any(one.row.kind == FILECONSTANT for one in self.placed):
            raise ModelFileError(om.path, None, FILECONSTANT, f"none in this model, leave {argument} out")

    def _init_variables(self, param: RuntimeParam) -> None:
        session, device_id = self._loading.session, self._loading.device_id
        external = session.rt_session
        session.rt_var_manager.init(
            device_id, param.variable_base, param.variable_size, external.external_var_addr, external.external_var_size
        )
        session.init_var_memory(device_id)

    def _restore(self, ops: Mapping[int, VarOp]) -> Mapping[int, str]:
        """Restore variables and Constants; return why each shares its place, "" where it has one of its own."""
        manager, vm = self._loading.session.rt_var_manager, self._loading.session.var_manager
        known: dict[int, bool] = {}
        for number, op in ops.items():
            if op.op_type != CONSTPLACEHOLDER:
                known[number] = vm.is_var_exist(op.name, op.output_desc[0])
                manager.restore_device_variables([op], self._loading.device_id, need_collect=False)
        placings: dict[VarKey, Placing] = {row.key: row.placing for row in vm.table()} if known else {}
        return {number: OF_SESSION if known[number] else _sharing(ops[number], placings) for number in known}

    def _place_const(self, tensor: FileTensor, blocks: ModelBlocks) -> None:
        """A Const; several nodes may have one place in the weights."""
        logic_addr, dev_addr = blocks.place(tensor)
        sharing = SAME_WEIGHTS if dev_addr in self._consts else ""
        if dev_addr is not None:
            self._consts.add(dev_addr)
            if blocks.sharing and tensor.const is not None and tensor.const.storage != ConstStorage.INLINE:
                sharing = blocks.sharing
        self._add(tensor, logic_addr, dev_addr, sharing=sharing)

    def _place_holder(self, tensor: FileTensor, op: VarOp) -> None:
        stored = LogicAddr(op.output_offsets[0]) if op.output_offsets else None
        try:
            memory = read_place_holder(op)
        except ValueError as error:
            self._add(tensor, stored, None, f"no memory: {error}")
        else:
            self._add(tensor, stored, memory.dev_addr, "memory of the caller")

    def _place_variable(self, tensor: FileTensor, op: VarOp, sharing: str, *, is_dynamic: bool) -> None:
        session, device_id, desc = self._loading.session, self._loading.device_id, op.output_desc[0]
        vm, is_empty = session.var_manager, not desc.size and not is_dynamic
        session.rt_var_manager.restore_device_variables([op], device_id, need_collect=not is_empty)
        logic_addr, mem_type = vm.get_var_addr_and_type(op.name, desc)
        is_on_device = mem_type != MemType.RT_MEMORY_HOST and not is_empty
        dev_addr = vm.get_var_memory_addr(logic_addr, mem_type, device_id) if is_on_device else None
        if op.op_type == CONSTANTOP:
            self._request_constant(tensor, logic_addr, dev_addr)
        self._add(tensor, logic_addr, dev_addr, "", sharing)

    def _request_constant(self, tensor: FileTensor, logic_addr: LogicAddr, dev_addr: DevAddr | None) -> None:
        """Ask for the bytes of a Constant, once for each device and address."""
        if tensor.size_bytes > tensor.desc.size:
            reason = f"its {tensor.size_bytes} B do not fit the {tensor.desc.size} B of its output"
            raise tensor.model.source.error(0, f"constant {tensor.node.name}", reason)
        content = tensor.content(self._loading.path)
        if tensor.size_bytes and content is not None and dev_addr is not None:
            self._loading.request_once(tensor.node.name, content, logic_addr, dev_addr)

    def _add(
        self,
        tensor: FileTensor,
        logic_addr: LogicAddr | None,
        dev_addr: DevAddr | None,
        note: str = "",
        sharing: str = "",
        region: FileRegion | None = None,
    ) -> None:
        desc = tensor.desc
        row = LoadedTensor(
            name=tensor.node.name,
            kind=tensor.node.type,
            dtype=desc.dtype,
            format=desc.format,
            shape=desc.shape,
            origin_format=desc.origin_format,
            origin_shape=desc.origin_shape,
            padding_bytes=padding_bytes(desc),
            logic_addr=logic_addr,
            dev_addr=dev_addr,
            size_bytes=tensor.size_bytes,
            note=note,
            sharing=sharing,
        )
        self.placed.append(PlacedTensor(row, self._file_number, region))


def _weights_by_model(om: OmFile, tensors: Sequence[FileTensor]) -> list[tuple[OmModel, list[int]]]:
    """The numbers of the FileConstants of each model among the tensors."""
    found: dict[int, list[int]] = {id(model): [] for model in om.models}
    for number, tensor in enumerate(tensors):
        if tensor.node.type == FILECONSTANT:
            found[id(tensor.model)].append(number)
    return [(model, found[id(model)]) for model in om.models]


def _sharing(op: VarOp, placings: Mapping[VarKey, Placing]) -> str:
    desc = op.output_desc[0]
    placing = placings.get(VarKey(op.name, desc.format, desc.dtype), Placing.RESTORED)
    return placing.value if placing in SHARED_PLACINGS else ""


def rows_of(placed: Iterable[PlacedTensor]) -> list[LoadedTensor]:
    """Return the rows of a model; what several graphs of one file say of a tensor makes one row, the first."""
    found: dict[tuple[object, ...], LoadedTensor] = {}
    for number, one in enumerate(placed):
        row = one.row
        key: tuple[object, ...] = (number,)
        if row.dev_addr is not None or row.logic_addr is not None:
            key = (one.file_number, row.name, row.kind, row.dtype, row.format, row.shape, row.logic_addr, row.dev_addr)
        found.setdefault(key, row)
    return list(found.values())
