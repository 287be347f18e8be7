"""The summary of an OM file: complete, plain, and true to the bytes."""

import hashlib
import json
import zlib

import pytest

from gevar.errors import ModelFileError
from gevar.om.facts import Json, om_facts
from gevar.om.om_file import OmFile
from tests.helpers import om_builder as build

ORDINARY = build.small_partitions()


def facts(data: bytes, *, deep: bool = False) -> dict[str, Json]:
    found = om_facts(OmFile.from_bytes(data, "f.om"), deep=deep)
    assert json.loads(json.dumps(found)).keys() == found.keys()
    plain: dict[str, Json] = json.loads(json.dumps(found))
    return plain


def test_ordinary_model() -> None:
    data = build.g3(ORDINARY, name="head")
    found = facts(data, deep=True)
    assert found["size"] == found["end_of_last_partition"] == len(data)
    assert found["sha256"] == hashlib.sha256(data).hexdigest()
    assert (found["dialect"], found["narrow"], found["table_entry_bytes"]) == ("G3", False, 24)
    assert found["header"]["name"] == "head"
    assert found["header"]["model_length"] == len(data) - 256
    assert found["attr_name_levels"] == 0
    assert found["var_like_nodes"] == {
        "Const": 2,
        "Constant": 1,
        "Variable": 2,
        "FileConstant": 0,
        "ConstPlaceHolder": 0,
        "Data": 1,
        "RefData": 0,
    }
    (model,) = found["models"]
    assert [part["name"] for part in model["partitions"]] == [
        "MODEL_INOUT_INFO",
        "MODEL_DEF",
        "WEIGHTS_DATA",
        "TBE_KERNELS",
        "TASK_INFO",
    ]
    assert model["weights"] == {"size": 1536, "sha256": hashlib.sha256(build.WEIGHTS).hexdigest()}
    assert model["kernels"] == {"count": 2, "consumed": 50, "size": 50, "bad": False}
    assert model["task"] == {"decodes": True, "tasks": 2, "memory_size": 2048, "weight_size": 1536}
    size = len(ORDINARY[0][1])
    assert model["inout_tlv"] == {"blocks": [[0, size - 8]], "consumed": size, "size": size}
    assert model["model_def"]["name"] == "small"
    assert model["model_def"]["unknown_fields"] == 0
    assert model["model_def"]["size_vs_shape_mismatch"] == 0
    assert model["model_def"]["graphs"] == [
        {
            "name": "root",
            "ops": 6,
            "types": {"Const": 1, "Constant": 1, "Data": 1, "NetOutput": 1, "PartitionedCall": 1, "Variable": 1},
        },
        {"name": "body", "ops": 2, "types": {"Const": 1, "Variable": 1}},
    ]


def test_constants() -> None:
    data = build.g3(ORDINARY)
    consts = facts(data, deep=True)["models"][0]["consts"]
    assert consts["total"] == 3
    assert (consts["inline"], consts["by_data_offset"], consts["by_merged_offset"]) == ([1, 3], [2, 68], [0, 0])
    first = consts["list"][0]
    assert data[first["file_offset"] : first["file_offset"] + 64] == bytes(range(64))
    assert first == {
        "name": "weight",
        "dtype": "DT_UINT8",
        "shape": [64],
        "layout": "ND",
        "storage": "data_offset",
        "offset": 512,
        "size": 64,
        "file_offset": first["file_offset"],
        "crc32": f"{zlib.crc32(bytes(range(64))):08x}",
    }


def test_variables() -> None:
    variables = facts(build.g3(ORDINARY))["models"][0]["variables"]
    assert [(row["name"], row["type"], row["graph"], row["logic_addr"]) for row in variables] == [
        ("v", "Variable", "root", 0x20_0000_0000),
        ("w", "Variable", "body", 0x20_0000_0200),
        ("table", "Constant", "root", 0x20_0000_0400),
    ]
    described = {key: variables[0][key] for key in ("dtype", "format", "shape", "size")}
    assert described == {"dtype": "DT_FLOAT", "format": "ND", "shape": [2, 3], "size": 24}


def test_variable_without_output() -> None:
    graph = build.graph("g", [build.op("v", "Variable")])
    (row,) = facts(build.g3([(0, build.model_def("m", [graph]))]))["models"][0]["variables"]
    assert (row["dtype"], row["format"], row["shape"], row["size"], row["logic_addr"]) == (None, None, [], 0, None)


def test_constant_without_value_is_counted_not_listed() -> None:
    graph = build.graph("g", [build.op("c", "Const"), build.inline_const("d", b"1")])
    consts = facts(build.g3([(0, build.model_def("m", [graph]))]))["models"][0]["consts"]
    assert (consts["total"], consts["without_value"], len(consts["list"])) == (2, 1, 1)


@pytest.mark.parametrize(
    ("shape", "dtype", "size", "mismatch"),
    [
        ((3, 5), 28, 8, 0),  # int4: 15 elements in 8 bytes
        ((3, 5), 28, 15, 1),
        ((), build.DT_FLOAT, 4, 0),
        ((0,), build.DT_FLOAT, 0, 0),
        ((16,), build.DT_FLOAT, 16, 1),
        ((-1,), build.DT_FLOAT, 3, 0),  # unknown shape
        ((2,), 13, 5, 0),  # text has no fixed size
        ((2,), 0, 5, 0),  # undefined type
    ],
)
def test_bytes_against_the_shape(shape: tuple[int, ...], dtype: int, size: int, mismatch: int) -> None:
    desc = build.tensor_desc(shape, dtype, weight_size=size, data_offset=512)
    graph = build.graph("g", [build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))})])
    found = facts(build.g3([(0, build.model_def("m", [graph])), (1, build.WEIGHTS)]))
    assert found["models"][0]["model_def"]["size_vs_shape_mismatch"] == mismatch


def test_shallow_facts_are_the_deep_ones_without_digests() -> None:
    nested = build.g3(ORDINARY)
    for data in (build.g3(ORDINARY), build.flow(b"", [("a", "NPU", nested)]), build.dynamic([ORDINARY] * 2)):
        deep, shallow = facts(data, deep=True), facts(data)

        def strip(value: Json) -> Json:
            if isinstance(value, dict):
                gone = ("sha256", "crc32", "unknown_fields", "graph_decodes")
                return {key: strip(item) for key, item in value.items() if key not in gone}
            return [strip(item) for item in value] if isinstance(value, list) else value

        assert strip(deep) == shallow != deep


def test_attributes_without_tables_bytes_and_tensors() -> None:
    attrs = {
        **build.compression(["value"]),
        "blob": build.field(7, b"x"),
        "tensor": build.attr_t(build.tensor(build.tensor_desc())),
        "rows": build.field(14, build.field(1, build.field(1, 2))),
    }
    model_def = facts(build.g3(build.small_partitions(**attrs)))["models"][0]["model_def"]
    assert model_def["compressed_attrs"] is True
    assert sorted(model_def["attrs"]) == [
        "memory_size",
        "om_compress_version",
        "rows",
        "target_type",
        "task_gen_variable_addr",
        "variable_size",
        "weight_size",
    ]
    assert model_def["attrs"]["rows"] == [[2]]


def test_nested_files() -> None:
    nested = build.g3(ORDINARY)
    found = facts(build.flow(build.model_def("r", []), [("a", "NPU", nested)]), deep=True)
    (sub,) = found["submodels"]
    assert (sub["name"], sub["model_type"], sub["size"]) == ("a", "NPU", len(nested))
    assert sub["sha256"] == hashlib.sha256(nested).hexdigest()
    assert sub["models"][0]["weights"] == facts(nested, deep=True)["models"][0]["weights"]
    flow = found["models"][0]["flow_partitions"]
    assert [part["type"] for part in flow] == [6, 7]
    assert all(len(part["sha256"]) == 64 for part in flow)


def test_bundle() -> None:
    nested = build.g3(ORDINARY)
    om = OmFile.from_bytes(build.bundle([nested], 4608), "f.om", kind="bundle")
    found = om_facts(om)
    assert found["bundle_variable_size"] == 4608
    assert [part["type"] for part in found["models"][0]["partitions"]] == [25, 24]
    assert "consts" not in found["models"][0]
    assert found["submodels"][0]["models"][0]["model_def"]["name"] == "small"


def test_state_of_stores_and_tasks_is_a_fact_not_an_error() -> None:
    partitions = [*ORDINARY[:3], (3, build.kernel_item("a", b"1") + bytes(40)), (2, b"\xff\xff\xff")]
    model = facts(build.g3([*partitions, (4, build.kernel_item("b", b"")), (26, bytes(20))]))["models"][0]
    assert model["kernels"] == {"count": 1, "consumed": 14, "size": 54, "bad": True}
    assert model["task"] == {"decodes": False}
    assert model["cust_aicpu_kernels"]["count"] == 1
    assert model["custom_ops"]["bad"] is True


def test_shared_objects() -> None:
    store = build.so_store([("a.so", "v", 2, b"123")])
    model = facts(build.g3([(5, store), *ORDINARY[1:3]]))["models"][0]
    assert model["so_bins"] == [{"name": "a.so", "vendor": "v", "so_type": 2, "size": 3}]


def test_long_task_list_is_counted_over_its_pieces() -> None:
    tasks = b"".join(build.field(10, build.message((1, number), (6, "x" * 500))) for number in range(5000))
    data = build.g3([*ORDINARY[:3], (2, build.field(11, 7) + tasks + build.field(14, 9))])
    assert facts(data)["models"][0]["task"] == {"decodes": True, "tasks": 5000, "memory_size": 7, "weight_size": 9}


def test_damage_elsewhere_is_an_error() -> None:
    for partitions in ([(8, b"\0")], [(5, b"\0")], [(0, b"\xff")]):
        with pytest.raises(ModelFileError):
            facts(build.g3([*partitions, *ORDINARY[1:3]]))
