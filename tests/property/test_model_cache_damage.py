"""Files of the model cache that are damaged at random: they are used whole, or refused and nothing else changes."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.errors import GevarError
from gevar.var import TransNodeInfo, VarManager
from tests.helpers.cached_models import NC1HWC0, NCHW, cache_of, model_graph, root_model
from tests.helpers.var_memory import make_manager
from tests.helpers.var_states import state_bytes

ROAD = (TransNodeInfo("TransData", NCHW, NC1HWC0),)
EDITS = st.tuples(
    st.sampled_from((".idx", ".om", ".rdcpkt", ".conf")),
    st.sampled_from(("flip", "cut", "insert", "empty")),
    st.integers(0, 1 << 16),
    st.binary(min_size=1, max_size=9),
)


def stored_files() -> dict[str, bytes]:
    """The files of a cache with a graph that changes a variable."""
    with tempfile.TemporaryDirectory() as name:
        folder, vm = Path(name), new_manager()
        (folder / "cache.conf").write_text('{"cache_debug_mode": false, "cache_manual_check": true}')
        with cache_of(folder, vm, model_graph({}, graph_id=2)) as cache:
            vm.record_staged_var_desc(2, "w", NCHW)
            vm.set_trans_road("w", ROAD)
            vm.set_changed_graph_id("w", 2)
            vm.assign_var_mem("w", None, NC1HWC0)
            cache.try_cache_model(root_model(model_graph({"w": NC1HWC0}), weights=b"w" * 50))
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


def new_manager() -> VarManager:
    vm = make_manager()
    vm.assign_var_mem("w", None, NCHW)
    return vm


FILES = stored_files()


def damaged(data: bytes, kind: str, place: int, content: bytes) -> bytes:
    at = place % (len(data) + 1)
    if kind == "cut":
        return data[:at]
    if kind == "insert":
        return data[:at] + content + data[at:]
    return data[:at] + content + data[at + len(content) :] if kind == "flip" else b""


@settings(max_examples=250, deadline=None)
@given(st.lists(EDITS, max_size=2))
def test_damage(edits: list[tuple[str, str, int, bytes]]) -> None:
    vm, ctrl = new_manager(), GraphRebuildStateCtrl()
    state = state_bytes(vm)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in FILES.items():
            for suffix, kind, place, content in edits:
                if file.endswith(suffix):
                    data = damaged(data, kind, place, content)
            (folder / file).write_bytes(data)
        try:
            with cache_of(folder, vm, model_graph({}, graph_id=3), ctrl) as cache:
                model = cache.try_load_model_from_cache()
        except GevarError:
            model = None
        if model is None:
            assert state_bytes(vm) == state
            assert ctrl.is_var_permit_to_change_formats("w")
        elif not edits:
            assert vm.get_trans_road("w") == ROAD
            assert not ctrl.is_var_permit_to_change_formats("w")
    vm.check()
