"""Every tensor descriptor of the real model files: read and written again, it is the same message."""

import base64
import json
from pathlib import Path

import pytest

from gevar.proto import ge_ir, var_manager
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types import DataType, Format
from gevar.types.format import format_from_serial, primary_format
from gevar.types.tensor_sizes import tensor_memory_size_in_bytes
from tests.helpers.descriptors import descriptors, model_defs, variables
from tests.helpers.shared import shared_files, shared_path

VAR_FILES = [path.name for path in shared_files("data/om_vars/*.om")]
OTHER_FILES = [path.name for path in shared_files("data/om/*.om") if path.stat().st_size > 256]


def carried(td: ge_ir.TensorDescriptor) -> ge_ir.TensorDescriptor:
    """Return a descriptor without the two fields that a description does not carry."""
    copy = ge_ir.TensorDescriptor()
    copy.CopyFrom(td)
    copy.ClearField("name")
    copy.ClearField("has_out_attr")
    return copy


def is_current(td: ge_ir.TensorDescriptor) -> bool:
    """Whether the descriptor has all the attributes that current writers make."""
    return {"format_for_int", "origin_format_for_int", "origin_shape_initialized"} <= set(td.attr)


def read(path: Path) -> list[ge_ir.TensorDescriptor]:
    return [td for model in model_defs(path.read_bytes()) for td in descriptors(model)]


@pytest.mark.parametrize("name", VAR_FILES)
def test_files_with_variables_come_back_as_they_are(name: str) -> None:
    found = read(shared_path(f"data/om_vars/{name}"))
    assert len(found) >= 10
    for td in found:
        assert tensor_desc_to_proto(tensor_desc_from_proto(td)) == carried(td)


@pytest.mark.parametrize("name", OTHER_FILES)
def test_descriptors_of_any_age_are_read_completely(name: str) -> None:
    for td in read(shared_path(f"data/om/{name}")):
        desc = tensor_desc_from_proto(td)
        written = tensor_desc_to_proto(desc)
        assert tensor_desc_from_proto(written) == desc
        if is_current(td):
            assert written == carried(td)
        assert desc.dtype is not DataType.DT_UNDEFINED or td.dtype == 0
        assert format_from_serial(td.layout) & 0xFFFFFF == desc.format & 0xFFFFFF
        assert primary_format(desc.format) in set(Format)


def test_the_files_hold_descriptors_of_both_ages() -> None:
    shared_path("data/om")
    ages = {name: {is_current(td) for td in read(shared_path(f"data/om/{name}"))} for name in OTHER_FILES}
    assert {True} in ages.values()
    assert {False} in ages.values()


@pytest.mark.parametrize("name", VAR_FILES)
def test_stored_sizes_of_variables_are_the_padded_ones(name: str) -> None:
    seen = 0
    for model in model_defs(shared_path(f"data/om_vars/{name}").read_bytes()):
        for op in variables(model, {"Variable", "Constant", "FileConstant", "ConstPlaceHolder"}):
            desc = tensor_desc_from_proto(op.output_desc[0])
            assert tensor_memory_size_in_bytes(desc) == desc.size, op.name
            seen += 1
    assert seen > 0


def states() -> list[tuple[str, bytes]]:
    """Return every serialised manager state of the manifest, named by its file."""
    path = shared_path("data/om_vars/manifest.json")
    found: list[tuple[str, bytes]] = []

    def collect(name: str, value: object) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key == "var_manager_info_b64" and isinstance(item, str):
                    found.append((name, base64.b64decode(item)))
                else:
                    collect(str(value.get("name", name)), item)
        elif isinstance(value, list):
            for item in value:
                collect(name, item)

    collect("manifest", json.loads(path.read_text()))
    return found


def test_manager_states_come_back_as_they_are() -> None:
    found = states()
    seen = 0
    for name, data in found:
        info = parse_message(var_manager.VarManagerInfo, data)
        assert not any(has_unknown_fields(message) for message in [info, info.var_resource]), name
        for td in descriptors(info):
            assert tensor_desc_to_proto(tensor_desc_from_proto(td)) == td, name
            seen += 1
    assert len(found) >= 5
    assert seen >= 50


def has_unknown_fields(message: var_manager.VarManagerInfo | var_manager.VarResourceInfo) -> bool:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() != message.ByteSize()
