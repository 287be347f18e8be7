"""OM files, the offline models of GE: reading them, and writing them from graphs and arrays."""

from gevar.om.builder import OmBuilder
from gevar.om.om_file import OmFile, SubModel, open_om
from gevar.om.weights_layout import SparseBytes
from gevar.om.writer import write_om

__all__ = ["OmBuilder", "OmFile", "SparseBytes", "SubModel", "open_om", "write_om"]
