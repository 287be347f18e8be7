"""What the manager reads of a node."""

import pytest

from gevar.proto import ge_ir
from gevar.types import DataType, TensorDesc
from gevar.var import VarOp
from tests.helpers.var_memory import file_constant, make_desc


@pytest.mark.parametrize(
    ("outputs", "code"),
    [
        ((), -1),
        ((make_desc(4, DataType.DT_FLOAT),), 4),
        ((make_desc(4, DataType.DT_INT4), make_desc(4, DataType.DT_FLOAT)), 1004),
        ((make_desc(4, DataType.DT_STRING),), -1),
    ],
)
def test_size_code_is_that_of_output_0(outputs: tuple[TensorDesc, ...], code: int) -> None:
    assert VarOp("c", "Constant", outputs).size_code == code


def test_file_slice() -> None:
    assert file_constant("f", "/w/a", 8, 16).file_slice == ("/w/a", 8, 16)
    assert VarOp("f", "FileConstant", attrs={"location": "/w/a"}).file_slice == ("/w/a", 0, 0)


@pytest.mark.parametrize(
    "op",
    [
        VarOp("f", "FileConstant"),
        VarOp("f", "FileConstant", attrs={"location": "", "offset": 4}),
        VarOp("f", "FileConstant", attrs={"file_path": "/w/a"}),
        VarOp("v", "Variable", attrs={"location": "/w/a"}),
    ],
)
def test_ops_without_a_file_slice(op: VarOp) -> None:
    assert op.file_slice is None


@pytest.mark.parametrize(
    ("op", "source"),
    [
        (VarOp("r", "Variable"), None),
        (VarOp("r", "Variable", (make_desc(4),)), None),
        (VarOp("r", "Variable", attrs={"ref_var_src_var_name": "v"}), "v"),
        (VarOp("r", "Variable", attrs={"ref_var_src_var_name": ""}), None),
        (VarOp("r", "Variable", attrs={"ref_var_src_var_name": 5}), None),
        (VarOp("r", "Variable", (make_desc(4).replace(attrs={"ref_var_src_var_name": ge_ir.AttrDef(s=b"v")}),)), "v"),
        (VarOp("r", "Variable", (make_desc(4).replace(attrs={"ref_var_src_var_name": ge_ir.AttrDef(i=5)}),)), None),
    ],
)
def test_ref_source(op: VarOp, source: str | None) -> None:
    assert op.ref_source == source


def test_attributes_of_the_wrong_type_are_refused() -> None:
    op = VarOp("f", "FileConstant", attrs={"location": 5, "offset": "8", "shape": (1, 2), "bad": (1, 2)})
    with pytest.raises(ValueError, match="attribute location is 5"):
        op.file_slice  # noqa: B018
    with pytest.raises(ValueError, match="attribute offset is '8'; give an integer"):
        op.int_attr("offset")
    with pytest.raises(ValueError, match="attribute missing is None"):
        op.int_attr("missing")
    with pytest.raises(ValueError, match="attribute offset is '8'; give a tuple of integers"):
        op.ints_attr("offset")
    assert op.ints_attr("shape") == (1, 2)
    assert op.int_attr("missing", 3) == 3


def test_data_type_attribute() -> None:
    op = VarOp("p", "ConstPlaceHolder", attrs={"dtype": DataType.DT_BF16, "odd": 4711})
    assert op.dtype_attr("dtype") is DataType.DT_BF16
    assert op.dtype_attr("odd") is DataType.DT_UNDEFINED


def test_the_weight_is_not_shown() -> None:
    assert "secret" not in repr(VarOp("c", "Constant", value=b"secret"))
