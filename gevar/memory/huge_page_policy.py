"""Which pages memory that grows takes: page size by the options, 1 GiB pages or others at each request.

The mode is read once, when the memory is made, and its text is checked. In GE a pool that was refused a page of 1 GiB
never tries again; here each page is decided by itself. After some refusals in a row no more is tried, since a refusal
costs calls, until a page of 1 GiB is given back or the memory is freed.

Source: GE source, runtime/v1/graph/manager, PhysicalMemoryAllocator::MallocPhysical.
Differs: edges 38 and 42 of docs/differences.md.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from acl_shim.api_types import MemHandle
from acl_shim.codes import AclErrorCode
from gevar.align import GIANT_PAGE_BYTES, HUGE_PAGE_BYTES, MIB
from gevar.errors import AclError
from gevar.memory.physical_page_pool import PhysicalPagePool
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE, MemoryOptions

DYNAMIC_PAGE_BYTES: Final = 8 * MIB
"""Page of memory that grows where dynamic graphs use it too."""

RETRY_BUDGET: Final = 4
"""Refusals in a row after which pages of 1 GiB are not tried any more."""

_log = logging.getLogger("gevar.memory")


class HugePageMode(IntEnum):
    """Use of 1 GiB pages for variables (option ``ge.variableUse1gHugePage``)."""

    NONE = 0
    ONLY = 1
    FIRST = 2

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "HugePageMode":
        """Return the mode that the options of a session say; NONE where they say nothing.

        Raises
        ------
        ValueError
            The text is none of "0", "1" and "2".

        Differs: GE takes any other text as "0".

        Examples
        --------
        >>> HugePageMode.from_options({"ge.variableUse1gHugePage": "2"}).name
        'FIRST'
        """
        text = options.get(VARIABLE_USE_1G_HUGE_PAGE, "0")
        if text not in {"0", "1", "2"}:
            raise ValueError(
                f'{VARIABLE_USE_1G_HUGE_PAGE} is {text!r}: give "0" for no pages of 1 GiB, "1" for nothing else, or'
                ' "2" for them first'
            )
        return cls(int(text))


def expandable_page_bytes(mode: HugePageMode, options: MemoryOptions) -> int:
    """Return the page size of memory that grows: 1 GiB, 8 MiB where dynamic graphs extend, else 2 MiB.

    Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator.
    """
    if mode is not HugePageMode.NONE:
        return GIANT_PAGE_BYTES
    return DYNAMIC_PAGE_BYTES if options.is_ge_use_extend_size_memory(dynamic_graph=True) else HUGE_PAGE_BYTES


@dataclass(slots=True)
class PageDecisions:
    """How pages were chosen so far.

    Attributes
    ----------
    pages : int
        Pages taken of the page size of the memory.
    fallback_pages : int
        Pages of 2 MiB taken where one of 1 GiB was wanted.
    refused : int
        How often a page of 1 GiB was tried and refused.
    skipped : int
        How often none was tried, after too many refusals in a row.
    """

    pages: int = 0
    fallback_pages: int = 0
    refused: int = 0
    skipped: int = 0


class PageSource:
    """Pages for one range of memory that grows: of its own size, else of 2 MiB where the mode allows it.

    Parameters
    ----------
    pool
        Pages of the wanted size.
    fallback
        Pages of 2 MiB; None where there is no other way.
    decisions
        Where choices are counted.

    Attributes
    ----------
    open_pools : list
        Pools that count this source as a user.

    Thread safety: none; its owner calls under its own lock.
    """

    def __init__(self, pool: PhysicalPagePool, fallback: PhysicalPagePool | None, decisions: PageDecisions) -> None:
        self.pool = pool
        self.fallback = fallback
        self.open_pools = [pool] if fallback is None else [pool, fallback]
        self.decisions = decisions
        self._budget = RETRY_BUDGET
        self._warned = False

    def malloc_page(self, *, reuse: bool) -> MemHandle | None:
        """Return the handle of a page of the wanted size; None where pages of 2 MiB are to be taken instead.

        Raises
        ------
        AclError, OutOfMemoryError
            There is none, and no other way.
        """
        if self.fallback is None:
            handle = self.pool.malloc_physical(reuse=reuse)
        elif self._budget <= 0:
            self.decisions.skipped += 1
            return None
        else:
            try:
                handle = self.pool.malloc_physical(reuse=reuse)
            except AclError as error:
                if error.call != "aclrtMallocPhysical":
                    raise
                self._refuse(error)
                return None
            self._budget = RETRY_BUDGET
        self.decisions.pages += 1
        return handle

    def _refuse(self, error: AclError) -> None:
        self.decisions.refused += 1
        lacking = error.code == AclErrorCode.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
        self._budget = 0 if lacking else self._budget - 1
        if not self._warned:
            self._warned = True
            text = "device %d: 2 MiB pages are taken where 1 GiB pages are refused: %s"
            _log.warning(text, self.pool.device_id, error)

    def malloc_fallback(self, *, reuse: bool) -> MemHandle:
        """Return the handle of a page of 2 MiB; for a source that has them.

        Raises
        ------
        AclError, OutOfMemoryError
            There is none.
        """
        if self.fallback is None:
            raise AssertionError("pages of 2 MiB are asked for where they are ruled out")
        handle = self.fallback.malloc_physical(reuse=reuse)
        self.decisions.fallback_pages += 1
        return handle

    def renew_budget(self) -> None:
        """Let pages of 1 GiB be tried again."""
        self._budget = RETRY_BUDGET
