"""Time-outs: seconds in Python, milliseconds in the runtime."""

from math import ceil

_MOST_MS = 2**31 - 1


def timeout_ms(timeout_s: float) -> int:
    """Return a time-out in whole milliseconds, rounded up.

    Parameters
    ----------
    timeout_s
        Seconds, above 0 and at most 2147483.

    Raises
    ------
    ValueError
        The time-out is out of range.
    """
    if not 0 < timeout_s <= _MOST_MS / 1000:
        raise ValueError(f"timeout_s is {timeout_s}: give seconds above 0 up to {_MOST_MS // 1000}, or None for ever")
    return ceil(timeout_s * 1000)
