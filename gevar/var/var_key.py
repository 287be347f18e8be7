"""Keys of variables: what tells two descriptions of a variable apart.

GE glues name, format and data type into one text without a separator after the name, so ``w`` in format 12 and ``w1``
in format 2 become one variable. Here a key has three fields; its text, for people, keeps them apart.
"""

from typing import NamedTuple

from gevar.types import DataType

KeyTuple = tuple[str, int, DataType]
"""Name, format and data type: what a `VarKey` is equal to, for tables that are asked often."""


class VarKey(NamedTuple):
    """Key of one stored form of a variable; the shape is not part of it.

    Attributes
    ----------
    name : str
        Batch key name of the variable.
    format : int
        Full 32-bit format value: primary format, sub-format and C0 code.
    dtype : DataType
        Element type.

    Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::VarKey.
    Differs: edge 2 of docs/differences.md.

    Examples
    --------
    >>> str(VarKey("w", 12, DataType.DT_FLOAT)), str(VarKey("w1", 2, DataType.DT_FLOAT))
    ('w_12_0', 'w1_2_0')
    """

    name: str
    format: int
    dtype: DataType

    def __str__(self) -> str:
        return f"{self.name}_{int(self.format)}_{int(self.dtype)}"
