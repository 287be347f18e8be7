"""GE's rules for what graphs do to variables, and for messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from gevar.proto import var_manager
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types import TensorDesc
from tests.golden.var.faces import Road
from tests.golden.var.ge_memory import GeMemory
from tests.golden.var.ge_state import (
    FAILED,
    INTERNAL_ERROR,
    NO_CONTEXT,
    DeviceRecord,
    GeError,
    GeState,
    Record,
    Resource,
    Sizes,
)

SIZE_FIELDS = ("graph_mem_max_size", "var_mem_max_size", "var_mem_logic_base", "use_max_mem_size")


class GeManager(GeMemory):
    """The whole model of one manager."""

    def record_staged_var_desc(self, graph_id: int, name: str, desc: TensorDesc) -> None:
        self.need(INTERNAL_ERROR).staged.setdefault(graph_id, {})[name] = desc

    def get_staged_var_descs(self, graph_id: int) -> Mapping[str, TensorDesc]:
        return {} if self.resource is None else self.resource.staged.get(graph_id, {})

    def save_broad_cast_info(self, graph_id: int, info: Mapping[str, int | str]) -> None:
        self.need(INTERNAL_ERROR).broadcasts.setdefault(graph_id, {})[str(info["var_name"])] = dict(info)

    def set_trans_road(self, name: str, road: Road) -> None:
        res = self.need(INTERNAL_ERROR)
        res.roads.setdefault(res.key_name(name), road)

    def get_trans_road(self, name: str) -> Road | None:
        return None if self.resource is None else self.resource.roads.get(self.resource.key_name(name))

    def set_changed_graph_id(self, name: str, graph_id: int) -> None:
        res = self.need(INTERNAL_ERROR)
        res.changed[name] = graph_id
        res.changed_names.setdefault(graph_id, set()).add(name)

    def get_changed_graph_id(self, name: str) -> int:
        res = self.need(INTERNAL_ERROR)
        return _found(res.changed.get(res.key_name(name)))

    def get_changed_var_names(self, graph_id: int) -> Sequence[str]:
        return () if self.resource is None else sorted(self.resource.changed_names.get(graph_id, ()))

    def remove_changed_graph_id(self, name: str) -> None:
        res = self.resource
        if res is None:
            return
        graph_id = res.changed.get(name, 0)
        names = res.changed_names.get(graph_id, set())
        names.discard(name)
        if not names:
            res.changed_names.pop(graph_id, None)
        res.changed.pop(name, None)
        res.changed.pop(res.key_name(name), None)

    def set_allocated_graph_id(self, name: str, graph_id: int) -> None:
        res = self.need(INTERNAL_ERROR)
        res.allocated.setdefault(res.key_name(name), graph_id)

    def get_allocated_graph_id(self, name: str) -> int:
        res = self.need(INTERNAL_ERROR)
        return _found(res.allocated.get(res.key_name(name)))

    def set_batch_variables_key_name(self, batch_name: str, key_name: str) -> None:
        if self.resource is not None:
            self.resource.batch_names[batch_name] = key_name

    def var_manager_info(self) -> Any:
        """Return the message `VarManagerInfo`."""
        return message_of_state(self, self.need(INTERNAL_ERROR))

    def var_desc_info(self) -> Any:
        """Return the message `VarDescInfo`."""
        res, info = self.need(INTERNAL_ERROR), var_manager.VarDescInfo()
        _write_descs(res, info)
        return info

    def take_info(self, info: Any) -> None:
        """Take the state of a message."""
        if self.resource is None:
            self.version = info.version
            if self.around.current_device < 0:
                raise GeError(NO_CONTEXT)
            self.device_id, self.session_id, self.job_id = self.around.current_device, info.session_id, info.job_id
            self.sizes = Sizes(**{name: getattr(info, name) for name in SIZE_FIELDS})
            self.resource = Resource(info.session_id)
        _read(self.resource, info.var_resource)
        for mem_type, space in sorted(info.mem_resource_map.items()):
            self.space(mem_type).var_mem_size = space.var_mem_size


def message_of_state(manager: GeState, res: Resource) -> Any:
    """Return the message `VarManagerInfo` of a manager with these tables."""
    info = var_manager.VarManagerInfo(
        version=manager.version,
        session_id=manager.session_id,
        device_id=manager.device_id,
        job_id=manager.job_id,
        **{name: getattr(manager.sizes, name) for name in SIZE_FIELDS},
    )
    info.var_resource.SetInParent()
    _write_variables(res, info.var_resource)
    _write_graphs(res, info.var_resource)
    for mem_type, space in manager.spaces.items():
        info.mem_resource_map[mem_type].var_mem_size = space.var_mem_size
    return info


def _found(graph_id: int | None) -> int:
    if graph_id is None:
        raise GeError(FAILED)
    return graph_id


def _write_descs(res: Resource, message: Any) -> None:
    for name, desc in res.cur_descs.items():
        message.cur_var_tensor_desc_map[name].CopyFrom(tensor_desc_to_proto(desc))
    for name, road in res.roads.items():
        steps = message.var_to_trans_road[name]
        for node_type, before, after in road:
            step = steps.node_info.add(node_type=node_type)
            step.input.CopyFrom(tensor_desc_to_proto(before))
            step.output.CopyFrom(tensor_desc_to_proto(after))


def _write_variables(res: Resource, message: Any) -> None:
    message.var_offset_map.update(res.addr_types)
    for key, record in res.records.items():
        entry = message.var_addr_mgr_map[key]
        entry.address, entry.offset, entry.memory_type = record.address, record.offset, record.mem_type
        entry.desc.CopyFrom(tensor_desc_to_proto(record.desc))
    for address, template in res.template.items():
        place = message.var_dev_addr_mgr_map[address]
        place.address, place.dev_addr = address, template.dev_addr
        place.desc.CopyFrom(tensor_desc_to_proto(template.desc))


def _write_graphs(res: Resource, message: Any) -> None:
    _write_descs(res, message)
    message.var_names_to_changed_graph_id.update(res.changed)
    message.var_names_to_allocated_graph_id.update(res.allocated)
    for graph_id, infos in res.broadcasts.items():
        for name, info in infos.items():
            entry = message.var_broad_cast_info[graph_id].broadcast_info[name]
            for field, value in info.items():
                setattr(entry, field, value)


def _read(res: Resource, message: Any) -> None:
    """Insert what a message has; what is there stays."""
    for address, mem_type in message.var_offset_map.items():
        res.addr_types.setdefault(address, mem_type)
    for key, entry in message.var_addr_mgr_map.items():
        desc = tensor_desc_from_proto(entry.desc)
        kind = entry.memory_type % (1 << 32)
        res.records.setdefault(key, Record(desc, entry.address, entry.offset, kind, None))
    for address, place in message.var_dev_addr_mgr_map.items():
        res.template.setdefault(address, DeviceRecord(tensor_desc_from_proto(place.desc), place.dev_addr))
    for name, desc in message.cur_var_tensor_desc_map.items():
        res.cur_descs.setdefault(name, tensor_desc_from_proto(desc))
    for name, steps in message.var_to_trans_road.items():
        res.roads.setdefault(name, road_of(steps))
    for name, graph_id in message.var_names_to_changed_graph_id.items():
        res.changed.setdefault(name, graph_id)
    for name, graph_id in message.var_names_to_allocated_graph_id.items():
        res.allocated.setdefault(name, graph_id)
    for graph_id, infos in message.var_broad_cast_info.items():
        taken = {name: broadcast_fields(info) for name, info in infos.broadcast_info.items()}
        res.broadcasts.setdefault(graph_id, taken)


def road_of(steps: Any) -> Road:
    return tuple(
        (step.node_type, tensor_desc_from_proto(step.input), tensor_desc_from_proto(step.output))
        for step in steps.node_info
    )


def broadcast_fields(info: Any) -> dict[str, int | str]:
    return {field.name: getattr(info, field.name) for field in info.DESCRIPTOR.fields}
