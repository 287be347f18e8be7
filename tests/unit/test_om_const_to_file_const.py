"""One constant of a graph that becomes a FileConstant with a file of its own."""

import stat
from pathlib import Path

import pytest

from gevar.errors import GraphError, ModelFileError
from gevar.graph import AttrValue, ComputeGraph, GeTensor, Node, OpDesc, ValueType
from gevar.om.const_to_file_const import convert_const_to_file_const
from gevar.types import DataType, Format, TensorDesc

DATA = bytes(range(24))
DESC = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (1, 2, 3, 2), origin_shape=(12,))


def const(name: str, data: bytes = DATA, kind: str = "Const", desc: TensorDesc = DESC) -> Node:
    value: dict[str, AttrValue] = {"value": GeTensor(desc, data)}
    return ComputeGraph("g").add_node(OpDesc(name, kind, outputs=[desc], attrs=value))


@pytest.mark.parametrize("kind", ["Const", "Constant"])
@pytest.mark.parametrize(("name", "file"), [("w", "w"), ("a/b.c\\d", "a_b_c_d"), ("..", "__"), ("/", "_")])
def test_the_node_tells_where_its_bytes_are(tmp_path: Path, kind: str, name: str, file: str) -> None:
    node = const(name, kind=kind)
    assert convert_const_to_file_const(node, tmp_path) == tmp_path / file
    assert [path.name for path in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_bytes() == DATA
    assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600
    assert (node.name, node.type, node.op_desc.output_desc(0)) == (name, "FileConstant", DESC)
    assert dict(node.op_desc.attrs) == {
        "location": file,
        "offset": 0,
        "length": 24,
        "dtype": DataType.DT_FLOAT16,
        "shape": (1, 2, 3, 2),
        "original_shape": (12,),
    }


def test_a_scalar_has_lists_of_no_dimensions(tmp_path: Path) -> None:
    node = const("w", b"abcd", desc=TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, ()))
    convert_const_to_file_const(node, tmp_path)
    for name in ("shape", "original_shape"):
        assert node.op_desc.attrs[name] == ()
        assert node.op_desc.attrs.value_type(name) is ValueType.VT_LIST_INT


def test_equal_bytes_of_one_name_are_one_file(tmp_path: Path) -> None:
    first = convert_const_to_file_const(const("a/b"), tmp_path)
    inode = first.stat().st_ino
    assert convert_const_to_file_const(const("a.b"), tmp_path) == first
    assert first.stat().st_ino == inode


@pytest.mark.parametrize("there", [DATA[:-1], DATA + b"\0", DATA[::-1], b""])
def test_other_bytes_of_one_name_are_refused(tmp_path: Path, there: bytes) -> None:
    (tmp_path / "a_b").write_bytes(there)
    node = const("a/b")
    with pytest.raises(FileExistsError, match="file of this name with other bytes; remove it"):
        convert_const_to_file_const(node, tmp_path)
    assert (tmp_path / "a_b").read_bytes() == there
    assert (node.type, node.op_desc.attrs["value"]) == ("Const", GeTensor(DESC, DATA))


def test_no_link_out_of_the_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(DATA)
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "w").symlink_to("../outside")
    (folder / "v").hardlink_to(tmp_path / "outside")
    for name in ("w", "v"):
        node = const(name)
        with pytest.raises(ModelFileError, match=name):
            convert_const_to_file_const(node, folder)
        assert node.type == "Const"


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (const("w", kind="Variable"), "is a Variable; only a Const or Constant"),
        (const("w", b""), "is a Const without bytes in its value"),
        (const("w", DATA[:-2]), "takes 24 B, 22 B are given"),
        (ComputeGraph("g").add_node(OpDesc("w", "Const", outputs=[DESC])), "is a Const without bytes"),
    ],
)
def test_what_has_no_bytes_is_refused(tmp_path: Path, node: Node, message: str) -> None:
    before = node.type, dict(node.op_desc.attrs)
    with pytest.raises(GraphError, match=message):
        convert_const_to_file_const(node, tmp_path)
    assert (node.type, dict(node.op_desc.attrs)) == before
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    node = const("w")
    with pytest.raises(FileNotFoundError, match="none"):
        convert_const_to_file_const(node, tmp_path / "none")
    assert node.type == "Const"
