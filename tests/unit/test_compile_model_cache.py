"""The model cache: what is stored, what is found again, and for which session it is right."""

import json
import logging
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache import ModelCache
from gevar.compile.model_cache_match import read_var_match_info
from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.errors import StateError
from gevar.graph import ComputeGraph, OpDesc
from gevar.om import GeRootModel, open_om
from gevar.proto.var_manager import VarMatchInfo
from gevar.types import DataType, Format, TensorDesc
from gevar.var import TransNodeInfo, VarManager
from gevar.var.var_info_writer import write_desc_info
from tests.helpers.cached_models import (
    BASE,
    NC1HWC0,
    NCHW,
    cache_of,
    graph_of,
    model_graph,
    options,
    root_model,
    store,
    variables_of,
)
from tests.helpers.child import expect_output
from tests.helpers.var_memory import FakeMemory, make_manager
from tests.helpers.var_states import state_bytes

ROAD = (TransNodeInfo("TransData", NCHW, NC1HWC0),)
ND = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_ND, (1, 3, 2, 2), origin_format=Format.FORMAT_ND, size=64)


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def compile_into(
    folder: Path, vm: VarManager, model: GeRootModel, change: Callable[[VarManager], None] | None = None, key: str = "k"
) -> Path:
    """Do what a session does with a graph: look into the cache, change variables, assign memory, store the model."""
    graph = graph_of(model)
    with cache_of(folder, vm, graph, key=key) as cache:
        assert cache.try_load_model_from_cache() is None
        if change is not None:
            change(vm)
        VarMemAssignUtil(vm, graph).assign_var_memory()
        path = cache.try_cache_model(model)
    assert path is not None
    return path


def load(
    folder: Path, vm: VarManager, ctrl: GraphRebuildStateCtrl | None = None, graph_id: int = 1, key: str = "k"
) -> GeRootModel | None:
    with cache_of(folder, vm, model_graph({}, graph_id=graph_id), ctrl, key) as cache:
        return cache.try_load_model_from_cache()


def fuse(vm: VarManager) -> None:
    """What the passes do to variable w of graph 2 that becomes NC1HWC0."""
    vm.renew_cur_var_desc("w", NCHW)
    vm.record_staged_var_desc(2, "w", NCHW)
    vm.set_trans_road("w", ROAD)
    vm.set_changed_graph_id("w", 2)


def two_graphs(folder: Path, vm: VarManager) -> None:
    """Compile a graph that brings w, and one that changes its format."""
    compile_into(folder, vm, root_model(model_graph({"w": NCHW}), name="first"))
    compile_into(folder, vm, root_model(model_graph({"w": NC1HWC0}, graph_id=2), name="second"), fuse, "k2")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["ge.graph_compiler_cache_dir", "ge.graph_key"])
@pytest.mark.parametrize("is_empty", [True, False])
def test_the_cache_is_off_without_a_directory_or_a_key(
    tmp_path: Path, vm: VarManager, missing: str, is_empty: bool
) -> None:
    found = options(tmp_path) | {missing: ""}
    if not is_empty:
        del found[missing]
    with ModelCache(model_graph({}), vm, GraphRebuildStateCtrl(), found) as cache:
        assert (cache.is_enabled, cache.weight_dir, cache.try_load_model_from_cache()) == (False, None, None)
        assert cache.try_cache_model(root_model(model_graph({}))) is None
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_an_entry(tmp_path: Path, vm: VarManager) -> None:
    before = datetime.now().replace(microsecond=0)
    path = compile_into(tmp_path, vm, root_model(model_graph({"w": NCHW})))
    stem = path.name.removesuffix(".om")
    assert before <= datetime.strptime(stem, "k_%Y%m%d%H%M%S") <= datetime.now()
    assert {file.name for file in tmp_path.iterdir()} == {"k.lock", "k.idx", f"{stem}.om", f"{stem}.rdcpkt"}
    row = {"graph_key": "k", "cache_file_name": f"{stem}.om", "var_desc_file_name": f"{stem}.rdcpkt"}
    assert (tmp_path / "k.idx").read_text() == json.dumps({"cache_file_list": [row]}, indent=4)
    for name in ("k.lock", "k.idx", f"{stem}.rdcpkt"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
    with open_om(path) as om:
        assert [model.name for model in om.models] == ["model"]


def test_a_model_without_variables_has_no_descriptions(tmp_path: Path, vm: VarManager) -> None:
    compile_into(tmp_path, vm, root_model(model_graph({})))
    [row] = json.loads((tmp_path / "k.idx").read_text())["cache_file_list"]
    assert set(row) == {"graph_key", "cache_file_name"}
    assert list(tmp_path.glob("*.rdcpkt")) == []
    vm.assign_var_mem("other", None, NCHW)
    assert load(tmp_path, vm) is not None


def test_entries_of_one_second_have_names_of_their_own(tmp_path: Path) -> None:
    paths = []
    for shape in (1, 2, 3):
        vm = make_manager(FakeMemory())
        vm.assign_var_mem("w", None, NCHW.replace(shape=(shape,)))
        paths.append(store(tmp_path, vm, root_model(model_graph({"w": NCHW}))))
    assert len(set(paths)) == 3
    rows = json.loads((tmp_path / "k.idx").read_text())["cache_file_list"]
    assert [row["cache_file_name"] for row in rows] == [path.name for path in paths]


def test_keys_have_indexes_of_their_own(tmp_path: Path, vm: VarManager) -> None:
    for key in ("a", "A-_9", "x" * 128):
        store(tmp_path, vm, root_model(model_graph({}), name=f"model {key}"), key)
    for key in ("a", "A-_9", "x" * 128):
        with cache_of(tmp_path, vm, model_graph({}), key=key) as cache:
            found = cache.try_load_model_from_cache()
        assert found is not None
        assert found.models[0].model.name == f"model {key}"


def test_the_key_is_held_until_the_cache_is_closed(tmp_path: Path, vm: VarManager) -> None:
    import fcntl

    cache = cache_of(tmp_path, vm, model_graph({}))
    with (tmp_path / "k.lock").open("rb") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        cache.close()
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    cache.close()
    assert not cache.is_enabled
    assert cache.try_cache_model(root_model(model_graph({}))) is None


def test_a_forked_child_does_not_free_the_key(tmp_path: Path) -> None:
    code = f"""
        import fcntl, os, pathlib, sys
        from gevar.compile.model_cache_files import CacheFiles
        folder = pathlib.Path({str(tmp_path)!r})
        files = CacheFiles(folder, "k")
        if not (pid := os.fork()):
            sys.exit()  # runs what is registered for the end of a process
        os.waitpid(pid, 0)
        with (folder / "k.lock").open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("held")
            files.close()
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print("free")
    """
    expect_output(code, "held\nfree", OPENBLAS_NUM_THREADS="1")


def test_a_cache_that_is_dropped_frees_its_key(tmp_path: Path, vm: VarManager) -> None:
    cache = cache_of(tmp_path, vm, model_graph({}))
    assert cache.is_enabled
    del cache
    with cache_of(tmp_path, vm, model_graph({})) as again:  # waits for ever where the key is held
        assert again.is_enabled


@pytest.mark.parametrize(("conf", "stores"), [("{}", True), ('{"cache_debug_mode": true}', False)])
def test_debug_mode_stores_nothing(tmp_path: Path, vm: VarManager, conf: str, stores: bool) -> None:
    (tmp_path / "cache.conf").write_text(conf)
    with cache_of(tmp_path, vm, model_graph({})) as cache:
        assert (cache.try_cache_model(root_model(model_graph({}))) is not None) is stores


def test_debug_mode_loads_what_is_there(tmp_path: Path, vm: VarManager) -> None:
    store(tmp_path, vm, root_model(model_graph({})))
    (tmp_path / "cache.conf").write_text('{"cache_debug_mode": true, "cache_manual_check": true, "more": 1}')
    assert load(tmp_path, vm) is not None


def test_a_model_by_its_key_alone(tmp_path: Path, vm: VarManager) -> None:
    path = store(tmp_path, vm, root_model(model_graph({}), name="by hand"))
    path.rename(tmp_path / "k.om")
    (tmp_path / "k.idx").unlink()
    found = load(tmp_path, vm)
    assert found is not None
    assert found.models[0].model.name == "by hand"


def test_names_in_an_index_may_have_a_directory(tmp_path: Path, vm: VarManager) -> None:
    path = store(tmp_path, vm, root_model(model_graph({})))
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    path.rename(moved / "m.om")
    rows = [{"graph_key": "k", "cache_file_name": str(moved / "m.om"), "more": "kept"}]
    (tmp_path / "k.idx").write_text(json.dumps({"cache_file_list": rows}))
    assert load(tmp_path, vm) is not None
    store(tmp_path, vm, root_model(model_graph({})))
    assert json.loads((tmp_path / "k.idx").read_text())["cache_file_list"][0] == rows[0]


def test_rows_of_other_keys_are_passed_over(tmp_path: Path, vm: VarManager) -> None:
    rows = [{"graph_key": "other", "cache_file_name": "gone.om", "var_desc_file_name": ""}]
    (tmp_path / "k.idx").write_text(json.dumps({"cache_file_list": rows}))
    assert load(tmp_path, vm) is None


def test_what_a_killed_writer_left_is_removed(tmp_path: Path, vm: VarManager) -> None:
    for suffix in ("om", "rdcpkt", "idx"):
        (tmp_path / f".k.{suffix}.tmp").write_bytes(b"torn")
    (tmp_path / ".other.om.tmp").write_bytes(b"somebody writes it now")
    path = store(tmp_path, vm, root_model(model_graph({})))
    assert {file.name for file in tmp_path.iterdir()} == {"k.lock", "k.idx", path.name, ".other.om.tmp"}


# --- matching ---------------------------------------------------------------------------------------------------------


def test_a_new_session_gets_what_compiling_would_give(tmp_path: Path, vm: VarManager) -> None:
    two_graphs(tmp_path, vm)
    other, ctrl = make_manager(FakeMemory()), GraphRebuildStateCtrl()
    ctrl.add_graph(1, model_graph({"w": NCHW}))
    first, second = load(tmp_path, other, ctrl), load(tmp_path, other, ctrl, graph_id=2, key="k2")
    assert first is not None
    assert second is not None
    assert [model.models[0].model.name for model in (first, second)] == ["first", "second"]
    assert other.get_cur_var_desc("w").same_description(NC1HWC0)
    assert other.get_trans_road("w") == ROAD
    assert other.get_changed_var_names(2) == {"w"}
    assert (ctrl.is_graph_need_rebuild(1), ctrl.is_var_permit_to_change_formats("w")) == (True, False)
    for one, addr in ((NCHW, BASE), (NC1HWC0, BASE + 1536)):
        assert vm.get_var_addr("w", one) == other.get_var_addr("w", one) == addr
    assert [vm.get_allocated_graph_id("w"), other.get_allocated_graph_id("w")] == [1, 1]


def test_a_model_for_an_older_form_of_a_variable_is_passed_over(
    tmp_path: Path, vm: VarManager, caplog: pytest.LogCaptureFixture
) -> None:
    two_graphs(tmp_path, vm)
    # the first graph must be built again: what was stored when it brought w is for NCHW
    with caplog.at_level(logging.INFO, "gevar.compile"):
        rebuilt = root_model(model_graph({"w": NC1HWC0}), name="rebuilt")
        state = state_bytes(vm)
        compile_into(tmp_path, vm, rebuilt)
    assert state_bytes(vm) == state
    assert "variable 'w' is in another form" in caplog.text
    found = load(tmp_path, vm)
    assert found is not None
    assert found.models[0].model.name == "rebuilt"
    other = make_manager(FakeMemory())
    names = []
    for graph_id, key in ((1, "k"), (2, "k2"), (1, "k")):  # as the second start of a program goes
        found = load(tmp_path, other, graph_id=graph_id, key=key)
        assert found is not None
        names.append(found.models[0].model.name)
    assert names == ["first", "second", "rebuilt"]
    assert other.table() == vm.table()


def test_the_set_after_compilation_comes_first_and_changes_nothing(tmp_path: Path, vm: VarManager) -> None:
    two_graphs(tmp_path, vm)
    vm.remove_changed_graph_id("w")
    state, ctrl = state_bytes(vm), GraphRebuildStateCtrl()
    found = load(tmp_path, vm, ctrl, graph_id=2, key="k2")
    assert found is not None
    assert found.models[0].model.name == "second"
    assert (state_bytes(vm), ctrl.is_var_permit_to_change_formats("w")) == (state, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 65},
        {"shape": (3, 1, 2, 2)},
        {"dtype": DataType.DT_INT16},
        {"format": Format.FORMAT_NHWC},
        {"format": Format.FORMAT_NCHW | 5 << 24},
        {"origin_format": Format.FORMAT_NHWC},
        {"origin_shape": (1,)},
        {"origin_dtype": DataType.DT_FLOAT},
        {"weight_size": 1},
        {"data_offset": 1},
        {"real_dim_cnt": 4},
        {"reuse_input": True},
        {"reuse_input_index": 1},
        {"output_tensor": True},
        {"input_tensor": True},
        {"device_type": "CPU"},
        {"cmps_size": 1},
        {"cmps_tab": "t"},
        {"cmps_tab_offset": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_any_other_field_makes_an_entry_unusable(tmp_path: Path, vm: VarManager, changes: dict[str, object]) -> None:
    vm.assign_var_mem("w", None, NCHW)
    store(tmp_path, vm, root_model(model_graph({})))
    assert load(tmp_path, vm) is not None
    other = make_manager(FakeMemory())
    other.assign_var_mem("w", None, NCHW.replace(**changes))
    assert load(tmp_path, other) is None


def test_user_attributes_and_other_variables_do_not_count(tmp_path: Path, vm: VarManager) -> None:
    from gevar.proto import ge_ir

    vm.assign_var_mem("w", None, NCHW)
    store(tmp_path, vm, root_model(model_graph({})))
    other = make_manager(FakeMemory())
    other.assign_var_mem("w", None, NCHW.replace(attrs={"mine": ge_ir.AttrDef(i=1)}))
    other.assign_var_mem("x", None, ND)
    assert load(tmp_path, other) is not None


def test_a_missing_variable_makes_an_entry_unusable(tmp_path: Path, vm: VarManager) -> None:
    vm.assign_var_mem("w", None, NCHW)
    store(tmp_path, vm, root_model(model_graph({})))
    assert load(tmp_path, make_manager(FakeMemory())) is None


def test_the_first_entry_that_is_right_is_taken(tmp_path: Path) -> None:
    for name, desc in (("one", NCHW), ("two", ND), ("three", ND)):
        vm = make_manager(FakeMemory())
        vm.assign_var_mem("w", None, desc)
        store(tmp_path, vm, root_model(model_graph({}), name=name))
    found = load(tmp_path, vm)
    assert found is not None
    assert found.models[0].model.name == "two"


def test_what_is_stored_of_the_variables(tmp_path: Path, vm: VarManager) -> None:
    two_graphs(tmp_path, vm)
    [second, first] = sorted(tmp_path.glob("*.rdcpkt"))
    before, after = read_var_match_info(first)
    assert (before.cur_descs, before.trans_roads, after.changed_names) == ({}, {}, ())
    assert after.cur_descs["w"].same_description(NCHW)
    before, after = read_var_match_info(second)
    assert before.cur_descs["w"].same_description(NCHW)
    assert after.cur_descs["w"].same_description(NC1HWC0)
    assert (after.trans_roads, after.changed_names, after.staged_descs) == ({"w": ROAD}, ("w",), {"w": NCHW})


@pytest.mark.parametrize("has_road", [True, False])
def test_a_variable_that_has_changed_already_does_not_change_again(
    tmp_path: Path, vm: VarManager, has_road: bool
) -> None:
    """An entry of a second compilation tells of the change of the first one, too: the bytes are converted already."""
    path = store(tmp_path, vm, root_model(model_graph({"w": NC1HWC0})))
    later = NC1HWC0.replace(origin_format=Format.FORMAT_NHWC)
    info = VarMatchInfo(
        desc_info_before_compile=write_desc_info({"w": NC1HWC0}, {"w": ROAD}),
        desc_info_after_compile=write_desc_info({"w": later}, {"w": ROAD}),
    )
    info.desc_info_after_compile.changed_var_names.append("w")
    path.with_suffix(".rdcpkt").write_bytes(info.SerializeToString())
    [row] = json.loads((tmp_path / "k.idx").read_text())["cache_file_list"]
    row["var_desc_file_name"] = path.with_suffix(".rdcpkt").name
    (tmp_path / "k.idx").write_text(json.dumps({"cache_file_list": [row]}))
    ctrl = GraphRebuildStateCtrl()
    vm.assign_var_mem("w", None, NC1HWC0)
    if has_road:
        vm.set_trans_road("w", ROAD)
    assert load(tmp_path, vm, ctrl, graph_id=2) is not None
    assert ctrl.change_counts == ({} if has_road else {"w": 1})
    assert vm.get_changed_graph_id("w") == (None if has_road else 2)
    assert vm.get_trans_road("w") == ROAD


def test_an_entry_whose_variable_went_another_road_is_passed_over(
    tmp_path: Path, vm: VarManager, caplog: pytest.LogCaptureFixture
) -> None:
    """The variable came to the form that the entry starts from by conversions, and changes once."""
    two_graphs(tmp_path, vm)
    other, ctrl = make_manager(FakeMemory()), GraphRebuildStateCtrl()
    assert load(tmp_path, other, ctrl) is not None
    other.set_trans_road("w", (TransNodeInfo("TransData", ND, NCHW),))
    state = state_bytes(other)
    with caplog.at_level(logging.INFO, "gevar.compile"):
        assert load(tmp_path, other, ctrl, graph_id=2, key="k2") is None
    assert "variable 'w' went another road in this session" in caplog.text
    assert (state_bytes(other), ctrl.change_counts) == (state, {})


def test_roads_that_move_nothing_renew_the_description(tmp_path: Path, vm: VarManager) -> None:
    target = ND.replace(format=Format.FORMAT_NCHW, origin_format=Format.FORMAT_NCHW)

    def reformat(vm: VarManager) -> None:
        vm.set_trans_road("w", (TransNodeInfo("ReFormat", ND, target),))
        vm.set_changed_graph_id("w", 1)
        vm.renew_cur_var_desc("w", target)

    vm.assign_var_mem("w", None, ND)
    compile_into(tmp_path, vm, root_model(model_graph({"w": target})), reformat)
    other = make_manager(FakeMemory())
    other.assign_var_mem("w", None, ND)
    assert load(tmp_path, other) is not None
    assert state_bytes(other) == state_bytes(vm)
    assert other.get_var_addr("w", target) == BASE


# --- the loaded model -------------------------------------------------------------------------------------------------


def test_a_loaded_model_has_the_ids_of_session_and_graph(tmp_path: Path, vm: VarManager) -> None:
    graph = model_graph({})
    graph.attrs["_session_graph_id"] = "1_1"
    model = root_model(graph, name="")
    model.models[0].model.attrs["session_id"] = 1
    store(tmp_path, vm, model)
    other, root = make_manager(FakeMemory(), session_id=9), model_graph({}, graph_id=4)
    root.attrs["_session_graph_id"] = "9_4"
    with cache_of(tmp_path, other, root) as cache:
        found = cache.try_load_model_from_cache()
    assert found is not None
    loaded = graph_of(found)
    assert (found.models[0].model.name, loaded.session_id, loaded.graph_id) == ("main", 9, 4)
    assert found.models[0].model.attrs["session_id"] == 9
    assert loaded.attrs["_session_graph_id"] == "9_4"


@pytest.mark.parametrize(
    ("stored", "wanted", "found"),
    [("1_1", "2_2", "2_2"), (None, "2_2", "2_2"), ("-1_1", "2_2", "-1_1"), ("1_1", None, "1_1"), (None, None, None)],
)
def test_session_graph_ids(
    tmp_path: Path, vm: VarManager, stored: str | None, wanted: str | None, found: str | None
) -> None:
    graph, root = model_graph({}), model_graph({})
    for one, text in ((graph, stored), (root, wanted)):
        if text is not None:
            one.attrs["_session_graph_id"] = text
    store(tmp_path, vm, root_model(graph))
    with cache_of(tmp_path, vm, root) as cache:
        model = cache.try_load_model_from_cache()
    assert model is not None
    assert graph_of(model).attrs.get("_session_graph_id") == found


@pytest.mark.parametrize("is_given", [True, False])
def test_external_weights_lie_in_the_weight_directory(tmp_path: Path, vm: VarManager, is_given: bool) -> None:
    graph = model_graph({})
    attrs = {"location": "/far/away/w.bin", "offset": 0, "length": 24}
    graph.add_node(OpDesc("f", "FileConstant", outputs=[NCHW], attrs=attrs))
    (tmp_path / "mine.bin").touch()
    graph.add_node(OpDesc("mine", "FileConstant", outputs=[NCHW], attrs={"location": str(tmp_path / "mine.bin")}))
    graph.add_node(OpDesc("by_id", "FileConstant", outputs=[NCHW], attrs={"file_id": "id"}))
    compile_into(tmp_path, vm, root_model(graph))
    wanted = options(tmp_path) | ({"ge.externalWeightDir": "/weights/here"} if is_given else {})
    with ModelCache(model_graph({}), make_manager(FakeMemory()), GraphRebuildStateCtrl(), wanted) as cache:
        found, folder = cache.try_load_model_from_cache(), cache.weight_dir
    assert found is not None
    assert folder == (Path("/weights/here") if is_given else tmp_path / "weight")
    loaded = graph_of(found)
    assert loaded["f"].op_desc.attrs["location"] == str(folder / "w.bin")
    assert loaded["mine"].op_desc.attrs["location"] == str(tmp_path / "mine.bin")
    assert "location" not in loaded["by_id"].op_desc.attrs


@pytest.mark.parametrize("location", ["w" * 300, "a\0b", "x\n/y\x1b"])
def test_odd_locations_of_external_weights_are_left_to_who_loads_them(
    tmp_path: Path, vm: VarManager, location: str
) -> None:
    graph = model_graph({})
    graph.add_node(OpDesc("f", "FileConstant", outputs=[NCHW], attrs={"location": location}))
    compile_into(tmp_path, vm, root_model(graph))
    found = load(tmp_path, make_manager(FakeMemory()))
    assert found is not None
    assert Path(str(graph_of(found)["f"].op_desc.attrs["location"])).is_relative_to(tmp_path / "weight")


def test_variables_of_batches_are_known_by_what_they_were_cloned_from(tmp_path: Path, vm: VarManager) -> None:
    names = {
        "w": NCHW,
        "w_ascend_mbatch_batch_0": NCHW,
        "w_ascend_mbatch_batch_1": NCHW,
        "_ascend_mbatch_batch_9": NCHW,
    }
    graph = model_graph(names)
    for name in names:
        if name.startswith("w_"):
            vm.set_batch_variables_key_name(name, "w")
    compile_into(tmp_path, vm, root_model(graph))
    other = make_manager(FakeMemory())
    found = load(tmp_path, other)
    assert found is not None
    assert other.has_shared_var_mem_between_batch()
    offsets = {node.name: node.op_desc.output_i[0] for node in variables_of(found)}
    assert [offsets[name] for name in names] == [BASE, BASE, BASE, BASE + 1536]
    assert other.get_allocated_graph_id("w_ascend_mbatch_batch_1") == other.get_allocated_graph_id("w") == 1


def moved_model(tasks: int = 0) -> GeRootModel:
    """A model whose nodes name addresses in variables, and others."""
    graph = model_graph({"a": NCHW, "b": NCHW})
    ref = graph.add_node(OpDesc("b_ref", "Variable", inputs=[NCHW], outputs=[NCHW]))
    ref.op_desc.attrs["ref_var_src_var_name"] = "b"
    ref.op_desc.output_i = [BASE + 1536]
    graph["read_a"].op_desc.input_i = [BASE + 8]
    graph["read_b"].op_desc.input_i = [BASE + 1536]
    graph["read_b"].op_desc.output_i = [512]
    return root_model(graph, tasks=tasks)


def test_addresses_follow_the_variables_of_the_session(tmp_path: Path, vm: VarManager) -> None:
    compile_into(tmp_path, vm, moved_model())
    other = make_manager(FakeMemory())
    other.assign_var_mem("first", None, NCHW)
    found = load(tmp_path, other)
    assert found is not None
    graph = graph_of(found)
    assert [node.op_desc.output_i for node in variables_of(found)] == [(BASE + 1536,), (BASE + 3072,), (BASE + 3072,)]
    assert graph["read_a"].op_desc.input_i == (BASE + 1536 + 8,)
    assert (graph["read_b"].op_desc.input_i, graph["read_b"].op_desc.output_i) == ((BASE + 3072,), (512,))
    other.check()


def test_tasks_with_addresses_of_variables_that_moved_are_not_used(
    tmp_path: Path, vm: VarManager, caplog: pytest.LogCaptureFixture
) -> None:
    compile_into(tmp_path, vm, moved_model(tasks=2))
    assert load(tmp_path, make_manager(FakeMemory())) is not None
    other = make_manager(FakeMemory())
    other.assign_var_mem("first", None, NCHW)
    state = state_bytes(other)
    with caplog.at_level(logging.INFO, "gevar.compile"):
        assert load(tmp_path, other) is None
    assert "variables lie elsewhere" in caplog.text
    assert state_bytes(other) == state


def test_weights_of_a_loaded_model_can_be_read_and_stored_again(tmp_path: Path, vm: VarManager) -> None:
    weights = bytes(range(250)) * 4000
    store(tmp_path, vm, root_model(model_graph({}), weights=weights))
    found = load(tmp_path, vm)
    assert found is not None
    assert found.models[0].partitions[0][1].read() == weights
    store(tmp_path, vm, found, key="again")
    with cache_of(tmp_path, vm, model_graph({}), key="again") as cache:
        again = cache.try_load_model_from_cache()
    assert again is not None
    assert again.models[0].partitions[0][1].read() == weights


def test_a_manager_that_is_not_initialised(tmp_path: Path) -> None:
    with pytest.raises(StateError):
        cache_of(tmp_path, VarManager(1), ComputeGraph("main"))
    assert list(tmp_path.iterdir()) == []
