"""What a bundle promises of its models: they share variables, so these must agree.

Source: GE source, base/common/helper, which checks when a bundle is written, and then only up to the first variable of
a model that is new.
"""

from gevar.errors import ModelFileError
from gevar.om import OmFile
from gevar.om.node import VARIABLE, OmNode
from gevar.runtime import RtSession
from gevar.runtime.rt_var_manager import PLACEMENT_HOST, VARIABLE_PLACEMENT
from gevar.session.file_tensors import files_inside


def check_bundle(om: OmFile, session: RtSession) -> None:
    """Check the variables of a bundle, and memory of the caller's for them.

    Raises
    ------
    ModelFileError
        A variable of two models has another place, shape or type in the second, or lies on the host.
    ValueError
        The memory of the caller's is smaller than the variable space that the bundle states.
    """
    asked = om.bundle_variable_size or 0
    if session.external_var_addr is not None and session.external_var_size < asked:
        reason = f"{session.external_var_size} B are given for variables, {om.path} needs {asked} B"
        raise ValueError(f"{reason}: give a larger block")
    seen: dict[str, tuple[OmFile, OmNode]] = {}
    for inner in files_inside(om):
        for model in inner.models:
            for node in model.variable_nodes():
                if node.type == VARIABLE and node.output_descs:
                    first, other = seen.setdefault(node.name, (inner, node))
                    if first is not inner:
                        _check_same(om, node, other)


def _check_same(om: OmFile, node: OmNode, other: OmNode) -> None:
    one, two = other.output_descs[0], node.output_descs[0]
    if other.output_i != node.output_i or (one.shape, one.dtype) != (two.shape, two.dtype):
        what = f"{one.dtype.name} {one.shape} at {other.output_i} and {two.dtype.name} {two.shape} at {node.output_i}"
        reason = f"{what} in two models of a bundle, which share it"
        raise ModelFileError(om.path, None, f"variable {node.name}", reason)
    for shared in (other, node):
        placement = shared.attr(VARIABLE_PLACEMENT)
        if placement is not None and placement.s.decode(errors="replace") == PLACEMENT_HOST:
            reason = "it lies on the host and is shared by two models of a bundle"
            raise ModelFileError(om.path, None, f"variable {node.name}", reason)
