"""What is said where the variables do not fit their device."""

import pytest

from acl_shim.host import HostControls
from gevar.errors import OutOfMemoryError
from gevar.memory import DeviceMemoryManager
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarManager
from tests.helpers.runtime import host_runtime

MIB = 1 << 20
SIZES = {"big": 20, "middle": 8, "small1": 3, "small2": 3, "small3": 3, "tiny": 1, "too large": 60}


def test_the_largest_variables_are_named(host: HostControls) -> None:
    host.configure(capacity_bytes=64 * MIB)
    vm = VarManager(1)
    vm.init(0, 1)
    descs = {
        name: TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (size,), size=size * MIB) for name, size in SIZES.items()
    }
    addrs = {name: vm.assign_var_mem(name, None, desc) for name, desc in descs.items()}
    with DeviceMemoryManager(host_runtime()) as memory:
        vm.set_mem_manager(memory)
        for name in list(SIZES)[:-1]:
            vm.get_var_memory_addr(addrs[name])
        held = vm.get_var_malloc_mem_size()
        with pytest.raises(OutOfMemoryError) as caught:
            vm.get_var_memory_addr(addrs["too large"])
        note = caught.value.__notes__[-1]
        assert note.startswith("6 variables hold ")
        assert f"({held} B) on device 0; the largest: big " in note
        assert [name for name in SIZES if f" {name} " in note] == ["big", "middle", "small1", "small2", "small3"]
        assert vm.get_var_malloc_mem_size() == held
        vm.destroy()
