"""Give the pages of variables to somebody else for a while, and keep every address: python sleep_and_wake.py"""

import numpy as np

from gevar import Session
from gevar.memory import SessionMemAllocator
from gevar.types import DataType, DeviceId, Format, TensorDesc

with Session() as session:
    vm, device = session.var_manager, DeviceId(0)
    session.rt_var_manager.init(device, 0, 64 << 20)
    session.init_var_memory(device)
    vm.assign_var_mem("w", None, TensorDesc(DataType.DT_INT32, Format.FORMAT_ND, (256,), size=1024))
    vm["w"].write(np.arange(256, dtype=np.int32))
    before = vm["w"].dev_addr()
    (allocator,) = SessionMemAllocator.instance(session.runtime).allocators(session.id)
    print(allocator.sleep("host"), "bytes of physical memory are free")
    allocator.wake()
    print("the address is the same:", vm["w"].dev_addr() == before)
    print("the values are the same:", (vm["w"].read() == np.arange(256)).all())
