"""What GE checks when it opens a model, and what a careful reader checks beside: each condition, its field, its number.

The numbers are those of GE's loader; where it does not look, there is none.
"""

import struct
from pathlib import Path

import pytest

from gevar import Session, load_model
from gevar.errors import ModelFileError
from gevar.om import OmFile, open_om
from gevar.om.facts import om_facts
from gevar.om.om_file import Kind
from gevar.om.partition import PartitionType
from gevar.status import FAILED, PARAM_INVALID
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, lasting_model
from tests.helpers.runtime import host_runtime

ORDINARY = build.small_partitions()
GOOD = build.g3(ORDINARY)
PATH_INVALID, DATA_SIZE_INVALID, GE_PARAM_INVALID, INVALID_PARAM = 145002, 145006, 145000, 100000
MODEL_PARTITION, WEIGHT_PARTITION, TASK_PARTITION = 545002, 545003, 545004
BODY = 256
GRAPH_G = build.graph("g", [build.op("x", "Data")])


def put(data: bytes, at: int, code: str, value: int) -> bytes:
    return data[:at] + struct.pack(code, value) + data[at + struct.calcsize(code) :]


def entry(number: int) -> int:
    """Place of an entry in a wide table."""
    return BODY + 8 + 24 * number


def read_all(data: bytes, kind: Kind = "model") -> None:
    with OmFile.from_bytes(data, "x.om", kind=kind) as om:
        om_facts(om, deep=True)
        for model in om.models:
            model.model_def()
            model.task_def()


def refusal(data: bytes, kind: Kind = "model") -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read_all(data, kind)
    assert "\n" not in str(caught.value)
    return caught.value


def with_op(op: bytes, **attrs: bytes) -> bytes:
    return build.g3([(0, build.model_def("m", [build.graph("g", [op])], attrs)), (1, build.WEIGHTS)])


# --- what GE checks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["absent.om", "folder", "a/b/c.om", "nul\0.om"])
def test_a_path_that_does_not_open(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError) as caught:
        open_om(tmp_path / name)
    assert (caught.value.status, caught.value.field) == (PATH_INVALID, "file")


@pytest.mark.parametrize("data", [b"", b"I", b"IMO"])
def test_a_file_of_fewer_than_four_bytes(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "short.om").write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        open_om(tmp_path / "short.om")
    assert caught.value.status == DATA_SIZE_INVALID


def test_a_buffer_of_no_bytes() -> None:
    for empty in (b"", bytearray(), memoryview(b"")):
        with pytest.raises(ModelFileError) as caught:
            OmFile.from_bytes(empty)
        assert caught.value.status == INVALID_PARAM


CHECKS = {
    "a header that is cut": (GOOD[:255], "header", DATA_SIZE_INVALID),
    "another magic": (b"X" + GOOD[1:], "magic", DATA_SIZE_INVALID),
    "a declared length that is not the file's": (GOOD + b"\0", "model_length", DATA_SIZE_INVALID),
    "a declared length in the narrow form": (build.g2(ORDINARY)[:-1], "length", DATA_SIZE_INVALID),
    "a bundle in the ordinary way": (build.bundle([GOOD]), "modeltype", PARAM_INVALID),
    "a body without a table": (build.header(model_length=8) + bytes(8), "partition table", DATA_SIZE_INVALID),
    "no partition": (put(GOOD, BODY, "<I", 0), "num", GE_PARAM_INVALID),
    "nine partitions": (put(GOOD, BODY, "<I", 9), "num", GE_PARAM_INVALID),
    "4097 partitions of a flow model": (
        build.g3([(0, b""), (6, b""), *[(7, b"")] * 4095], modeltype=3),
        "num",
        GE_PARAM_INVALID,
    ),
    "a table that ends with the body": (
        build.header(model_length=32) + build.table([(0, 0, 0)], wide=True),
        "num",
        DATA_SIZE_INVALID,
    ),
    "a partition larger than the body": (put(GOOD, entry(0) + 16, "<Q", len(GOOD)), "mem_size", DATA_SIZE_INVALID),
    "partitions that pass the end together": (
        put(GOOD, entry(4) + 16, "<Q", len(ORDINARY[4][1]) + 1),
        "mem_size",
        DATA_SIZE_INVALID,
    ),
    "a size that overflows": (put(GOOD, entry(1) + 16, "<Q", 2**64 - 1), "mem_size", DATA_SIZE_INVALID),
    "bytes behind the last of several models": (
        put(build.dynamic([ORDINARY, ORDINARY]), 156, "<I", 1),
        "partition table",
        FAILED,
    ),
    "a MODEL_DEF that does not decode": (build.g3([(0, b"\x3a\xff\xff"), (1, b"")]), "MODEL_DEF", MODEL_PARTITION),
    "no MODEL_DEF": (build.g3([(1, b"x"), (2, b"")]), "MODEL_DEF", MODEL_PARTITION),
    "a compressed name without a table": (
        with_op(build.op("x", "Data", {"\0\1": build.attr_i(1)})),
        "MODEL_DEF",
        MODEL_PARTITION,
    ),
    "a compressed name beyond the table": (
        with_op(build.op("x", "Data", {"\0\5": build.attr_i(1)}), **build.compression(["value"])),
        "MODEL_DEF",
        MODEL_PARTITION,
    ),
    "names and flags of different length": (
        with_op(build.op("x", "Data", {"\0\1": build.attr_i(1)}), **build.compression(["value"], [True, False])),
        "MODEL_DEF",
        MODEL_PARTITION,
    ),
    "a constant without a weights partition": (
        build.g3([(0, build.model_def("m", [build.graph("g", [build.const("c", 512, 64)])]))]),
        "constant c",
        WEIGHT_PARTITION,
    ),
    "a constant beyond the weights": (with_op(build.const("c", 512, len(build.WEIGHTS))), "constant c", None),
    "a task list that does not decode": (
        build.g3([(0, build.model_def("m", [GRAPH_G])), (2, b"\x0a\xff\xff\xff")]),
        "TASK_INFO",
        TASK_PARTITION,
    ),
}


@pytest.mark.parametrize("what", CHECKS)
def test_what_ge_checks(what: str) -> None:
    data, field, status = CHECKS[what]
    error = refusal(data)
    assert (error.field, error.status) == (field, status)
    assert error.file == "x.om"
    assert error.offset is not None
    assert 0 <= error.offset <= len(data)


def test_one_partition_is_read_as_by_the_load_of_root_models() -> None:
    read_all(build.g3([(0, build.model_def("m", [GRAPH_G]))]))


def test_a_kernel_store_that_is_broken_is_no_error() -> None:
    broken = build.kernel_item("add", b"\x90" * 20)[:-1]
    with OmFile.from_bytes(build.g3([(0, build.model_def("m", [GRAPH_G])), (3, broken)])) as om:
        store = om.models[0].kernel_store()
    assert store is not None
    assert store.fault is not None
    assert store.items == ()


def test_a_model_may_be_loaded_again() -> None:
    with Session(host_runtime()) as session, load_model(GOOD, session=session), load_model(GOOD, session=session):
        pass


# --- what a careful reader checks beside ------------------------------------------------------------------------------

MORE_CHECKS = {
    "another header size": (put(GOOD, 4, "<I", 512), "headsize"),
    "a version that is not known": (put(GOOD, 8, "<I", 0x20000000 + 1000), "version"),
    "an encrypted model": (put(GOOD, 80, "<B", 1), "is_encrypt"),
    "a number of partitions that overflows": (put(GOOD, BODY, "<I", 2**32 - 1), "num"),
    "an offset that leaves the body": (put(GOOD, entry(1) + 8, "<Q", 2**63), "mem_offset"),
    "partitions that overlap": (put(GOOD, entry(1) + 8, "<Q", 0), "mem_offset"),
    "a constant at a negative offset": (with_op(build.const("c", -512, 4)), "constant c"),
    "a constant of negative size": (with_op(build.const("c", 512, -4)), "constant c"),
    "a constant at an offset that overflows": (with_op(build.const("c", 2**63 - 1, 2**63 - 1)), "constant c"),
    "a model_num of 2^32 - 1": (put(build.dynamic([ORDINARY]), 156, "<I", 2**32 - 1), "model_num"),
}


@pytest.mark.parametrize("what", MORE_CHECKS)
def test_what_a_careful_reader_checks(what: str) -> None:
    data, field = MORE_CHECKS[what]
    assert refusal(data).field == field


def test_versions_and_encryption_have_messages_of_their_own() -> None:
    version = str(refusal(MORE_CHECKS["a version that is not known"][0]))
    assert "0x200003e8" in version
    assert "0x20000000 (2.0)" in version
    assert "decrypt it" in str(refusal(MORE_CHECKS["an encrypted model"][0]))


def test_models_in_models_have_a_limit() -> None:
    data = GOOD
    for _ in range(6):
        data = build.flow(build.model_def("r", []), [("a", "NPU", data)])
    assert "nested deeper than 4 levels" in str(refusal(data))


@pytest.mark.parametrize("number", [13, 10, 1], ids=["graph", "named attributes", "list of graphs"])
def test_values_in_values_have_a_limit(number: int) -> None:
    value = build.attr_i(1)
    for _ in range(300):
        if number == 10:
            value = build.field(10, build.field(1, "n") + build.field(2, build.field(1, "a") + build.field(2, value)))
        else:
            graph = build.graph("g", [build.op("x", "Data", {"a": value})])
            value = build.field(13, graph) if number == 13 else build.field(1, build.field(10, graph))
    error = refusal(with_op(build.op("x", "Data", {"a": value})))
    assert (error.field, error.status) == ("MODEL_DEF", MODEL_PARTITION)


@pytest.mark.parametrize(
    "store",
    [b"\xff" * 64, struct.pack("<III", 0x5D776EFD, 0, 0) * 40, struct.pack("<III", 0x5D776EFD, 2**32 - 1, 2**32 - 1)],
)
@pytest.mark.parametrize("number", [3, 4, 5, 8, 26])
def test_walks_of_stores_end(number: int, store: bytes) -> None:
    data = build.g3([(0, build.model_def("m", [GRAPH_G])), (number, store)])
    if number in (5, 8):
        assert refusal(data).field in ("SO_BINS", "MODEL_INOUT_INFO")
    else:
        read_all(data)


def test_constants_are_counted_once_for_each_model() -> None:
    """The root of a dynamic file has the graphs of its sub-models, and they have them again."""
    body = build.graph("body", [build.const("c", 512, 64)])
    call = build.op("call", "PartitionedCall", None, subgraphs=["body"])
    root = [(0, build.model_def("r", [build.graph("root", [call]), body]))]
    sub = [(0, build.model_def("body", [body])), (1, build.WEIGHTS)]
    with OmFile.from_bytes(build.dynamic([root, sub])) as om:
        assert [len(model.const_nodes()) for model in om.models] == [1, 1]
        assert [const.size_bytes for model in om.models for const in model.const_nodes()] == [0, 64]


def test_tasks_and_kernels_are_not_kept() -> None:
    tasks = build.field(7, b"\x11" * (1 << 20))
    kernels = build.kernel_item("k", b"\x22" * (1 << 20))
    variable = build.variable("v", (4,), BASE)
    model_def = build.model_def("m", [build.graph("g", [variable])], {"tasks": tasks})
    with OmFile.from_bytes(build.g3([(0, model_def), (3, kernels)])) as om:
        model = om.models[0]
        assert [node.name for node in model.variable_nodes()] == ["v"]
        assert "tasks" not in model.attrs
        assert model.model_def().ByteSize() < 4096
        store = model.kernel_store()
        assert store is not None
        assert store.items[0].size_bytes == 1 << 20
        assert model.partition(PartitionType.TBE_KERNELS) is not None


def test_a_variable_without_an_output_is_named() -> None:
    data = lasting_model([build.op("v", "Variable", output_i=[BASE])])
    with (
        Session(host_runtime()) as session,
        pytest.raises(ModelFileError, match="node v: a Variable without an output"),
    ):
        load_model(data, session=session)
