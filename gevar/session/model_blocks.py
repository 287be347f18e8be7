"""The two blocks of device memory for the Const nodes of a model: its weights partition, and its inline constants.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, InitWeightMem.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.om.consts import ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT
from gevar.om.partition import PartitionType
from gevar.session.file_tensors import FileTensor
from gevar.types import DevAddr, LogicAddr
from gevar.weights import FileRegion, UploadRequest

WEIGHT_ADDR_ATTR: Final = "task_gen_weight_addr"
"""Model attribute: logical address of the weights."""

Malloc = Callable[[str, int], DevAddr]
"""Gets a block of device memory: purpose, size in bytes."""


class ModelBlocks:
    """The blocks of one model, and where each constant lies in them.

    The weights partition is copied as a whole; inline constants are laid out one after the other, each on 512 bytes.

    Parameters
    ----------
    model
        The model.
    path
        Its file; None when its bytes are in memory.
    malloc
        Where the blocks come from; not called for 0 bytes.
    """

    def __init__(self, model: OmModel, path: Path | None, malloc: Malloc) -> None:
        self.requests: list[UploadRequest] = []
        self._path = path
        self._logic_base = model.int_attr(WEIGHT_ADDR_ATTR)
        weights = model.partition_source(PartitionType.WEIGHTS_DATA)
        self._weights = self._inline = DevAddr(0)
        if weights is not None and weights.size_bytes:
            self._weights = malloc(f"weights of {model.name}", weights.size_bytes)
            whole: FileRegion | memoryview
            if path is not None:
                whole = FileRegion(path, weights.base, weights.size_bytes)
            else:
                whole = weights.view(0, weights.size_bytes, "weights")
            self.requests.append(UploadRequest(whole, self._weights))
        inline_bytes = sum(
            align_up(const.size_bytes, SESSION_MEM_ALIGN_BYTES)
            for const in model.const_nodes()
            if const.node.type == CONSTANT and const.storage == ConstStorage.INLINE
        )
        if inline_bytes:
            self._inline = malloc(f"inline constants of {model.name}", inline_bytes)

    def place(self, tensor: FileTensor) -> tuple[LogicAddr | None, DevAddr | None]:
        """Return logical and device address of a constant of this model; call once for each, in order.

        A constant of 0 bytes has no device address. Inline ones are added to `requests`.
        """
        const = tensor.const
        assert const is not None
        if const.storage != ConstStorage.INLINE:
            offset = const.offset or 0
            logic_addr = LogicAddr(self._logic_base + offset) if self._logic_base else None
            return logic_addr, DevAddr(self._weights + offset) if const.size_bytes else None
        if not const.size_bytes:
            return None, None
        dev_addr = self._inline
        content = tensor.content(self._path)
        assert content is not None
        self.requests.append(UploadRequest(content, dev_addr))
        self._inline = DevAddr(dev_addr + align_up(const.size_bytes, SESSION_MEM_ALIGN_BYTES))
        return None, dev_addr
