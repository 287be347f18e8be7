"""Arguments of rough steps: names, descriptions, nodes, addresses, right and wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.var.values import Tree
from tests.golden.var.writing import Step, Writer

NAMES = ("w", "w1", "a/b:0", "屋.weight", "v2", "c_3", "emb", "x")
FORMATS = ("ND", "NCHW", "NHWC", "NC1HWC0", 12, 4100, 83886083)
DTYPES = ("DT_FLOAT", "DT_FLOAT16", "DT_INT8", "DT_INT32", "DT_INT64", "DT_BFLOAT16")
SIZES = (1, 4, 16, 64, 100, 511, 512, 513, 1000, 4096)
SHAPES: Sequence[Sequence[int]] = ([4], [2, 2], [], [1, 3, 4], [16])
STRANGE_NAMES = ("", "w_", "w2_0", "w12_", 'a"b\nc', "x" * 300, "emb_ascend_mbatch_batch_1")
STRANGE_FORMATS: Sequence[str | int] = ("FORMAT_RESERVED", "NCL", "FRACTAL_NZ_C0_8", "NULL", 255, 516, 0x7FFFFFFF)
STRANGE_DTYPES = ("DT_UNDEFINED", "DT_STRING", "DT_INT4", "DT_UINT1", "DT_DUAL", "DT_HIFLOAT4", "DT_COMPLEX128")
STRANGE_SHAPES: Sequence[Sequence[int]] = ([0], [-1, 3], [-2], [1] * 12, [1 << 40, 1 << 40], [0, -1])
STRANGE_SIZES = (0, -1, -600, 1 << 40, 1 << 62, 6 << 30, (1 << 63) - 1, -(1 << 63), (1 << 63) - 512, 2**31, 2**32)
STRANGE_KINDS = (3, 129, 0, 2, 4, 0x10, 0x90, 256, 77)
PATTERNS = ("01", "0000803f", "5a5b")
LENGTHS = (4, 16, 64)
LOCATIONS = ("/w/a.bin", "/w/b.bin")
PLACE_HOLDER_ADDR = 87960930222080
NODE_TYPES = ("TransData", "Cast", "Reshape")


@dataclass
class RoughArguments(Writer):
    """Makes up arguments for the model of GE in the state it is in.

    Among them is what the rules forbid: wrong sizes and kinds of memory, colliding names, calls out of order.
    """

    names: Sequence[str] = NAMES
    formats: Sequence[str | int] = FORMATS
    focus: int = 0

    def session(self) -> dict[str, Any]:
        held = [{"handle": label} for label in self.replay.held]
        return self.pick(({}, {}, {}, {}, {}, {}, {"session": 2}, {"session": 9}, *held))

    def name(self) -> str:
        return self.pick(STRANGE_NAMES if self.chance(20) else self.names)

    def tensor(self) -> Step:
        tensor: Step = {
            "dtype": self.pick(STRANGE_DTYPES if self.chance(15) else DTYPES),
            "format": self.pick(STRANGE_FORMATS if self.chance(15) else self.formats),
            "shape": self.pick(STRANGE_SHAPES if self.chance(15) else SHAPES),
            "size": self.pick(STRANGE_SIZES if self.chance(12) else SIZES),
        }
        if self.choice.below(6) == 0:
            tensor["origin_format"], tensor["origin_shape"] = self.pick(("NCHW", "NHWC")), self.pick(SHAPES)
        if self.chance(12):
            tensor["origin_dtype"] = self.pick(DTYPES)
        if self.chance(20):
            del tensor["size"]
        return tensor

    def known_tensor(self, name: str, args: Tree) -> Step:
        """A description near the current one of a name: the same, another form, or any."""
        res = self.manager(args).resource
        desc = None if res is None else res.cur_descs.get(res.key_name(name))
        if desc is None or self.choice.below(4) == 0:
            return self.tensor()
        tensor = {
            "dtype": desc.dtype.to_serial(),
            "format": int(desc.format),
            "shape": list(desc.shape),
            "size": desc.size,
        }
        if self.choice.below(2):
            tensor["format"] = self.pick(self.formats)
        if self.choice.below(3) == 0:
            tensor["size"] = self.pick((*SIZES, desc.size // 2, min(desc.size + 1, (1 << 63) - 1)))
        return tensor

    def init_value(self, tensor: Step) -> Step:
        """An initial value of the description, or one that does not fit it."""
        length = min(max(tensor.get("size", 0), 0), 32)
        value = {key: tensor[key] for key in ("dtype", "format", "shape")}
        if self.chance(3):
            value["shape"] = [length, 1]
        if self.chance(6):
            length += 4096
        return {**tensor, "init_value": {**value, "repeat_hex": self.pick(PATTERNS), "len": length}}

    def operator(self, name: str, tensor: Step) -> Step | None:
        kind = self.choice.below(12)
        if kind < 5:
            if self.chance(10):
                return None
            op: Step = {"name": name, "type": "Variable"}
            if self.chance(12):
                op["weight"] = self.weight(tensor)
            return op
        if kind < 8:
            if self.chance(8):
                return {"name": name, "type": self.pick(("Const", "Constant"))}
            return {"name": name, "type": "Constant", "weight": self.weight(tensor)}
        if kind < 10:
            attrs: Step = {
                "location": {"str": self.pick(LOCATIONS)},
                "offset": {"int": self.pick((0, 512))},
                "length": {"int": self.pick((64, 512))},
            }
            if self.chance(8):
                del attrs[self.pick(("location", "offset", "length"))]
            return {"name": name, "type": "FileConstant", "attrs": attrs}
        return self.place_holder(name, tensor)

    def weight(self, tensor: Step) -> Step:
        length = self.pick(LENGTHS)
        return {
            **{key: tensor[key] for key in ("dtype", "format", "shape")},
            "repeat_hex": self.pick(PATTERNS),
            "len": 0 if self.chance(15) else length,
        }

    def place_holder(self, name: str, tensor: Step) -> Step:
        attrs: Step = {
            "storage_shape": {"ints": [2, 2]},
            "dtype": {"dtype": "DT_FLOAT"},
            "size": {"int": 16 if self.choice.below(2) else max(tensor.get("size", 0), 16)},
            "placement": {"int": 1},
            "addr": {"int": PLACE_HOLDER_ADDR + 4096 * self.choice.below(4)},
        }
        if self.chance(3):
            broken = self.pick(tuple(attrs))
            if broken in ("size", "placement", "addr") and self.choice.below(2):
                attrs[broken] = {"int": self.pick((0, 2, 15, -1))}
            elif broken == "storage_shape" and self.choice.below(2):
                attrs[broken] = {"ints": self.pick(([0, 4], [1 << 40, 1 << 40], [3, 5]))}
            elif broken == "dtype" and self.choice.below(2):
                attrs[broken] = {"dtype": self.pick(("DT_INT64", "DT_INT4", "DT_STRING"))}
            elif self.chance(3):
                attrs[broken] = {"str": "4"}
            else:
                del attrs[broken]
        return {"name": name, "type": "ConstPlaceHolder", "attrs": attrs}

    def mem_type(self) -> int:
        if self.chance(10):
            return self.pick(STRANGE_KINDS)
        return self.pick((2,) * 16 + (3, 129))

    def device(self) -> int:
        return self.pick((0, 0, 0, 0, 1, 7))

    def addr(self, args: Tree) -> int:
        """An address near a known one, as a distance from the logic base."""
        manager = self.manager(args)
        bases = [*manager.resource.template] if manager.resource is not None else []
        base = self.pick(bases) - manager.logic_base_now() if bases else 0
        if abs(base) > 1 << 50:  # the address of a pool, which no file can state
            base = 0
        return base + self.pick((0, 0, 0, 1, 3, 100, 600, -1, 1536))

    def road(self) -> list[Step]:
        count = self.choice.below(3)
        return [
            {"node_type": self.pick(NODE_TYPES), "input": self.tensor(), "output": self.tensor()} for _ in range(count)
        ]
