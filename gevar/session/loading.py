"""What a load has got and has still to bring; all of it is undone with its stack."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gevar.session.session import Session
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import LoadTicket
from gevar.weights import FileRegion, UploadRequest, WeightBlock, WeightDirectory, WeightSlice


class ExternalWeightAddress(NamedTuple):
    """Device memory of the caller's that holds the bytes of a weight file from its start.

    Source: GE source, inc/external/acl/acl_mdl.h, aclmdlSetExternalWeightAddress.
    """

    dev_addr: int
    size_bytes: int


@dataclass(slots=True)
class Loading:
    """A load under way, under the lock of its session.

    Attributes
    ----------
    session, device_id
        Where to.
    path
        File of the model; None when its bytes are in memory.
    weight_dir
        Where files of external weights lie.
    external_weights
        Memory of the caller's by file name.
    paths_by_id
        Files of external weights by id.
    stack
        Undoes what was got.
    requests
        What is to be copied to the device.
    weight_blocks
        Blocks of external weights that were got, one for each time.
    """

    session: Session
    device_id: DeviceId
    path: Path | None
    weight_dir: WeightDirectory
    external_weights: Mapping[str, ExternalWeightAddress]
    paths_by_id: Mapping[str, str]
    stack: ExitStack
    requests: list[UploadRequest] = field(default_factory=list)
    weight_blocks: list[WeightBlock] = field(default_factory=list)
    device_bytes: int = 0
    _tickets: dict[LogicAddr, LoadTicket[int]] = field(default_factory=dict)

    def malloc(self, purpose: str, size_bytes: int) -> DevAddr:
        """Get a block for as long as the model is loaded."""
        manager, hbm = self.session.memory_manager, MemType.RT_MEMORY_HBM
        block = manager.malloc_memory(hbm, purpose, size_bytes, self.device_id)
        self.stack.callback(manager.free_memory, hbm, block, self.device_id)
        self.device_bytes += size_bytes
        return block

    def weight_block(self, region: WeightSlice, size_bytes: int) -> tuple[WeightBlock, bool]:
        """Get the block of a slice of a file for as long as the model is loaded; ask for its bytes where it is new."""
        block, is_new = self.session.external_weights.acquire(region, size_bytes, self.device_id)
        self.stack.callback(self.session.external_weights.release, block)
        self.weight_blocks.append(block)
        if is_new:
            self.device_bytes += block.size_bytes
            file = region.file
            self.request(FileRegion(file.path, region.offset, region.size_bytes, file.state), block.dev_addr)
        return block, is_new

    def request(self, content: FileRegion | memoryview, dev_addr: DevAddr) -> None:
        """Ask for bytes at an address; for none where there are none."""
        request = UploadRequest(content, dev_addr)
        if request.size_bytes:
            self.requests.append(request)

    def request_once(self, content: FileRegion | memoryview, logic_addr: LogicAddr, dev_addr: DevAddr) -> None:
        """Ask for the bytes of what starts at a logical address, once for each device and address."""
        if logic_addr in self._tickets:
            return
        ticket = self.session.var_manager.begin_var_load(logic_addr, self.device_id)
        if ticket is not None:
            self.stack.callback(ticket.abort)
            self._tickets[logic_addr] = ticket
            self.request(content, dev_addr)

    def commit(self) -> None:
        """Say that all bytes are there."""
        for ticket in self._tickets.values():
            ticket.commit()
