"""Counts and sizes of a loaded model."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gevar.session.loaded_tensor import LoadedTensor


@dataclass(frozen=True, slots=True)
class LoadStatistics:
    """What a model has, and what it took.

    Attributes
    ----------
    tensors : mapping of str to int
        Tensors by kind.
    size_bytes : int
        Bytes of all tensors, without padding.
    shared_tensors, shared_bytes : int
        Those that lie where something else lies already, and their bytes.
    device_bytes : int
        Device memory that was got for this model and goes when it is closed: weights, inline constants, and external
        weights that were not there; without the memory of variables, which belongs to the session.
    saved_bytes : int
        Device memory that was not got, because a block with the same bytes was there: of another model, or of another
        tensor of this one.
    """

    tensors: Mapping[str, int]
    size_bytes: int
    shared_tensors: int
    shared_bytes: int
    device_bytes: int
    saved_bytes: int

    @classmethod
    def of_rows(cls, rows: Sequence[LoadedTensor], device_bytes: int, saved_bytes: int) -> "LoadStatistics":
        """Count rows."""
        shared = [row.size_bytes for row in rows if row.sharing]
        tensors = MappingProxyType(dict(Counter(row.kind for row in rows)))
        return cls(tensors, sum(row.size_bytes for row in rows), len(shared), sum(shared), device_bytes, saved_bytes)
