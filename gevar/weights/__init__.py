"""Weights: moving them from files into device memory."""

from gevar.weights.upload import FileRegion, UploadReport, UploadRequest, open_region, read_region, upload

__all__ = ["FileRegion", "UploadReport", "UploadRequest", "open_region", "read_region", "upload"]
