"""Roads of conversions at random, and back: the variable has its bytes again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.formats import infer_shape
from gevar.formats.layouts import LAYOUTS, PAIRS, PLAIN_4D
from gevar.runtime.trans_var_data import trans_all_var_data
from gevar.types import DataType, DeviceId, Format, TensorDesc
from gevar.types.format import c0, format_from_c0, format_from_sub, sub_format
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import TransNodeInfo, VarManager, VarOp
from tests.golden.formats_reference import to_stored
from tests.helpers.var_memory import FakeMemory, make_manager

Draw = Callable[[st.SearchStrategy[Any]], Any]
Road = list[TransNodeInfo]

FIRST_USER, GRAPH = 3, 7
EXACT_CASTS = {
    DataType.DT_FLOAT: [DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_INT32],
    DataType.DT_FLOAT16: [DataType.DT_FLOAT, DataType.DT_BF16],
    DataType.DT_INT32: [DataType.DT_FLOAT, DataType.DT_INT64],
}
"""Casts that have a way back, and lose nothing of the integers from -100 to 100."""

STORED = {plain: [pair for pair in PAIRS if pair.plain == plain and pair.back] for plain in PLAIN_4D}


def sized(desc: TensorDesc) -> TensorDesc:
    """The same with its bytes."""
    return desc.replace(size=tensor_size_in_bytes(desc))


def following(draw: Draw, desc: TensorDesc) -> TransNodeInfo | None:
    """A step from a plain tensor at random; None where there is none of the kind that was drawn."""
    kind = draw(st.sampled_from(["Cast", "TransposeD", "TransData"]))
    if kind == "Cast":
        if desc.dtype not in EXACT_CASTS:
            return None
        return TransNodeInfo(kind, desc, sized(desc.replace(dtype=draw(st.sampled_from(EXACT_CASTS[desc.dtype])))))
    if kind == "TransposeD":
        fmt: int = draw(st.sampled_from([one for one in PLAIN_4D if one != desc.format]))
    else:
        takes = [
            pair for pair in STORED[Format(desc.format)] if desc.dtype in (LAYOUTS[pair.stored].dtypes or [desc.dtype])
        ]
        takes = [pair for pair in takes if pair.stored != Format.FORMAT_FRACTAL_Z_C04]  # most shapes have more channels
        if not takes:
            return None
        pair = draw(st.sampled_from(takes))
        groups = 0
        if pair.stored == Format.FORMAT_FRACTAL_Z:
            outputs = desc.shape[pair.axes.split().index("N")]
            groups = draw(st.sampled_from([count for count in range(1, outputs + 1) if outputs % count == 0]))
        fmt = format_from_c0(format_from_sub(pair.stored, groups), draw(st.sampled_from([4, 5, 6])))
    return TransNodeInfo(kind, desc, sized(desc.replace(format=fmt, shape=infer_shape(desc, fmt))))


@st.composite
def roads(draw: Draw) -> Road:
    """Steps between plain forms, and into a storage format at most as the last one."""
    plain = draw(st.sampled_from(list(PLAIN_4D)))
    shape = draw(st.lists(st.integers(1, 10), min_size=4, max_size=4))
    here = sized(TensorDesc(draw(st.sampled_from(sorted(EXACT_CASTS))), plain, shape))
    road: Road = []
    for _ in range(draw(st.integers(1, 4))):
        step = following(draw, here)
        if step is None:
            continue
        road.append(step)
        here = step.output
        if here.format not in PLAIN_4D:
            break
    return road


def back(road: Road) -> Road:
    return [TransNodeInfo(step.node_type, step.output, step.input) for step in reversed(road)]


def bytes_of(vm: VarManager, desc: TensorDesc) -> bytes:
    data = np.empty(desc.size, np.uint8)
    vm.read_var_memory(vm.get_var_addr("v", desc), data)
    return data.tobytes()


def reference(road: Road, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What a road makes of values, by the formulas of the formats and numpy's casts."""
    for step in road:
        names = [Format(desc.format & 0xFF).name.removeprefix("FORMAT_") for desc in (step.input, step.output)]
        fmt = step.output.format
        if step.node_type == "Cast":
            values = values.astype(step.output.dtype.to_numpy())
        else:
            values = to_stored(values, names[0], names[1], c0(fmt), max(1, sub_format(fmt)))
    return values.astype(road[-1].output.dtype.to_numpy())


def go(road: Road, data: bytes) -> bytes:
    """Bytes of a variable at the end of a road; a variable keeps its first road, so each way has its own manager."""
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("v", None, road[0].input)
    vm.set_allocated_graph_id("v", FIRST_USER)
    vm.write_var_memory(vm.get_var_addr("v", road[0].input), np.frombuffer(data, np.uint8))
    assert vm.set_trans_road("v", road)
    vm.set_changed_graph_id("v", GRAPH)
    vm.assign_var_mem("v", None, road[-1].output)
    assert trans_all_var_data(vm, [VarOp("v", "Variable")], DeviceId(0), GRAPH, threads=1) == ["v"]
    assert vm.get_changed_graph_id("v") is None
    return bytes_of(vm, road[-1].output)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(road=roads().filter(bool), seed=st.integers(0, 1000))
def test_a_road_and_its_inverse_restore_the_variable(road: Road, seed: int) -> None:
    start = road[0].input
    values: npt.NDArray[Any] = np.random.default_rng(seed).integers(-100, 101, start.shape)
    before = values.astype(start.dtype.to_numpy()).tobytes()
    there = go(road, before)
    assert there == reference(road, values).tobytes()
    assert go(back(road), there) == before
