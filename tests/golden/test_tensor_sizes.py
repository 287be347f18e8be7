"""Sizes, types and formats that the running GE reported, against the rules of this package."""

import json

import pytest

from gevar.types import DataType, Format, TensorDesc
from gevar.types.data_type import element_size_code
from gevar.types.format import c0, format_from_serial, format_to_serial, sub_format
from gevar.types.tensor_sizes import (
    calc_tensor_mem_size,
    tensor_memory_size_in_bytes,
    tensor_size_in_bytes,
)
from tests.helpers.shared import shared_path


@pytest.mark.parametrize("file", ["var_manager_valid.json", "var_manager.json"])
def test_types_and_formats_are_those_of_ge(file: str) -> None:
    enums = json.loads(shared_path(f"golden/{file}").read_text())["enums"]
    assert {data_type.to_serial(): int(data_type) for data_type in DataType} == enums["dtype"]
    assert {name: element_size_code(enums["dtype"][name]) for name in enums["dtype"]} == enums["dtype_size_code"]
    without_text = {Format.FORMAT_FRACTAL_ZZ, Format.FORMAT_END, Format.FORMAT_MAX}
    assert {format_to_serial(fmt): int(fmt) for fmt in Format if fmt not in without_text} == enums["format"]


def test_sizes_of_variables_in_model_files() -> None:
    manifest = json.loads(shared_path("data/om_vars/manifest.json").read_text())
    seen = 0
    for file in manifest["files"]:
        for model in file.get("truth", {}).get("models", []):
            for variable in model["variables"]:
                dtype = DataType.from_serial(variable["dtype"])
                desc = TensorDesc(dtype, variable["format_int"], tuple(variable["shape"]), size=variable["size"])
                assert tensor_size_in_bytes(desc) == variable["tensor_bytes"], (file["name"], variable["name"])
                assert tensor_memory_size_in_bytes(desc) == variable["size"], (file["name"], variable["name"])
                seen += 1
    assert seen >= 20


def test_sizes_of_converted_tensors() -> None:
    cases = json.loads(shared_path("golden/formats.json").read_text())["data_cases"]
    for case in cases:
        fmt = case["dst_format_int"]
        size_bytes = calc_tensor_mem_size(case["dst_shape"], fmt, DataType(case["dtype_int"]))
        assert size_bytes == case["dst_bytes"], case["id"]
    assert len(cases) >= 100


def test_format_values_of_conversions() -> None:
    for case in json.loads(shared_path("golden/formats.json").read_text())["data_cases"]:
        value = case["dst_format_int"]
        if case["dst_format"] != "FRACTAL_ZZ":
            assert format_from_serial(case["dst_format"]) == value & 0xFF, case["id"]
        if c0(value) > 0:
            assert c0(value) == case["c0"], case["id"]
        if sub_format(value):
            assert sub_format(value) == case["groups"], case["id"]
