"""ACL's constants by their C names, as plain ints."""

from enum import Enum

from acl_shim import codes, data_codes, device_codes, memory_codes, stream_codes


def _constants() -> dict[str, int]:
    found = {}
    for module in (codes, data_codes, device_codes, memory_codes, stream_codes):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Enum):
                members = value.__members__.items()
                found.update({name: int(member.value) for name, member in members if name.startswith("ACL_")})
    return found


CONSTANTS = _constants()
"""Names of codes, enums and flags -> their values."""
