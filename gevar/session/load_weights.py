"""Load files of tensors (safetensors, npz, npy, ONNX; an OM file as one of them) onto a device.

Each tensor is a FileConstant with a block of its own. It is known by its place in its file, as the external weights of
models are: who loads the same bytes of the same file into the session later shares the block, and nothing is read.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path

from gevar.errors import LoadError, ModelFileError
from gevar.om.named_tensor import NamedTensor
from gevar.om.node import FILECONSTANT
from gevar.om.regular_file import file_state
from gevar.om.weight_source import WeightSource
from gevar.session.file_constants import EQUAL_WEIGHTS, SHARED_SLICE
from gevar.session.listed_digests import ListedDigests
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.loaded_weights import LoadedWeights
from gevar.session.loading import WeightLoading
from gevar.session.session import Session
from gevar.session.session_for_load import session_for_load
from gevar.session.weight_content import content_of, slice_of
from gevar.session.weight_sources import open_weights
from gevar.types import DevAddr, DeviceId, Format
from gevar.weights import FileRegion, PreadReader, WeightFile
from gevar.weights.file_reader import OpenFile


def load_weights(
    source: str | PathLike[str] | WeightSource,
    *,
    session: Session | None = None,
    device_id: int = 0,
    backend: str | None = None,
    weight_dir: str | PathLike[str] | None = None,
    share_equal: bool = False,
    verify_digests: bool = False,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancel: threading.Event | None = None,
    open_file: OpenFile = PreadReader,
) -> LoadedWeights:
    """Load the tensors of a file into device memory, each as a FileConstant.

    They are no variables: they have no logical address, and do not get in the way of the variables of models in the
    session. Tensors of a file that the session has loaded already are shared, and not read again.

    Parameters
    ----------
    source
        Path of a safetensors file, an index of several, an npz, npy or ONNX file, or of a file of external weights, by
        its name; or else of an OM file; or an open source of weights.
    session
        Session that shares them; by default one of its own, closed with them.
    device_id
        Device to load to.
    backend
        Library to use when a session is made here: "auto", "npu", "host" or a path.
    weight_dir
        Directory of external weights of an OM file; by default `weight` beside it.
    share_equal, verify_digests, workers, on_progress, cancel, open_file
        As `gevar.load_model`.

    Returns
    -------
    LoadedWeights
        Close them to give the memory back.

    Raises
    ------
    ModuleNotFoundError
        An ONNX file needs the package onnx, which is not installed.
    ModelFileError, VariableError
        The file cannot be opened, is damaged, or has a tensor of a type that GE does not know.
    LoadError
        A file became shorter, was changed meanwhile, or cannot be read; a digest differs, or none is listed for a
        tensor.
    OutOfMemoryError
        The device has not enough memory.
    BackendUnavailableError, AclError, StateError
        No library serves; the runtime refuses; the session is closed, or the load was cancelled.

    Notes
    -----
    After failure: nothing stays on the device that was not there before; a session made here is closed.
    Thread safety: may be called from several threads; loads into one session follow each other.

    Examples
    --------
    >>> import gevar
    >>> gevar.load_weights("missing.safetensors", backend="host")
    Traceback (most recent call last):
    gevar.errors.ModelFileError: missing.safetensors: file at offset 0: cannot be opened: ...
    """
    with ExitStack() as opened:
        file = None
        if isinstance(source, str | PathLike):
            file = _file(Path(source))
            source = opened.enter_context(open_weights(source, weight_dir))
        own_session = session is None
        session, stack = opened.enter_context(session_for_load(session, backend, share_equal=share_equal))
        digests = ListedDigests() if verify_digests else None
        loading = WeightLoading(
            session=session, device_id=DeviceId(device_id), stack=stack, share_equal=share_equal, digests=digests
        )
        rows = _place(source.tensors(), file, loading)
        try:
            report = loading.upload(workers=workers, on_progress=on_progress, cancel=cancel, open_file=open_file)
        except ModelFileError as error:  # what is unpacked now may be another file
            _check_unchanged(file, error)
            raise
        _check_unchanged(file)
        return LoadedWeights(os.fspath(source.path), loading, rows, report, stack.pop_all(), own_session)


def _file(path: Path) -> WeightFile | None:
    """Return what a file is now; None where it is not there, which who opens it says."""
    try:
        real = Path(os.path.realpath(path))
        return WeightFile(real, file_state(real.stat()))
    except (OSError, ValueError):
        return None


def _check_unchanged(file: WeightFile | None, found: ModelFileError | None = None) -> None:
    """Refuse a file that is not what it was; `found` is what came of that."""
    if file is None or (now := _file(file.path)) == file:
        return
    got = 0 if now is None else min(now.size_bytes, file.size_bytes)
    raise LoadError(file.path, 0, file.size_bytes, got, "the file changed while it was loaded; load again") from found


def _place(tensors: Sequence[NamedTensor], file: WeightFile | None, loading: WeightLoading) -> list[LoadedTensor]:
    """Give each tensor a block, and ask for its bytes where these are not there."""
    rows, real_paths = [], dict[str, Path]()
    for tensor in tensors:
        content, size_bytes = content_of(tensor.data, real_paths), tensor.data.nbytes
        dev_addr, sharing = None, ""
        if size_bytes:
            if loading.digests is not None:
                region = _region(tensor, file, content)
                loading.digests.check_listed(region, region)
            key = slice_of(content, file, tensor.name)
            block, is_new = loading.weight_block(key, size_bytes, content)
            dev_addr = block.dev_addr
            if not is_new:
                sharing = SHARED_SLICE if block.key == key else EQUAL_WEIGHTS
        rows.append(_row(tensor, dev_addr, sharing))
    return rows


def _region(tensor: NamedTensor, file: WeightFile | None, content: object) -> FileRegion:
    """Return the region that a tensor is; one that is none has no digest."""
    if isinstance(content, FileRegion):
        return content
    reason = f"tensor {tensor.name} does not lie in the file as it is, so its digest cannot be listed"
    raise LoadError("weights" if file is None else file.path, 0, tensor.data.nbytes, 0, reason)


def _row(tensor: NamedTensor, dev_addr: DevAddr | None, sharing: str) -> LoadedTensor:
    return LoadedTensor(
        name=tensor.name,
        kind=FILECONSTANT,
        dtype=tensor.dtype,
        format=Format.FORMAT_ND,
        shape=tensor.shape,
        origin_format=Format.FORMAT_ND,
        origin_shape=tensor.shape,
        padding_bytes=0,
        logic_addr=None,
        dev_addr=dev_addr,
        size_bytes=tensor.data.nbytes,
        sharing=sharing,
    )
