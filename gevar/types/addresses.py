"""Kinds of numbers that must not be mixed up: logical addresses, device addresses, device ids."""

from typing import NewType

LogicAddr = NewType("LogicAddr", int)
"""Address fixed when a model is compiled: a number in the manager's logical window, never dereferenced."""

DevAddr = NewType("DevAddr", int)
"""Address of device memory, found at run time."""

DeviceId = NewType("DeviceId", int)
"""Number of a device, from 0."""
