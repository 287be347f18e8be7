"""The files that list the variables of an OM2 package: what is written is read, and what is damaged is refused."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.errors import ModelFileError
from gevar.runtime import CopyInfo, RTVarEntry, RTVarResource
from gevar.runtime.om2_var_files import (
    VAR_RESOURCE_FILE,
    VarMeta,
    read_var_resource,
    read_variables_config,
    write_var_resource,
    write_variables_config,
)
from gevar.types import DataType, DevAddr, Format, MemType, TensorDesc
from gevar.var.graph_tables import TransNodeInfo
from tests.helpers.var_memory import make_desc

HBM = MemType.RT_MEMORY_HBM
C0_16 = Format.FORMAT_NC1HWC0 | 5 << 24
SMALL = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (1, 2), size=8)
LARGE = TensorDesc(DataType.DT_FLOAT16, C0_16, (1, 1, 1, 2, 16), size=64)
ENTRIES = (
    RTVarEntry("a", "a2_2", "Variable", 1 << 37, 8, HBM, make_desc(8), init_data=b"12345678"),
    RTVarEntry(
        *("b", "b3_1", "Variable", (1 << 37) + 512, 64, HBM, LARGE),
        trans_road=(TransNodeInfo("TransData", SMALL, LARGE),),
        changed_graph_id=2,
        allocated_graph_id=0,
        copy_info=CopyInfo("a", SMALL),
        init_data=b"xyz",
    ),
)


def _text(**changes: object) -> bytes:
    """The text of the first entry with fields changed; None of a field leaves it out."""
    value = json.loads(write_var_resource(RTVarResource(ENTRIES[:1]))[0])
    fields = value["entries"]["a2_2"]
    fields.update(changes)
    value["entries"]["a2_2"] = {field: value for field, value in fields.items() if value != "left out"}
    return json.dumps(value).encode()


def test_what_is_written_is_read() -> None:
    text, weights = write_var_resource(RTVarResource(ENTRIES))
    assert weights == b"12345678xyz"
    assert tuple(read_var_resource(text, weights)) == ENTRIES


def test_fields_have_the_names_of_the_format() -> None:
    text, _ = write_var_resource(RTVarResource(ENTRIES))
    entries = json.loads(text)["entries"]
    assert list(entries) == ["a2_2", "b3_1"]
    fields = entries["b3_1"]
    assert (fields["init_data_offset"], fields["init_data_size"], fields["memory_type"]) == (8, 3, HBM)
    assert fields["trans_road"][0]["node_type"] == "TransData"
    assert fields["copy_info"]["src_var_name"] == "a"
    assert (fields["tensor_desc"]["format"], fields["tensor_desc"]["data_type"]) == ("NC1HWC0", "DT_FLOAT16")


def test_edge_30_c0_survives_and_a_text_alone_will_do() -> None:
    text, weights = write_var_resource(RTVarResource(ENTRIES))
    assert list(read_var_resource(text, weights))[1].tensor_desc.format == C0_16
    value = json.loads(text)
    del value["entries"]["b3_1"]["tensor_desc"]["format_value"]
    again = read_var_resource(json.dumps(value).encode(), weights)
    assert list(again)[1].tensor_desc.format == Format.FORMAT_NC1HWC0


def test_memory_of_the_callers_is_not_written() -> None:
    entry = RTVarEntry("e", "e2_2", "Variable", 0, 8, HBM, make_desc(8), extern_dev_addr=DevAddr(5))
    text, _ = write_var_resource(RTVarResource([entry]))
    assert b"extern" not in text
    assert next(iter(read_var_resource(text, b""))).extern_dev_addr is None


@pytest.mark.parametrize(("offset", "size"), [(1, 8), (-1, 2), (0, 9), (1 << 70, 1), (0, -1)])
def test_a_range_outside_the_weights(offset: int, size: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read = read_var_resource(_text(init_data_offset=offset, init_data_size=size), b"12345678")
    assert next(iter(read)).init_data is None
    assert f"a2_2 starts with {size} B at {offset} of 8 B of weights" in caplog.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("var_name", 5),
        ("op_type", "left out"),
        ("size", "8"),
        ("size", True),
        ("logic_addr", None),
        ("memory_type", 77777),
        ("var_key", ""),
        ("size", -1),
        ("tensor_desc", []),
        ("tensor_desc", {"shape": ["x"]}),
        ("tensor_desc", {"shape": [], "data_type": "NONE", "format": "ND", "size": 4}),
        ("tensor_desc", {"shape": [], "data_type": "DT_INT8", "format": "ND", "format_value": 1 << 32, "size": 4}),
        ("trans_road", [5]),
        ("trans_road", [{"node_type": "Cast"}]),
        ("copy_info", {"src_var_name": "a"}),
        ("changed_graph_id", "1"),
    ],
)
def test_a_damaged_entry(field: str, value: object) -> None:
    with pytest.raises(ModelFileError, match=r"entries\.a2_2") as caught:
        read_var_resource(_text(**{field: value}), b"12345678")
    assert caught.value.file == VAR_RESOURCE_FILE


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"5", b'{"entries": []}', b"{}", b'{"entries": {"k": 1}}'])
def test_a_damaged_text(text: bytes) -> None:
    with pytest.raises(ModelFileError, match=VAR_RESOURCE_FILE):
        read_var_resource(text, b"")


@given(st.binary(max_size=6), st.integers(0, 10_000), st.integers(1, 20))
def test_damaged_bytes_are_read_or_refused(patch: bytes, at: int, cut: int) -> None:
    text, weights = write_var_resource(RTVarResource(ENTRIES))
    at %= len(text)
    try:
        read = read_var_resource(text[:at] + patch + text[at + cut :], weights)
    except ModelFileError:
        return
    assert all(entry.size >= 0 and entry.var_key for entry in read)


METAS = [VarMeta(0, "a", "Variable", "a_node", SMALL), VarMeta(1, "b", "Constant", "b_node", LARGE)]


def test_variables_of_a_model_come_by_their_numbers() -> None:
    text = write_variables_config(7, METAS[::-1])
    assert read_variables_config(text, "model_0_variables_config.json") == (7, METAS)
    assert json.loads(text)["var_metas"][0]["op_name"] == "b_node"


@pytest.mark.parametrize("index", [1, 2, -1, None, "0"])
def test_numbers_are_there_once(index: object) -> None:
    value = json.loads(write_variables_config(7, METAS))
    value["var_metas"][0]["index"] = index
    with pytest.raises(ModelFileError, match=r"var_metas\.\d\.index"):
        read_variables_config(json.dumps(value).encode(), "model_0_variables_config.json")
