"""The two blocks of device memory for the Const nodes of a model: its weights partition, and its inline constants.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, InitWeightMem.
"""

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.om.consts import ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT
from gevar.om.partition import PartitionType
from gevar.session.file_constants import EQUAL_WEIGHTS, SHARED_SLICE
from gevar.session.file_tensors import FileTensor
from gevar.session.loading import Loading
from gevar.session.runtime_param import RuntimeParam
from gevar.session.weight_content import content_bytes, slice_of
from gevar.types import DevAddr, LogicAddr
from gevar.weights import FileRegion


class ModelBlocks:
    """The blocks of one model, and where each constant lies in them.

    The weights partition is copied as a whole; inline constants are laid out one after the other, each on 512 bytes.

    Parameters
    ----------
    model
        The model.
    param
        Its sizes and bases.
    loading
        The load it belongs to.

    Attributes
    ----------
    weights : DevAddr
        The weights partition; 0 without one.
    sharing : str
        Why that is the block of other weights, in words; "" where it is not.
    """

    def __init__(self, model: OmModel, param: RuntimeParam, loading: Loading) -> None:
        self._loading = loading
        self._logic_base = param.weight_base
        weights = model.partition_source(PartitionType.WEIGHTS_DATA)
        self.weights = self._inline = DevAddr(0)
        self.sharing = ""
        if weights is not None and weights.size_bytes:
            if loading.path is not None:
                region = FileRegion(loading.path, weights.base, weights.size_bytes, weights.state)
                self._place_weights(model, region)
            else:
                self._place_weights(model, weights.view(0, weights.size_bytes, "weights"))
        inline_bytes = sum(
            align_up(const.size_bytes, SESSION_MEM_ALIGN_BYTES)
            for const in model.const_nodes()
            if const.node.type == CONSTANT and const.storage == ConstStorage.INLINE
        )
        if inline_bytes:
            self._inline = loading.malloc(f"inline constants of {model.name}", inline_bytes)

    def _place_weights(self, model: OmModel, content: FileRegion | memoryview) -> None:
        """Give the partition a block: that of the same bytes of the same file, or of equal ones where that is asked."""
        loading, size_bytes = self._loading, content_bytes(content)
        if isinstance(content, memoryview) and not loading.share_equal:
            self.weights = loading.malloc(f"weights of {model.name}", size_bytes)
            loading.request(content, self.weights)
            return
        key = slice_of(content, None, f"weights of {model.name}")
        block, is_new = loading.weight_block(key, size_bytes, content, is_external=False)
        self.weights = block.dev_addr
        if not is_new:
            self.sharing = SHARED_SLICE if block.key == key else EQUAL_WEIGHTS

    def place(self, tensor: FileTensor) -> tuple[LogicAddr | None, DevAddr | None]:
        """Return logical and device address of a constant of this model; call once for each, in order.

        A constant of 0 bytes has no device address.
        """
        const = tensor.const
        assert const is not None
        if const.storage != ConstStorage.INLINE:
            offset = const.offset or 0
            logic_addr = LogicAddr(self._logic_base + offset) if self._logic_base else None
            return logic_addr, DevAddr(self.weights + offset) if const.size_bytes else None
        content = tensor.content(self._loading.path)
        if not const.size_bytes or content is None:
            return None, None
        dev_addr = self._inline
        self._loading.request(content, dev_addr)
        self._inline = DevAddr(dev_addr + align_up(const.size_bytes, SESSION_MEM_ALIGN_BYTES))
        return None, dev_addr
