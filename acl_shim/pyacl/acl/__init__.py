"""pyACL's functions and constants, over the ACL runtime that ``GEVAR_ACL`` names (``auto``, ``npu``, ``host``, a path).

Functions return their out values first and the code last, a function without out values the bare code; pointers,
handles and enums are plain ints, structures are dicts with the C names of their fields. A wrong type raises
`TypeError`; a failure of the runtime is a code and raises nothing. A function that the library lacks is not there:
`dir` does not list it. The runtime is opened by the first function that is looked up.

Source: CANN, pyACL API reference; table of calls in ``_calls.py``.
"""

from . import rt, util
from ._constants import CONSTANTS
from ._face import Face, Function

__all__ = ["rt", "util"]

globals().update(CONSTANTS)

_functions = Face("acl")


def __getattr__(name: str) -> Function:
    return _functions.function(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.names()})
