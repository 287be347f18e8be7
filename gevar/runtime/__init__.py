"""Variables at run time: managers that models restore them into, and the kernels that take them from there."""

from gevar.runtime.model_rt_var_manager import ModelRtVarManager, RtVarManagerPool
from gevar.runtime.rt_session import RtSession
from gevar.runtime.rt_var_manager import RtVarManager, StorageShape, TensorData, TensorPlacement, VarShapeAndMemory

__all__ = [
    "ModelRtVarManager",
    "RtSession",
    "RtVarManager",
    "RtVarManagerPool",
    "StorageShape",
    "TensorData",
    "TensorPlacement",
    "VarShapeAndMemory",
]
