"""OM2 packages for tests, made with the archive writer of the standard library."""

import io
import json
import zipfile
from collections.abc import Mapping

WEIGHTS = bytes(range(256)) * 2
INIT = bytes(range(16))


def desc(shape: tuple[int, ...], size: int) -> dict[str, object]:
    return {"name": "", "shape": list(shape), "data_type": "DT_FLOAT", "format": "ND", "size": size, "shape_range": []}


def variable(name: str, logic_addr: int, init: tuple[int, int] = (0, 0)) -> dict[str, object]:
    return {
        "var_name": name,
        "var_key": f"{name}2_0",
        "op_type": "Variable",
        "logic_addr": logic_addr,
        "size": 16,
        "memory_type": 2,
        "changed_graph_id": None,
        "allocated_graph_id": 0,
        "tensor_desc": desc((4,), 16),
        "trans_road": [],
        "copy_info": None,
        "init_data_offset": init[0],
        "init_data_size": init[1],
    }


def const(index: int, offset: int, size: int, kind: str = "INTERNAL", file: str = "constant_0") -> dict[str, object]:
    return {
        "index": index,
        "type": kind,
        "file_name": file,
        "offset": offset,
        "size": size,
        "op_name": f"const_{index}",
    }


def entries() -> dict[str, object]:
    """The entries of a package with one model; texts as objects."""
    return {
        "manifest.json": {"om2_version": "0", "model_num": 1, "atc_command": "atc --model x"},
        "data/model_0/model_meta.json": {},
        "data/model_0/runtime/main.cc": b"int main() {}",
        "data/kernels_npu_arch/add.o": b"\x7fELF",
        "data/constants/constant_0": WEIGHTS,
        "data/constants/model_0_constants_config.json": {
            "internal_weight_size": len(WEIGHTS),
            "consts": {
                "k1": const(1, 64, 32),
                "k0": const(0, 0, 64),
                "k2": const(2, 8, 100, "EXTERNAL", "weight_abc"),
            },
        },
        "data/variables/var_resource.json": {
            "entries": {"v2_0": variable("v", 128 << 30, (4, 8)), "w2_0": variable("w", (128 << 30) + 16)}
        },
        "data/variables/var_weight_data": INIT,
        "data/variables/model_0_variables_config.json": {
            "graph_id": 3,
            "var_metas": [
                {"index": 0, "var_name": "w", "op_type": "Variable", "op_name": "w", "tensor_desc": desc((4,), 16)}
            ],
        },
    }


def package(changes: Mapping[str, object] | None = None, compression: int = zipfile.ZIP_STORED) -> bytes:
    """A package; changed entries replace those of `entries`, None takes one out."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in {**entries(), **(changes or {})}.items():
            if value is not None:
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                archive.writestr(name, data, compress_type=compression)
    return out.getvalue()
