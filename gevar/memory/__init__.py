"""Device memory for the variable manager: the protocol it asks by, and plain memory of the runtime."""

from gevar.memory.device_memory_manager import DeviceMemoryManager, MemoryBlock, MemoryCounts
from gevar.memory.memory_manager import MemoryManager

__all__ = ["DeviceMemoryManager", "MemoryBlock", "MemoryCounts", "MemoryManager"]
