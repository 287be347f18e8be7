"""Counts and sizes of a loaded model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.placing_models import PlacedTensor


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
    """

    tensors: Mapping[str, int]
    size_bytes: int
    shared_tensors: int
    shared_bytes: int
    device_bytes: int

    @classmethod
    def of_rows(cls, rows: Sequence[LoadedTensor], device_bytes: int) -> "LoadStatistics":
        """Count rows."""
        shared = [row.size_bytes for row in rows if row.sharing]
        tensors = MappingProxyType(dict(Counter(row.kind for row in rows)))
        return cls(tensors, sum(row.size_bytes for row in rows), len(shared), sum(shared), device_bytes)


def rows_of(placed: Iterable[PlacedTensor]) -> list[LoadedTensor]:
    """Return the rows of a model; what several graphs of one file say of a tensor makes one row, the first."""
    found: dict[tuple[object, ...], LoadedTensor] = {}
    for number, one in enumerate(placed):
        row = one.row
        key: tuple[object, ...] = (number,)
        if row.dev_addr is not None or row.logic_addr is not None:
            key = (one.file_number, row.name, row.kind, row.dtype, row.format, row.shape, row.logic_addr, row.dev_addr)
        found.setdefault(key, row)
    return list(found.values())
