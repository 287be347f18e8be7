"""Variables of a session: identity, logical address, device memory.

`VarManagerPool` has a `VarManager` per session; a `VarManager` has the tables of its variables and their memory.
"""

from gevar.var.block_memory import DeviceRecord
from gevar.var.graph_statistics import GraphVarMemStatistic
from gevar.var.graph_tables import TransNodeInfo, VarBroadCastInfo
from gevar.var.load_state import LoadState, LoadTicket
from gevar.var.memory_config import MemoryConfig
from gevar.var.placing import Placing
from gevar.var.session_state import SessionVersion
from gevar.var.var_key import VarKey
from gevar.var.var_manager import VarManager
from gevar.var.var_manager_pool import VarManagerPool
from gevar.var.var_op import CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT, VARIABLE, VarOp
from gevar.var.var_rows import Savings, VarRow
from gevar.var.variable import Variable

__all__ = [
    "CONSTANTOP",
    "CONSTPLACEHOLDER",
    "FILECONSTANT",
    "VARIABLE",
    "DeviceRecord",
    "GraphVarMemStatistic",
    "LoadState",
    "LoadTicket",
    "MemoryConfig",
    "Placing",
    "Savings",
    "SessionVersion",
    "TransNodeInfo",
    "VarBroadCastInfo",
    "VarKey",
    "VarManager",
    "VarManagerPool",
    "VarOp",
    "VarRow",
    "Variable",
]
