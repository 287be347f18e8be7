"""State of a manager out to a message that GE reads, and in again."""

from typing import TYPE_CHECKING

from gevar.errors import ModelFileError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DeviceId
from gevar.var.info_fields import refused
from gevar.var.session_state import DEFAULT_DEVICE_ID, SessionVersion
from gevar.var.var_data import VarData
from gevar.var.var_merge import check_mergeable, merge, tables_of, uses_logic_base
from gevar.var.var_snapshot import UnknownFields, VarHeader, VarSnapshot, take_snapshot

if TYPE_CHECKING:
    from gevar.proto.var_manager import VarDescInfo, VarManagerInfo
    from gevar.proto.var_manager_raw import VarManagerInfo as RawVarManagerInfo


class VarSerial(VarData):
    """The part of the variable manager that is stored and restored."""

    def __init__(self, session_id: int) -> None:
        super().__init__(session_id)
        self._unknown_fields = UnknownFields()

    def var_manager_to_serial(self, *, strict: bool = True, extension: bool = True) -> "VarManagerInfo":
        """Return the state as a message; see `var_manager_to_bytes`, which does most of its work.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToSerial.
        """
        from gevar.proto.var_manager import VarManagerInfo

        return VarManagerInfo.FromString(self.var_manager_to_bytes(strict=strict, extension=extension))

    def var_manager_to_bytes(self, *, strict: bool = True, extension: bool = True) -> bytes:
        """Return the state as the bytes of the message `VarManagerInfo`, in canonical form.

        Fields come by number and maps by rising key, as in the deterministic form of protobuf in C++; protobuf in
        Python may have another order of maps. Device memory, load states and ready flags belong to this process and
        are left out.

        Parameters
        ----------
        strict
            Whether variables whose keys are one text in GE's form are refused. Else GE's map gets the first of them by
            name, the log names them, and gevar's extension holds them all.
        extension
            Whether the message gets gevar's extension: what GE loses, in a field that GE passes over.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            Two variables have one key in GE's form (status FAILED).
        ValueError
            A number or text does not fit its field of the message.

        Thread safety: the state is that of one moment; writing it out takes no lock.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToSerial.
        Differs: edges 2 and 24 of docs/differences.md.
        """
        from gevar.var.var_info_writer import write_info

        return write_info(self._take_snapshot(), strict=strict, extension=extension)

    def _take_snapshot(self) -> VarSnapshot:
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            header = VarHeader(self.version, self.session_id, self.device_id, self.job_id, self._config)
            figures = {mem_type: mem.figures for mem_type, mem in self._mem_resources.items()}
            return take_snapshot(header, resource, figures, self._unknown_fields)

    def var_desc_info_to_serial(self) -> "VarDescInfo":
        """Return current descriptions and conversions as a message.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            A number or text does not fit its field of the message.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarDescInfoToSerial.
        """
        from gevar.var.var_info_writer import write_desc_info

        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            descs, roads = dict(resource.cur_descs), dict(resource.graphs.trans_roads)
        return write_desc_info(descs, roads)

    def var_manager_to_deserial(self, info: "VarManagerInfo | bytes", device_id: DeviceId = DEFAULT_DEVICE_ID) -> None:
        """Take over the state in a message.

        A manager that is not initialised takes all of it, ids and sizes too. One that is keeps its own ids and sizes,
        and adds the variables it does not have; what both have must be equal. Sizes of assigned space become the larger
        of both. No variable has device memory, is loaded or ready; place holders are told and resolve once they were
        assigned again; variables in memory of a pool keep their description and get memory when they are assigned.

        Parameters
        ----------
        info
            The message, or its bytes. It is not changed.
        device_id
            Device that calls without a device mean, for a manager that is not initialised.

        Raises
        ------
        ModelFileError
            The bytes are no such message, something in it cannot be or contradicts something else, or it does not go
            with what is there (status PARAM_INVALID). It names the field.
        ValueError
            `device_id` is negative.

        After failure: nothing has changed.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToDeserial.
        Differs: edge 24 of docs/differences.md.
        """
        from gevar.var.var_info_reader import read_info

        if device_id < 0:
            raise ValueError(f"device_id is {device_id}: give a number from 0")
        snapshot = read_info(_raw(info), device_id)
        incoming = tables_of(snapshot)
        with self._lock:
            resource, config = self._resource, snapshot.header.config
            if resource is not None:
                base = self._config.var_mem_logic_base
                if config.var_mem_logic_base != base and uses_logic_base(incoming):
                    raise refused("var_mem_logic_base", f"{config.var_mem_logic_base}, and the manager has {base}")
                check_mergeable(resource, incoming)
                merge(resource, incoming)
            else:
                header, resource = snapshot.header, incoming
                self.version, self.session_id = SessionVersion(header.version), header.session_id
                self.device_id, self.job_id, self._config = header.device_id, header.job_id, config
                self._unknown_fields = snapshot.unknown
            for mem_type, figures in snapshot.mem_figures.items():
                mem = self._mem_resource(mem_type, resource)
                mem.figures = mem.figures.merged(figures)
            self._resource = resource


def _raw(info: "VarManagerInfo | bytes") -> "RawVarManagerInfo":
    """A message of one's own in which descriptions are bytes."""
    from gevar.proto.parse import parse_message
    from gevar.proto.var_manager import VarManagerInfo
    from gevar.proto.var_manager_raw import VarManagerInfo as RawVarManagerInfo

    data = info.SerializeToString() if isinstance(info, VarManagerInfo) else info
    try:
        return parse_message(RawVarManagerInfo, data)
    except ModelFileError:
        try:
            parse_message(VarManagerInfo, data)  # says what is wrong by the names that are known
        except ModelFileError as error:
            error.status = PARAM_INVALID
            raise
        raise
