"""Tensor descriptions as values: defaults, equality, hashing, replacing, and what they keep of attributes."""

import dataclasses
import sys
from types import MappingProxyType

import numpy as np
import pytest

from gevar.proto import ge_ir
from gevar.types import DataType, Format, TensorDesc
from gevar.types.tensor_desc import TensorDescChanges


def make(**changes: object) -> TensorDesc:
    return TensorDesc(**{"dtype": DataType.DT_FLOAT, "format": Format.FORMAT_ND, "shape": (2, 3), **changes})


def with_init_value() -> TensorDesc:
    value = ge_ir.AttrDef(t=ge_ir.TensorDef(data=b"\0\0\x80\x3f"))
    return make(attrs={"_init_value": value, "_inner_offset": ge_ir.AttrDef(i=24)})


# One other value per field, so that every field is shown to count.
OTHER = {
    "dtype": DataType.DT_INT32,
    "format": Format.FORMAT_NCHW,
    "shape": (3, 2),
    "origin_format": Format.FORMAT_NHWC,
    "origin_shape": (6,),
    "origin_dtype": DataType.DT_FLOAT16,
    "size": 64,
    "weight_size": 24,
    "data_offset": 512,
    "real_dim_cnt": 2,
    "reuse_input": True,
    "reuse_input_index": 1,
    "output_tensor": True,
    "input_tensor": True,
    "device_type": "CPU",
    "cmps_size": 8,
    "cmps_tab": "table",
    "cmps_tab_offset": 16,
    "attrs": {"k": ge_ir.AttrDef(i=1)},
    "attr_groups": b"\x0a\x00",
}


def test_defaults() -> None:
    desc = make()
    assert (desc.origin_format, desc.origin_shape, desc.origin_dtype) == (2, None, DataType.DT_UNDEFINED)
    assert (desc.size, desc.weight_size, desc.data_offset, desc.real_dim_cnt) == (0, 0, 0, 0)
    assert (desc.reuse_input, desc.output_tensor, desc.input_tensor) == (False, False, False)
    assert (desc.device_type, desc.cmps_size, desc.cmps_tab, desc.cmps_tab_offset) == ("NPU", 0, "", 0)
    assert dict(desc.attrs) == {}
    assert desc.attr_groups == b""


def test_the_fields_and_the_changes_are_the_same() -> None:
    fields = {field.name for field in dataclasses.fields(TensorDesc)}
    assert fields == set(TensorDescChanges.__annotations__) == set(OTHER)


@pytest.mark.parametrize("name", sorted(OTHER))
def test_every_field_counts_in_equality_and_can_be_replaced(name: str) -> None:
    desc = make()
    changed = desc.replace(**{name: OTHER[name]})
    assert changed != desc
    assert getattr(changed, name) == OTHER[name]
    assert changed.replace(**{name: getattr(desc, name)}) == desc
    rest = [field for field in OTHER if field != name]
    assert [getattr(changed, field) for field in rest] == [getattr(desc, field) for field in rest]


@pytest.mark.parametrize("name", sorted(set(OTHER) - {"attrs"}))
def test_equal_descriptions_hash_equal_and_fields_spread_the_hash(name: str) -> None:
    changed = make(**{name: OTHER[name]})
    assert hash(changed) == hash(make(**{name: OTHER[name]}))
    assert hash(changed) != hash(make())


def test_a_description_with_attributes_is_a_key() -> None:
    assert {with_init_value(): 1}[with_init_value()] == 1
    assert with_init_value() != make()


def test_it_never_changes() -> None:
    desc = make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        desc.size = 3
    with pytest.raises(TypeError):
        desc.attrs["k"] = ge_ir.AttrDef(i=1)
    assert not hasattr(desc, "__dict__")


def test_the_mapping_given_is_copied() -> None:
    attrs = {"k": ge_ir.AttrDef(i=1)}
    desc = make(attrs=attrs)
    attrs["other"] = ge_ir.AttrDef(i=2)
    assert set(desc.attrs) == {"k"}


def test_descriptions_without_attributes_share_one_empty_mapping() -> None:
    assert make().attrs is make(attrs={}).attrs is make(attrs=MappingProxyType({})).attrs


def test_it_is_small() -> None:
    assert sys.getsizeof(make()) < 256


@pytest.mark.parametrize("shape", [[2, 3], np.array([2, 3]), (np.int64(2), np.int32(3)), iter((2, 3))])
def test_any_sequence_of_integers_is_a_shape(shape: object) -> None:
    desc = make(shape=shape, origin_shape=[np.int64(6)])
    assert (desc.shape, desc.origin_shape) == ((2, 3), (6,))
    assert {type(dim) for dim in (*desc.shape, *desc.origin_shape)} == {int}


@pytest.mark.parametrize("shape", [(2.0, 3), ("2",), (None,)])
def test_other_dimensions_are_refused(shape: object) -> None:
    with pytest.raises(TypeError):
        make(shape=shape)
    with pytest.raises(TypeError):
        make(origin_shape=shape)


def test_scalar_origin_differs_from_no_origin() -> None:
    assert make(origin_shape=()) != make(origin_shape=None)


def test_replace_refuses_a_name_that_is_no_field() -> None:
    with pytest.raises(TypeError, match="sizes"):
        make().replace(sizes=3)


def test_inner_offset_and_init_value() -> None:
    desc = with_init_value()
    assert desc.inner_offset == 24
    assert desc.init_value is not None
    assert desc.init_value.data == b"\0\0\x80\x3f"


def test_without_the_attributes() -> None:
    assert make().inner_offset == 0
    assert make().init_value is None


def test_attributes_of_another_kind_count_as_absent() -> None:
    desc = make(attrs={"_inner_offset": ge_ir.AttrDef(s=b"24"), "_init_value": ge_ir.AttrDef(i=3)})
    assert desc.inner_offset == 0
    assert desc.init_value is None


@pytest.mark.parametrize("name", sorted(OTHER))
def test_same_description_looks_at_format_type_and_dimensions(name: str) -> None:
    desc = make()
    changed = desc.replace(**{name: OTHER[name]})
    assert desc.same_description(changed) is (name not in {"format", "dtype", "shape"})
    assert changed.same_description(desc) is desc.same_description(changed)


def test_same_description_compares_the_full_format_value() -> None:
    filter_desc = make(format=Format.FORMAT_FRACTAL_Z)
    assert not filter_desc.same_description(filter_desc.replace(format=516))
    assert not filter_desc.replace(format=516).same_description(filter_desc.replace(format=83886596))
