"""Options that say whether variables may be given other formats.

Source: GE source, compiler/graph/manager/graph_manager.cc, GraphManager::OptimizeStage1, ParseOptions.
"""

from collections.abc import Mapping
from typing import Final

from gevar.errors import GraphError
from gevar.status import GE_GRAPH_OPTIONS_INVALID, UNSUPPORTED

VARIABLE_ACC: Final = "ge.exec.variable_acc"
"""Option: variables are given other formats, unless the value is exactly `False`."""

ALLOW_MULTI_GRAPH_PARALLEL_COMPILE: Final = "ge.AllowMultiGraphParallelCompile"
"""Option: with `1` graphs are compiled at the same time, so no graph may change what others take for granted."""


def variable_acc(options: Mapping[str, str]) -> bool:
    """Tell whether variables may be given other formats.

    Raises
    ------
    GraphError
        Both are asked for: graphs compiled at the same time, and other formats (status GE_GRAPH_OPTIONS_INVALID).

    Examples
    --------
    >>> variable_acc({}), variable_acc({"ge.AllowMultiGraphParallelCompile": "1"})
    (True, False)
    """
    is_parallel = options.get(ALLOW_MULTI_GRAPH_PARALLEL_COMPILE) == "1"
    if is_parallel and options.get(VARIABLE_ACC) == "True":
        reason = f"options {ALLOW_MULTI_GRAPH_PARALLEL_COMPILE}=1 and {VARIABLE_ACC}=True exclude each other (E10001)"
        raise GraphError(None, f"{reason}; leave one out", status=GE_GRAPH_OPTIONS_INVALID)
    return not is_parallel and options.get(VARIABLE_ACC) != "False"


def refuse_reading_back(options: Mapping[str, str]) -> None:
    """Refuse to read a compiled model back from the graph manager where variables may change under it.

    Raises
    ------
    GraphError
        `ge.exec.variable_acc` is exactly `True` (status UNSUPPORTED).
    """
    if options.get(VARIABLE_ACC) == "True":
        reason = f"a compiled model is not read back while option {VARIABLE_ACC} is True; set it to False"
        raise GraphError(None, reason, status=UNSUPPORTED)
