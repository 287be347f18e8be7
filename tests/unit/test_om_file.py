"""OM files as a whole: static, dynamic, flow, bundle; what is refused, and what stays open."""

import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gevar.errors import ModelFileError, StateError
from gevar.om import OmFile, open_om
from gevar.om.header import Dialect
from gevar.om.om_file import MAX_DEPTH, MAX_MODELS
from gevar.om.partition import PartitionType
from tests.helpers import om_builder as build
from tests.helpers.open_files import open_files

ORDINARY = build.small_partitions()


def opened(data: bytes) -> OmFile:
    return OmFile.from_bytes(data, "f.om")


def bundle(data: bytes) -> OmFile:
    return OmFile.from_bytes(data, "f.om", kind="bundle")


def refusal(data: bytes, **kind: str) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        OmFile.from_bytes(data, "f.om", **kind)  # type: ignore[arg-type]
    return caught.value


# --- static -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "dialect"),
    [(build.g1, Dialect.G1), (build.g2, Dialect.G2), (build.g3, Dialect.G3), (build.mobile, Dialect.M)],
)
def test_one_model_in_every_dialect(make: object, dialect: Dialect) -> None:
    assert callable(make)
    om = opened(make(ORDINARY))
    assert om.dialect == dialect
    (model,) = om.models
    assert (model.name, model.version, model.index) == ("small", 2, 0)
    assert [part.type for part in model.partitions] == [number for number, _ in ORDINARY]
    assert om.partitions == model.partitions
    assert [node.name for node in model.variable_nodes()] == ["v", "w", "table"]
    assert [const.name for const in model.const_nodes()] == ["weight", "table", "bias"]
    assert [bytes(const.data()) for const in model.const_nodes()] == [bytes(range(64)), b"\7\x08\x09", b"\1\2\3\4"]
    assert om.submodels == []
    assert not om.is_bundle


def test_what_only_server_dialects_have() -> None:
    server, mobile = opened(build.g1(ORDINARY)).models[0], opened(build.mobile(ORDINARY)).models[0]
    store, inout = server.kernel_store(), server.inout_info()
    assert store is not None
    assert [item.name for item in store.items] == ["add", "mul"]
    assert inout is not None
    assert [tensor.name for tensor in inout.inputs] == ["data"]
    # the numbers 3 and 8 mean something else there
    assert mobile.kernel_store() is None
    assert mobile.inout_info() is None


def test_attributes_of_a_model() -> None:
    attrs = {
        "number": build.attr_i(-3),
        "text": build.attr_s("1.11"),
        "odd": build.attr_s(b"\xff"),
        "bytes": build.field(7, b"\xff"),
        "ints": build.attr_ints([1, 2]),
        "texts": build.attr_strings(["a", "b"]),
        "flags": build.attr_bools([True, False]),
        "empty": build.attr_ints([]),
        "rows": build.field(14, build.field(1, build.field(1, 2) + build.field(1, 0)) + build.field(1, b"")),
        "real": b"\x25" + struct.pack("<f", 0.5),
        "flag": build.field(5, 1),
        "type": build.field(15, 3),
        "nothing": b"",
    }
    model = opened(build.g3(build.small_partitions(**attrs))).models[0]
    assert {name: model.attr(name) for name in attrs} == {
        "number": -3,
        "text": "1.11",
        "odd": "\udcff",
        "bytes": b"\xff",
        "ints": (1, 2),
        "texts": ("a", "b"),
        "flags": (True, False),
        "empty": (),
        "rows": ((2, 0), ()),
        "real": 0.5,
        "flag": True,
        "type": 3,
        "nothing": None,
    }
    assert model.attr("missing") is None
    assert model.int_attr("number") == -3
    assert model.int_attr("missing") == 0
    assert model.int_attr("missing", 5) == 5
    assert model.int_attr("weight_size") == len(build.WEIGHTS)


def test_partitions_by_type() -> None:
    doubled = [*ORDINARY[:3], (1, b"second"), (5, build.so_store([("a.so", "v", 0, b"1")])), (12, b"tiling")]
    model = opened(build.g3(doubled)).models[0]
    assert model.weights == model.partitions[2]
    assert model.partition(PartitionType.TASK_INFO) is None
    assert model.task_def() is None
    assert model.kernel_store() is None
    assert [item.name for item in model.so_items()] == ["a.so"]
    tiling = model.partition_source(PartitionType.TILING_DATA)
    assert tiling is not None
    assert tiling.read(0, 6, "x") == b"tiling"


def test_task_list() -> None:
    message = opened(build.g3(ORDINARY)).models[0].task_def()
    assert message is not None
    assert (len(message.task), message.memory_size, message.weight_size) == (2, 2048, len(build.WEIGHTS))
    broken = opened(build.g3([*ORDINARY[:2], (2, b"\xff\xff")])).models[0]
    with pytest.raises(ModelFileError) as caught:
        broken.task_def()
    assert caught.value.field == "TASK_INFO"


def test_model_without_model_def() -> None:
    model = opened(build.g3([(1, b"x")])).models[0]
    assert model.weights is not None
    with pytest.raises(ModelFileError, match="model 0 has no MODEL_DEF partition"):
        _ = model.name


def test_opening_does_not_decode() -> None:
    model = opened(build.g3([(0, b"\xff\xff")])).models[0]
    with pytest.raises(ModelFileError) as caught:
        model.variable_nodes()
    assert (caught.value.field, caught.value.offset) == ("MODEL_DEF", 256 + 32)


def test_graphs_are_decoded_once() -> None:
    model = opened(build.g3(ORDINARY)).models[0]
    assert model.graphs is model.graphs
    assert next(model.nodes()) is model.graphs[0].nodes[0]


def test_many_threads_read_one_model() -> None:
    graphs = [build.graph("g", [build.variable(f"v{number}", (2,), number) for number in range(300)])]
    model = opened(build.g3(build.small_partitions(graphs, **build.compression(["_init_value"])))).models[0]
    start = threading.Barrier(8)

    def read(_: int) -> list[tuple[str, int]]:
        start.wait()
        return [(node.name, node.output_descs[0].size) for node in model.variable_nodes()]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, range(8)))
    assert found == [[(f"v{number}", 8) for number in range(300)]] * 8


@pytest.mark.parametrize(("padding", "good"), [(0, True), (31, True), (32, False), (500, False)])
def test_bytes_after_the_last_partition(padding: int, good: bool) -> None:
    # a writer that aligns may end with padding
    data = build.body(ORDINARY) + bytes(padding)
    file = build.header(model_length=len(data)) + data
    if good:
        assert len(opened(file).partitions) == 5
    else:
        assert f"{padding} B are left over after the model" in str(refusal(file))


def test_aligned_partitions() -> None:
    first, second = build.model_def("m", []), b"weights"
    table = build.table([(0, 0, len(first)), (1, 64, len(second))], wide=True)
    data = table + first.ljust(64, b"\0") + second
    model = opened(build.header(model_length=len(data)) + data).models[0]
    source = model.partition_source(PartitionType.WEIGHTS_DATA)
    assert source is not None
    assert source.read(0, 7, "x") == second
    assert model.name == "m"


# --- dynamic ----------------------------------------------------------------------------------------------------------


def sub_model(name: str, stored: str, **table: bytes) -> list[tuple[int, bytes]]:
    value = build.attr_t(build.tensor(build.tensor_desc((4,), build.DT_UINT8), name.encode()))
    graph = build.graph(name, [build.op("c", "Const", {stored: value})])
    return [(0, build.model_def(name, [graph], table)), (1, bytes(8))]


def test_models_of_a_dynamic_file() -> None:
    om = opened(build.dynamic([ORDINARY[:2], sub_model("one", "value"), sub_model("two", "value")]))
    assert [model.name for model in om.models] == ["small", "one", "two"]
    assert [model.index for model in om.models] == [0, 1, 2]
    assert len(om.partitions) == 6
    assert [bytes(model.const_nodes()[0].data()) for model in om.models[1:]] == [b"one", b"two"]


def test_sub_model_uses_own_table_then_the_roots() -> None:
    root = [(0, build.model_def("r", [], build.compression(["zero", "value"])))]
    twice = sub_model("two", "\0\x01", **build.compression(["\0\x02"]))
    once = sub_model("one", "\0\x02")
    plain = sub_model("zero", "value", **build.compression(["x"]))
    om = opened(build.dynamic([root, twice, once, plain]))
    assert [model.attr_name_rounds() for model in om.models] == [0, 2, 1, 0]
    allowed = [model.attr_name_rounds(exact=False) for model in om.models]
    assert all(most >= exact for most, exact in zip(allowed, [0, 2, 1, 0], strict=True))
    assert max(allowed) == 2
    assert [model.is_compressed for model in om.models] == [True, True, False, True]
    assert [bytes(model.const_nodes()[0].data()) for model in om.models[1:]] == [b"two", b"one", b"zero"]


def test_root_table_is_not_applied_twice_to_the_root() -> None:
    stored = sub_model("r", "\0\x01", **build.compression(["\0\x01"]))
    om = opened(build.dynamic([stored, sub_model("s", "value")]))
    with pytest.raises(ModelFileError, match="no table restores it"):
        om.models[0].const_nodes()


def test_dynamic_file_of_one_model() -> None:
    data = build.g3(ORDINARY, is_unknow_model=1)
    assert len(opened(data).models) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_num": 3}, "no room for a table"),
        ({"model_num": 0, "is_unknow_model": 1}, "0 models in a dynamic file"),
        ({"model_num": 2**32 - 1}, f"4294967295 models in a dynamic file, 1 to {MAX_MODELS} are read"),
        ({"model_num": MAX_MODELS}, "no room for a table"),
        ({"model_num": 1, "is_unknow_model": 1}, "left over after 1 models"),
        ({"model_num": 1}, "left over after the model"),
        ({"model_num": 0}, "left over after the model"),
    ],
)
def test_wrong_number_of_models(fields: dict[str, int], words: str) -> None:
    data = build.body(ORDINARY) * 2
    assert words in str(refusal(build.header(model_length=len(data), **fields) + data))


def test_dynamic_file_must_be_used_up_exactly() -> None:
    data = build.body(ORDINARY) * 2 + b"\0"
    error = refusal(build.header(model_length=len(data), model_num=2) + data)
    assert "1 B are left over after 2 models" in str(error)
    assert error.offset == 256 + len(data) - 1


def test_narrow_dynamic_file() -> None:
    data = build.body(ORDINARY, wide=False) * 2
    assert len(opened(build.header(length=len(data), model_num=2) + data).models) == 2


# --- flow -------------------------------------------------------------------------------------------------------------


def test_flow_model() -> None:
    nested = build.g3(ORDINARY)
    data = build.flow(
        build.model_def("root", [build.graph("g", [])]), [("a", "NPU", nested), ("b", "HOST_CPU", build.g1(ORDINARY))]
    )
    om = opened(data)
    assert [model.name for model in om.models] == ["root"]
    assert [(sub.name, sub.model_type) for sub in om.submodels] == [("a", "NPU"), ("b", "HOST_CPU")]
    first, second = (sub.om for sub in om.submodels)
    assert first is not None
    assert second is not None
    assert (first.dialect, second.dialect) == ("G3", "G1")
    assert first.size_bytes == len(nested)
    weight = first.models[0].const_nodes()[0]
    assert weight.data() == bytes(range(64))
    # places count in the outer file, so that a loader can read them there
    assert weight.file_offset is not None
    assert data[weight.file_offset : weight.file_offset + 64] == bytes(range(64))
    assert first.partitions[0].file_offset == 256 + 8 + 24 * 5  # in its own OM


def test_submodel_without_om() -> None:
    parts = [(0, b""), (7, build.message((1, "a"), (2, "NPU"), (9, "a.om"))), (7, build.message((1, "b"), (3, b"")))]
    om = opened(build.g3([*parts, (7, b"")], modeltype=3))
    assert [(sub.name, sub.om, sub.om_data_file_path) for sub in om.submodels] == [
        ("a", None, "a.om"),
        ("b", None, ""),
        ("", None, ""),
    ]


def test_damage_in_a_nested_om_is_found_on_opening() -> None:
    nested = bytearray(build.g3(ORDINARY))
    nested[0] ^= 1
    data = build.flow(b"", [("a", "NPU", bytes(nested))])
    error = refusal(data)
    assert (error.file, error.field) == ("f.om", "magic")
    assert error.offset == data.index(bytes(nested))


@pytest.mark.parametrize("part", [b"\xff", build.field(1, b"\xff"), b"\x0a\x05a"])
def test_damage_in_a_submodel(part: bytes) -> None:
    assert refusal(build.g3([(0, b""), (7, part)], modeltype=3)).field == "FLOW_SUBMODEL"


def nest(depth: int) -> bytes:
    data = build.g3(ORDINARY)
    for _ in range(depth):
        data = build.flow(b"", [("n", "NPU", data)])
    return data


def test_depth_limit() -> None:
    om: OmFile | None = opened(nest(MAX_DEPTH))
    depth = 0
    while om is not None and om.submodels:
        om = om.submodels[0].om
        depth += 1
    assert depth == MAX_DEPTH
    assert f"nested deeper than {MAX_DEPTH} levels" in str(refusal(nest(MAX_DEPTH + 1)))


def test_number_of_nested_files_is_limited_over_all_depths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gevar.om.om_file.MAX_NESTED", 6)
    leaf = build.g3([(1, b"x")])
    two = build.flow(b"", [("a", "NPU", leaf), ("b", "NPU", leaf)])
    assert len(opened(build.flow(b"", [("x", "NPU", two), ("y", "NPU", two)])).submodels) == 2
    three = build.flow(b"", [("x", "NPU", two), ("y", "NPU", two), ("z", "NPU", leaf)])
    assert "more than 6 of them" in str(refusal(three))


def test_wide_and_flow_only_from_version_2_on() -> None:
    # the mobile dialect uses the number of a flow model for an ordinary graph
    assert opened(build.mobile(ORDINARY, modeltype=3)).submodels == []
    assert opened(build.mobile([(7, build.message((3, b"not an OM")))], modeltype=3)).submodels == []


# --- bundle -----------------------------------------------------------------------------------------------------------


def test_bundle() -> None:
    models = [build.g3(build.small_partitions(), name="one"), build.g3(build.small_partitions(), name="two")]
    data = build.bundle(models, variable_size=4608)
    om = bundle(data)
    assert om.is_bundle
    assert om.models == []
    assert om.bundle_variable_size == 4608
    assert [sub.name for sub in om.submodels] == ["one", "two"]
    assert [part.type for part in om.partitions] == [25, 24, 24]
    for sub, model in zip(om.submodels, models, strict=True):
        assert sub.om is not None
        assert sub.om.size_bytes == len(model)
        found = sub.om.models[0].const_nodes()[0]
        assert found.file_offset is not None
        assert data[found.file_offset : found.file_offset + 64] == bytes(range(64))


def test_bundle_is_read_only_when_asked_for() -> None:
    data = build.bundle([build.g3(ORDINARY)])
    assert "open it with kind='bundle'" in str(refusal(data))
    assert "open it with kind='model'" in str(refusal(build.g3(ORDINARY), kind="bundle"))


def test_bundle_with_entries_of_other_types() -> None:
    model = build.g3(ORDINARY)
    parts = [(25, struct.pack("<q", 7)), (99, b"other"), (24, model)]
    body = build.table([(number, 0, len(data)) for number, data in parts], wide=True)
    body += b"".join(data for _, data in parts)
    head = {"magic": 0, "headsize": 0, "version": 0, "modeltype": 5, "model_num": 1, "model_length": 256 + len(body)}
    om = bundle(build.header(**head) + body)  # type: ignore[arg-type]
    assert len(om.submodels) == 1


@pytest.mark.parametrize("parts", [[], [(99, b"other")]], ids=["nothing", "another"])
def test_bundle_that_does_not_state_its_variable_space(parts: list[tuple[int, bytes]]) -> None:
    """The partition of the size is younger than bundles."""
    parts = [*parts, (24, build.g3(ORDINARY, name="one")), (24, build.g3(ORDINARY, name="two"))]
    body = build.table([(number, 0, len(data)) for number, data in parts], wide=True)
    body += b"".join(data for _, data in parts)
    head = {"magic": 0, "headsize": 0, "version": 0, "modeltype": 5, "model_num": 2, "model_length": 256 + len(body)}
    om = bundle(build.header(**head) + body)  # type: ignore[arg-type]
    assert om.is_bundle
    assert om.bundle_variable_size == 0
    assert [sub.name for sub in om.submodels] == ["one", "two"]


@pytest.mark.parametrize(
    ("parts", "model_num", "words"),
    [
        ([(25, bytes(4)), (24, build.g3(ORDINARY))], 1, "4 B, 8 B expected"),
        ([(25, struct.pack("<q", -1)), (24, build.g3(ORDINARY))], 1, "a variable space of -1 B"),
        ([(25, bytes(8)), (24, build.g3(ORDINARY))], 2, "1 models in the table, the header's model_num is 2"),
        ([(25, bytes(8)), (24, build.g3(ORDINARY)), (24, build.g3(ORDINARY))], 1, "2 models in the table"),
        ([(25, bytes(8)), (7, b"x")], 0, "0 models in the table"),
        ([(25, bytes(8)), (24, b"not an OM")], 1, "9 B, shorter than the 256-byte header"),
        ([(25, bytes(8)), (24, build.bundle([build.g3(ORDINARY)]))], 1, "open it with kind='bundle'"),
    ],
)
def test_bundle_that_contradicts(parts: list[tuple[int, bytes]], model_num: int, words: str) -> None:
    body = build.table([(number, 0, len(data)) for number, data in parts], wide=True)
    body += b"".join(data for _, data in parts)
    head = {"magic": 0, "headsize": 0, "version": 0, "modeltype": 5, "model_num": model_num}
    data = build.header(model_length=256 + len(body), **head) + body  # type: ignore[arg-type]
    assert words in str(refusal(data, kind="bundle"))


# --- opening and closing ----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model#ü.om"
    file.write_bytes(build.g3(ORDINARY))
    return file


def test_open_by_path(path: Path) -> None:
    for given in (path, str(path)):
        with open_om(given) as om:
            assert om.path == str(path)
            assert om.size_bytes == path.stat().st_size
            assert [const.name for const in om.models[0].const_nodes()] == ["weight", "table", "bias"]


def test_closing(path: Path) -> None:
    before = open_files()
    with open_om(path) as om:
        decoded = om.models[0]
        assert decoded.name == "small"
        assert open_files() == before + 1
    om.close()
    assert open_files() == before
    assert [node.name for node in decoded.variable_nodes()] == ["v", "w", "table"]  # decoded before
    with pytest.raises(StateError, match="was closed"):
        decoded.inout_info()


@pytest.mark.parametrize(
    "content", [b"", b"text", b"PK\x03\x04", build.g3(ORDINARY)[:-1], build.flow(b"", [("a", "", b"x")])]
)
def test_nothing_stays_open_after_a_refusal(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    before = open_files()
    with pytest.raises(ModelFileError) as caught:
        open_om(path)
    assert caught.value.file == str(path)
    assert open_files() == before


def test_file_that_is_cut_after_opening(path: Path) -> None:
    with open_om(path) as om:
        path.write_bytes(path.read_bytes()[:400])
        with pytest.raises(ModelFileError, match="was cut from"):
            om.models[0].variable_nodes()


def test_a_kind_that_there_is_not(tmp_path: Path) -> None:
    (tmp_path / "m.om").write_bytes(build.g3(ORDINARY))
    for kind in ("", "bundles", None):
        with pytest.raises(ValueError, match="give one of model, bundle"):
            open_om(tmp_path / "m.om", kind=kind)  # type: ignore[arg-type]
