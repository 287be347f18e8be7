"""Typed face of the C table: models."""

from typing import Protocol

from acl_shim.api_types import Cell, DatasetHandle, IODimsStruct, ModelConfigHandle, ModelDescHandle


class ModelApi(Protocol):
    """Sizes of models, loading them, what goes in and out, and running them; optional in every library."""

    def aclmdlQuerySize(self, path: bytes, work_size: Cell, weight_size: Cell, /) -> int:
        """Write the bytes of work memory and of weights that a model in a file needs."""

    def aclmdlQuerySizeFromMem(self, model: int, model_bytes: int, work_size: Cell, weight_size: Cell, /) -> int:
        """Write the same for a model in host memory."""

    def aclmdlCreateConfigHandle(self) -> int:
        """Return a new configuration of a load; 0 where there is none."""

    def aclmdlDestroyConfigHandle(self, config: ModelConfigHandle, /) -> int:
        """Destroy a configuration."""

    def aclmdlSetConfigOpt(self, config: ModelConfigHandle, attr: int, value: int, value_bytes: int, /) -> int:
        """Set one option; `value` is the address of the value."""

    def aclmdlSetExternalWeightAddress(
        self, config: ModelConfigHandle, file: bytes, addr: int, size_bytes: int, /
    ) -> int:
        """Name device memory that holds what a file of weights holds."""

    def aclmdlLoadWithConfig(self, config: ModelConfigHandle, model_id: Cell, /) -> int:
        """Load a model and write its number."""

    def aclmdlUnload(self, model_id: int, /) -> int:
        """Give a model up."""

    def aclmdlCreateDesc(self) -> int:
        """Return a new description of a model; 0 where there is none."""

    def aclmdlDestroyDesc(self, desc: ModelDescHandle, /) -> int:
        """Destroy a description."""

    def aclmdlGetDesc(self, desc: ModelDescHandle, model_id: int, /) -> int:
        """Make a description show a loaded model."""

    def aclmdlGetNumInputs(self, desc: ModelDescHandle, /) -> int:
        """Return the number of inputs."""

    def aclmdlGetNumOutputs(self, desc: ModelDescHandle, /) -> int:
        """Return the number of outputs."""

    def aclmdlGetInputSizeByIndex(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the bytes of an input."""

    def aclmdlGetOutputSizeByIndex(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the bytes of an output."""

    def aclmdlGetInputNameByIndex(self, desc: ModelDescHandle, index: int, /) -> str | None:
        """Return the name of an input."""

    def aclmdlGetOutputNameByIndex(self, desc: ModelDescHandle, index: int, /) -> str | None:
        """Return the name of an output."""

    def aclmdlGetInputDims(self, desc: ModelDescHandle, index: int, dims: IODimsStruct, /) -> int:
        """Write the shape of an input."""

    def aclmdlGetOutputDims(self, desc: ModelDescHandle, index: int, dims: IODimsStruct, /) -> int:
        """Write the shape of an output."""

    def aclmdlGetInputFormat(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the storage format of an input; -1 where there is none."""

    def aclmdlGetOutputFormat(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the storage format of an output; -1 where there is none."""

    def aclmdlGetInputDataType(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the type of an input's elements; -1 where there is none."""

    def aclmdlGetOutputDataType(self, desc: ModelDescHandle, index: int, /) -> int:
        """Return the type of an output's elements; -1 where there is none."""

    def aclmdlCreateDataset(self) -> int:
        """Return a new list of data buffers; 0 where there is none."""

    def aclmdlDestroyDataset(self, dataset: DatasetHandle, /) -> int:
        """Destroy a list; its data buffers stay."""

    def aclmdlAddDatasetBuffer(self, dataset: DatasetHandle, data_buffer: int, /) -> int:
        """Add a data buffer to a list."""

    def aclmdlExecute(self, model_id: int, inputs: DatasetHandle, outputs: DatasetHandle, /) -> int:
        """Run a model and wait for its outputs."""
