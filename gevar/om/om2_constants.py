"""Constants of OM2 packages: which there are, and where their bytes lie.

Source: GE source, base/common/helper/om2; files `data/constants/model_<n>_constants_config.json` and `constant_<n>`.
"""

from dataclasses import dataclass, field
from typing import Final

from gevar.errors import ModelFileError
from gevar.om.json_fields import JsonObject, checked, get_field, optional_field
from gevar.om.om2_package import Om2Package
from gevar.om.source import ByteSource

INTERNAL: Final = "INTERNAL"
"""Type of a constant whose bytes are in the package."""


@dataclass(frozen=True, slots=True)
class Om2Constant:
    """A constant.

    Attributes
    ----------
    key : str
        Its key in the text.
    op_name : str
        Its node.
    index : int
        Its number.
    type : str
        `INTERNAL`; for every other type the bytes are in a file of the weight directory.
    file_name : str
        That file, or the entry of the package.
    offset, size_bytes : int
        Place of the bytes there.
    file_offset : int or None
        Bytes from the start of the package, for reading with `pread`; None for external ones.
    """

    key: str
    op_name: str
    index: int
    type: str
    file_name: str
    offset: int
    size_bytes: int
    file_offset: int | None
    _source: ByteSource | None = field(repr=False)

    def data(self) -> memoryview:
        """Return the bytes, read-only and without a copy.

        Raises
        ------
        ValueError
            They are not in the package.
        ModelFileError
            The package became shorter.
        """
        if self._source is None:
            raise ValueError(f"constant {self.key!r} lies in {self.file_name!r}, in the directory of the weights")
        return self._source.view(0, self.size_bytes, f"constant {self.key}")


def om2_constants(package: Om2Package, model_index: int) -> list[Om2Constant]:
    """Return the constants of one model, in the order of their numbers; none without a text about them.

    Raises
    ------
    ModelFileError
        The text is not as it should be, or bytes do not lie inside their entry.
    """
    name = f"data/constants/model_{model_index}_constants_config.json"
    if name not in package.entries:
        return []
    file, text = package.file_of(name), package.json(name)
    raw = f"data/constants/constant_{model_index}"
    weights = package.stored(raw) if raw in package.entries else ByteSource.of_bytes(b"", package.path)
    stated = optional_field(file, text, "internal_weight_size", int)
    if stated is not None and stated != weights.size_bytes:
        reason = f"{stated} B for {raw}, {weights.size_bytes} B are there"
        raise ModelFileError(file, None, "internal_weight_size", reason)
    found = []
    for key, value in get_field(file, text, "consts", dict).items():
        entry: JsonObject = checked(file, value, dict, f"consts.{key}")
        found.append(_constant(file, key, entry, raw, weights))
    return sorted(found, key=lambda one: (one.index, one.key))


def _constant(file: str, key: str, entry: JsonObject, raw: str, weights: ByteSource) -> Om2Constant:
    where = f"consts.{key}"
    index, offset, size = (get_field(file, entry, one, int, where) for one in ("index", "offset", "size"))
    kind, file_name, op_name = (get_field(file, entry, one, str, where) for one in ("type", "file_name", "op_name"))
    if offset < 0 or size < 0:
        raise ModelFileError(file, None, where, f"{size} B at {offset}; both count from 0")
    if kind != INTERNAL:
        return Om2Constant(key, op_name, index, kind, file_name, offset, size, None, None)
    if offset + size > weights.size_bytes:
        reason = f"{size} B at {offset} leave the {weights.size_bytes} B of {raw}"
        raise ModelFileError(file, None, where, reason)
    part = weights.range(offset, size, f"constant {key}")
    return Om2Constant(key, op_name, index, kind, raw, offset, size, part.base, part)
