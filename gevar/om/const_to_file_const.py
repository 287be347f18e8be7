"""A constant of a graph that becomes a FileConstant, its bytes in a file of their own.

Source: GE source, base/common/file_constant_utils, ConvertConstToFileConst.
"""

import errno
import os
from contextlib import closing
from pathlib import Path
from typing import Final

from gevar.errors import GraphError
from gevar.graph import GeTensor, Node, ValueType
from gevar.om.atomic_file import write_atomically
from gevar.om.consts import VALUE_ATTR
from gevar.om.node import CONST_TYPES, FILECONSTANT
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import StreamedBytes, are_equal, write_all
from gevar.om.weights_placing import check_size

_SAFE: Final = str.maketrans(dict.fromkeys("/\\.", "_"))
"""No part of the name of a file that GE makes of the name of a node."""


def convert_const_to_file_const(node: Node, folder: str | os.PathLike[str]) -> Path:
    """Write the bytes of a constant to a file, and turn its node into a FileConstant, in place.

    The file has the name of the node, with `_` for each `/`, backslash and dot, and no list tells of it. The node keeps
    its name, output and links; it says that its bytes are at offset 0 of `location`, the file's name, which a session
    looks for in ``ge.externalWeightDir``.

    Parameters
    ----------
    node
        A Const or Constant with bytes, of a graph that is not compiled.
    folder
        Where the file is to lie; it must be there. The file is for its owner only (0600).

    Returns
    -------
    pathlib.Path
        The file. One that is there and has the same bytes is taken as it is.

    Raises
    ------
    GraphError
        The node is no constant, has no value or no bytes, or other bytes than its output takes.
    OSError
        The file cannot be written.
    FileExistsError
        There is a file of this name with other bytes, such as that of `a.b` for `a/b`.
    ModelFileError
        What has this name is no regular file of this folder alone.

    Notes
    -----
    After failure: the node is as it was, and nothing was written.
    Thread safety: as the graph; two nodes of one file name must not be converted at once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from gevar.graph import ComputeGraph, GeTensor, OpDesc
    >>> from gevar.types import DataType, Format, TensorDesc
    >>> desc = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (3,))
    >>> value = GeTensor(desc, b"xyz")
    >>> node = ComputeGraph("g").add_node(OpDesc("a/b", "Const", outputs=[desc], attrs={"value": value}))
    >>> with TemporaryDirectory() as folder:
    ...     convert_const_to_file_const(node, folder).name
    'a_b'
    >>> node.type, node.op_desc.attrs["length"]
    ('FileConstant', 3)
    """
    data = _bytes_of(node)
    path = Path(folder) / node.name.translate(_SAFE)
    if os.path.lexists(path):
        _check_same(path, data)
    else:
        write_atomically(path, lambda file: write_all(data, file))
    desc, attrs = node.op_desc.output_desc(0), node.op_desc.attrs
    del attrs[VALUE_ATTR]
    node.op_desc.type = FILECONSTANT
    attrs["location"], attrs["offset"], attrs["length"], attrs["dtype"] = path.name, 0, data.nbytes, desc.dtype
    attrs.set("shape", desc.shape, ValueType.VT_LIST_INT)
    attrs.set("original_shape", desc.origin_shape or (), ValueType.VT_LIST_INT)
    return path


def _bytes_of(node: Node) -> memoryview:
    graph, attrs = node.owner_compute_graph.name, node.op_desc.attrs
    if node.type not in CONST_TYPES:
        raise GraphError(graph, f"is a {node.type}; only a Const or Constant has bytes of its own", node=node.name)
    value = attrs.get_as(VALUE_ATTR, GeTensor)
    if value is None or not value.data:
        raise GraphError(graph, f"is a {node.type} without bytes in its value", node=node.name)
    data = memoryview(value.data)
    check_size(node, data)
    return data


def _check_same(path: Path, data: memoryview) -> None:
    with closing(ByteSource.of_file_in(path.parent, path)) as source:
        there = StreamedBytes.of_source(source, 0, source.size_bytes, "weight")
        if not are_equal(there, data):
            reason = (
                "there is a file of this name with other bytes; remove it, rename the node, or choose another folder"
            )
            raise FileExistsError(errno.EEXIST, reason, str(path))
