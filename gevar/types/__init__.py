"""Values the whole package speaks in: data types, formats, tensor descriptions, sizes, addresses."""

from gevar.types.addresses import DevAddr, DeviceId, LogicAddr
from gevar.types.data_type import DataType
from gevar.types.format import Format
from gevar.types.mem_type import MemType
from gevar.types.tensor_desc import TensorDesc

__all__ = ["DataType", "DevAddr", "DeviceId", "Format", "LogicAddr", "MemType", "TensorDesc"]
