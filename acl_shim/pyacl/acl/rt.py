"""pyACL's ``acl.rt``: devices, contexts, memory, streams, events."""

from ._face import Face, Function

_face = Face("acl.rt")


def __getattr__(name: str) -> Function:
    return _face.function(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_face.names()})
