"""Made-up sequences of correct use: nothing in them touches a sharp edge, so that every step must be GE's.

A sequence has one topic, beside what all have: variables of every kind, other forms of them, look-ups, records of
graphs, stored states that are read by another session.
"""

from collections.abc import Callable
from typing import Any

from tests.golden.var.correct_variables import DTYPES, FORMATS, CorrectVariables
from tests.golden.var.writing import Choice, Step

TOPICS = (
    *("plain", "constants", "files", "placeholders", "init", "state", "devices"),
    *("expandable", "external", "batches", "restore", "sessions", "free"),
)
NODE_TYPES = ("TransData", "Cast", "Reshape", "ReFormat", "TransposeD")
READER = 9
"""Session that stored states are read into."""
REGION_BYTES = 1 << 32


class CorrectUse(CorrectVariables):
    """Writes the steps of one sequence of correct use."""

    def begin(self) -> None:
        for args in self.sessions:
            version = self.choice.below(3)
            self.do("Init", version=version, device_id=0, job_id=self.choice.below(5), **args)
            self.do("SetMemoryMallocSize", total=1 << 36, **args)
            self.do("SetMemManager", enabled=True, **args)
        if self.topic == "expandable":
            self.do("InitExpandableMemoryAllocator", supported=True, capacity=1 << 40)
        if self.topic == "external":
            self.do("SetExternalVar", size=REGION_BYTES)
        if self.topic == "batches":
            for batch in range(2):
                for number in range(3):
                    name = f"w{number}_ascend_mbatch_batch_{batch}"
                    self.do("SetBatchVariablesKeyName", batch_var=name, key_name=f"w{number}")
                    self.batch_names.setdefault(f"w{number}", []).append(name)

    def step(self) -> None:
        """Write one or a few steps."""
        actions: tuple[Callable[[dict[str, int]], None], ...] = (self.register,) * 6
        actions += (self.change,) * 4 + (self.resolve,) * 6 + (self.look,) * 5 + (self.graphs,) * 5
        actions += (self.counters,) * 2 + (self.renew, self.serial, self.whole)
        actions += (self.flags,) * (0 if self.topic in ("free", "expandable") else 3)
        actions += (self.free,) * (self.topic in ("free", "expandable"))
        self.pick(actions)(self.pick(self.sessions))

    def register(self, args: dict[str, int]) -> None:
        """A new variable."""
        name = self.new_name(args)
        if self.topic == "restore":
            self.restore(name, args)
            return
        favoured = {"constants": self.constant, "files": self.file_constant, "placeholders": self.place_holder}
        makers: tuple[Callable[[str], Step], ...] = (self.variable,) * 4 + (self.constant, self.file_constant)
        makers += (favoured.get(self.topic, self.variable),) * 5
        makers += (self.place_holder,) * (self.topic != "external")
        given = self.pick(makers)(name)
        self.kinds[args.get("session", 1), name] = given["op"]["type"]
        self.assign(self.called(name), given, args)

    def assign(self, name: str, given: Step, args: dict[str, int]) -> None:
        self.do("AssignVarMem", var=name, **given, memory_type=2, **args)
        self.do("GetVarAddr", var=name, tensor=given["tensor"], **args)

    def restore(self, name: str, args: dict[str, int]) -> None:
        """A variable where a compiled model put it; some places are left out."""
        tensor = self.tensor()
        offset = self.restored_bytes + 1536 * self.choice.below(4)
        self.restored_bytes = offset + (tensor["size"] + 511) // 512 * 512 + 1024
        self.kinds[args.get("session", 1), name] = "Variable"
        op = {"name": name, "type": "Variable", "output_offset": [offset]}
        for _ in range(1 + self.chance(5)):
            self.do("RestoreVarMem", var=name, tensor=tensor, op=op, memory_type=2, **args)
            self.do("GetVarAddr", var=name, tensor=tensor, **args)

    def change(self, args: dict[str, int]) -> None:
        """The same again, another form of the same size, or a larger one under a new key."""
        known = self.names(args, "Variable")
        if not known or self.topic == "restore":
            return
        name = self.pick(known)
        tensor, op = self.current(name, args), {"name": name, "type": "Variable"}
        if self.choice.below(3):
            size, old = tensor["size"], dict(tensor)
            tensor |= {"format": self.pick(FORMATS), "dtype": self.pick(DTYPES)}
            if self.choice.below(2):
                tensor["shape"] = self.shape()
            if self.chance(4):
                tensor["size"] = size + self.pick((8, 512, 1000))
            if not self.may_become(name, old, tensor, args):
                return
        self.assign(self.called(name), {"tensor": tensor, "op": op}, args)
        self.do("GetCurVarDesc", var=self.called(name), **args)

    def may_become(self, name: str, old: Step, new: Step, args: dict[str, int]) -> bool:
        """Whether a form is new, or one that has the current block."""
        res = self.manager(args).resource
        assert res is not None
        known, current = (res.records.get(self.key(name, tensor, args)) for tensor in (new, old))
        if known is None or current is None:
            return known is None
        return known.address == current.address and new["size"] == old["size"]

    def renew(self, args: dict[str, int]) -> None:
        """Another format of a variable, one that it does not have yet."""
        ready = {key for keys in getattr(self.manager(args).resource, "ready", {}).values() for key in keys}
        res = self.manager(args).resource
        for name in self.names(args, "Variable")[-3:]:
            tensor = self.current(name, args)
            new = {**tensor, "format": self.pick(FORMATS)}
            taken = res is not None and self.key(name, new, args) in res.records
            if taken or self.key(name, tensor, args) in ready:
                continue
            if self.choice.below(2):
                self.do("RenewCurVarDesc", var=self.called(name), tensor=new, **args)
            else:
                op = {"name": name, "type": "Variable", "outputs": [new]}
                self.do("RenewCurVarDescByOp", var=self.called(name), op=op, **args)
            self.do("GetVarAddr", var=name, tensor=new, **args)
            self.do("GetCurVarDesc", var=name, **args)
            return

    def resolve(self, args: dict[str, int]) -> None:
        found = self.place(args)
        if found is None:
            return
        name, tensor, offset = found
        inner = 0
        if self.kinds[args.get("session", 1), name] != "ConstPlaceHolder" and self.choice.below(2):
            inner = self.choice.below(tensor["size"] + 100 * self.chance(6)) if tensor["size"] else 0
        if self.topic == "init" and self.starts_unwritten(offset, args):
            inner = 0
        more: Step = {"device_id": self.choice.below(3) if self.topic == "devices" else 0}
        if self.chance(5):
            more["graph_name"] = self.pick(("g0", "g1"))
        if self.chance(4):
            more["read"] = self.pick((1, 4, 64))
        self.do("GetVarMemoryAddr", addr=offset + inner, memory_type=2, **more, **args)

    def starts_unwritten(self, offset: int, args: dict[str, int]) -> bool:
        """Whether the first question for a variable may have to lay down its initial value."""
        manager = self.manager(args)
        assert manager.resource is not None
        record = manager.resource.devices.get(0, {}).get(offset + manager.logic_base_now())
        return record is None or not record.dev_addr

    def free(self, args: dict[str, int]) -> None:
        if self.chance(4):
            self.do("FreeVarMemory", **args)
            self.do("GetVarMallocMemSize", **args)

    def counters(self, args: dict[str, int]) -> None:
        self.do("GetVarMemSize", memory_type=2, **args)
        self.do("GetVarConstPlaceHolderMemSize", memory_type=2, **args)
        self.do("GetVarMallocMemSize", **args)
        if known := self.names(args):
            self.do("GetVarMallocSize", tensor=self.current(self.pick(known), args), **args)

    def look(self, args: dict[str, int]) -> None:
        found = self.place(args)
        if found is None:
            return
        name, tensor, offset = found
        kind = self.choice.below(6)
        if kind == 0:
            self.do("IsVarExist", var=self.called(name), **args)
            self.do("IsVarExist", var=self.called(name), tensor=tensor, **args)
            self.do("IsVarExist", var=name + "?", **args)
        elif kind == 1:
            self.do("IsVarAddr", addr=offset, **args)
            self.do("IsVarAddr", addr=offset + 1, **args)
            self.do("GetVarMemType", addr=offset, **args)
        elif kind == 2:
            self.do("GetVarAddr", var=name + "?", tensor=self.tensor(), **args)
        elif kind == 3:
            self.do("GetCurVarDesc", var=self.called(name), **args)
        elif kind == 4:
            self.do(self.pick(("SessionId", "IsVarResourceInited", "HasMemoryManager", "GetMemoryConfig")), **args)
        else:
            self.do("GetVarAddr", var=self.called(name), tensor=tensor, **args)

    def flags(self, args: dict[str, int]) -> None:
        device = self.choice.below(2)
        if self.choice.below(2) and (found := self.place(args, "Constant", "Variable")) is not None:
            name, tensor, offset = found
            inner = self.pick((0, 0, 4, 8))
            output: Step = {**tensor, "inner_offset": inner} if inner else tensor
            op = {"name": name, "type": "Constant", "outputs": [output], "output_offset": [offset + inner]}
            self.do("CheckAndSetVarLoaded", op=op, device_id=device, **args)
        elif (found := self.place(args, "FileConstant")) is not None:
            name, tensor, _ = found
            operation = self.pick(("SetVarIsReady", "IsVarReady"))
            self.do(operation, var=self.called(name), tensor=tensor, device_id=device, **args)

    def graphs(self, args: dict[str, int]) -> None:
        known = self.names(args)
        if not known:
            return
        name, graph = self.pick(known), self.choice.below(4)
        res = self.manager(args).resource
        changed = res is not None and name in res.changed
        kind = self.choice.below(11)
        if kind == 0 and not changed:
            self.do("SetChangedGraphId", var=name, graph_id=graph, **args)
        elif kind == 1 and changed and self.chance(2):
            self.do("RemoveChangedGraphId", var=name, **args)
        elif kind == 2:
            self.do("GetChangedGraphId", var=self.called(name), **args)
            self.do("GetChangedVarNames", graph_id=graph, **args)
        elif kind == 3:
            self.do("SetAllocatedGraphId", var=self.called(name), graph_id=graph, **args)
        elif kind == 4:
            self.do("GetAllocatedGraphId", var=self.called(name), **args)
        elif kind == 5:
            self.do("RecordStagedVarDesc", graph_id=graph, var=name, tensor=self.tensor(), **args)
        elif kind == 6:
            self.do("GetStagedVarDescs", graph_id=graph, **args)
        elif kind == 7:
            road = [self.road_step() for _ in range(self.choice.below(4))]
            self.do("SetTransRoad", var=self.called(name), road=road, **args)
        elif kind == 8:
            self.do("GetTransRoad", var=self.called(name), **args)
        elif kind == 9:
            self.broadcast(name, graph, args)
        else:
            self.do("HasSharedVarMemBetweenBatch", **args)

    def road_step(self) -> Step:
        return {"node_type": self.pick(NODE_TYPES), "input": self.tensor(), "output": self.tensor()}

    def broadcast(self, name: str, graph: int, args: dict[str, int]) -> None:
        found = self.place(args)
        assert found is not None
        _, tensor, offset = found
        info: dict[str, Any] = {"var_name": name, "broadcast_name": f"hcom_{graph}", "idx": graph}
        info |= {"input_offset": offset, "input_size": tensor["size"]}
        info |= {"output_offset": offset, "output_size": tensor["size"]}
        self.do("SaveBroadCastInfo", graph_id=graph, info=info, **args)

    def serial(self, args: dict[str, int]) -> None:
        """Another session takes the state, answers from it, and goes on with it."""
        if self.topic in ("sessions", "init"):
            return
        self.do("VarManagerToSerial", **args)
        reader = {"session": READER}
        self.do("VarManagerToDeserial", session_id=READER, from_step=len(self.steps) - 1, **reader)
        self.do("VarManagerToSerial", **reader)
        for name in self.names(args)[-3:]:
            self.do("GetVarAddr", var=name, tensor=self.current(name, args), **reader)
        self.do("GetVarMemType", addr=0, **reader)
        self.do("GetVarMemSize", memory_type=2, **reader)
        if self.topic != "restore":
            self.assign("later", self.variable("later"), reader)
        self.do("RemoveVarManager", session=READER)

    def whole(self, args: dict[str, int]) -> None:
        if self.names(args) and self.chance(3):
            self.do("GetAllVariables", **args)
            self.do("VarManagerToSerial", **args)
            self.do("VarDescInfoToSerial", **args)


def correct_sequence(choice: Choice, topic: str, length: int) -> Step:
    """Return a sequence of at least `length` steps."""
    writer = CorrectUse(choice, topic)
    writer.begin()
    while len(writer.steps) < length:
        writer.step()
    return writer.sequence(f"correct use, {topic}", topic)
