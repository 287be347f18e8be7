"""Sessions and loaded models."""

from gevar.runtime import ModelRtVarManager, VarShapeAndMemory
from gevar.session.acl_model import AclModel
from gevar.session.load import load_model
from gevar.session.load_statistics import LoadStatistics
from gevar.session.load_weights import load_weights
from gevar.session.loaded_model import LoadedModel
from gevar.session.loaded_tensor import LoadedTensor
from gevar.session.loaded_weights import LoadedWeights
from gevar.session.loading import ExternalWeightAddress
from gevar.session.session import Session
from gevar.session.verify import Difference, VerifyReport

__all__ = [
    "AclModel",
    "Difference",
    "ExternalWeightAddress",
    "LoadStatistics",
    "LoadedModel",
    "LoadedTensor",
    "LoadedWeights",
    "ModelRtVarManager",
    "Session",
    "VarShapeAndMemory",
    "VerifyReport",
    "load_model",
    "load_weights",
]
