"""A model on the device: its table, its tensors, and giving it back."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from acl_shim.errors import size_text
from acl_shim.host_memory import HostBuffer, read_access
from gevar.errors import StateError, VariableError
from gevar.om.node import CONSTANTOP, VARIABLE
from gevar.om.om_file import Kind
from gevar.session.acl_model import AclModel, no_card
from gevar.session.caller_device import caller_device
from gevar.session.file_tensors import ModelSource
from gevar.session.load_statistics import LoadStatistics, rows_of
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.loading import Loading
from gevar.session.placing_models import ModelPlacer
from gevar.session.verify import VerifyReport, verify_tensors
from gevar.weights import UploadReport

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class LoadedModel:
    """A model in device memory; `load_model` makes it.

    Closing gives back what was got for it: its weights, and external weights that no other model of the session uses.
    Variables belong to the session and go with it. A session that was made for this model alone is closed with it.

    Attributes
    ----------
    path : str
        File of the model, or a name for bytes.
    session, device_id
        Where it was loaded to.
    kind : str
        "model", or "bundle".
    rows : list of LoadedTensor
        Every constant and variable, in the order of loading; one that several graphs of a file have is there once.
    models : list of ModelMemory
        The memory of each model: those of the file in order, then those of the files inside.
    upload : UploadReport
        How much was moved, and how fast.
    statistics : LoadStatistics
        Counts and sizes, and what was got for this model alone.
    acl_model : AclModel or None
        The model in the hands of the runtime; None where there is no card, or nothing that could run.

    Thread safety: any thread may read and write; one closes when the others are done.
    """

    def __init__(
        self,
        path: str,
        kind: Kind,
        loading: Loading,
        placer: ModelPlacer,
        upload: UploadReport,
        acl_model: AclModel | None,
        closing: ExitStack,
        owns_session: bool,
    ) -> None:
        self.path = path
        self.kind: Kind = kind
        self.session = loading.session
        self.device_id = loading.device_id
        self.rows = rows_of(placer.placed)
        self.models = placer.models
        self.upload = upload
        self.statistics = LoadStatistics.of_rows(self.rows, loading.device_bytes)
        self.acl_model = acl_model
        self.owns_session = owns_session
        self._placed = placer.placed
        self._closing = closing
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the model, or its session, was closed."""
        return self._closed or self.session.closed

    def tensor(self, name: str) -> LoadedTensor:
        """Return the row of a name.

        Raises
        ------
        VariableError
            The name is not there, or several tensors at different places have it (use `rows`).
        """
        found = [row for row in self.rows if row.name == name]
        if not found:
            raise VariableError(name, f"not in {self.path}; see rows", close=self._close_names(name))
        if len({(row.kind, row.dev_addr) for row in found}) > 1:
            raise VariableError(name, f"{len(found)} tensors of {self.path} have this name; pick one from rows")
        return found[0]

    def read(self, tensor: str | LoadedTensor) -> Array:
        """Return a copy of a tensor's bytes on the device, as an array of its type and shape.

        Types without a numpy type, and data that is not as long as its shape says, come as bytes.

        Parameters
        ----------
        tensor
            Name, or row of `rows`.

        Raises
        ------
        VariableError
            As `tensor`; or nothing is on the device.
        StateError
            The model or its session was closed; or the variable was never written and has no initial value.
        AclError
            The copy was refused.
        """
        row = self._on_device(tensor)
        value = np.empty(row.size_bytes, np.uint8)
        if row.size_bytes:
            if row.kind in (VARIABLE, CONSTANTOP) and row.logic_addr is not None:
                self.session.var_manager.read_var_memory(row.logic_addr, value, self.device_id)
            elif row.dev_addr is not None:
                with caller_device(self.session.runtime):
                    self.session.memory_manager.memcpy_out(value, row.dev_addr, self.device_id)
        return _as_array(value, row)

    def write(self, tensor: str | LoadedTensor, data: HostBuffer) -> None:
        """Replace a tensor's bytes on the device; padding stays as it is.

        Parameters
        ----------
        tensor
            Name, or row of `rows`.
        data
            Array or other contiguous host memory of exactly the tensor's bytes.

        Raises
        ------
        ValueError
            The number of bytes differs. Nothing is copied.
        VariableError, StateError, AclError
            As `read`. After a refused copy the tensor holds old bytes, new bytes or both.
        """
        row = self._on_device(tensor)
        got_bytes = read_access(data).size_bytes
        if got_bytes != row.size_bytes:
            raise ValueError(f"{row.name} takes {row.size_bytes} B, not {got_bytes} B: give its whole value")
        if not row.size_bytes:
            return
        if row.kind in (VARIABLE, CONSTANTOP) and row.logic_addr is not None:
            self.session.var_manager.write_var_memory(row.logic_addr, data, self.device_id)
        elif row.dev_addr is not None:
            with caller_device(self.session.runtime):
                self.session.memory_manager.memcpy_in(row.dev_addr, row.size_bytes, data, self.device_id)

    def verify(self, model: ModelSource) -> VerifyReport:
        """Read the files again and compare every constant, external weight and initial value with the device.

        Parameters
        ----------
        model
            The path or bytes the model was loaded from.

        Raises
        ------
        ModelFileError, LoadError
            The file is not the one that was loaded, or cannot be read.
        StateError, AclError
            As `read`.
        """
        self._check_open()
        with caller_device(self.session.runtime):
            return verify_tensors(model, self.kind, self._placed, self.session.runtime.device(self.device_id))

    def execute(self, inputs: Sequence[HostBuffer]) -> list[Array]:
        """Run the model on a card, and return its outputs.

        Parameters
        ----------
        inputs
            Arrays or other contiguous host memory, one for each input of ``acl_model.desc``.

        Raises
        ------
        StateError
            There is no card, as on the host runtime; the file has nothing that could run; or the model was closed.
        ValueError, OutOfMemoryError, AclError
            As `AclModel.execute`.
        """
        self._check_open()
        runtime = self.session.runtime
        if self.acl_model is not None:
            with caller_device(runtime):
                return self.acl_model.execute(inputs)
        if runtime.backend == "host":
            raise no_card(runtime.backend, str(runtime.path))
        reason = f"it is a bundle or a flow model, has no tasks, or {runtime.path} lacks the model calls"
        raise StateError(f"{self.path} cannot run: {reason}")

    def close(self) -> None:
        """Give back what was got for this model; a second call does nothing.

        Raises
        ------
        AclError
            The runtime refused to take a block back. Everything else is given back.
        """
        if self._closed:
            return
        self._closed = True
        if not self.session.closed:
            with caller_device(self.session.runtime):
                self._closing.close()

    def _on_device(self, tensor: str | LoadedTensor) -> LoadedTensor:
        self._check_open()
        row = self.tensor(tensor) if isinstance(tensor, str) else tensor
        is_on_host = row.kind == VARIABLE and row.logic_addr is not None
        if row.size_bytes and row.dev_addr is None and not is_on_host:
            raise VariableError(row.name, f"{row.kind} has no bytes on the device{row.note and f': {row.note}'}")
        return row

    def _check_open(self) -> None:
        if self.closed:
            raise StateError(f"model {self.path} was closed; load it again")

    def _close_names(self, name: str) -> list[str]:
        import difflib

        return difflib.get_close_matches(name, {row.name for row in self.rows})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<LoadedModel {self.path}: {len(self.rows)} tensors, {size_text(self.upload.size_bytes)}{state}>"


def _as_array(value: Array, row: LoadedTensor) -> Array:
    """View bytes as the row's type and shape where these account for all of them."""
    if row.dtype.is_packed or row.dtype.element_bits is None:
        return value
    dtype = row.dtype.to_numpy()
    if min(row.shape, default=1) < 0 or int(np.prod(row.shape, dtype=object)) * dtype.itemsize != row.size_bytes:
        return value
    return value.view(dtype).reshape(row.shape)
