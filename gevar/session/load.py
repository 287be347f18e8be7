"""Load OM models: weights to the device, variables restored and resolved.

The order is that of GE's loader: weights, external weights, variables, then the bytes of Constants; each step is undone
when a later one fails.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc.
"""

import threading
from collections.abc import Callable, Mapping
from os import PathLike

from gevar.om.om_file import Kind
from gevar.session.acl_model import can_hand_over, hand_over
from gevar.session.bundle import check_bundle
from gevar.session.file_tensors import ModelSource, files_inside, open_model
from gevar.session.listed_digests import ListedDigests
from gevar.session.loaded_model import LoadedModel
from gevar.session.loading import ExternalWeightAddress, Loading
from gevar.session.placing_models import ModelPlacer
from gevar.session.session import Session
from gevar.session.session_for_load import session_for_load
from gevar.types import DeviceId
from gevar.weights import PreadReader, WeightDirectory, value_bins
from gevar.weights.file_reader import OpenFile
from gevar.weights.value_bins import VALUE_BINS

_WEIGHT_MULTIPLE = 32
"""Memory for a weight file is a multiple of so many bytes."""


def load_model(
    model: ModelSource,
    *,
    session: Session | None = None,
    kind: Kind = "model",
    device_id: int = 0,
    backend: str | None = None,
    weight_dir: str | PathLike[str] | None = None,
    external_weights: Mapping[str, ExternalWeightAddress] | None = None,
    paths_by_id: Mapping[str, str] | None = None,
    share_equal: bool = False,
    verify_digests: bool = False,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancel: threading.Event | None = None,
    open_file: OpenFile = PreadReader,
) -> LoadedModel:
    """Load an OM model into device memory.

    Every model of the file is loaded, those inside a flow model or a bundle too. The weights partition of a model goes
    to one block; variables and Constants get their logical addresses from the model and device memory of their own.
    External weights come from their files. Both are brought once for each slice of a file, and go with the last model
    of the session that uses them. Place holders stand for memory of the caller's, which is not touched.

    On a card the runtime then loads the model too, onto the same weights, so that `LoadedModel.execute` can run it; not
    where the file only carries weights, and has no tasks.

    Parameters
    ----------
    model
        Path of an OM file, or its bytes.
    session
        Session whose variables the model shares; by default one of its own, closed with the model.
    kind
        "bundle" for a bundle, whose models share one variable space.
    device_id
        Device to load to.
    backend
        Library to use when a session is made here: "auto", "npu", "host" or a path.
    weight_dir
        Directory of external weights; by default `weight` beside the model's file.
    external_weights
        Device memory of the caller's that holds a weight file from its start, by the file's name without directory. It
        comes before the file, and is never freed here.
    paths_by_id
        Files of external weights by `file_id`; by default those of the session's option ``ge.exec.value_bins``.
    share_equal
        Whether the weights of a model, and external weights, share the memory of equal ones that other models of the
        process have loaded so, in this session or another.
    verify_digests
        Whether external weights must have the digests that ``digests.json`` beside them lists.
    workers
        Reader threads, see `gevar.weights.upload`.
    on_progress
        Called with (bytes done, bytes in all) while weights are moved; it must not load anything itself.
    cancel
        Cancels the load once it is set, by any thread, while weights are moved.
    open_file
        Opens a file of weights for reading.

    Returns
    -------
    LoadedModel
        Close it to give the memory back.

    Raises
    ------
    ValueError
        `kind` is neither "model" nor "bundle"; memory for an external weight is null, empty or no multiple of 32 B, or
        is given for a name with a directory; memory of the caller's for variables is smaller than the bundle says; the
        option ``ge.exec.value_bins`` cannot be read.
    ModelFileError
        The file is not an OM model, or is damaged; names file, offset and field. Or models of a bundle contradict each
        other; or a weight directory or digests are asked for and there are no external weights.
    OutOfMemoryError
        The device has not enough memory.
    VariableError, AddressError, FormatError
        A variable contradicts one of the session, does not lie in the variable space, or its initial value does not
        fit; an external weight does not say where it lies.
    LoadError
        A file became shorter, or cannot be read; one of external weights is not there, or leads out of its directory; a
        digest differs, or none is listed for a weight.
    BackendUnavailableError, AclError, StateError
        No library serves; the runtime refuses; the session is closed, or the load was cancelled.

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
    given = dict(external_weights or {})
    for name, memory in given.items():
        if not name or "/" in name:
            raise ValueError(f"memory is given for weight file {name!r}: give the name of a file without its directory")
        if memory.dev_addr <= 0 or memory.size_bytes <= 0 or memory.size_bytes % _WEIGHT_MULTIPLE:
            text = f"memory for weight file {name!r} is {memory.size_bytes} B at {memory.dev_addr}"
            raise ValueError(f"{text}: give an address and a multiple of {_WEIGHT_MULTIPLE} B")
    om, path = open_model(model, kind)
    own_session = session is None
    with om, session_for_load(session, backend, share_equal=share_equal) as (session, stack):
        if om.is_bundle:
            check_bundle(om, session.rt_session)
        if paths_by_id is None:
            paths_by_id = value_bins(session.options.get(VALUE_BINS, ""))
        directory = WeightDirectory(weight_dir, path)
        loading = Loading(
            session=session,
            device_id=DeviceId(device_id),
            stack=stack,
            share_equal=share_equal,
            digests=ListedDigests() if verify_digests else None,
            path=path,
            weight_dir=directory,
            external_weights=given,
            paths_by_id=paths_by_id,
        )
        placer = ModelPlacer(loading)
        for inner in files_inside(om):
            placer.place(inner)
        for argument, is_given in (("weight_dir", weight_dir is not None), ("verify_digests", verify_digests)):
            if is_given:
                placer.check_external(om, argument)
        report = loading.upload(workers=workers, on_progress=on_progress, cancel=cancel, open_file=open_file)
        loading.commit()
        acl_model = None
        if can_hand_over(om, kind, loading):
            given_dir = None if weight_dir is None else directory.path
            acl_model = hand_over(model, loading, placer.models, given_dir)
        return LoadedModel(om.path, kind, loading, placer, report, acl_model, stack.pop_all(), own_session)
