"""Weights: moving them from files into device memory, and the external ones of models."""

from gevar.weights.external_weight_manager import ExternalWeightManager, WeightBlock, WeightSlice
from gevar.weights.file_constant import FileConstantInfo, file_constant_info
from gevar.weights.file_reader import FileReader, PreadReader, open_region, read_region
from gevar.weights.file_region import FileRegion, UploadRequest
from gevar.weights.load_report import UploadReport
from gevar.weights.load_settings import LoadSettings
from gevar.weights.upload import Upload, upload
from gevar.weights.upload_arrays import UploadArrays
from gevar.weights.value_bins import value_bins
from gevar.weights.weight_directory import WeightDirectory, WeightFile

__all__ = [
    "ExternalWeightManager",
    "FileConstantInfo",
    "FileReader",
    "FileRegion",
    "LoadSettings",
    "PreadReader",
    "Upload",
    "UploadArrays",
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
