"""GE's variable manager as a Python package: persistent tensors of models on Ascend NPUs, with or without a card.

The names below are imported at their first use, so that `import gevar` alone costs nothing.

Examples
--------
>>> import gevar
>>> gevar.DataType.DT_FLOAT16.size_code
2
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gevar.om import OmBuilder, OmFile, open_om
    from gevar.session import LoadedModel, LoadedTensor, LoadedWeights, Session, load_model, load_weights
    from gevar.types import DataType, Format, TensorDesc
    from gevar.var import Variable, VarManager, VarManagerPool

__all__ = [
    "DataType",
    "Format",
    "LoadedModel",
    "LoadedTensor",
    "LoadedWeights",
    "OmBuilder",
    "OmFile",
    "Session",
    "TensorDesc",
    "VarManager",
    "VarManagerPool",
    "Variable",
    "load_model",
    "load_weights",
    "open_om",
]

_HOMES = {
    **dict.fromkeys(("OmBuilder", "OmFile", "open_om"), "gevar.om"),
    **dict.fromkeys(
        ("LoadedModel", "LoadedTensor", "LoadedWeights", "Session", "load_model", "load_weights"), "gevar.session"
    ),
    **dict.fromkeys(("DataType", "Format", "TensorDesc"), "gevar.types"),
    **dict.fromkeys(("VarManager", "VarManagerPool", "Variable"), "gevar.var"),
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gevar' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
