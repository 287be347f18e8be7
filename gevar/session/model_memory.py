"""Where the inputs and outputs of a model's operators lie, as the loader of the first generation finds them.

In this order: an external weight at the logical address; a variable that starts there, less the inner offset; work
memory. Constant inputs lie in the weights partition, at the offset in the operator's own description.

Source: GE source, runtime/v1/graph/load/model_manager/model_utils.cc.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gevar.errors import AddressError, FormatError, SizeOverflowError
from gevar.om.node import OmNode
from gevar.session.runtime_param import RuntimeParam
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var import VarManager

CONTROL_EDGE = ":-1"
"""How the name of a producer ends where the edge has no data."""


class TensorPlaceKind(StrEnum):
    """What kind of memory a tensor of an operator lies in."""

    VARIABLE = "variable"
    WEIGHTS = "weights"
    FILE_CONSTANT = "file_constant"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where an input or output of an operator lies.

    Attributes
    ----------
    kind
        What it lies in.
    logic_addr
        Logical address of what it lies in: of the variable, the external weight, the weights or the work memory.
    offset
        Bytes from there.
    dev_addr
        Device address; None in work memory, which is there only while the model runs.
    """

    kind: TensorPlaceKind
    logic_addr: LogicAddr
    offset: int
    dev_addr: DevAddr | None


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """The memory of one model of a loaded file.

    Attributes
    ----------
    name
        Name of the model.
    param
        Its sizes and bases.
    weights
        Its weights on the device; 0 where it has none.
    file_constants
        Device address of its external weights by logical address; None for one of 0 bytes.
    """

    name: str
    param: RuntimeParam
    weights: DevAddr
    file_constants: Mapping[LogicAddr, DevAddr | None]

    def input_places(self, node: OmNode, manager: VarManager, device_id: DeviceId) -> list[TensorPlace]:
        """Return where each linked input of an operator lies.

        Raises
        ------
        AddressError
            One lies nowhere (status PARAM_INVALID): no variable starts at its address, as at that of a place holder,
            or it leaves the weights or the work memory; or the operator has fewer offsets than inputs.
        StateError, AclError
            As `VarManager.get_var_memory_addr`.
        """
        is_const, places = node.is_input_const, list[TensorPlace]()
        for index, (number, desc) in enumerate(_linked(node)):
            if number < len(is_const) and is_const[number]:
                places.append(self._in_weights(node, desc))
            else:
                places.append(self._place(node, node.input_i, index, desc, manager, device_id))
        return places

    def output_places(self, node: OmNode, manager: VarManager, device_id: DeviceId) -> list[TensorPlace]:
        """Return where each output of an operator lies; raises as `input_places`."""
        descs = enumerate(node.output_descs)
        return [self._place(node, node.output_i, index, desc, manager, device_id) for index, desc in descs]

    def _in_weights(self, node: OmNode, desc: TensorDesc) -> TensorPlace:
        try:
            size_bytes = max(calc_tensor_mem_size(desc.shape, desc.format, desc.dtype), 0)
        except (FormatError, SizeOverflowError):
            size_bytes = 0
        offset = desc.data_offset
        if not 0 <= offset <= self.param.weight_size - size_bytes:
            reason = f"{size_bytes} B of node {node.name} leave the {self.param.weight_size} B of weights"
            raise AddressError(offset, reason, status=PARAM_INVALID)
        return TensorPlace(
            TensorPlaceKind.WEIGHTS, LogicAddr(self.param.weight_base), offset, DevAddr(self.weights + offset)
        )

    def _place(
        self,
        node: OmNode,
        offsets: tuple[int, ...],
        index: int,
        desc: TensorDesc,
        manager: VarManager,
        device_id: DeviceId,
    ) -> TensorPlace:
        if index >= len(offsets):
            reason = f"node {node.name} has {len(offsets)} offsets, one for its tensor {index} is missing"
            raise AddressError(0, reason, status=PARAM_INVALID)
        addr, inner = LogicAddr(offsets[index]), desc.inner_offset
        if addr in self.file_constants:
            return TensorPlace(TensorPlaceKind.FILE_CONSTANT, addr, 0, self.file_constants[addr])
        start = LogicAddr(addr - inner)
        if self.param.variable_size and manager.is_var_addr(start):
            dev_addr = manager.get_var_memory_addr(start, MemType.RT_MEMORY_HBM, device_id)
            return TensorPlace(TensorPlaceKind.VARIABLE, start, inner, DevAddr(dev_addr + inner))
        if not 0 <= addr < max(self.param.memory_size, 1):
            reason = f"node {node.name}: no variable starts there, and the work memory has {self.param.memory_size} B"
            raise AddressError(addr, reason, status=PARAM_INVALID)
        return TensorPlace(TensorPlaceKind.MEMORY, LogicAddr(0), addr, None)


def _linked(node: OmNode) -> Iterator[tuple[int, TensorDesc]]:
    """Yield number and description of each input that has a producer."""
    producers = [name for name in node.inputs if not name.endswith(CONTROL_EDGE)]
    for number, (producer, desc) in enumerate(zip(producers, node.input_descs, strict=False)):
        if producer:
            yield number, desc
