"""Made-up sequences of rough use: every operation, right and wrong, in any order."""

from collections.abc import Callable

from tests.golden.var.rough_arguments import NAMES, RoughArguments
from tests.golden.var.rough_messages import damaged
from tests.golden.var.values import Tree, message_bytes, message_json
from tests.golden.var.writing import Choice, Step

OPTIONS = {
    "ge.variableUse1gHugePage": ("0", "1", "2"),
    "ge.exec.staticMemoryPolicy": ("", "1", "2", "3", "4"),
    "ge.evaluateGraphResourceMode": ("0", "1"),
}


class RoughUse(RoughArguments):
    """Writes the steps of one sequence."""

    def begin(self) -> None:
        self.focus = self.choice.below(1000)
        if self.chance(4):
            self.names, self.formats = ("w", "w1", "x"), ("ND", 12, "NCHW")  # w in 12 and w1 in ND have one key
        elif self.choice.below(3) == 0:
            self.names = NAMES[: 2 + self.choice.below(4)]
        if not self.chance(20):
            self.do("Init", version=self.pick((0, 1, 2)), device_id=0, job_id=self.choice.below(9))
        if not self.chance(10):
            self.do("SetMemoryMallocSize", total=1 << 36)
        if not self.chance(10):
            self.do("SetMemManager", enabled=True)

    def assign(self) -> None:
        args = self.session()
        name = self.name()
        tensor = self.known_tensor(name, args)
        if self.choice.below(6) == 0:
            tensor = self.init_value(tensor)
        op, mem_type = self.operator(name, tensor), self.mem_type()
        if not 0 <= tensor.get("size", 0) < 1 << 40:
            mem_type = 2  # no pool has room for that
        self.do("AssignVarMem", var=name, tensor=tensor, op=op, memory_type=mem_type, **args)
        self.do("GetVarAddr", var=name, tensor=tensor, **args)

    def restore(self) -> None:
        args = self.session()
        name = self.name()
        tensor = self.known_tensor(name, args)
        op = self.operator(name, tensor)
        if op is not None and not self.chance(12):
            op["output_offset"] = [self.addr(args)] if self.chance(2) else [512 * (200 + self.choice.below(100))]
            if self.chance(10):
                op["attrs"] = {**op.get("attrs", {}), "ref_var_src_var_name": {"str": self.name()}}
        if op is None and not self.chance(2):
            return
        self.do("RestoreVarMem", var=name, tensor=tensor, op=op, memory_type=self.mem_type(), **args)

    def set_addr(self) -> None:
        args, name = self.session(), self.name()
        tensor = self.known_tensor(name, args)
        op = self.pick((None, self.operator(name, tensor)))
        addr = self.addr(args)
        self.do("SetVarAddr", var=name, tensor=tensor, addr=addr, memory_type=self.mem_type(), op=op, **args)

    def renew(self) -> None:
        args, name, tensor = self.session(), self.name(), self.tensor()
        if self.choice.below(2):
            self.do("RenewCurVarDesc", var=name, tensor=tensor, **args)
        else:
            is_ready = self.manager(args).resource is not None  # GE crashes without tables and node
            op = None if is_ready and self.chance(6) else {"name": name, "type": "Variable", "outputs": [tensor]}
            if op is not None and self.chance(6):
                op["outputs"] = []
            self.do("RenewCurVarDescByOp", var=name, op=op, **args)
        self.do("GetCurVarDesc", var=name, **args)

    def look(self) -> None:
        args, name = self.session(), self.name()
        tensor = self.known_tensor(name, args)
        kind = self.choice.below(9)
        if kind == 0:
            self.do("GetVarAddr", var=name, tensor=tensor, **args)
        elif kind == 1:
            self.do("GetCurVarDesc", var=name, **args)
        elif kind == 2:
            self.do("IsVarExist", var=name, tensor=tensor, **args)
        elif kind == 3:
            self.do("IsVarExist", var=name, **args)
        elif kind == 4:
            self.do("IsVarAddr", addr=self.addr(args), **args)
        elif kind == 5:
            self.do("GetVarMemType", addr=self.addr(args), **args)
        elif kind == 6:
            self.do("GetAllVariables", **args)
        elif kind == 7:
            self.do("GetVarMallocSize", tensor=tensor, **args)
        else:
            self.do(self.pick(("SessionId", "IsVarResourceInited", "HasMemoryManager", "GetMemoryConfig")), **args)

    def counters(self) -> None:
        args = self.session()
        mem_type = self.mem_type()
        self.do("GetVarMemSize", memory_type=mem_type, **args)
        self.do("GetVarConstPlaceHolderMemSize", memory_type=mem_type, **args)
        self.do("GetVarMallocMemSize", **args)

    def resolve(self) -> None:
        args = self.session()
        more: Step = {}
        if self.choice.below(4) == 0:
            more["graph_name"] = self.pick(("g0", "g1", ""))
        if self.choice.below(3) == 0:
            more["read"] = self.pick((1, 4, 16))
        mem_type = self.mem_type()
        addr, device = self.addr(args), self.device()
        self.do("GetVarMemoryAddr", addr=addr, memory_type=mem_type, device_id=device, **more, **args)

    def ready(self) -> None:
        args, name = self.session(), self.name()
        tensor = self.known_tensor(name, args)
        op = self.pick(("SetVarIsReady", "IsVarReady"))
        self.do(op, var=name, tensor=tensor, device_id=self.device(), **args)

    def loaded(self) -> None:
        args, name = self.session(), "" if self.chance(8) else self.name()
        tensor, offset = self.tensor(), self.addr(args)
        if self.choice.below(3) == 0:
            tensor["inner_offset"] = 4
            offset += 4
        op: Step = {"name": name, "type": "Constant", "outputs": [tensor], "output_offset": [offset]}
        if self.chance(12):
            op["output_offset"] = []
        self.do("CheckAndSetVarLoaded", op=op, device_id=self.device(), **args)

    def graphs(self) -> None:
        args, name, graph_id = self.session(), self.name(), self.choice.below(3)
        kind = self.choice.below(9)
        if kind == 0:
            self.do("SetChangedGraphId", var=name, graph_id=graph_id, **args)
        elif kind == 1:
            self.do("SetAllocatedGraphId", var=name, graph_id=graph_id, **args)
        elif kind == 2:
            self.do("RemoveChangedGraphId", var=name, **args)
        elif kind == 3:
            self.do("RecordStagedVarDesc", graph_id=graph_id, var=name, tensor=self.tensor(), **args)
        elif kind == 4:
            self.do("SetTransRoad", var=name, road=self.road(), **args)
        elif kind == 5:
            info = {"var_name": name, "broadcast_name": "hcom", "idx": self.choice.below(3) - 1}
            info |= {"input_offset": -1, "input_size": 8, "output_offset": 16, "output_size": (1 << 64) - 1}
            self.do("SaveBroadCastInfo", graph_id=graph_id, info=info, **args)
        elif kind == 6:
            self.do("SetBatchVariablesKeyName", batch_var=self.name() + "_b", key_name=name, **args)
        elif kind == 7 and self.chance(3):
            self.do("SetBatchVariablesKeyName", batch_var=self.name(), key_name=name, **args)
        self.graph_questions(args, name, graph_id)

    def graph_questions(self, args: Tree, name: str, graph_id: int) -> None:
        if self.choice.below(3) == 0:
            name += "_b"
        kind = self.choice.below(6)
        if kind == 0:
            self.do("GetChangedGraphId", var=name, **args)
        elif kind == 1:
            self.do("GetChangedVarNames", graph_id=graph_id, **args)
        elif kind == 2:
            self.do("GetAllocatedGraphId", var=name, **args)
        elif kind == 3:
            self.do("GetStagedVarDescs", graph_id=graph_id, **args)
        elif kind == 4:
            self.do("GetTransRoad", var=name, **args)
        else:
            self.do("HasSharedVarMemBetweenBatch", **args)

    def external(self) -> None:
        size = self.pick((None, 1 << 20, 1 << 30)) if not self.chance(3) else self.pick((0, 1536, 4096))
        self.do("SetExternalVar", size=size, **self.session())

    def expandable(self) -> None:
        more: Step = {} if self.choice.below(2) else {"capacity": self.pick((2000, 10000, 1 << 30))}
        if self.chance(6):
            more = {"null": True}
        elif self.choice.below(4) == 0:
            more["supported"] = False
        self.do("InitExpandableMemoryAllocator", **more, **self.session())

    def free(self) -> None:
        self.do("FreeVarMemory", **self.session())

    def serial(self) -> None:
        args = self.session()
        self.do("VarManagerToSerial", **args)
        if self.choice.below(3) == 0:
            self.do("VarDescInfoToSerial", **args)

    def deserial(self) -> None:
        known = [i for i, s in enumerate(self.steps) if s["op"] == "VarManagerToSerial" and "message" in s["result"]]
        if not known:
            return
        to = self.pick((9, 9, 2, 1))
        index = self.pick(known)
        if self.chance(3):
            info = damaged(self.message(index), self.choice)
            self.do("VarManagerToDeserial", session=to, bytes_b64=message_bytes(info), message=message_json(info))
        else:
            self.do("VarManagerToDeserial", session=to, session_id=to, from_step=index)
        self.do("VarManagerToSerial", session=to)
        for _ in range(self.choice.below(3)):
            name = self.name()
            self.do("GetVarAddr", var=name, tensor=self.known_tensor(name, {"session": to}), session=to)

    def hold(self) -> None:
        label = self.pick(("one", "other"))
        self.do("Hold", **{"as": label}, **self.session())
        self.do("SameManager", **{"as": label}, **self.session())

    def lifecycle(self) -> None:
        args = self.session()
        kind = self.choice.below(18)
        if kind == 0:
            self.do("Destroy", **args)
        elif kind == 1:
            self.do("RemoveVarManager", session=args.get("session", 1))
        elif kind == 2 and self.chance(3):
            self.do("DestroyPool")
        elif kind == 3:
            self.do("SetMemManager", enabled=bool(self.choice.below(3)), **args)
        elif kind == 4:
            self.do("SetMemoryMallocSize", total=self.pick((1 << 36, 1 << 30, 300_000_000_000, 40_000)), **args)
        elif kind == 5:
            self.do("SetAllMemoryMaxValue", **args)
        elif kind == 6:
            self.do("SetVarMemLogicBase", value=self.pick((1 << 37, 1 << 35, (1 << 37) + 4096)), **args)
        elif kind == 7:
            self.do("SetVarMemMaxSize", value=self.pick((10_000, 1 << 20, 1 << 33)), **args)
        elif kind == 8:
            self.do("SetDeviceMemoryLimit", bytes=self.pick((5000, 1 << 20, 1 << 40)))
        elif kind == 9:
            self.do("SetCurrentDevice", device_id=self.pick((0, 2, -1)))
        elif kind == 10:
            key = self.pick(tuple(OPTIONS))
            self.do("SetOption", key=key, value=self.pick(OPTIONS[key]))
        elif kind == 11:
            self.do("SetEnv", key="GE_USE_STATIC_MEMORY", value=self.pick(("0", "1", "3", "4")))
        elif kind == 12:
            self.hold()
        elif kind == 13:
            self.sizes(args)
        else:
            version, session_id = self.pick((0, 2, 3)), self.pick((args.get("session", 1), 5))
            self.do("Init", version=version, session_id=session_id, device_id=self.device(), job_id=1, **args)
        if self.choice.below(4) == 0:
            self.do("QueryMemoryPolicy")

    def sizes(self, args: Tree) -> None:
        names = ("graph_mem_max_size", "var_mem_max_size", "use_max_mem_size")
        sizes = {name: self.pick((0, 1 << 20, 1 << 34, 1 << 40, (1 << 64) - 1)) for name in names}
        base = self.pick((1 << 37, 1 << 35, 1 << 62, 0, 512))
        self.do("UpdateMemoryConfig", **sizes, var_mem_logic_base=base, **args)
        self.do("GetMemoryConfig", **args)

    def step(self) -> None:
        """Write one or a few steps; a sequence does one kind more often than others."""
        rare: tuple[Callable[[], None], ...] = (
            self.renew,
            self.restore,
            self.counters,
            self.ready,
            self.loaded,
            self.serial,
            self.deserial,
        )
        rare += (self.set_addr, self.free, self.external, self.expandable, self.lifecycle, self.graphs)
        kinds = (self.assign,) * 8 + (self.resolve,) * 5 + (self.look,) * 3 + (self.graphs,) * 3 + rare
        self.pick((*kinds, *(rare[self.focus % len(rare)],) * 8))()


def rough_sequence(choice: Choice, length: int) -> Step:
    """Return a sequence of at least `length` steps."""
    writer = RoughUse(choice)
    writer.begin()
    while len(writer.steps) < length:
        writer.step()
    return writer.sequence("rough use", "rough use")
