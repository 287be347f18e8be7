"""Tensors of a file on a device, as `load_weights` has loaded them."""

import os
from contextlib import ExitStack
from os import PathLike
from pathlib import Path

from gevar.errors import ModelFileError
from gevar.om.weight_source import WeightSource
from gevar.session.caller_device import caller_device
from gevar.session.loaded_tensors import LoadedTensors
from gevar.session.verify import VerifyReport, compare_tensors
from gevar.session.weight_content import content_of
from gevar.session.weight_sources import open_weights


class LoadedWeights(LoadedTensors):
    """The tensors of a file in device memory; `load_weights` makes it.

    Closing gives back every tensor that nobody else uses. A session that was made for these alone is closed with them.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from gevar import load_weights
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/w.npz", kernel=np.ones((2, 3), np.float32))
    ...     with load_weights(f"{folder}/w.npz", backend="host") as weights:
    ...         print(weights.rows[0].name, weights.read("kernel").shape)
    kernel (2, 3)
    """

    def verify(
        self, source: str | PathLike[str] | WeightSource, *, weight_dir: str | PathLike[str] | None = None
    ) -> VerifyReport:
        """Read a file again and compare every tensor with the device.

        Parameters
        ----------
        source
            The path they were loaded from, or an open source of the same weights.
        weight_dir
            As for `load_weights`.

        Raises
        ------
        ModelFileError, LoadError, VariableError
            The file has other tensors than were loaded, or cannot be read.
        StateError, AclError
            As `read`.
        """
        self._check_open()
        with ExitStack() as stack:
            if isinstance(source, str | PathLike):
                source = stack.enter_context(open_weights(source, weight_dir))
            tensors = source.tensors()
            if [(one.name, one.data.nbytes) for one in tensors] != [(row.name, row.size_bytes) for row in self.rows]:
                reason = "not those that were loaded; load the file again"
                raise ModelFileError(os.fspath(source.path), None, "tensors", reason)
            stack.enter_context(caller_device(self.session.runtime))
            real_paths = dict[str, Path]()
            pairs = [(row, content_of(one.data, real_paths)) for row, one in zip(self.rows, tensors, strict=True)]
            return compare_tensors(pairs, self.session.runtime.device(self.device_id))
