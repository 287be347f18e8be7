"""Conversion of variable data when a graph is loaded: which variables, the bytes that move, and what is there then."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from acl_shim.host_memory import HostBuffer, read_access
from gevar import status
from gevar.errors import GevarError
from gevar.runtime.trans_var_data import trans_all_var_data
from gevar.types import DevAddr, DeviceId, TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import VARIABLE, TransNodeInfo, VarManager, VarOp
from tests.golden.facts import Place, Report, State
from tests.golden.passes_descs import dtype_of
from tests.golden.passes_manager import make_road
from tests.helpers.var_memory import FakeMemory, make_manager

Json = Mapping[str, Any]
Bytes = npt.NDArray[np.uint8]
INPUTS = ("variable", "graph_id", "allocated_graph_id", "changed_graph_id", "road", "nodes", "device_bytes_before")
VALUES, BITS, NONZERO = "_values", "_bits", "_bits_nonzero"
DEVICE = DeviceId(0)
ANY_DESC: Json = {"format": "ND", "dtype": "float32", "shape": [4]}
"""What a step of a road is about whose file tells nothing of it."""


class _CountingMemory(FakeMemory):
    """Memory that counts the bytes of copies."""

    read = written = 0

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        super().memcpy_in(dev_addr, max_bytes, data, device_id)
        with read_access(data) as memory:
            self.written += memory.size_bytes

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        super().memcpy_out(data, dev_addr, device_id)
        with read_access(data) as memory:
            self.read += memory.size_bytes


def check_case(case: Json, place: Place, report: Report) -> None:
    """Make a manager with the variable, its road and its graphs; convert; compare."""
    for key in INPUTS:
        if key in case:
            report.mark((*place, key), case[key], State.INPUT)
    name, graph_id, memory = case.get("variable", "w"), case.get("graph_id", 1), _CountingMemory()
    vm = make_manager(memory)
    road = (
        []
        if case.get("road") is None
        else make_road([{"input": ANY_DESC, "output": ANY_DESC} | step for step in case["road"]])
    )
    _prepare(vm, name, road, case)
    memory.read = memory.written = 0
    found: dict[str, Any] = {"status": "SUCCESS"}
    try:
        trans_all_var_data(vm, _nodes(case, name), DEVICE, graph_id)
    except GevarError as error:
        found["status"] = next((one for one, value in vars(status).items() if value == error.status), str(error))
    found |= {"bytes_read": memory.read, "bytes_written": memory.written, "performed": memory.written > 0}
    found["changed_graph_id_after"] = vm.get_changed_graph_id(name)
    for key, value in found.items():
        if key in case:
            report.compare((*place, key), case[key], value)
    if "device_after" in case:
        after = road[-1].output
        data = np.empty(tensor_size_in_bytes(after), np.uint8)
        vm.read_var_memory(vm.get_var_addr(name, after), data, DEVICE)
        _compare_device(case["device_after"], data, (*place, "device_after"), report)


def _prepare(vm: VarManager, name: str, road: list[TransNodeInfo], case: Json) -> None:
    """Put the variable into its first form with its bytes, then into its last one."""
    before = road[0].input if road else TensorDesc(dtype_of("float32"), 2, (4,), size=16)
    vm.assign_var_mem(name, None, before)
    content = _content(case.get("device_bytes_before", {}), tensor_size_in_bytes(before))
    vm.write_var_memory(vm.get_var_addr(name, before), content, DEVICE)
    if road:
        vm.assign_var_mem(name, None, road[-1].output)
        vm.set_trans_road(name, road)
    if case.get("allocated_graph_id") is not None:
        vm.set_allocated_graph_id(name, case["allocated_graph_id"])
    if case.get("changed_graph_id") is not None:
        vm.set_changed_graph_id(name, case["changed_graph_id"])


def _nodes(case: Json, name: str) -> list[VarOp | None]:
    """The nodes that the graph has: the variable, or what the file lists by type."""
    types = case.get("nodes", [VARIABLE])
    return [None if one == "null" else VarOp(name, one) for one in types]


def _content(told: Json, size_bytes: int) -> Bytes:
    for key, value in told.items():
        if key.endswith(VALUES):
            return np.array(value, dtype_of(key.removesuffix(VALUES)).to_numpy()).view(np.uint8)
        if key.endswith(BITS):
            width = dtype_of(key.removesuffix(BITS)).to_numpy().itemsize
            return np.array(value, f"u{width}").view(np.uint8)
    return np.arange(size_bytes, dtype=np.uint8)


def _compare_device(expected: Json, data: Bytes, place: Place, report: Report) -> None:
    """Compare the bytes that are there, in each of the forms that the file tells them in."""
    for key, value in expected.items():
        if key == "sha256":
            report.compare((*place, key), value, hashlib.sha256(data.tobytes()).hexdigest())
        elif key.endswith(NONZERO):
            bits = data.view(f"u{dtype_of(key.removesuffix(NONZERO)).to_numpy().itemsize}")
            report.compare((*place, key), value, [[int(at), int(bits[at])] for at in np.flatnonzero(bits)])
        elif key.endswith(BITS):
            bits = data.view(f"u{dtype_of(key.removesuffix(BITS)).to_numpy().itemsize}")
            report.compare((*place, key), value, bits.tolist())
        elif key.endswith(VALUES):
            report.compare((*place, key), value, data.view(dtype_of(key.removesuffix(VALUES)).to_numpy()).tolist())
