"""A session as kernels and models see it: its number, where its variables come from, memory of the caller's for them.

Source: GE source, runtime/v1/common/runtime/rt_session.cc, RtSession.
"""

from acl_shim import Runtime
from gevar.memory import SessionMemAllocator
from gevar.runtime.model_rt_var_manager import RtVarManagerPool
from gevar.runtime.rt_var_manager import RtVarManager
from gevar.types import DevAddr, DeviceId
from gevar.var import VarManagerPool


class RtSession:
    """Tie a run to the variables of a session.

    Parameters
    ----------
    session_id
        Number of the session.

    Attributes
    ----------
    session_id : int
        As given.
    rt_var_manager : RtVarManager or None
        Where kernels find variables; not owned.
    external_var_addr : DevAddr or None
        Memory of the caller's for the variables of the first model that is loaded; None for memory of the session.
    external_var_size : int
        Its size in bytes.

    Source: as the module. GE keeps allocators of streams, events and notifies here; in gevar they have owners.
    """

    def __init__(self, session_id: int = 0, rt_var_manager: RtVarManager | None = None) -> None:
        self.session_id = session_id
        self.rt_var_manager = rt_var_manager
        self.external_var_addr: DevAddr | None = None
        self.external_var_size = 0

    def set_external_var(self, dev_addr: DevAddr | None, size_bytes: int = 0) -> None:
        """Give memory for the variables of the model that is loaded next; it counts for the first model only.

        Raises
        ------
        ValueError
            The address is not positive, or the size negative.
        """
        if dev_addr is not None and (dev_addr <= 0 or size_bytes < 0):
            raise ValueError(
                f"external memory of {size_bytes} B at {dev_addr}: give a device address and a size from 0"
            )
        self.external_var_addr, self.external_var_size = dev_addr, size_bytes

    def destroy_resources(self, runtime: Runtime, device_id: DeviceId | None) -> None:
        """Remove the managers of the session's variables, and its allocators on a device.

        Parameters
        ----------
        runtime
            Runtime of the devices.
        device_id
            Device whose allocators are removed; None for all.

        Raises
        ------
        AclError
            As `VarManager.destroy`. Everything is removed all the same.

        Source: GE source, runtime/v1/common/runtime/rt_session.cc, RtSession::DestroyResources.
        """
        self.rt_var_manager = None
        RtVarManagerPool.instance().remove_rt_var_manager(self.session_id)
        try:
            VarManagerPool.instance().remove_var_manager(self.session_id)
        finally:
            SessionMemAllocator.instance(runtime).remove_allocator(self.session_id, device_id)
