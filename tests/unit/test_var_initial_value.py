"""Initial values of variables."""

import pytest

from gevar.errors import FormatError
from gevar.types import DataType, Format, LogicAddr, MemType, TensorDesc
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock
from tests.helpers.var_memory import make_desc, with_init

DESC = make_desc(4)


def _block(desc: TensorDesc) -> VarBlock:
    return VarBlock("v", desc, LogicAddr(0), MemType.RT_MEMORY_HBM)


def test_no_value_is_none() -> None:
    assert initial_data(_block(DESC)) is None


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\x02\x03\x04"])
def test_a_value_up_to_the_size_is_taken(data: bytes) -> None:
    assert initial_data(_block(with_init(DESC, data))) == data


@pytest.mark.parametrize(
    "value_desc",
    [
        DESC.replace(shape=(2, 2)),
        DESC.replace(shape=(4, 1)),
        DESC.replace(dtype=DataType.DT_UINT8),
        DESC.replace(format=Format.FORMAT_NCHW),
        DESC.replace(format=DESC.format | 2 << 8),
    ],
)
def test_shape_type_and_format_must_be_equal(value_desc: TensorDesc) -> None:
    with pytest.raises(FormatError, match="shape, data type and format must be equal") as caught:
        initial_data(_block(with_init(DESC, b"\x00", value_desc)))
    assert "v_2_2" in str(caught.value)


def test_size_and_origin_do_not_count() -> None:
    value_desc = DESC.replace(size=99, origin_format=Format.FORMAT_NHWC)
    assert initial_data(_block(with_init(DESC, b"\x07", value_desc))) == b"\x07"


def test_a_value_longer_than_the_variable_is_refused() -> None:
    with pytest.raises(FormatError, match="it has 5 B and the variable 4 B"):
        initial_data(_block(with_init(DESC, b"12345")))
