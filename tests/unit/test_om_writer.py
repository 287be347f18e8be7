"""The file as a whole: header, table, partitions, model attributes; what is refused; what a failure leaves."""

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gevar.om import open_om
from gevar.om.builder import OmBuilder
from gevar.om.model_spec import NodeSpec, OmModelSpec
from gevar.om.weights_layout import SparseBytes
from gevar.om.writer import write_om
from gevar.types import DataType, Format, LogicAddr, TensorDesc
from tests.helpers.om_bytes import TakenApart, inout_tensors, take_apart

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (1, 3, 5, 7))
BYTES = TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (40,))


def small_model(name: str = "small") -> OmBuilder:
    builder = OmBuilder(name)
    x = builder.data("x", ROW)
    w = builder.const("w", np.arange(105, dtype=np.float32))
    v = builder.variable("v", ROW, init=np.ones((1, 3, 5, 7), np.float32))
    y = builder.node("Mul", "y", [x, w, v], [ROW, BYTES])
    builder.output(y, "logits")
    builder.output((y, 1))
    builder.kernel("te_mul", b"binary")
    return builder


def written(builder: OmBuilder, folder: Path) -> TakenApart:
    path = folder / "model.om"
    builder.write(path)
    return take_apart(path)


def test_header(tmp_path: Path) -> None:
    om = written(small_model(), tmp_path)
    assert om.header[:4] == b"IMOD"
    assert (om.u32(4), om.u32(8), om.u32(76)) == (256, 0x20000000, 0)
    assert om.header[12:76] == bytes(64)
    assert om.header[80:84] == bytes(4)
    assert om.header[84:116] == b"small".ljust(32, b"\0")
    assert (om.u32(152), om.u32(156)) == (2, 1)
    assert om.header[160:180] == b"1.11.z.0".ljust(20, b"\0")
    assert om.u64(184) == (tmp_path / "model.om").stat().st_size - 256
    assert om.header[192:] == bytes(64)


def test_partitions_follow_each_other_in_the_order_of_ge(tmp_path: Path) -> None:
    om = written(small_model(), tmp_path)
    assert [kind for kind, _, _ in om.table] == [8, 0, 1, 3, 2]
    ends = [0]
    for _, mem_offset, mem_size in om.table:
        assert mem_offset == ends[-1]
        ends.append(mem_offset + mem_size)


def test_a_partition_without_bytes_is_left_out(tmp_path: Path) -> None:
    builder = OmBuilder("bare")
    builder.constant("c", np.zeros(3, np.int8))
    om = written(builder, tmp_path)
    assert [kind for kind, _, _ in om.table] == [0, 1, 2]
    assert om.weights == bytes(1024)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("n" * 31, b"n" * 31),
        ("n" * 40, b"n" * 31),
        ("é" * 20, "é".encode() * 15),
    ],
)
def test_a_long_name_is_cut_in_the_header_only(tmp_path: Path, name: str, stored: bytes) -> None:
    om = written(small_model(name), tmp_path)
    assert om.header[84:116] == stored.ljust(32, b"\0")
    assert om.model.name == name
    with open_om(tmp_path / "model.om") as read:
        assert read.models[0].name == name


def test_model_attributes(tmp_path: Path) -> None:
    om = written(small_model(), tmp_path)
    sizes = {kind: size for kind, _, size in om.table}
    assert om.number("weight_size") == sizes[1] == 1024
    assert list(om.model.attr["om_info_list"].list.i) == [sizes[1], sizes[3], 0, sizes[2], 0]
    assert om.number("variable_size") == 5 << 30
    assert om.number("task_gen_variable_addr") == 128 << 30
    assert om.number("task_gen_base_addr") == 2 << 30
    assert om.number("task_gen_weight_addr") == (2 << 30) + om.number("memory_size")
    assert om.model.attr["target_type"].s == b"MINI"
    assert list(om.model.attr["attr_model_out_nodes_name"].list.s) == [b"y:0:logits", b"y:1"]
    assert (om.model.version, om.model.custom_version) == (2, "1.11.z.0")
    assert (om.tasks.version, om.tasks.memory_size, om.tasks.weight_size) == ("1.0", om.number("memory_size"), 1024)


def test_variable_size_is_0_without_variables(tmp_path: Path) -> None:
    builder = OmBuilder("plain")
    builder.const("w", np.zeros(3, np.int8))
    assert written(builder, tmp_path).number("variable_size") == 0


def test_base_and_room_of_variables_are_the_models(tmp_path: Path) -> None:
    builder = OmBuilder("own", logic_base=LogicAddr(32 << 30), variable_size_bytes=4096)
    builder.variable("v", ROW)
    om = written(builder, tmp_path)
    assert om.number("task_gen_variable_addr") == om.ops["v"].output_i[0] == 32 << 30
    assert om.number("variable_size") == 4096


def test_inputs_and_outputs_are_listed(tmp_path: Path) -> None:
    om = written(small_model(), tmp_path)
    assert inout_tensors(om.parts["inout"]) == {
        0: [("x", 420, 0, 0, (1, 3, 5, 7), (1, 3, 5, 7))],
        1: [("y:0:logits", 420, 0, 0, (1, 3, 5, 7), (1, 3, 5, 7)), ("y:1", 40, 2, 4, (40,), (40,))],
    }


def test_kernels(tmp_path: Path) -> None:
    builder = small_model()
    builder.kernel("te_ädd", b"")
    store = written(builder, tmp_path).parts["kernels"]
    magic = bytes.fromhex("fd6e775d")
    first = magic + bytes([6, 0, 0, 0, 6, 0, 0, 0]) + b"te_mulbinary"
    assert store == first + magic + bytes([7, 0, 0, 0, 0, 0, 0, 0]) + "te_ädd".encode()


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    small_model().write(tmp_path / "a.om")
    small_model().write(tmp_path / "b.om")
    assert (tmp_path / "a.om").read_bytes() == (tmp_path / "b.om").read_bytes()


def test_the_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = "import sys; from tests.unit.test_om_writer import small_model; small_model().write(sys.argv[1])"
    digests = set()
    for seed in ("1", "2", "3"):
        path = tmp_path / f"{seed}.om"
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_an_existing_file_is_replaced_and_no_draft_is_left(tmp_path: Path) -> None:
    path = tmp_path / "model.om"
    path.write_bytes(b"old")
    small_model().write(path)
    assert take_apart(path).model.name == "small"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.om"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.om"
    path.write_bytes(b"old")

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        small_model().write(path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.om"]


def test_a_failure_in_the_middle_of_the_file_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = memoryview(bytearray(40))
    node = NodeSpec("w", "Const", outputs=(BYTES.replace(size=96),), data=view)
    open_file = os.fdopen

    def open_and_release(file: int, mode: str) -> object:
        view.release()  # so that writing it fails
        return open_file(file, mode)

    monkeypatch.setattr(os, "fdopen", open_and_release)
    with pytest.raises(ValueError, match="released"):
        write_om(tmp_path / "model.om", OmModelSpec("broken", (node,)))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        small_model().write(tmp_path / "missing" / "model.om")


def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model.om"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        small_model().write(folder)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.om"]


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "model.om"
    path.touch(mode=0o644)
    small_model().write(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_writers_of_one_path_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "model.om"
    threads = [threading.Thread(target=small_model(f"model_{i}").write, args=(path,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert take_apart(path).model.name.startswith("model_")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.om"]


def test_sparse_data_take_no_room(tmp_path: Path) -> None:
    builder = OmBuilder("sparse")
    large = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (8 << 20,))
    builder.const("before", np.full(10, 1, np.uint8))
    builder.const("hole", SparseBytes(32 << 20), large)
    builder.const("hole_again", SparseBytes(32 << 20), large)
    builder.const("after", np.full(10, 2, np.uint8))
    path = tmp_path / "sparse.om"
    builder.write(path)
    status = path.stat()
    assert status.st_size > 64 << 20
    assert status.st_blocks * 512 < 1 << 20
    with open_om(path) as om:
        consts = {const.name: const for const in om.models[0].const_nodes()}
        assert [consts[name].offset for name in ("before", "hole", "hole_again", "after")] == [
            512,
            1024,
            1024 + (32 << 20),
            1024 + (64 << 20),
        ]
        assert consts["after"].data() == bytes([2]) * 10
        assert not np.frombuffer(consts["hole"].data(), np.uint8).any()


@pytest.mark.parametrize("kind", ["Constant", "Variable"])
def test_sparse_data_inside_the_message_are_refused(tmp_path: Path, kind: str) -> None:
    builder = OmBuilder("sparse")
    if kind == "Constant":
        builder.constant("inside", SparseBytes(40), BYTES)
    else:
        builder.variable("inside", BYTES, init=SparseBytes(40))
    with pytest.raises(ValueError, match=f"{kind} 'inside' has sparse data"):
        builder.write(tmp_path / "model.om")
    assert list(tmp_path.iterdir()) == []


def test_a_message_beyond_the_limit_of_protobuf_is_refused(tmp_path: Path) -> None:
    # numpy gets these 2 GiB from the system without touching them.
    init = np.zeros(1 << 31, np.uint8)
    builder = OmBuilder("heavy")
    builder.variable("v", TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, init.shape), init=init)
    with pytest.raises(ValueError, match="2147483648 B inside its message, protobuf allows 2147483647 B"):
        builder.write(tmp_path / "model.om")
    assert list(tmp_path.iterdir()) == []


def test_inputs_and_outputs_beyond_the_limit_of_the_reader_are_refused(tmp_path: Path) -> None:
    builder = OmBuilder("long")
    builder.data("x" * (1 << 24), ROW)
    with pytest.raises(ValueError, match=r"take 16777[0-9]{3} B in the file, 16777216 B at most are read"):
        builder.write(tmp_path / "model.om")


def test_kernels_beyond_the_limits_of_the_reader_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.om"
    builder = small_model()
    builder.kernel("k" * (1 << 16), b"binary")
    builder.write(path)
    with open_om(path) as om:
        store = om.models[0].kernel_store()
        assert store is not None
        assert store.fault is None
        assert [len(item.name) for item in store.items] == [6, 1 << 16]
    builder.kernel("k" * ((1 << 16) + 1), b"binary")
    with pytest.raises(ValueError, match="takes 65537 B, 65536 B at most are read"):
        builder.write(path)
    many = OmModelSpec("many", (), kernels={f"k{index}": b"" for index in range((1 << 17) + 1)})
    with pytest.raises(ValueError, match="131073 kernels, 131072 at most are read"):
        write_om(path, many)


def test_variables_beyond_their_room_are_refused(tmp_path: Path) -> None:
    builder = OmBuilder("full", variable_size_bytes=2 * 1536 + 64)
    for index in range(3):
        builder.variable(f"v{index}", BYTES.replace(shape=(32,)))
    builder.write(tmp_path / "model.om")
    builder.variable("v3", BYTES)
    with pytest.raises(ValueError, match="variable v3 would end 4704 B after the base, the model has 3136 B"):
        builder.write(tmp_path / "model.om")
