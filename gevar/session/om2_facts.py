"""What an OM2 package has, and what of it is not supported, as one tree of plain values."""

from collections import Counter

from gevar.om.facts import Json
from gevar.om.om2_constants import om2_constants
from gevar.om.om2_package import Om2Package
from gevar.session.om2_variables import om2_model_variables, om2_variables
from gevar.types.format import format_to_serial


def om2_facts(package: Om2Package) -> dict[str, Json]:
    """Return the facts of a package: constants of each model, variables, and what is there beside them.

    Raises
    ------
    ModelFileError
        A text of the package is not as it should be.
    """
    reasons = Counter(entry.not_supported for entry in package.entries.values() if entry.not_supported)
    return {
        "size": package.source.size_bytes,
        "dialect": "OM2",
        "model_num": package.model_num,
        "atc_command": package.atc_command,
        "entries": [
            {"name": entry.name, "size": entry.size_bytes, "stored": entry.is_stored}
            for entry in package.entries.values()
        ],
        "not_supported": {"loading": "packages are read, their models are not loaded", **_counted(reasons)},
        "models": [_model(package, index) for index in range(package.model_num)],
        "variables": [
            {
                "name": entry.var_name,
                "key": entry.var_key,
                "type": entry.op_type,
                "dtype": entry.tensor_desc.dtype.name,
                "format": format_to_serial(entry.tensor_desc.format),
                "shape": entry.tensor_desc.shape,
                "size": entry.size,
                "logic_addr": entry.logic_addr,
                "init_data_size": len(entry.init_data or b""),
            }
            for entry in om2_variables(package)
        ],
    }


def _counted(reasons: Counter[str]) -> dict[str, Json]:
    return {reason: f"{count} entries" for reason, count in sorted(reasons.items())}


def _model(package: Om2Package, index: int) -> dict[str, Json]:
    found = om2_model_variables(package, index)
    consts: list[Json] = [
        {
            "name": one.op_name,
            "key": one.key,
            "type": one.type,
            "file_name": one.file_name,
            "offset": one.offset,
            "size": one.size_bytes,
            "file_offset": one.file_offset,
        }
        for one in om2_constants(package, index)
    ]
    return {
        "consts": consts,
        "graph_id": None if found is None else found[0],
        "variables": [] if found is None else [meta.var_name for meta in found[1]],
    }
