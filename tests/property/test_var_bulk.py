"""Bulk calls against loops of single calls."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.errors import GevarError
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager, VarOp, var_registry
from gevar.var.new_variables import VarItem
from gevar.var.var_op import AttrValue
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager
from tests.helpers.var_states import state_bytes

BASE = 128 * GIB
NAMES = st.sampled_from(["a", "b", "c", "d", "alias"])
DESCS = st.builds(
    lambda dtype, fmt, size: TensorDesc(dtype, fmt, (4,), size=size),
    st.sampled_from([DataType.DT_INT8, DataType.DT_FLOAT]),
    st.sampled_from([Format.FORMAT_ND, Format.FORMAT_NCHW]),
    st.sampled_from([0, 4, 100, 512, 513, 5000]),
)
BAD_DESCS = st.builds(lambda desc: desc.replace(size=-1), DESCS)
PLACES = st.sampled_from([BASE, BASE + 512, BASE + 2048, BASE + 4096, BASE + 65536])


@st.composite
def items(draw: st.DrawFn) -> VarItem:
    name, desc = draw(NAMES), draw(st.one_of(DESCS, DESCS, DESCS, BAD_DESCS))
    attrs: dict[str, AttrValue] = {}
    kind = draw(st.sampled_from(["Variable", "Constant", "FileConstant", "reference"]))
    value = draw(st.sampled_from([b"1234", b"abcd", b"12345678", None])) if kind == "Constant" else None
    if kind == "FileConstant":
        attrs = {"location": draw(st.sampled_from(["x.bin", "y.bin"])), "length": 4}
    elif kind == "reference":
        kind, attrs = "Variable", {"ref_var_src_var_name": "a"}
    return name, VarOp(name, kind, (desc,), (draw(PLACES),), value, attrs), desc


BATCHES = st.lists(st.tuples(st.booleans(), st.lists(items(), max_size=8)), min_size=1, max_size=4)


def _singles(one: Callable[[str, VarOp | None, TensorDesc], LogicAddr], batch: list[VarItem]) -> list[int] | GevarError:
    addrs: list[int] = []
    try:
        for name, op, desc in batch:
            addrs.append(one(name, op, desc))
    except GevarError as error:
        error.add_note(f"item {len(addrs)} of")
        return error
    return addrs


def _manager(*, has_alias: bool = True) -> VarManager:
    vm = make_manager(FakeMemory())
    if has_alias:
        vm.set_batch_variables_key_name("alias", "c")
    vm.set_var_mem_max_size(128 * 1024)
    return vm


def _told(vm: VarManager) -> tuple[object, ...]:
    return state_bytes(vm), tuple(map(repr, vm.table())), vm.savings(), repr(vm)


@settings(max_examples=150, deadline=None)
@given(BATCHES, st.booleans())
def test_registering_many_is_a_loop_of_single_calls_or_nothing(
    batches: list[tuple[bool, list[VarItem]]], has_alias: bool
) -> None:
    done: list[tuple[bool, list[VarItem]]] = []
    bulk = _manager(has_alias=has_alias)
    for is_restored, batch in batches:
        loop = _manager(has_alias=has_alias)
        for restored_before, before in done:
            _singles(loop.restore_var_mem if restored_before else loop.assign_var_mem, before)
        expected = _singles(loop.restore_var_mem if is_restored else loop.assign_var_mem, batch)
        untouched, call = _told(bulk), bulk.restore_many if is_restored else bulk.assign_many
        if isinstance(expected, GevarError):
            with pytest.raises(type(expected)) as caught:
                call(batch)
            assert str(caught.value) == str(expected)
            (note,), (number,) = caught.value.__notes__, expected.__notes__
            assert number in note
            assert _told(bulk) == untouched
        else:
            assert call(batch).tolist() == expected
            done.append((is_restored, batch))
            assert _told(bulk) == _told(loop)
        bulk.check()
    for name, _, desc in (item for _, batch in done for item in batch):
        assert bulk.get_var_addr_many([name], [desc]).tolist() == [bulk.get_var_addr(name, desc)]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(items(), max_size=12), st.sampled_from([None, 0, 1024, 4096]), st.sampled_from([BASE, (1 << 63) - 9000])
)
def test_new_variables_are_placed_as_all_others_are(batch: list[VarItem], restored: int | None, base: int) -> None:
    quick, slow = _manager(has_alias=False), _manager(has_alias=False)
    results = []
    for vm in (quick, slow):
        vm.set_var_mem_logic_base(base)
        if restored is not None:
            vm.restore_var_mem("r", VarOp("r", "Variable", (), (base + restored,)), make_desc(8))
        with pytest.MonkeyPatch.context() as patch:
            if vm is slow:
                patch.setattr(var_registry, "assign_new", lambda *_: None)
            results.append(_singles(vm.assign_var_mem, batch))
        vm.check()
    assert str(results[0]) == str(results[1])
    assert _told(quick) == _told(slow)


@settings(max_examples=100, deadline=None)
@given(st.lists(items(), max_size=8), st.lists(st.integers(0, 20_000), max_size=20), st.sampled_from([0, 1]))
def test_resolving_many_is_a_loop_of_single_calls(batch: list[VarItem], places: list[int], device: int) -> None:
    bulk, loop = _manager(), _manager()
    for vm in (bulk, loop):
        _singles(vm.assign_var_mem, batch)
    addrs, device_id = [LogicAddr(BASE + place) for place in places], DeviceId(device)
    good = [addr for addr in addrs if _finds(loop, addr)]
    expected = [loop.get_var_memory_addr(addr, device_id=device_id) for addr in good]
    assert bulk.resolve_many(np.array(good, np.int64), device_id).tolist() == expected
    if good != addrs:
        fresh = _manager()
        _singles(fresh.assign_var_mem, batch)
        with pytest.raises(LookupError):
            fresh.resolve_many(np.array(addrs, np.int64), device_id)
        assert fresh.get_var_malloc_mem_size() == 0


def _finds(vm: VarManager, addr: LogicAddr) -> bool:
    try:
        vm.check_logic_addr_valid(addr)
    except LookupError:
        return False
    return True
