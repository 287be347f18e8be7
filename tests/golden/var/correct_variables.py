"""Variables of correct use: names, descriptions and nodes that go with each other and with what is there."""

from collections.abc import Sequence

from gevar.types import DataType, TensorDesc
from gevar.types.data_type import element_size_code
from tests.golden.var.values import format_number, tensor_json
from tests.golden.var.writing import Choice, Step, Writer

STEMS = ("v{}", "model/block_{}/w", "emb_{}", "屋{}.weight", "a.b-c_{}:0")
FORMATS: Sequence[str | int] = ("ND", "NCHW", "NHWC", "HWCN", "FRACTAL_Z", "NC1HWC0", "FRACTAL_NZ", 4100, 83886083)
DTYPES = (
    *("DT_FLOAT", "DT_FLOAT16", "DT_INT8", "DT_UINT8", "DT_INT32", "DT_INT64", "DT_BFLOAT16", "DT_BOOL", "DT_DOUBLE"),
    *("DT_COMPLEX64", "DT_FLOAT8_E5M2", "DT_INT4"),
)
PATTERNS = ("01085a", "020f5a", "03165a", "04")
WEIGHT_COUNTS = (1, 2, 4, 16, 128, 250, 1024)
PLACE_HOLDER_ADDR = 87960930222080


class CorrectVariables(Writer):
    """Makes up variables for the model of GE in the state it is in; `kinds` are the types of their nodes."""

    def __init__(self, choice: Choice, topic: str) -> None:
        super().__init__(choice)
        self.topic = topic
        self.sessions: Sequence[dict[str, int]] = ({}, {"session": 2}, {"session": 3}) if topic == "sessions" else ({},)
        self.kinds: dict[tuple[int, str], str] = {}
        self.batch_names: dict[str, list[str]] = {}
        self.place_holders = self.restored_bytes = 0

    def names(self, args: dict[str, int], *kinds: str) -> list[str]:
        """The names of a session's variables, all or those of some kinds of node."""
        session = args.get("session", 1)
        return [name for (known, name), kind in self.kinds.items() if known == session and (not kinds or kind in kinds)]

    def called(self, name: str) -> str:
        """A name under which a variable is known: its own, or that of a batch."""
        known: list[str] = [name, *self.batch_names.get(name, ())]
        return self.pick(known)

    def new_name(self, args: dict[str, int]) -> str:
        free = [name for name in self.batch_names if name not in self.names(args)]
        stem: str = self.pick(STEMS)
        return self.pick(free) if free else stem.format(len(self.kinds) + 1)

    def current(self, name: str, args: dict[str, int]) -> Step:
        """The current description of a name, as an argument."""
        res = self.manager(args).resource
        assert res is not None
        return argument(res.cur_descs[res.key_name(name)])

    def shape(self) -> list[int]:
        if self.chance(8):
            return [1 + self.choice.below(200), 1000]
        return [self.pick((1, 2, 3, 4, 5, 7, 8, 16, 31)) for _ in range(self.choice.below(5))]

    def tensor(self) -> Step:
        dtype, shape = self.pick(DTYPES), self.shape()
        data_bytes = exact_bytes(dtype, shape)
        size = data_bytes if self.choice.below(2) else (data_bytes + 63) // 32 * 32
        tensor: Step = {"dtype": dtype, "format": self.pick(FORMATS), "shape": shape, "size": size}
        if self.chance(3):
            tensor |= {"origin_format": self.pick(("ND", "NCHW", "NHWC")), "origin_shape": self.shape()}
        return tensor

    def variable(self, name: str) -> Step:
        tensor = self.tensor()
        if self.topic == "init" and self.choice.below(2):
            value = {key: tensor[key] for key in ("dtype", "format", "shape")}
            tensor["init_value"] = {**value, "repeat_hex": "c3a5", "len": min(64, tensor["size"])}
        return {"tensor": tensor, "op": {"name": name, "type": "Variable"}}

    def constant(self, name: str) -> Step:
        """Equal weights have equal sizes; some have another data type of the same width."""
        pattern, count = self.pick(PATTERNS), self.pick(WEIGHT_COUNTS)
        value = {"dtype": self.pick(("DT_FLOAT", "DT_INT32")), "format": self.pick(("ND", "NCHW")), "shape": [count]}
        weight = {**value, "repeat_hex": pattern, "len": 4 * count}
        return {"tensor": {**value, "size": 4 * count}, "op": {"name": name, "type": "Constant", "weight": weight}}

    def file_constant(self, name: str) -> Step:
        """A slice has one length, wherever it is used."""
        part, offset = self.choice.below(4), self.pick((0, 512, 4096, 1 << 20))
        length = 192 + 64 * part + offset % 1000
        tensor = {"dtype": "DT_FLOAT16", "format": self.pick(FORMATS), "shape": [length // 2], "size": length + 32}
        attrs = {"location": {"str": f"/weights/part_{part}.bin"}, "offset": {"int": offset}, "length": {"int": length}}
        return {"tensor": tensor, "op": {"name": name, "type": "FileConstant", "attrs": attrs}}

    def place_holder(self, name: str) -> Step:
        tensor = self.tensor()
        self.place_holders += 1
        attrs = {
            "storage_shape": {"ints": tensor["shape"]},
            "dtype": {"dtype": tensor["dtype"]},
            "size": {"int": exact_bytes(tensor["dtype"], tensor["shape"])},
            "placement": {"int": 1},
            "addr": {"int": PLACE_HOLDER_ADDR + (self.place_holders << 16)},
        }
        return {"tensor": tensor, "op": {"name": name, "type": "ConstPlaceHolder", "attrs": attrs}}

    def key(self, name: str, tensor: Step, args: dict[str, int]) -> str:
        res = self.manager(args).resource
        assert res is not None
        return f"{res.key_name(name)}{format_number(tensor['format'])}_{int(DataType.from_serial(tensor['dtype']))}"

    def place(self, args: dict[str, int], *kinds: str) -> tuple[str, Step, int] | None:
        """A variable with its current description and offset."""
        known = self.names(args, *kinds)
        if not known:
            return None
        name = self.pick(known)
        tensor, manager = self.current(name, args), self.manager(args)
        assert manager.resource is not None
        record = manager.resource.records[self.key(name, tensor, args)]
        return name, tensor, record.address - manager.logic_base_now()


def argument(desc: TensorDesc) -> Step:
    """A description as an argument, with what counts in a current one."""
    found = tensor_json(desc)
    keys = ("dtype", "shape", "size", "origin_format", "origin_shape")
    return {"format": found["format_int"], **{key: found[key] for key in keys if key in found}}


def exact_bytes(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of the data of a tensor."""
    code, count = element_size_code(DataType.from_serial(dtype)), 1
    for dim in shape:
        count *= dim
    return -(-count * (code - 1000) // 8) if code > 1000 else count * code
