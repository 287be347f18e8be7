"""External weights, place holders and bundles in device memory: what lies where, what is shared, what is given back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from gevar import Session, load_model
from gevar.errors import AddressError, LoadError, ModelFileError, StateError, VariableError
from gevar.om import OmFile, open_om
from gevar.session import ExternalWeightAddress
from gevar.session.model_memory import TensorPlaceKind
from gevar.status import ACL_ERROR_GE_PARAM_INVALID, FAILED, PARAM_INVALID
from gevar.types import DeviceId, MemType
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, lasting_model, place_holder, write_model

DEVICE = DeviceId(0)
BYTES = bytes(range(256)) * 8


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


def live_blocks(session: Session) -> int:
    return session.memory_manager.counts.live_blocks


# --- external weights -------------------------------------------------------------------------------------------------


def two_files(folder: Path) -> Path:
    ops = [
        file_constant("a", BASE, 8, location="/made/elsewhere/a.bin", offset=4, length=32),
        file_constant("b", BASE + 2048, 8, location="b.bin"),
        file_constant("again", BASE + 4096, 8, location="a.bin", offset=4, length=32),
        file_constant("longer", BASE + 6144, 16, location="a.bin", offset=4, length=64),
    ]
    return write_model(folder, ops, {"a.bin": BYTES[:100], "b.bin": BYTES[512:544]})


def test_each_slice_has_a_block_of_its_own(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with load_model(path, session=session) as loaded:
        assert loaded.read("a").tobytes() == BYTES[4:36]
        assert loaded.read("b").tobytes() == BYTES[512:544]
        assert loaded.read("longer").tobytes() == BYTES[4:68]
        rows = {row.name: row for row in loaded.rows}
        assert rows["a"].dev_addr == rows["again"].dev_addr
        assert rows["again"].sharing == "shared: same file slice"
        assert len({rows[name].dev_addr for name in ("a", "b", "longer")}) == 3
        assert [rows[name].sharing for name in ("a", "b", "longer")] == ["", "", ""]
        assert loaded.verify(path).differences == ()
        assert loaded.verify(path).tensors == 4
        assert (loaded.statistics.shared_tensors, loaded.statistics.shared_bytes) == (1, 32)
        assert loaded.statistics.tensors == {"FileConstant": 4}
        assert loaded.statistics.device_bytes == session.external_weights.device_bytes == 64 + 64 + 96
    assert live_blocks(session) == session.external_weights.device_bytes == 0


def test_one_file_goes_to_one_block(session: Session, tmp_path: Path) -> None:
    ops = [
        file_constant("a", BASE, 8, location="all.bin", length=32),
        file_constant("b", BASE + 2048, 4, location="all.bin", offset=512, length=16),
    ]
    path = write_model(tmp_path, ops, {"all.bin": BYTES[:1024]})
    with load_model(path, session=session) as loaded:
        a, b = loaded.rows
        assert b.dev_addr == a.dev_addr + 512
        assert (a.sharing, b.sharing) == ("", "shared: block of its file")
        assert loaded.read("b").tobytes() == BYTES[512:528]
        assert live_blocks(session) == 1
        assert loaded.statistics.device_bytes == 1024
        assert loaded.verify(path).differences == ()
    assert live_blocks(session) == 0


def test_edge_33_models_share_external_weights_until_the_last_is_closed(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    first, second = load_model(path, session=session), load_model(path, session=session)
    blocks = live_blocks(session)
    assert [row.dev_addr for row in first.rows] == [row.dev_addr for row in second.rows]
    assert all(row.sharing for row in second.rows)
    assert (second.upload.size_bytes, second.statistics.device_bytes) == (0, 0)
    first.close()
    assert live_blocks(session) == blocks
    assert second.read("a").tobytes() == BYTES[4:36]
    second.close()
    assert live_blocks(session) == 0
    with load_model(path, session=session) as third:  # fresh memory is filled anew
        assert third.read("a").tobytes() == BYTES[4:36]


def test_a_file_that_was_changed_meanwhile_is_not_shared(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with load_model(path, session=session) as first:
        (tmp_path / "weight" / "b.bin").write_bytes(BYTES[:40])
        with load_model(path, session=session) as second:
            assert second.read("b").tobytes() == BYTES[:32]
            assert first.read("b").tobytes() == BYTES[512:544]


def test_an_address_below_0(session: Session, tmp_path: Path) -> None:
    ops = [file_constant("a", -512, 8, location="a.bin")]
    with pytest.raises(VariableError, match="'a': its logical address is -512: give a number from 0"):
        load_model(write_model(tmp_path, ops, {"a.bin": BYTES[:64]}), session=session)
    assert live_blocks(session) == 0


def test_two_weights_at_one_logical_address(session: Session, tmp_path: Path) -> None:
    """The map that operators find their memory by has one place for an address; GE keeps the last."""
    same = file_constant("a", BASE, 8, location="a.bin"), file_constant("b", BASE, 8, location="a.bin")
    for number, (more, words) in enumerate(
        [
            (
                file_constant("c", BASE, 8, location="a.bin", offset=32),
                "from 32 on of .*a.bin .*where a has .*from 0 on",
            ),
            (file_constant("c", BASE, 8, location="b.bin"), "from 0 on of .*b.bin .*where a has .*a.bin"),
        ]
    ):
        path = write_model(tmp_path / str(number), [*same, more], {"a.bin": BYTES[:64], "b.bin": BYTES[64:128]})
        with pytest.raises(VariableError, match=f"variable 'c'.*{words}") as caught:
            load_model(path, session=session)
        assert caught.value.status == PARAM_INVALID
        assert live_blocks(session) == 0
    with load_model(write_model(tmp_path, same, {"a.bin": BYTES[:64]}), session=session) as loaded:
        assert {row.dev_addr for row in loaded.rows} == {loaded.tensor("a").dev_addr}


def test_slices_of_one_place_at_one_logical_address(session: Session, tmp_path: Path) -> None:
    """GE's compiler gives weights of one file and offset one address, whatever their lengths: one block has all."""
    ops = [
        file_constant("long", BASE, 16, location="a.bin", offset=4, length=64),
        file_constant("short", BASE, 4, location="a.bin", offset=4, length=16),
        file_constant("none", BASE, 0, location="a.bin", size=0),
        file_constant("far", BASE + 2048, 4, location="b.bin", length=16),
    ]
    path = write_model(tmp_path, ops, {"a.bin": BYTES[:100], "b.bin": BYTES[64:128]})
    with load_model(path, session=session) as loaded:
        assert (
            loaded.tensor("short").dev_addr == loaded.tensor("long").dev_addr == loaded.models[0].file_constants[BASE]
        )
        assert loaded.read("short").tobytes() == BYTES[4:20]
        assert loaded.read("long").tobytes() == BYTES[4:68]
        assert loaded.statistics.device_bytes == 96 + 64
        assert loaded.verify(path).differences == ()
    assert live_blocks(session) == 0


def test_another_device_has_blocks_of_its_own(runtime: Runtime, session: Session, tmp_path: Path) -> None:
    if runtime.device_count() < 2:
        pytest.skip("one device only")
    path = two_files(tmp_path)
    with load_model(path, session=session) as one, load_model(path, session=session, device_id=1) as two:
        assert not {row.dev_addr for row in one.rows} & {row.dev_addr for row in two.rows}
        assert two.read("a").tobytes() == BYTES[4:36]


def test_a_weight_that_the_session_has_as_a_variable(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with open_om(path) as om:
        node = om.models[0].variable_nodes()[1]
        session.var_manager.init(0, session.id, DEVICE, 0)
        session.var_manager.set_mem_manager(session.memory_manager)
        addr = session.var_manager.assign_var_mem("b", None, node.output_descs[0], MemType.RT_MEMORY_HBM)
    with load_model(path, session=session) as loaded:
        row = loaded.tensor("b")
        assert (row.logic_addr, row.sharing) == (addr, "shared: variable of the session")
        assert session.var_manager["b"].read().tobytes() == BYTES[512:544]


def test_memory_of_the_caller_s_comes_before_the_file(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    (tmp_path / "weight" / "b.bin").unlink()
    memory = session.memory_manager
    block = memory.malloc_memory(MemType.RT_MEMORY_HBM, "of the caller", 64, DEVICE)
    memory.memcpy_in(block, 64, BYTES[:64], DEVICE)
    with load_model(path, session=session, external_weights={"b.bin": ExternalWeightAddress(block, 64)}) as loaded:
        assert loaded.tensor("b").dev_addr == block
        assert loaded.read("b").tobytes() == BYTES[:32]
        assert loaded.verify(path).tensors == 3
    assert live_blocks(session) == 1
    two_files(tmp_path)
    with pytest.raises(VariableError, match="do not lie in the 32 B that are given") as caught:
        load_model(path, session=session, external_weights={"a.bin": ExternalWeightAddress(block, 32)})
    assert caught.value.status == ACL_ERROR_GE_PARAM_INVALID
    memory.free_memory(MemType.RT_MEMORY_HBM, block, DEVICE)


@pytest.mark.parametrize("name", ["", "weight/a.bin", "/a.bin"])
def test_memory_for_a_name_that_no_file_has(session: Session, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"weight file '{name}': give the name of a file without its directory"):
        load_model(two_files(tmp_path), session=session, external_weights={name: ExternalWeightAddress(1 << 40, 32)})


@pytest.mark.parametrize(("addr", "size"), [(0, 32), (1 << 40, 0), (1 << 40, 33), (-1, 32)])
def test_memory_that_cannot_be(session: Session, tmp_path: Path, addr: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"weight file 'a\.bin'"):
        load_model(two_files(tmp_path), session=session, external_weights={"a.bin": ExternalWeightAddress(addr, size)})


def test_a_weight_directory_for_bytes(session: Session, tmp_path: Path) -> None:
    data = two_files(tmp_path).read_bytes()
    with load_model(data, session=session, weight_dir=tmp_path / "weight") as loaded:
        assert loaded.read("a").tobytes() == BYTES[4:36]
    with pytest.raises(LoadError, match="give weight_dir"):
        load_model(data, session=session)
    assert live_blocks(session) == 0


def test_a_weight_directory_without_weights_is_refused(session: Session, tmp_path: Path) -> None:
    data = lasting_model([build.variable("v", (4,), BASE)])
    with pytest.raises(ModelFileError, match="leave weight_dir out"):
        load_model(data, session=session, weight_dir=tmp_path)


def test_files_by_id(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "far.bin"
    file.write_bytes(BYTES[:32])
    data = lasting_model([file_constant("w", BASE, 8, file_id=build.attr_s("one"))])
    text = f'{{"value_bins": [{{"value_bin_id": "one", "value_bin_file": "{file}"}}]}}'
    with Session(runtime, options={"ge.exec.value_bins": text}) as session, load_model(data, session=session) as loaded:
        assert loaded.read("w").tobytes() == BYTES[:32]
    with Session(runtime) as session, pytest.raises(VariableError, match="file_id 'one'"):
        load_model(data, session=session)


def test_files_by_id_that_the_caller_names(runtime: Runtime, tmp_path: Path) -> None:
    """They come in place of the session's option, which is not read then."""
    (tmp_path / "far.bin").write_bytes(BYTES[:32])
    data = lasting_model([file_constant("w", BASE, 8, file_id=build.attr_s("one"))])
    with Session(runtime, options={"ge.exec.value_bins": "{"}) as session:
        with load_model(data, session=session, paths_by_id={"one": str(tmp_path / "far.bin")}) as loaded:
            assert loaded.read("w").tobytes() == BYTES[:32]
        with pytest.raises(VariableError, match="file_id 'one'"):
            load_model(data, session=session, paths_by_id={})
        with pytest.raises(ValueError, match="is no JSON"):
            load_model(data, session=session)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"offset": 80, "length": 32}, LoadError, "there are 100 B"),
        ({"length": 400}, VariableError, "larger than its output"),
        ({"offset": -4}, VariableError, "give numbers from 0"),
        ({"location": "../../secret.bin"}, LoadError, "leads out"),
        ({"location": "none.bin"}, LoadError, "cannot be opened"),
    ],
)
def test_a_weight_that_cannot_be_read_leaves_nothing(
    session: Session, tmp_path: Path, change: dict[str, int | str], error: type[Exception], words: str
) -> None:
    ops = [
        file_constant("good", BASE, 8, location="b.bin", length=32),
        file_constant("w", BASE + 2048, 8, **{"location": "a.bin", **change}),
    ]
    path = write_model(tmp_path, ops, {"a.bin": BYTES[:100], "b.bin": BYTES[:32]})
    with pytest.raises(error, match=words) as caught:
        load_model(path, session=session)
    assert "w" in str(caught.value)
    assert live_blocks(session) == session.external_weights.device_bytes == 0


def test_a_combined_file_that_is_too_short(session: Session, tmp_path: Path) -> None:
    ops = [file_constant("w", BASE, 8, location="a.bin", offset=80, length=16)]
    with pytest.raises(VariableError, match="32 B at 80 do not lie in the 100 B") as caught:
        load_model(write_model(tmp_path, ops, {"a.bin": BYTES[:100]}), session=session)
    assert caught.value.status == PARAM_INVALID


def test_a_weight_without_a_place(session: Session) -> None:
    desc = build.tensor_desc((4,), size=64)
    for offsets in ([], [BASE, BASE + 512]):
        op = build.op("w", "FileConstant", {"location": build.attr_s("w.bin")}, [desc], output_i=offsets)
        with pytest.raises(VariableError, match=f"{len(offsets)} output offsets") as caught:
            load_model(lasting_model([op]), session=session)
        assert caught.value.status == PARAM_INVALID


def test_a_weight_is_not_found_by_the_working_directory(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = two_files(tmp_path)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with load_model(path, session=session) as loaded:
        assert loaded.read("b").tobytes() == BYTES[512:544]


# --- place holders ----------------------------------------------------------------------------------------------------


def test_a_place_holder_stands_for_memory_of_the_caller_s(session: Session) -> None:
    memory = session.memory_manager
    block = memory.malloc_memory(MemType.RT_MEMORY_HBM, "of the caller", 64, DEVICE)
    memory.memcpy_in(block, 64, BYTES[:64], DEVICE)
    ops = [place_holder("p", BASE, 16, block), build.variable("v", (4,), BASE + 2048)]
    with load_model(lasting_model(ops), session=session) as loaded:
        row = loaded.tensor("p")
        assert (row.dev_addr, row.logic_addr, row.note) == (block, BASE, "memory of the caller")
        assert loaded.read("p").tobytes() == BYTES[:64]
        loaded.write("p", BYTES[64:128])
        assert not session.var_manager.is_var_exist("p")  # as in GE: only what compiled the model knows it
    got = np.empty(64, np.uint8)
    memory.memcpy_out(got, block, DEVICE)
    assert got.tobytes() == BYTES[64:128]
    memory.free_memory(MemType.RT_MEMORY_HBM, block, DEVICE)


@pytest.mark.parametrize(
    ("attrs", "words"), [({"placement": 0}, "placement is 0"), ({"addr": 0}, "addr is 0"), ({"size": 3}, "size is 3 B")]
)
def test_a_place_holder_that_is_not_as_it_should_be(session: Session, attrs: dict[str, int], words: str) -> None:
    wrong = {name: build.attr_i(value) for name, value in attrs.items()}
    ops = [place_holder("p", BASE, 16, 1 << 44, **wrong)]
    with load_model(lasting_model(ops), session=session) as loaded:
        assert words in loaded.tensor("p").note
        with pytest.raises(VariableError, match=words):
            loaded.read("p")


# --- variables --------------------------------------------------------------------------------------------------------


def test_a_model_without_variables_does_not_settle_the_space(session: Session) -> None:
    """Base and size are those of the first model that has something lasting."""
    data = build.op("x", "Data", None, [build.tensor_desc((1,))])
    with (
        load_model(lasting_model([data], base=1 << 40), session=session),
        load_model(lasting_model([build.variable("v", (4,), BASE)]), session=session) as loaded,
    ):
        assert loaded.tensor("v").logic_addr == BASE
    assert session.var_manager.get_var_mem_logic_base() == BASE


def test_the_reasons_of_sharing(session: Session) -> None:
    ops = [
        build.inline_const("one", b"abcd", address=BASE),
        build.inline_const("two", b"abcd", address=BASE),
        build.variable("v", (4,), BASE + 2048),
        build.const("c", 512, 64),
        build.const("d", 512, 64),
    ]
    data = lasting_model(ops, weights=build.WEIGHTS)
    with load_model(data, session=session) as first, load_model(data, session=session) as second:
        assert {row.name: row.sharing for row in first.rows} == {
            "one": "",
            "two": "shared: equal weight",
            "v": "",
            "c": "",
            "d": "shared: same place in the weights",
        }
        sharing = {row.name: row.sharing for row in second.rows}
        assert [sharing[name] for name in ("one", "two", "v")] == ["shared: variable of the session"] * 3
        assert second.upload.size_bytes == len(build.WEIGHTS)  # weights belong to a model, constants to the session


@pytest.mark.parametrize("offset", [-512, 1 << 20, (1 << 20) - 8])
def test_a_variable_outside_the_space(session: Session, offset: int) -> None:
    data = lasting_model([build.variable("good", (4,), BASE), build.variable("v", (4,), BASE + offset)])
    with pytest.raises(VariableError, match="v") as caught:
        load_model(data, session=session)
    assert caught.value.status == PARAM_INVALID
    assert session.var_manager.is_var_exist("good")
    assert not session.var_manager.is_var_exist("v")
    assert live_blocks(session) == 0


def test_memory_of_the_caller_s_for_variables(session: Session) -> None:
    memory = session.memory_manager
    block = memory.malloc_memory(MemType.RT_MEMORY_HBM, "of the caller", 8192, DEVICE)
    init = build.tensor(build.tensor_desc((4,), 1), BYTES[:16])
    ops = [build.variable("v", (4,), BASE + 512, {"_init_value": build.attr_t(init)})]
    session.rt_session.set_external_var(block, 8192)
    with load_model(lasting_model(ops), session=session) as loaded:
        assert loaded.tensor("v").dev_addr == block + 512
        assert loaded.read("v").tobytes() == BYTES[:16]
    memory.free_memory(MemType.RT_MEMORY_HBM, block, DEVICE)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("task_gen_variable_addr", build.attr_i(-1), "variable_base is -1"),
        ("variable_size", build.attr_i(-(1 << 63)), "variable_size is"),
        ("memory_size", build.attr_i(-5), "memory_size is -5"),
        ("sub_memory_info", build.field(14, build.field(1, b"\x0a\x03\x02\x00\x40")), "pieces of 64 B"),
        ("sub_memory_info", build.field(14, build.field(1, b"\x0a\x01\x02")), "fewer than 3"),
    ],
)
def test_sizes_that_contradict_each_other(session: Session, name: str, value: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        load_model(lasting_model([build.variable("v", (4,), BASE)], attrs={name: value}), session=session)
    assert caught.value.status == FAILED
    assert not session.var_manager.is_var_resource_inited


# --- bundles ----------------------------------------------------------------------------------------------------------


def test_a_bundle_shares_one_variable_space(session: Session, tmp_path: Path) -> None:
    models = [
        lasting_model([build.variable("shared", (4,), BASE), build.variable("one", (4,), BASE + 2048)], name="m1"),
        lasting_model([build.variable("shared", (4,), BASE), build.variable("two", (4,), BASE + 4096)], name="m2"),
    ]
    path = tmp_path / "bundle.om"
    path.write_bytes(build.bundle(models, variable_size=6144))
    with load_model(path, kind="bundle", session=session) as loaded:
        assert [(row.name, row.sharing) for row in loaded.rows] == [
            ("shared", ""),
            ("one", ""),
            ("shared", "shared: variable of the session"),
            ("two", ""),
        ]
        loaded.write("shared", BYTES[:16])
        assert session.var_manager["shared"].read().tobytes() == BYTES[:16]
        assert [memory.name for memory in loaded.models] == ["m1", "m2"]
    with pytest.raises(ModelFileError, match="kind='bundle'") as caught:
        load_model(path, session=session)
    assert caught.value.status == PARAM_INVALID


@pytest.mark.parametrize(
    "other",
    [
        build.variable("shared", (4,), BASE + 512),
        build.variable("shared", (2, 2), BASE),
        build.op("shared", "Variable", None, [build.tensor_desc((4,), build.DT_INT32, size=16)], output_i=[BASE]),
        build.op(
            "shared",
            "Variable",
            {"_variable_placement": build.attr_s("host")},
            [build.tensor_desc((4,), size=16)],
            output_i=[BASE],
        ),
    ],
    ids=["place", "shape", "type", "host"],
)
def test_models_of_a_bundle_that_contradict_each_other(session: Session, other: bytes) -> None:
    new = build.variable("new", (4,), BASE + 8192)  # GE stops looking at the first variable that is new
    models = [lasting_model([build.variable("shared", (4,), BASE)]), lasting_model([new, other])]
    with pytest.raises(ModelFileError, match="variable shared"):
        load_model(build.bundle(models), kind="bundle", session=session)
    assert not session.var_manager.is_var_resource_inited
    assert live_blocks(session) == 0


def test_memory_of_the_caller_s_that_is_too_small_for_a_bundle(session: Session) -> None:
    session.rt_session.set_external_var(1 << 44, 6143)
    data = build.bundle([lasting_model([build.variable("v", (4,), BASE)])], variable_size=6144)
    with pytest.raises(ValueError, match="6143 B are given for variables, <bytes> needs 6144 B"):
        load_model(data, kind="bundle", session=session)


# --- where operators find their tensors -------------------------------------------------------------------------------


def test_places_of_an_operator(session: Session, tmp_path: Path) -> None:
    inner = build.tensor_desc((2,), size=64, attrs={"_inner_offset": build.attr_i(8)})
    descs = [build.tensor_desc((4,), size=64)] * 2 + [inner, build.tensor_desc((4,), data_offset=1024), inner]
    op = build.op(
        "op",
        "Add",
        None,
        [build.tensor_desc((4,), size=64)],
        descs,
        output_i=[96],
        producers=["x:0", "v:0", "v:0", "c:0", "", "w:0", "y:-1"],
        input_i=[32, BASE, BASE + 8, 0, BASE + 2048],
        is_input_const=[False, False, False, True],
    )
    ops = [build.variable("v", (4,), BASE), file_constant("w", BASE + 2048, 4, location="w.bin", length=16), op]
    attrs = {"memory_size": build.attr_i(128), "weight_size": build.attr_i(len(build.WEIGHTS))}
    (tmp_path / "w.bin").write_bytes(BYTES[:16])
    data = lasting_model(ops, weights=build.WEIGHTS, attrs=attrs)
    with (
        OmFile.from_bytes(data) as om,
        load_model(data, session=session, weight_dir=tmp_path) as loaded,
    ):
        node, memory = om.models[0].graphs[0].nodes[-1], loaded.models[0]
        places = memory.input_places(node, session.var_manager, DEVICE)
        (out,) = memory.output_places(node, session.var_manager, DEVICE)
        v = loaded.tensor("v")
        assert [(str(one.kind), one.logic_addr, one.offset) for one in places] == [
            ("memory", 0, 32),
            ("variable", BASE, 0),
            ("variable", BASE, 8),
            ("weights", 0, 1024),
        ]
        assert [one.dev_addr for one in places] == [None, v.dev_addr, v.dev_addr + 8, memory.weights + 1024]
        assert (out.kind, out.offset) == (TensorPlaceKind.MEMORY, 96)


@pytest.mark.parametrize(
    ("offset", "data_offset", "words"),
    [(BASE + 512, 0, "no variable starts there"), (128, 0, "work memory has 128 B"), (-1, 0, "-1"), (0, 2048, "leave")],
)
def test_places_that_are_nowhere(session: Session, offset: int, data_offset: int, words: str) -> None:
    descs = [build.tensor_desc((4,), size=64, data_offset=data_offset)]
    is_const = [bool(data_offset)]
    op = build.op("op", "Add", None, [], descs, producers=["x:0"], input_i=[offset], is_input_const=is_const)
    attrs = {"memory_size": build.attr_i(128), "weight_size": build.attr_i(2048)}
    data = lasting_model([build.variable("v", (4,), BASE), op], attrs=attrs)
    with OmFile.from_bytes(data) as om, load_model(data, session=session) as loaded:
        node = om.models[0].graphs[0].nodes[-1]
        with pytest.raises(AddressError, match=words) as caught:
            loaded.models[0].input_places(node, session.var_manager, DEVICE)
        assert caught.value.status == PARAM_INVALID


def ready(session: Session, name: str, path: Path) -> bool:
    with open_om(path) as om:
        node = next(node for node in om.models[0].variable_nodes() if node.name == name)
        return session.var_manager.is_var_ready(name, node.output_descs[0], DEVICE)


def test_weights_are_ready_as_long_as_a_model_has_them(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with load_model(path, session=session):
        with load_model(path, session=session):
            assert all(ready(session, name, path) for name in ("a", "b", "again", "longer"))
        assert ready(session, "a", path)
        session.var_manager.free_var_memory()  # their memory is not that of variables
        assert ready(session, "a", path)
    assert not ready(session, "a", path)
    (tmp_path / "weight" / "b.bin").unlink()
    with pytest.raises(LoadError):
        load_model(path, session=session)
    assert not ready(session, "a", path)


def test_a_weight_that_is_a_variable_is_ready_as_long_as_its_memory_is_there(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with open_om(path) as om:
        node = om.models[0].variable_nodes()[1]
        session.var_manager.init(0, session.id, DEVICE, 0)
        session.var_manager.set_mem_manager(session.memory_manager)
        session.var_manager.assign_var_mem("b", None, node.output_descs[0], MemType.RT_MEMORY_HBM)
    with load_model(path, session=session):
        assert ready(session, "b", path)
    assert ready(session, "b", path)
    with load_model(path, session=session) as again:  # nothing is brought for it again
        assert session.var_manager["b"].read().tobytes() == BYTES[512:544]
        assert again.upload.size_bytes == 100  # the other file, which has all the other weights
    session.var_manager.free_var_memory()
    assert not ready(session, "b", path)
    with load_model(path, session=session):  # fresh memory is filled anew
        assert session.var_manager["b"].read().tobytes() == BYTES[512:544]


def test_a_weight_that_is_written_is_nobody_elses(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with load_model(path, session=session) as first:
        second = load_model(path, session=session)
        with second, pytest.raises(StateError, match=r"b of .*share these weights"):
            second.write("b", bytes(32))
        first.write("a", bytes(32))
        assert not first.read("again").any()  # the model itself says that both are one slice
        with load_model(path, session=session) as third:
            assert third.read("a").tobytes() == BYTES[4:36]
            assert third.verify(path).differences == ()
            assert third.tensor("a").sharing == ""
            assert third.tensor("b").sharing == "shared: same file slice"
    assert live_blocks(session) == 0


def test_a_weight_never_runs_over_a_smaller_variable_of_its_name(session: Session, tmp_path: Path) -> None:
    path = two_files(tmp_path)
    with open_om(path) as om:
        desc = om.models[0].variable_nodes()[1].output_descs[0]
    vm = session.var_manager
    vm.init(0, session.id, DEVICE, 0)
    vm.set_mem_manager(session.memory_manager)
    vm.assign_var_mem("b", None, desc.replace(shape=(2,), size=8), MemType.RT_MEMORY_HBM)
    with pytest.raises(VariableError, match=r"b.*its 32 B do not fit the variable of this name"):
        load_model(path, session=session)
    assert session.external_weights.device_bytes == 0


def test_a_constant_never_runs_over_a_smaller_variable_of_its_name(session: Session) -> None:
    k = build.op("k", "Variable", None, [build.tensor_desc((8,), build.DT_UINT8, size=8)], output_i=[BASE])
    small = lasting_model([k, build.variable("next", (4,), BASE + 1536)])
    large = lasting_model([build.inline_const("k", BYTES[:64], address=BASE)])
    with load_model(small, session=session) as first:
        first.write("next", BYTES[:16])
        with pytest.raises(VariableError, match="do not fit the variable of this name") as caught:
            load_model(large, session=session)
        assert caught.value.status == PARAM_INVALID
        assert first.read("next").tobytes() == BYTES[:16]
