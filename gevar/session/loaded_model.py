"""A model on the device: its table, its tensors, and running it."""

from collections.abc import Sequence
from contextlib import ExitStack

from acl_shim.host_memory import HostBuffer
from gevar.errors import StateError
from gevar.om.om_file import Kind
from gevar.session.acl_model import AclModel, no_card
from gevar.session.caller_device import caller_device
from gevar.session.file_tensors import ModelSource
from gevar.session.loaded_tensors import Array, LoadedTensors
from gevar.session.loading import Loading
from gevar.session.placing_models import ModelPlacer, rows_of
from gevar.session.verify import VerifyReport, verify_tensors
from gevar.weights import UploadReport


class LoadedModel(LoadedTensors):
    """A model in device memory; `load_model` makes it.

    Closing gives back what was got for it: its weights, external ones too, that no other model uses.
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

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from gevar import DataType, Format, OmBuilder, TensorDesc, load_model
    >>> builder = OmBuilder("tiny")
    >>> step = TensorDesc(DataType.DT_INT64, Format.FORMAT_ND, (1,))
    >>> builder.output(builder.variable("step", step, init=np.array([7])))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     builder.write(f"{folder}/tiny.om")
    ...     with load_model(f"{folder}/tiny.om", backend="host") as model:
    ...         model.write("step", model.read("step") + 1)
    ...         print(model.rows[0].kind, model.read("step"))
    Variable [8]
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
        super().__init__(path, loading, rows_of(placer.placed), upload, closing, owns_session)
        self.kind: Kind = kind
        self.models = placer.models
        self.acl_model = acl_model
        self._placed = placer.placed

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
