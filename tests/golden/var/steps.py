"""One step of a recorded sequence: its arguments as values."""

from typing import TYPE_CHECKING

from gevar.types import TensorDesc
from tests.golden.facts import Json
from tests.golden.var.faces import Manager
from tests.golden.var.values import UINT64, Op, Tree, UnknownForm, address_json, operator, tensor_desc

if TYPE_CHECKING:
    from tests.golden.var.operations import Replay

Result = dict[str, Json]


class Step:
    """Arguments of one step as values."""

    def __init__(self, replay: "Replay", args: Tree, operation: str) -> None:
        self.replay, self.pool, self.args, self.operation = replay, replay.pool, args, operation
        self.session_id: int = args.get("session", 1)
        self.name: str = args.get("var", "")
        self.device: int = args.get("device_id", 0)
        self.graph_id: int = args.get("graph_id", 0)
        self.mem_type: int = args.get("memory_type", 2)

    @property
    def manager(self) -> Manager:
        label = self.args.get("handle")
        if label is None:
            return self.pool.manager(self.session_id)
        if label not in self.replay.held:
            raise UnknownForm(f"no step before this one holds a manager as {label}")
        return self.replay.held[label]

    @property
    def addr(self) -> int:
        return int(self.manager.logic_base_now() + self.args["addr"]) % UINT64

    @property
    def maybe_tensor(self) -> TensorDesc | None:
        return tensor_desc(self.args["tensor"]) if "tensor" in self.args else None

    @property
    def tensor(self) -> TensorDesc:
        return tensor_desc(self.args["tensor"])

    @property
    def op(self) -> Op | None:
        return operator(self.args["op"], self.maybe_tensor, self.manager.logic_base_now())

    def address(self, addr: int) -> Result:
        """Return a logical address as a result states it."""
        return address_json(addr, self.manager.logic_base_now(), self.pool.sources.place(addr))
