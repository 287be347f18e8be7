"""Variables at run time: managers that models restore them into, and the kernels that take them from there."""

from gevar.runtime.execute_graph import ExecuteGraph, ExeNode, Stage, ValueHolder
from gevar.runtime.file_constant_lowering import FileConstantFiles, lowering_file_constant
from gevar.runtime.graph_var_visitor import GraphVarVisitor
from gevar.runtime.model_executor import ModelExecutor
from gevar.runtime.model_rt_var_manager import ModelRtVarManager, RtVarManagerPool
from gevar.runtime.om2_rt_var_manager import Om2RTVarManager
from gevar.runtime.om2_rt_var_manager_pool import Om2RTVarManagerPool
from gevar.runtime.om2_var_resource import CopyInfo, RTVarEntry, RTVarResource
from gevar.runtime.rt_session import RtSession
from gevar.runtime.rt_var_manager import RtVarManager, StorageShape, TensorData, TensorPlacement, VarShapeAndMemory
from gevar.runtime.variable_lowering import LoweringGlobalData, LowerResult, lowering_copy, lowering_variable

__all__ = [
    "CopyInfo",
    "ExeNode",
    "ExecuteGraph",
    "FileConstantFiles",
    "GraphVarVisitor",
    "LowerResult",
    "LoweringGlobalData",
    "ModelExecutor",
    "ModelRtVarManager",
    "Om2RTVarManager",
    "Om2RTVarManagerPool",
    "RTVarEntry",
    "RTVarResource",
    "RtSession",
    "RtVarManager",
    "RtVarManagerPool",
    "Stage",
    "StorageShape",
    "TensorData",
    "TensorPlacement",
    "ValueHolder",
    "VarShapeAndMemory",
    "lowering_copy",
    "lowering_file_constant",
    "lowering_variable",
]
