"""Weights: moving them from files into device memory, and the external ones of models."""

from gevar.weights.external_weight_manager import ExternalWeightManager, WeightBlock, WeightSlice
from gevar.weights.file_constant import FileConstantInfo, WeightDirectory, WeightFile, file_constant_info
from gevar.weights.upload import FileRegion, UploadReport, UploadRequest, open_region, read_region, upload
from gevar.weights.value_bins import value_bins

__all__ = [
    "ExternalWeightManager",
    "FileConstantInfo",
    "FileRegion",
    "UploadReport",
    "UploadRequest",
    "WeightBlock",
    "WeightDirectory",
    "WeightFile",
    "WeightSlice",
    "file_constant_info",
    "open_region",
    "read_region",
    "upload",
    "value_bins",
]
