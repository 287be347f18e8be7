"""How much memory the reading of a file may take, and who has taken how much of it.

Opening a file, looking at all of it, making its graphs and loading it each take less than four times its bytes and
64 MiB, whatever is in it: what would take more is refused before it is there. A small file may stand for much: an empty
message of two bytes is an object of hundreds, and a number of two bytes may stand for a long name.

The models of a file share what the file may take: a part equally, the rest in proportion to their definitions.
"""

from collections.abc import Callable
from typing import Final

from gevar.errors import ModelFileError

FACTOR: Final = 4
EXTRA_BYTES: Final = 24 << 20
"""What is counted may take so many times the bytes of the file, and so many more; the rest of 64 MiB is not counted."""

CONST_BYTES: Final = 1000
VARIABLE_BYTES: Final = 2200
"""What a constant or variable takes where it is told or loaded, beside its operator and descriptions."""
_EQUAL_BYTES: Final = 8 << 20
"""What of that the models share equally: the smallest one has some operators, too."""

Fail = Callable[[str], ModelFileError]
"""Makes the error of a fault in a model definition."""


class FileAllowance:
    """What all models of a file may take together, by the sizes of the file and of their definitions, in bytes."""

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._model_def_bytes = 0
        self._models = 0

    def add(self, model_def_bytes: int) -> None:
        """Count the definition of one more model."""
        self._model_def_bytes += model_def_bytes
        self._models += 1

    def share(self, model_def_bytes: int) -> int:
        """Return what the model with a definition may take."""
        most = FACTOR * self._file_bytes + EXTRA_BYTES - _EQUAL_BYTES
        return most * model_def_bytes // max(self._model_def_bytes, 1) + _EQUAL_BYTES // max(self._models, 1)


class Allowance:
    """What one model, or one result made of it, may still take.

    Thread safety: any thread may call; one that comes too late to be refused takes some bytes too many.
    """

    __slots__ = ("_fail", "_left", "_most")

    def __init__(self, most_bytes: int, fail: Fail) -> None:
        self._most = self._left = most_bytes
        self._fail = fail

    def anew(self) -> "Allowance":
        """Return the same allowance of which nothing is taken."""
        return Allowance(self._most, self._fail)

    def take(self, size_bytes: int, what: str) -> None:
        """Count memory that stays.

        Raises
        ------
        ModelFileError
            It is more than is left.
        """
        self.check(size_bytes, what)
        self._left -= size_bytes

    def check(self, size_bytes: int, what: str) -> None:
        """Refuse memory that is more than is left; it does not stay, and is not counted. Raises as `take`."""
        if size_bytes > self._left:
            raise self._fail(f"{what} would take more memory than the {self._most} B that a file of its size may take")
