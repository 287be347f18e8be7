"""One tensor of a loaded model: what it is and where it lies."""

from dataclasses import dataclass

from gevar.types import DataType, DevAddr, LogicAddr
from gevar.types.format import format_to_serial


@dataclass(frozen=True, slots=True)
class LoadedTensor:
    """A row of the table of a loaded model.

    Attributes
    ----------
    name
        Name of the node.
    kind
        Type of the node: Const, Constant, Variable, FileConstant or ConstPlaceHolder.
    dtype, format, shape
        Description of the bytes; `format` is the full 32-bit value.
    origin_format, origin_shape
        The tensor as the framework sees it; the shape is None where the model does not say.
    padding_bytes
        Bytes of the data that the storage format adds, and that hold no element.
    logic_addr
        Logical address; None where the model states none.
    dev_addr
        Device address of the first byte; None where nothing is on the device.
    size_bytes
        Bytes of data, without guards and padding.
    note
        What else a reader of the table must know; "" for an ordinary row.
    sharing
        Why it lies where something else lies already, in words; "" where it has a place of its own.

    Examples
    --------
    >>> from gevar import DataType, Format
    >>> stored, plain = (4 | 2 << 8, (9, 2, 16, 16)), (Format.FORMAT_NCHW, (32, 16, 3, 3))
    >>> LoadedTensor("w", "Const", DataType.DT_FLOAT16, *stored, *plain, 0, None, None, 9216).format_text
    'FRACTAL_Z:2'
    """

    name: str
    kind: str
    dtype: DataType
    format: int
    shape: tuple[int, ...]
    origin_format: int
    origin_shape: tuple[int, ...] | None
    padding_bytes: int
    logic_addr: LogicAddr | None
    dev_addr: DevAddr | None
    size_bytes: int
    note: str = ""
    sharing: str = ""

    @property
    def format_text(self) -> str:
        """The format as GE writes it, such as ``FRACTAL_Z:2``."""
        return format_to_serial(self.format)
