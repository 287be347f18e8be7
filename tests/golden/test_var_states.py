"""States that the running GE stored: gevar restores each, stores it again as it was, and goes on with it."""

import base64
import json
from collections.abc import Iterator
from itertools import pairwise

import pytest

from gevar.errors import ModelFileError, VariableError
from gevar.proto import var_manager
from gevar.proto.parse import parse_message
from gevar.status import PARAM_INVALID
from gevar.types import DeviceId, LogicAddr, TensorDesc
from gevar.var import VarManager
from tests.helpers.shared import shared_path
from tests.helpers.var_memory import FakeMemory, make_desc
from tests.helpers.var_states import state_bytes

FILES = ["var_manager_valid.json", "var_manager.json"]


def states(file: str, operation: str = "VarManagerToSerial") -> Iterator[tuple[str, bytes]]:
    """Yield each state that GE stored in a file, with where it stands."""
    document = json.loads(shared_path(f"golden/{file}").read_text())
    for sequence in document["sequences"]:
        for number, step in enumerate(sequence["steps"]):
            if step["op"] == operation and "bytes_b64" in step["result"]:
                yield f"{sequence['name']} step {number}", base64.b64decode(step["result"]["bytes_b64"])


def is_half_registered(info: var_manager.VarManagerInfo) -> bool:
    """Whether an address was taken for a variable that then got no memory, as GE leaves a place holder it refused."""
    resource = info.var_resource
    return resource.var_offset_map.keys() != resource.var_dev_addr_mgr_map.keys()


def _restored(data: bytes) -> VarManager:
    vm = VarManager(1)
    vm.set_mem_manager(FakeMemory())
    vm.var_manager_to_deserial(data, DeviceId(parse_message(var_manager.VarManagerInfo, data).device_id))
    vm.check()
    return vm


@pytest.mark.parametrize("file", FILES)
def test_a_state_of_ge_is_stored_again_as_it_was(file: str) -> None:
    seen, refused = 0, 0
    for place, data in states(file):
        info = parse_message(var_manager.VarManagerInfo, data)
        if is_half_registered(info):
            vm = VarManager(1)
            with pytest.raises(ModelFileError) as caught:
                vm.var_manager_to_deserial(data)
            assert caught.value.status == PARAM_INVALID, place
            assert not vm.is_var_resource_inited, place
            refused += 1
            continue
        vm = _restored(data)
        assert vm.var_manager_to_serial(extension=False) == info, place
        again = _restored(state_bytes(vm))
        assert state_bytes(again) == state_bytes(vm), place
        again.var_manager_to_deserial(data)  # what is there already changes nothing
        assert state_bytes(again) == state_bytes(vm), place
        seen += 1
    assert seen >= 45
    assert not (refused and "valid" in file)


@pytest.mark.parametrize("file", FILES)
def test_a_restored_state_of_ge_finds_and_assigns_variables(file: str) -> None:
    found = 0
    for place, data in states(file):
        info = parse_message(var_manager.VarManagerInfo, data)
        if is_half_registered(info):
            continue
        vm = _restored(data)
        records = info.var_resource.var_addr_mgr_map
        for name, desc in vm.get_all_variables().items() if info.var_resource.cur_var_tensor_desc_map else ():
            desc = vm.get_cur_var_desc(name)
            text = f"{name}{int(desc.format)}_{int(desc.dtype)}"
            assert _addr(vm, name, desc) == (records[text].address if text in records else None), place
            found += 1
        taken = [(addr, one.desc.size) for addr, one in info.var_resource.var_dev_addr_mgr_map.items()]
        if vm.memory_config.var_mem_max_size > 1 << 20:
            new = vm.assign_var_mem("a name that no state has", None, make_desc(64))
            assert all(new + 64 <= addr or addr + max(size, 1) <= new for addr, size in taken), place
            vm.check()
    assert found >= 200


def _addr(vm: VarManager, name: str, desc: TensorDesc) -> LogicAddr | None:
    try:
        return vm.get_var_addr(name, desc)
    except VariableError:
        return None


@pytest.mark.parametrize("file", FILES)
def test_descriptions_that_ge_stored_alone(file: str) -> None:
    """The message of descriptions says what the state before or after it says."""
    seen = 0
    document = json.loads(shared_path(f"golden/{file}").read_text())
    for sequence in document["sequences"]:
        steps = sequence["steps"]
        for first, second in pairwise(steps):
            if {first["op"], second["op"]} != {"VarManagerToSerial", "VarDescInfoToSerial"}:
                continue
            by_op = {step["op"]: base64.b64decode(step["result"].get("bytes_b64", "")) for step in (first, second)}
            if b"" in by_op.values():
                continue
            vm = _restored(by_op["VarManagerToSerial"])
            want = parse_message(var_manager.VarDescInfo, by_op["VarDescInfoToSerial"])
            assert vm.var_desc_info_to_serial() == want, sequence["name"]
            seen += 1
    assert seen >= 1
