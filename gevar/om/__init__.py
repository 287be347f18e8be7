"""OM files, the offline models of GE: reading them, and writing them from graphs and arrays.

The names below are imported at their first use: who reads needs nothing of what writes.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gevar.om.builder import OmBuilder
    from gevar.om.const_to_file_const import convert_const_to_file_const
    from gevar.om.om2_package import Om2Package, open_om2
    from gevar.om.om_file import OmFile, SubModel, open_om
    from gevar.om.root_model import GeModel, GeRootModel
    from gevar.om.stored_bytes import Blob, SparseBytes, StreamedBytes
    from gevar.om.writer import write_om

__all__ = [
    "Blob",
    "GeModel",
    "GeRootModel",
    "Om2Package",
    "OmBuilder",
    "OmFile",
    "SparseBytes",
    "StreamedBytes",
    "SubModel",
    "convert_const_to_file_const",
    "open_om",
    "open_om2",
    "write_om",
]

_HOMES = {
    **dict.fromkeys(("Blob", "SparseBytes", "StreamedBytes"), "gevar.om.stored_bytes"),
    **dict.fromkeys(("GeModel", "GeRootModel"), "gevar.om.root_model"),
    **dict.fromkeys(("Om2Package", "open_om2"), "gevar.om.om2_package"),
    **dict.fromkeys(("OmFile", "SubModel", "open_om"), "gevar.om.om_file"),
    "OmBuilder": "gevar.om.builder",
    "convert_const_to_file_const": "gevar.om.const_to_file_const",
    "write_om": "gevar.om.writer",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gevar.om' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
