"""Tensors on a device: their table, reading and writing them, and giving them back."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from acl_shim.errors import size_text
from acl_shim.host_memory import HostBuffer, read_access
from gevar.errors import StateError, VariableError
from gevar.om.node import CONSTANTOP, VARIABLE
from gevar.session.caller_device import caller_device
from gevar.session.load_statistics import LoadStatistics
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.loading import WeightLoading
from gevar.weights import UploadReport

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class LoadedTensors:
    """What a load has put on a device; `LoadedModel` and `LoadedWeights` are of this kind.

    Parameters
    ----------
    path
        File, or a name for bytes.
    loading
        What the load has got.
    rows
        The table.
    upload
        What was moved.
    closing
        Gives everything back.
    owns_session
        Whether the session was made for this load alone.

    Attributes
    ----------
    path, rows, upload, owns_session
        As given.
    session, device_id
        Where it was loaded to.
    statistics : LoadStatistics
        Counts and sizes, what was got for this load alone, and what sharing saved.

    Thread safety: any thread may read and write; one closes when the others are done.
    """

    def __init__(
        self,
        path: str,
        loading: WeightLoading,
        rows: Sequence[LoadedTensor],
        upload: UploadReport,
        closing: ExitStack,
        owns_session: bool,
    ) -> None:
        self.path = path
        self.session = loading.session
        self.device_id = loading.device_id
        self.rows = list(rows)
        self.upload = upload
        self.statistics = LoadStatistics.of_rows(self.rows, loading.device_bytes, loading.saved_bytes)
        self.owns_session = owns_session
        self._homes = loading.homes()
        self._closing = closing
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether this, or its session, was closed."""
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

        External weights, and weights that are shared because they are equal, must have no other user then; from then on
        nobody shares them. Weights for which a model names the same bytes of a file change together.

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
        StateError
            Another model or tensor shares the weights, and would change too. Nothing is copied.
        """
        row = self._on_device(tensor)
        got_bytes = read_access(data).size_bytes
        if got_bytes != row.size_bytes:
            raise ValueError(f"{row.name!r} takes {row.size_bytes} B, not {got_bytes} B: give its whole value")
        if not row.size_bytes:
            return
        if row.kind in (VARIABLE, CONSTANTOP) and row.logic_addr is not None:
            self.session.var_manager.write_var_memory(row.logic_addr, data, self.device_id)
        elif row.dev_addr is not None:
            self._make_private(row)
            with caller_device(self.session.runtime):
                self.session.memory_manager.memcpy_in(row.dev_addr, row.size_bytes, data, self.device_id)

    def close(self) -> None:
        """Give back what was got for this load; a second call does nothing.

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

    def _make_private(self, row: LoadedTensor) -> None:
        """Let nobody share the block of a weight that is to be written."""
        for block, home in self._homes:
            if row.dev_addr is not None and block.dev_addr <= row.dev_addr < block.dev_addr + block.size_bytes:
                try:
                    home.make_private(block)
                except StateError as error:
                    raise StateError(f"{row.name} of {self.path}: {error}") from error

    def _on_device(self, tensor: str | LoadedTensor) -> LoadedTensor:
        self._check_open()
        row = self.tensor(tensor) if isinstance(tensor, str) else tensor
        is_on_host = row.kind == VARIABLE and row.logic_addr is not None
        if row.size_bytes and row.dev_addr is None and not is_on_host:
            raise VariableError(row.name, f"{row.kind} has no bytes on the device{row.note and f': {row.note}'}")
        return row

    def _check_open(self) -> None:
        if self.closed:
            raise StateError(f"{self.path} was closed; load it again")

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
        return (
            f"<{type(self).__name__} {self.path}: {len(self.rows)} tensors, {size_text(self.upload.size_bytes)}{state}>"
        )


def _as_array(value: Array, row: LoadedTensor) -> Array:
    """View bytes as the row's type and shape where these account for all of them."""
    if row.dtype.is_packed or row.dtype.element_bits is None:
        return value
    dtype = row.dtype.to_numpy()
    if min(row.shape, default=1) < 0 or int(np.prod(row.shape, dtype=object)) * dtype.itemsize != row.size_bytes:
        return value
    return value.view(dtype).reshape(row.shape)
