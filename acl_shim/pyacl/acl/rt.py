"""pyACL's ``acl.rt``: devices, contexts, memory, streams, events."""

from ._face import Face, Function

_functions = Face("acl.rt")


def __getattr__(name: str) -> Function:
    function = globals()[name] = _functions.function(name)  # found at once from now on
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.names()})
