"""OM files, the offline models of GE: reading them, and writing them from graphs and arrays."""

from gevar.om.om_file import OmFile, SubModel, open_om

__all__ = ["OmFile", "SubModel", "open_om"]
