"""How a variable came to its place: one word, kept with each record and block from the moment it is made."""

from enum import Enum
from typing import Final


class Placing(Enum):
    """How a key came to its block, or a block to its place. The values are words for people.

    A block is `ASSIGNED`, `MOVED`, `RESTORED`, `NAMED` or `STORED`; a key can be any.
    """

    ASSIGNED = "assigned"
    """New space, at the end of what was assigned."""

    RESTORED = "restored"
    """The place that its compiled model gave it."""

    MOVED = "moved"
    """New space, since the variable grew beyond its block."""

    REUSED = "reused"
    """The block that its name has in another form."""

    EQUAL_WEIGHT = "shared: equal weight"
    """The block of a constant with equal bytes."""

    FILE_SLICE = "shared: same file slice"
    """The block of a file constant with equal path, offset and length."""

    REFERENCE = "shared: reference"
    """The block of the variable that it is a reference to, or of another reference to that one."""

    NAMED = "named"
    """An address that the caller gave (`VarManager.set_var_addr`)."""

    STORED = "stored"
    """As a stored state had it; how it got there is not stored."""


SHARED_PLACINGS: Final = (Placing.EQUAL_WEIGHT, Placing.FILE_SLICE, Placing.REFERENCE, Placing.REUSED)
"""Placings that took no space of their own."""
