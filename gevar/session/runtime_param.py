"""What a model says of the memory it runs in: sizes, and where each kind starts in logical space.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, DavinciModel::InitRuntimeParams.
"""

from dataclasses import astuple, dataclass
from typing import Final

from gevar.errors import ModelFileError
from gevar.om.model import OmModel
from gevar.status import FAILED
from gevar.types import MemType

SUB_MEMORY_INFO: Final = "sub_memory_info"
"""Model attribute: pieces of the work memory, as rows of kind of memory, offset, size and a flag."""

_ROW: Final = 3
"""Least numbers of a row; older models have no flag."""


@dataclass(frozen=True, slots=True)
class RuntimeParam:
    """Sizes in bytes, and first logical addresses, as a model states them; what it does not state is 0.

    Attributes
    ----------
    memory_size, zero_copy_size
        Work memory, and the part of it for inputs and outputs that are not copied.
    weight_base, weight_size
        Weights.
    variable_base, variable_size
        Variable space.
    """

    memory_size: int
    zero_copy_size: int
    weight_base: int
    weight_size: int
    variable_base: int
    variable_size: int

    @classmethod
    def of_model(cls, model: OmModel) -> "RuntimeParam":
        """Read the attributes of a model.

        Raises
        ------
        ModelFileError
            A size or base is negative, or the pieces of its work memory do not add up to it (status FAILED).
        """
        found = cls(
            model.int_attr("memory_size"),
            model.int_attr("zero_copy_memory_size"),
            model.int_attr("task_gen_weight_addr"),
            model.int_attr("weight_size"),
            model.int_attr("task_gen_variable_addr"),
            model.int_attr("variable_size"),
        )
        for field, value in zip(cls.__dataclass_fields__, astuple(found), strict=True):
            if value < 0:
                raise cls._refused(model, f"{field} is {value}; it counts from 0", field)
        found._check_pieces(model)
        return found

    def _check_pieces(self, model: OmModel) -> None:
        if SUB_MEMORY_INFO not in model.attrs:
            return
        rows = [tuple(row.list_i) for row in model.attrs[SUB_MEMORY_INFO].list_list_int.list_list_i]
        if any(len(row) < _ROW for row in rows):
            raise self._refused(model, f"it has rows of fewer than {_ROW} numbers")
        sizes = [row[2] for row in rows if row[0] == MemType.RT_MEMORY_HBM]
        if self.zero_copy_size and sizes:
            sizes.pop()  # the last piece is that of inputs and outputs
        total = sum(sizes)
        if sizes and total != self.memory_size - self.zero_copy_size:
            reason = f"pieces of {total} B, the work memory has {self.memory_size - self.zero_copy_size} B without that"
            raise self._refused(model, f"{reason} of inputs and outputs")

    @staticmethod
    def _refused(model: OmModel, reason: str, field: str = SUB_MEMORY_INFO) -> ModelFileError:
        return ModelFileError(model.source.name, model.source.base, field, reason, status=FAILED)
