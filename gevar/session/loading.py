"""What a load has got and has still to bring; all of it is undone with its stack."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from gevar.errors import AddressError, VariableError
from gevar.runtime.weight_bytes import check_content
from gevar.session.listed_digests import ListedDigests
from gevar.session.session import Session
from gevar.session.stream_upload import Stream, upload_all
from gevar.session.weight_content import WeightContent, content_bytes
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var import LoadTicket, VarManager
from gevar.weights import FileRegion, UploadReport, UploadRequest, WeightBlock, WeightDirectory, WeightSlice
from gevar.weights.file_reader import OpenFile


class ExternalWeightAddress(NamedTuple):
    """Device memory of the caller's that holds the bytes of a weight file from its start.

    Source: GE source, inc/external/acl/acl_mdl.h, aclmdlSetExternalWeightAddress.
    """

    dev_addr: int
    size_bytes: int


class BlockHome(Protocol):
    """Who has a block of weights: an `ExternalWeightManager` or `EqualWeights`."""

    def make_private(self, block: WeightBlock) -> None:
        """Share a block with nobody any more; raises `StateError` where others use it."""


@dataclass(slots=True, kw_only=True)
class WeightLoading:
    """A load of weights under way, under the lock of its session.

    Attributes
    ----------
    session, device_id
        Where to.
    stack
        Undoes what was got.
    share_equal
        Whether blocks with equal bytes are shared with all models of the process.
    digests
        What regions of files should hold; None where nothing is compared.
    requests, streams
        What is to be copied to the device.
    weight_blocks
        Blocks of external weights that were got, with the slice of a file that each was got for.
    device_bytes, saved_bytes
        Device memory that was got, and that was not because a block was there.
    """

    session: Session
    device_id: DeviceId
    stack: ExitStack
    share_equal: bool = False
    digests: ListedDigests | None = None
    requests: list[UploadRequest] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    weight_blocks: list[tuple[WeightSlice, WeightBlock]] = field(default_factory=list)
    device_bytes: int = 0
    saved_bytes: int = 0
    _held: dict[WeightSlice, WeightBlock] = field(default_factory=dict)
    _homes: dict[WeightBlock, BlockHome] = field(default_factory=dict)
    _new: list[WeightBlock] = field(default_factory=list)

    def weight_block(
        self,
        region: WeightSlice,
        size_bytes: int,
        content: WeightContent | None = None,
        *,
        is_external: bool = True,
    ) -> tuple[WeightBlock, bool]:
        """Get the block of a slice of a file for as long as the model is loaded; ask for its bytes where it is new.

        Parameters
        ----------
        region
            The slice.
        size_bytes
            Bytes that the block must have.
        content
            Its bytes; by default they are in the file as they are.
        is_external
            Whether digests of them may be listed beside the file.

        Returns
        -------
        tuple
            The block, and whether it is new.
        """
        held = self._held.get(region)
        if held is not None and held.size_bytes >= size_bytes:
            return held, False
        if content is None:
            content = FileRegion(region.file.path, region.offset, region.size_bytes, region.file.state)
        block, is_new = self._acquire(region, content, size_bytes)
        self._held[region] = block
        if is_external:
            self.weight_blocks.append((region, block))
        digests = self.digests if is_external else None
        if is_new:
            self.device_bytes += block.size_bytes
            self._new.append(block)
            self.bring(content, block.dev_addr, digests)
        else:
            self.saved_bytes += block.size_bytes
            if digests is not None and not block.is_checked and block not in self._new:
                digests.check_device(content, self.session.runtime.device(self.device_id), block.dev_addr)
        block.is_checked |= digests is not None
        return block, is_new

    def _acquire(self, region: WeightSlice, content: WeightContent, size_bytes: int) -> tuple[WeightBlock, bool]:
        own, device_id = self.session.external_weights, self.device_id
        found = own.find(region, size_bytes, device_id) if self.share_equal else None
        if self.share_equal and found is None:
            equal = self.session.equal_weights
            shared, is_new = equal.acquire(region, content, size_bytes, device_id, self.session.id)
            self.stack.callback(equal.release, shared, self.session.id)
            self._homes[shared] = equal
            return shared, is_new
        block, is_new = (found, False) if found is not None else own.acquire(region, size_bytes, device_id)
        self.stack.callback(own.release, block)
        self._homes[block] = own
        return block, is_new

    def bring(self, content: WeightContent, dev_addr: DevAddr, digests: ListedDigests | None) -> None:
        """Ask for the bytes of a weight at an address, to be compared with digests that are listed for them.

        Raises
        ------
        LoadError, ModelFileError
            None are listed.
        """
        if not isinstance(content, FileRegion) or digests is None:
            self.request(content, dev_addr)
            return
        for piece, digest in digests.pieces(content):
            addr = dev_addr + piece.offset - content.offset
            self.requests.append(UploadRequest(piece, addr, digest=digest))

    def request(self, content: WeightContent, dev_addr: DevAddr) -> None:
        """Ask for bytes at an address; for none where there are none."""
        if not isinstance(content, FileRegion | memoryview):
            self.streams.append(Stream(content, dev_addr))
            return
        request = UploadRequest(content, dev_addr)
        if request.size_bytes:
            self.requests.append(request)

    def upload(
        self,
        *,
        workers: int | None,
        on_progress: Callable[[int, int], None] | None,
        cancel: threading.Event | None,
        open_file: OpenFile,
    ) -> UploadReport:
        """Bring all that was asked for; raises as `gevar.session.stream_upload.upload_all`."""
        device = self.session.runtime.device(self.device_id)
        report = upload_all(
            device,
            self.requests,
            self.streams,
            workers=workers,
            on_progress=on_progress,
            cancel=cancel,
            open_file=open_file,
        )
        equal = self.session.equal_weights
        for block in self._new:
            if self._homes[block] is equal:
                equal.arrived(block)
        return report

    def homes(self) -> list[tuple[WeightBlock, BlockHome]]:
        """Return the blocks that were got, each with who has it."""
        return list(self._homes.items())


@dataclass(slots=True, kw_only=True)
class Loading(WeightLoading):
    """A load of a model.

    Attributes
    ----------
    path
        File of the model; None when its bytes are in memory.
    weight_dir
        Where files of external weights lie.
    external_weights
        Memory of the caller's by file name.
    paths_by_id
        Files of external weights by id.
    """

    path: Path | None
    weight_dir: WeightDirectory
    external_weights: Mapping[str, ExternalWeightAddress]
    paths_by_id: Mapping[str, str]
    _tickets: dict[LogicAddr, LoadTicket[int]] = field(default_factory=dict)
    _ready: list[tuple[str, TensorDesc, bool]] = field(default_factory=list)

    def malloc(self, purpose: str, size_bytes: int) -> DevAddr:
        """Get a block for as long as the model is loaded."""
        manager, hbm = self.session.memory_manager, MemType.RT_MEMORY_HBM
        block = manager.malloc_memory(hbm, purpose, size_bytes, self.device_id)
        self.stack.callback(manager.free_memory, hbm, block, self.device_id)
        self.device_bytes += size_bytes
        return block

    def request_once(
        self,
        name: str,
        content: FileRegion | memoryview,
        logic_addr: LogicAddr,
        dev_addr: DevAddr,
        digests: ListedDigests | None = None,
        what: str = "",
    ) -> None:
        """Ask for the bytes of what starts at a logical address, once for each device and address.

        `what` says what the bytes of a file are, where they have to be the same for all who ask.

        Raises
        ------
        VariableError
            They do not fit the variable that the session has under this name, or others are there (status
            PARAM_INVALID).
        """
        known = self._tickets.get(logic_addr)
        if known is not None:
            if known.content != what:
                reason = f"the session has one variable for it and for {known.content}, it has {what}; rename it"
                raise VariableError(name, reason, status=PARAM_INVALID)
            return
        vm, size_bytes = self.session.var_manager, content_bytes(content)
        ticket = vm.begin_var_load(logic_addr, self.device_id, content=what)
        if ticket is None and what and isinstance(content, FileRegion):
            check_content(vm, name, content, logic_addr, self.device_id)
        elif ticket is not None:
            self.stack.callback(ticket.abort)
            if size_bytes and not _lies_in_one(vm, logic_addr, size_bytes):
                reason = f"its {size_bytes} B do not fit the variable of this name that the session has; load it alone"
                raise VariableError(name, reason, status=PARAM_INVALID)
            self._tickets[logic_addr] = ticket
            self.bring(content, dev_addr, digests)

    def will_be_ready(self, name: str, desc: TensorDesc, *, is_variable: bool) -> None:
        """Note a FileConstant, which is ready with `commit`: for good as a variable, else while its model is loaded."""
        self._ready.append((name, desc, is_variable))

    def commit(self) -> None:
        """Say that all bytes are there."""
        for ticket in self._tickets.values():
            ticket.commit()
        for name, desc, is_variable in self._ready:
            if is_variable:
                self.session.var_manager.set_var_is_ready(name, desc, self.device_id)
            else:
                self.session.ready_weights.add(name, desc, self.device_id)
                self.stack.callback(self.session.ready_weights.remove, name, desc, self.device_id)


def _lies_in_one(vm: VarManager, logic_addr: LogicAddr, size_bytes: int) -> bool:
    """Tell whether the variable that starts at an address has so many bytes."""
    try:
        return vm.check_logic_addr_valid(LogicAddr(logic_addr + size_bytes - 1))[0] == logic_addr
    except AddressError:
        return False
