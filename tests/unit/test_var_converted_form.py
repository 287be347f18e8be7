"""Values of variables, read and written in another format or data type."""

import logging

import numpy as np
import pytest

from gevar.errors import FormatError
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0
from gevar.var import VarManager
from tests.helpers.var_memory import FakeMemory, make_manager

C0_16 = 5
SHAPE = (2, 3, 4, 5)
NCHW = TensorDesc(
    DataType.DT_FLOAT16,
    Format.FORMAT_NCHW,
    SHAPE,
    origin_format=Format.FORMAT_NCHW,
    origin_shape=SHAPE,
    size=240,
)
FIVE = NCHW.replace(format=format_from_c0(Format.FORMAT_NC1HWC0, C0_16), shape=(2, 1, 4, 5, 16), size=1280)
FRACTAL = NCHW.replace(format=format_from_c0(Format.FORMAT_FRACTAL_Z, C0_16), shape=(20, 1, 16, 16), size=10240)
VALUES = np.arange(120, dtype=np.float16).reshape(SHAPE)


def manager(desc: TensorDesc) -> VarManager:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("v", None, desc)
    return vm


@pytest.mark.parametrize("desc", [NCHW, FIVE, FRACTAL], ids=["NCHW", "NC1HWC0", "FRACTAL_Z"])
@pytest.mark.parametrize(
    ("fmt", "axes"), [(Format.FORMAT_NCHW, "NCHW"), (Format.FORMAT_NHWC, "NHWC"), (Format.FORMAT_HWCN, "HWCN")]
)
def test_plain_layouts_go_in_and_out(desc: TensorDesc, fmt: Format, axes: str) -> None:
    vm = manager(desc)
    there = [axes.index(axis) for axis in "NCHW"]
    value = VALUES.transpose(["NCHW".index(axis) for axis in axes])
    vm["v"].write(value, format=fmt)
    assert vm["v"].read().shape == desc.shape
    assert vm.read("v", format=desc.origin_format).tolist() == VALUES.tolist()
    again = vm.read("v", format=fmt)
    assert again.shape == value.shape
    assert again.transpose(there).tolist() == VALUES.tolist()


def test_what_is_stored_is_the_storage_format() -> None:
    vm = manager(FIVE)
    vm.write("v", VALUES, format=Format.FORMAT_NCHW)
    stored = vm["v"].read()
    assert stored[:, 0, :, :, :3].transpose(0, 3, 1, 2).tolist() == VALUES.tolist()
    assert not stored[..., 3:].any()
    assert vm.read("v", format=FIVE.format).tolist() == stored.tolist()


def test_data_types_are_cast_on_the_way(caplog: pytest.LogCaptureFixture) -> None:
    vm = manager(FIVE)
    vm.write("v", VALUES.astype(np.float32), format=Format.FORMAT_NCHW, dtype=DataType.DT_FLOAT)
    value = vm.read("v", format=Format.FORMAT_NCHW, dtype=DataType.DT_FLOAT)
    assert value.dtype == np.float32
    assert value.tolist() == VALUES.tolist()
    assert vm.read("v", dtype=DataType.DT_FLOAT).shape == FIVE.shape
    assert not caplog.records


def test_losses_are_told_by_name(caplog: pytest.LogCaptureFixture) -> None:
    vm, large = manager(NCHW), VALUES.astype(np.float32)
    large[0, 0, 0, 0] = 1e30
    with caplog.at_level(logging.WARNING):
        vm.write("v", large, dtype=DataType.DT_FLOAT)
    assert "variable 'v', DT_FLOAT to DT_FLOAT16: 1 elements saturated" in caplog.text
    assert np.isinf(vm["v"].read()[0, 0, 0, 0])
    vm.write("v", large, dtype=DataType.DT_FLOAT, on_loss="ge")
    assert vm["v"].read()[0, 0, 0, 0] == 65504
    with pytest.raises(FormatError, match="1 values would be lost"):
        vm.write("v", large * 2, dtype=DataType.DT_FLOAT, on_loss="raise")
    assert vm["v"].read()[0, 0, 0, 0] == 65504
    assert vm["v"].read()[0, 0, 0, 1] == 1


def test_what_does_not_fit_is_refused_and_nothing_written() -> None:
    vm = manager(FIVE)
    vm.write("v", VALUES, format=Format.FORMAT_NCHW)
    before = vm["v"].read().tolist()
    for wrong, fmt in ((VALUES[:1], Format.FORMAT_NCHW), (VALUES, Format.FORMAT_NHWC), (VALUES[0], Format.FORMAT_NCHW)):
        with pytest.raises((FormatError, ValueError), match=r"shape|dimensions"):
            vm.write("v", wrong, format=fmt)
    with pytest.raises(TypeError, match="converts arrays, not bytes"):
        vm.write("v", VALUES.tobytes(), format=Format.FORMAT_NCHW)
    with pytest.raises(FormatError, match="there is no cast"):
        vm.read("v", dtype=DataType.DT_BOOL)
    with pytest.raises(FormatError, match="FRACTAL_NZ"):
        vm.read("v", format=Format.FORMAT_FRACTAL_NZ)
    with pytest.raises(FormatError, match="float32"):
        vm.write("v", VALUES.astype(np.float32), format=Format.FORMAT_NCHW)
    assert vm["v"].read().tolist() == before


def test_a_variable_without_an_origin_has_its_own_layout() -> None:
    vm = manager(TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, SHAPE, size=240))
    vm.write("v", VALUES.transpose(0, 2, 3, 1), format=Format.FORMAT_NHWC)
    assert vm["v"].read().tolist() == VALUES.tolist()
    assert vm.read("v", format=Format.FORMAT_NHWC).transpose(0, 3, 1, 2).tolist() == VALUES.tolist()
