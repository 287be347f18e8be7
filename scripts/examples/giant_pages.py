"""Take memory in pages of 1 GiB, and in smaller ones where these run out: python giant_pages.py MIB…"""

import logging
import sys

from acl_shim import open_runtime
from gevar.memory import MemoryShortageError, SessionMemAllocator
from gevar.types import DeviceId

OPTIONS = {"ge.variableUse1gHugePage": "2"}  # "1" takes nothing else
logging.getLogger("gevar.memory").setLevel(logging.ERROR)  # its warning says what is printed here

sessions = SessionMemAllocator(open_runtime())
with sessions.get_var_mem_allocator(1, DeviceId(0), OPTIONS) as allocator:
    for number, mebibytes in enumerate(sys.argv[1:]):
        try:
            addr = allocator.allocate(int(mebibytes) << 20, f"block {number}")
        except MemoryShortageError as error:
            print(error.report.text)
            break
        decisions = allocator.figures.decisions
        print(f"{addr:#x}: {decisions.pages} pages of 1 GiB and {decisions.fallback_pages} of 2 MiB so far")
