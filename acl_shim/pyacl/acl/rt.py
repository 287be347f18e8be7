"""pyACL's ``acl.rt``: devices, contexts, memory, streams, events."""

from ._face import Face, Function

_functions = Face("acl.rt")


def __getattr__(name: str) -> Function:
    return _functions.function(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions.names()})
