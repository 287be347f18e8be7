"""The variables of an OM2 package: what each is, and how the package writes them down.

Source: GE source, runtime/om2, RTVarEntry, RTVarResource.
Differs: edge 30 of docs/differences.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gevar.errors import VariableError
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, MemType, TensorDesc
from gevar.var.graph_tables import TransRoad


@dataclass(frozen=True, slots=True)
class CopyInfo:
    """Variable that another one starts as a copy of.

    Attributes
    ----------
    src_var_name : str
        Its name.
    src_tensor_desc : TensorDesc
        Its description.
    """

    src_var_name: str
    src_tensor_desc: TensorDesc


@dataclass(frozen=True, slots=True)
class RTVarEntry:
    """A variable.

    Attributes
    ----------
    var_name, var_key : str
        Name, and the text under which it is kept.
    op_type : str
        Type of its node.
    logic_addr : int
        Logical address.
    size : int
        Exact bytes of the tensor: without padding and guards.
    memory_type : MemType
        Kind of memory.
    tensor_desc : TensorDesc
        Description.
    trans_road : TransRoad
        Conversions that its data goes through.
    changed_graph_id, allocated_graph_id : int or None
        Graph that changed its form, and first graph that used it.
    copy_info : CopyInfo or None
        What it starts as a copy of.
    extern_dev_addr : DevAddr or None
        Memory of the caller's; it is not written down.
    init_data : bytes or None
        What its memory starts with.
    """

    var_name: str
    var_key: str
    op_type: str
    logic_addr: int
    size: int
    memory_type: MemType
    tensor_desc: TensorDesc
    trans_road: TransRoad = ()
    changed_graph_id: int | None = None
    allocated_graph_id: int | None = None
    copy_info: CopyInfo | None = None
    extern_dev_addr: DevAddr | None = None
    init_data: bytes | None = None

    def __post_init__(self) -> None:
        """Check what every use relies on.

        Raises
        ------
        VariableError
            The key is empty, or the size negative (status PARAM_INVALID).
        """
        if not self.var_key:
            raise VariableError(self.var_name, "its key is empty; give name, format and type", status=PARAM_INVALID)
        if self.size < 0:
            raise VariableError(self.var_key, f"its size is {self.size} B; give a size from 0", status=PARAM_INVALID)


class RTVarResource:
    """Variables by key and by name; the one that was added last stands for its name.

    Thread safety: none; managers use it under their lock.
    """

    def __init__(self, entries: Iterable[RTVarEntry] = ()) -> None:
        self.entries: dict[str, RTVarEntry] = {}
        self._names: dict[str, str] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: RTVarEntry) -> None:
        """Add a variable, in place of one with its key."""
        self.entries[entry.var_key] = entry
        self._names[entry.var_name] = entry.var_key

    def add_new(self, other: "RTVarResource") -> None:
        """Add the variables of another resource whose keys are new."""
        for key, entry in other.entries.items():
            if key not in self.entries:
                self.add(entry)

    def find(self, name: str) -> RTVarEntry | None:
        """Return the variable of a name, or of a key."""
        return self.entries.get(self._names.get(name, name))

    def find_form(self, name: str, desc: TensorDesc) -> RTVarEntry | None:
        """Return the variable of a name that has format and data type of a description."""
        for entry in self.entries.values():
            found = entry.tensor_desc
            if entry.var_name == name and (found.format, found.dtype) == (desc.format, desc.dtype):
                return entry
        return None

    def __iter__(self) -> Iterator[RTVarEntry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)
