"""Where the data of Const nodes lie in partition 1 (WEIGHTS_DATA).

The first 512 bytes stay empty, because offset 0 means "not placed"; every piece starts at a multiple of 512; byte-equal
pieces of equal size share one place; the partition ends 32 bytes after the last piece, rounded up to 512::

    0        512                     a·512               b·512
    | zeros  | piece | zeros to 512  | piece | zeros     | piece | 32 zeros, zeros to 512 |

Source: GE source, compiler/graph/build/model_builder.cc, ModelBuilder::MergeWeights; measured on files made by ATC.
"""

from collections.abc import Callable, Sequence

from gevar.align import SESSION_MEM_ALIGN_BYTES, TENSOR_ALIGN_BYTES, align_up
from gevar.om.stored_bytes import Blob, Content, SparseBytes, are_equal, digest_of


class EqualBytes:
    """Finds the place that equal bytes have already. Bytes of different `width` never count as equal."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, bytes], list[tuple[Content, int]]] = {}

    def place(self, data: Content, make_place: Callable[[], int], *, width: int = 1) -> int:
        """Return the place of equal bytes; that of `make_place` where there are none."""
        known = self._known.setdefault((width, data.nbytes, digest_of(data)), [])
        for other, place in known:
            if are_equal(other, data):
                return place
        place = make_place()
        known.append((data, place))
        return place


class WeightsLayout:
    """Partition 1 as it grows: `place` puts a piece, `pieces` are what has to be written.

    Parameters
    ----------
    end
        First byte behind what lies there already.

    Thread safety: none; one layout belongs to one writer.
    """

    def __init__(self, end: int = SESSION_MEM_ALIGN_BYTES) -> None:
        self._equal = EqualBytes()
        self._pieces: list[tuple[int, Content]] = []
        self._end = end

    def place(self, data: Content | SparseBytes) -> int:
        """Return the offset of these bytes in the partition: that of an equal piece if there is one, else a new one.

        No bytes lie where the first piece begins.
        """
        if not data.nbytes:
            return SESSION_MEM_ALIGN_BYTES
        if isinstance(data, SparseBytes):
            return self._append(data.nbytes)
        return self._equal.place(data, lambda: self._append_piece(data))

    @property
    def size_bytes(self) -> int:
        """Size of the partition; 1024 without any piece."""
        return align_up(self._end + TENSOR_ALIGN_BYTES, SESSION_MEM_ALIGN_BYTES)

    @property
    def pieces(self) -> Sequence[tuple[int, Content]]:
        """The pieces that have to be written, each with its offset, in the order of offsets."""
        return self._pieces

    @property
    def blob(self) -> Blob:
        """The whole partition."""
        return Blob(self.size_bytes, self._pieces)

    def _append_piece(self, data: Content) -> int:
        offset = self._append(data.nbytes)
        self._pieces.append((offset, data))
        return offset

    def _append(self, size_bytes: int) -> int:
        offset = align_up(self._end, SESSION_MEM_ALIGN_BYTES)
        self._end = offset + size_bytes
        return offset
