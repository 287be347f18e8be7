"""Bytes of constants for variables of a session: from the node itself, or from a file; each block is filled once.

Source: GE source, runtime/v1/hybrid/executor/hybrid_model_rt_v2_executor.cc, GraphVarVisitor.
Differs: edges 22, 27 and 33 of docs/differences.md.
"""

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import numpy as np

from gevar.errors import VariableError
from gevar.status import PARAM_INVALID
from gevar.types import DeviceId, LogicAddr
from gevar.var import VarManager, VarOp
from gevar.var.var_op import Bytes
from gevar.weights import FileRegion, open_region, read_region

BLOCK_BYTES: Final = 10 << 20
"""Bytes of a file that are copied at once, as in GE."""


def constant_value(op: VarOp) -> Bytes:
    """Return the bytes of a Constant.

    Raises
    ------
    VariableError
        It has none, or more than its output (status PARAM_INVALID).
    """
    if op.value is None:
        raise VariableError(op.name, "a Constant without a value has no bytes; give it one", status=PARAM_INVALID)
    size_bytes, room = memoryview(op.value).nbytes, op.output_desc[0].size
    if size_bytes > room:
        reason = f"its value has {size_bytes} B and its output {room} B; give the output a larger size"
        raise VariableError(op.name, reason, status=PARAM_INVALID)
    return op.value


def load_constant(vm: VarManager, op: VarOp, logic_addr: LogicAddr, device_id: DeviceId) -> None:
    """Write the bytes of a Constant to its block on a device, unless they are there.

    Raises
    ------
    VariableError
        As `constant_value`.
    AddressError, AclError, OutOfMemoryError, StateError
        As `VarManager.write_var_memory`.

    After failure: the block counts as not loaded.
    """
    value = constant_value(op)
    ticket = vm.begin_var_load(logic_addr, device_id)
    if ticket is not None:
        with ticket:
            vm.write_var_memory(logic_addr, value, device_id)


def load_file(vm: VarManager, name: str, region: FileRegion, logic_addr: LogicAddr, device_id: DeviceId) -> None:
    """Write bytes of a file to the block of a FileConstant on a device, unless they are there.

    Raises
    ------
    VariableError
        As `check_content`.
    LoadError
        The file cannot be read, or ends early.
    AddressError, AclError, OutOfMemoryError, StateError
        As `VarManager.write_var_memory`.

    After failure: the block counts as not loaded.
    """
    ticket = vm.begin_var_load(logic_addr, device_id, content=region.content)
    if ticket is None:
        check_content(vm, name, region, logic_addr, device_id)
        return
    with ticket:
        for done, part in region_parts(region):
            vm.write_var_memory(LogicAddr(logic_addr + done), part, device_id)


def check_content(vm: VarManager, name: str, region: FileRegion, logic_addr: LogicAddr, device_id: DeviceId) -> None:
    """Check that the bytes of a FileConstant are those that are on the device under its name.

    They are where they were brought from the same place of a file that has not changed; else they are compared.

    Raises
    ------
    VariableError
        They are others (status PARAM_INVALID).
    LoadError
        The file cannot be read, or ends early.
    AddressError, AclError, StateError
        As `VarManager.read_var_memory`.
    """
    known = vm.get_var_content(logic_addr, device_id)
    if known in ("", region.content):
        return
    for done, part in region_parts(region):
        there = np.empty(part.nbytes, np.uint8)
        vm.read_var_memory(LogicAddr(logic_addr + done), there, device_id)
        if there.data != part:
            both = f"the session has {known} for it on device {device_id}, which are not {region.content}"
            reason = f"{both}; rename it, or call free_var_memory first"
            raise VariableError(name, reason, status=PARAM_INVALID)


def region_parts(region: FileRegion) -> Iterator[tuple[int, memoryview]]:
    """Yield the bytes of a region in parts, each with its place in the region; a part is good until the next one.

    Raises
    ------
    LoadError
        The file cannot be read, or ends early.
    """
    with ExitStack() as stack:
        file = open_region(region, stack)
        block = np.empty(min(BLOCK_BYTES, region.size_bytes), np.uint8)
        for done in range(0, region.size_bytes, BLOCK_BYTES):
            part = block[: min(BLOCK_BYTES, region.size_bytes - done)].data
            read_region(file, region.path, region.offset + done, part)
            yield done, part


def load_file_to_host(vm: VarManager, name: str, region: FileRegion, host_addr: LogicAddr, device_id: DeviceId) -> None:
    """Read bytes of a file into the host memory of a FileConstant, unless they are there.

    Raises
    ------
    VariableError
        As `check_content`.
    LoadError
        The file cannot be read, or ends early; the memory holds old bytes, new bytes or both.
    """
    ticket = vm.begin_var_load(host_addr, device_id, content=region.content)
    if ticket is None:
        check_content(vm, name, region, host_addr, device_id)
        return
    with ticket, ExitStack() as stack:
        if region.size_bytes:
            file = open_region(region, stack)
            target = (ctypes.c_char * region.size_bytes).from_address(host_addr)
            read_region(file, region.path, region.offset, memoryview(target).cast("B"))
