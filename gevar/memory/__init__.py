"""Device memory for the variable manager: the protocols it asks by, and plain memory of the runtime."""

from gevar.memory.device_memory_manager import DeviceMemoryManager, MemoryBlock, MemoryCounts
from gevar.memory.expandable_memory_allocator import ExpandableMemoryAllocator
from gevar.memory.memory_manager import MemoryManager

__all__ = ["DeviceMemoryManager", "ExpandableMemoryAllocator", "MemoryBlock", "MemoryCounts", "MemoryManager"]
