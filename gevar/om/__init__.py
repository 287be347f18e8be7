"""OM files, the offline models of GE: reading them, and writing them from graphs and arrays."""

from gevar.om.builder import OmBuilder
from gevar.om.om_file import OmFile, SubModel, open_om
from gevar.om.root_model import GeModel, GeRootModel
from gevar.om.stored_bytes import Blob, SparseBytes, StreamedBytes
from gevar.om.writer import write_om

__all__ = [
    "Blob",
    "GeModel",
    "GeRootModel",
    "OmBuilder",
    "OmFile",
    "SparseBytes",
    "StreamedBytes",
    "SubModel",
    "open_om",
    "write_om",
]
