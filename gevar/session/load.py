"""Load an OM model: weights to the device, variables restored and resolved.

The order is that of GE's loader: weights, then variables, then the bytes of Constants; each step is undone when a later
one fails.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from gevar.om import OmFile
from gevar.om.node import CONSTANT, CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT
from gevar.runtime import TensorPlacement
from gevar.session.caller_device import caller_device
from gevar.session.file_tensors import FileTensor, ModelSource, file_tensors, open_model
from gevar.session.loaded_model import LoadedModel
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.model_blocks import ModelBlocks
from gevar.session.session import Session
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import LoadTicket
from gevar.weights import UploadRequest, upload

VARIABLE_ADDR_ATTR: Final = "task_gen_variable_addr"
VARIABLE_SIZE_ATTR: Final = "variable_size"
"""Model attributes: first logical address and bytes of the variable space."""


def load_model(
    model: ModelSource,
    *,
    session: Session | None = None,
    device_id: int = 0,
    backend: str | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LoadedModel:
    """Load an OM model into device memory.

    Every model of the file is loaded, those inside a flow model too. The weights partition of a model goes to one
    block; variables and Constants get their logical addresses from the model and device memory of their own.
    FileConstants and place holders are listed but not loaded.

    Parameters
    ----------
    model
        Path of an OM file, or its bytes.
    session
        Session whose variables the model shares; by default one of its own, closed with the model.
    device_id
        Device to load to.
    backend
        Library to use when a session is made here: "auto", "npu", "host" or a path.
    workers
        Reader threads, see `gevar.weights.upload`.
    on_progress
        Called with (bytes done, bytes in all) while weights are moved.

    Returns
    -------
    LoadedModel
        Close it to give the memory back.

    Raises
    ------
    ModelFileError
        The file is not an OM model, or is damaged; names file, offset and field.
    OutOfMemoryError
        The device has not enough memory.
    VariableError, AddressError, FormatError
        A variable contradicts one of the session, does not lie in the variable space, or its initial value does not
        fit.
    LoadError
        The file became shorter, or cannot be read.
    BackendUnavailableError, AclError, StateError
        No library serves; the runtime refuses; the session is closed.

    Notes
    -----
    After failure: no weights of the model stay on the device. In a session that was given, variables restored before
    the failure stay, as in GE; a session made here is closed.
    Thread safety: may be called from several threads; loads into one session follow each other.

    Examples
    --------
    >>> import gevar
    >>> gevar.load_model("missing.om", backend="host")
    Traceback (most recent call last):
    gevar.errors.ModelFileError: missing.om: file at offset 0: cannot be opened: ...
    """
    om, path = open_model(model)
    with om, ExitStack() as outer, ExitStack() as stack:
        own_session = session is None
        if session is None:
            session = stack.enter_context(Session(backend=backend))
        with session.lock:
            session.check_open()
            outer.enter_context(caller_device(session.runtime))
            loader = _Loader(session, DeviceId(device_id), path, stack)
            loader.place(om)
            device = session.runtime.device(device_id)
            report = upload(device, loader.requests, workers=workers, on_progress=on_progress)
            loader.commit()
        return LoadedModel(om.path, session, DeviceId(device_id), loader.rows, report, stack.pop_all(), own_session)


class _Loader:
    """Collects the rows of a model and what is to be uploaded; all that it gets is undone by the stack."""

    def __init__(self, session: Session, device_id: DeviceId, path: Path | None, stack: ExitStack) -> None:
        self._session = session
        self._device_id = device_id
        self._path = path
        self._stack = stack
        self._tickets: dict[LogicAddr, LoadTicket[int]] = {}
        self.rows: list[LoadedTensor] = []
        self.requests: list[UploadRequest] = []

    def place(self, om: OmFile) -> None:
        """Give every tensor of a file its place on the device, and collect what is to be copied there."""
        blocks: dict[int, ModelBlocks] = {}
        self._make_blocks(om, blocks)
        self._session_init(om)
        self._session.init_var_memory(self._device_id)
        for tensor in file_tensors(om):
            if tensor.node.type == CONSTANT:
                logic_addr, dev_addr = blocks[id(tensor.model)].place(tensor)
                self._row(tensor, logic_addr, dev_addr)
            else:
                self._place_variable(tensor)
        self.requests[:0] = [request for block in blocks.values() for request in block.requests]

    def commit(self) -> None:
        """Say that the bytes of all Constants are there."""
        for ticket in self._tickets.values():
            ticket.commit()

    def _make_blocks(self, om: OmFile, blocks: dict[int, ModelBlocks]) -> None:
        for model in om.models:
            blocks[id(model)] = ModelBlocks(model, self._path, self._malloc)
        for submodel in om.submodels:
            if submodel.om is not None:
                self._make_blocks(submodel.om, blocks)

    def _malloc(self, purpose: str, size_bytes: int) -> DevAddr:
        """Get a block for as long as the model is loaded."""
        manager, hbm = self._session.memory_manager, MemType.RT_MEMORY_HBM
        block = manager.malloc_memory(hbm, purpose, size_bytes, self._device_id)
        self._stack.callback(manager.free_memory, hbm, block, self._device_id)
        return block

    def _session_init(self, om: OmFile) -> None:
        """Set up the variable space: one for all models of a file, from the first of them by name, as in GE."""
        first = min(om.models, key=lambda model: model.name)
        base, size = first.int_attr(VARIABLE_ADDR_ATTR), first.int_attr(VARIABLE_SIZE_ATTR)
        if base or size:
            external = self._session.rt_session
            self._session.rt_var_manager.init(
                self._device_id, base, size, external.external_var_addr, external.external_var_size
            )
        for submodel in om.submodels:
            if submodel.om is not None:
                self._session_init(submodel.om)

    def _place_variable(self, tensor: FileTensor) -> None:
        op = tensor.var_op()
        stored = LogicAddr(op.output_offsets[0]) if op.output_offsets else None
        if op.op_type == CONSTPLACEHOLDER:
            self._row(tensor, stored, DevAddr(op.int_attr("addr")), "memory of the caller, not touched")
        elif op.op_type == FILECONSTANT:
            self._row(tensor, stored, None, f"external weight {op.attrs.get('location', '')}, not loaded")
        else:
            manager = self._session.rt_var_manager
            manager.restore_device_variables([op], self._device_id)
            record = manager.get_var_shape_and_memory(op.name, self._device_id)
            if op.op_type == CONSTANTOP:
                self._request_constant(tensor, record.logic_addr, record.dev_addr)
            is_on_host = record.placement is TensorPlacement.ON_HOST
            self._row(tensor, record.logic_addr, None if is_on_host else record.dev_addr)

    def _request_constant(self, tensor: FileTensor, logic_addr: LogicAddr, dev_addr: DevAddr) -> None:
        """Ask for the bytes of a Constant, once for each device and address."""
        if tensor.size_bytes > tensor.desc.size:
            reason = f"its {tensor.size_bytes} B do not fit the {tensor.desc.size} B of its output"
            raise tensor.model.source.error(0, f"constant {tensor.node.name}", reason)
        content = tensor.content(self._path)
        if not tensor.size_bytes or content is None or logic_addr in self._tickets:
            return
        ticket = self._session.var_manager.begin_var_load(logic_addr, self._device_id)
        if ticket is not None:
            self._stack.callback(ticket.abort)
            self._tickets[logic_addr] = ticket
            self.requests.append(UploadRequest(content, dev_addr))

    def _row(self, tensor: FileTensor, logic_addr: LogicAddr | None, dev_addr: DevAddr | None, note: str = "") -> None:
        name, kind, desc = tensor.node.name, tensor.node.type, tensor.desc
        self.rows.append(
            LoadedTensor(name, kind, desc.dtype, desc.format, desc.shape, logic_addr, dev_addr, tensor.size_bytes, note)
        )
