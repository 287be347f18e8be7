"""FileConstants in the execution graph: a kernel of the init part brings their bytes, once per load.

A session that has a variable of the FileConstant's name gives its place, and no file is touched; so it is for a graph
that a session runs, whose `GraphVarVisitor` has brought the bytes. Else the kernel gets memory and copies the bytes
from the file. Nodes of one slice share the kernel. Memory of the caller's for a file comes before all that.

Source: GE source, runtime/v2/lowering and runtime/v2/kernel, file_constant.cc (FileConstantKernel,
FileConstantUserMemKernel).
Differs: edges 12, 31 and 32 of docs/differences.md: the length of a slice counts, and a file must have all of a weight.
A file that is named by a path counts beside a weight directory, too, as it does for the loader of the first generation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gevar.errors import VariableError
from gevar.memory import MemoryManager
from gevar.runtime.execute_graph import Stage
from gevar.runtime.kernels import KERNELS, Allocator, Kernel, KernelContext, input_of
from gevar.runtime.rt_session import RtSession
from gevar.runtime.rt_var_manager import TensorData, TensorPlacement
from gevar.runtime.variable_lowering import LoweringGlobalData, LowerResult
from gevar.runtime.weight_bytes import region_parts
from gevar.status import ACL_ERROR_GE_PARAM_INVALID, PARAM_INVALID
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var import VarOp
from gevar.var.var_op import FILECONSTANT
from gevar.weights import FileConstantInfo, FileRegion, WeightDirectory, file_constant_info

KERNEL_FILE_CONSTANT: Final = "FileConstantKernel"
KERNEL_FILE_CONSTANT_USER_MEM: Final = "FileConstantUserMemKernel"
_HBM: Final = TensorPlacement.ON_DEVICE_HBM


@dataclass(frozen=True, slots=True)
class FileConstantFiles:
    """Where the bytes of a model's FileConstants are.

    Attributes
    ----------
    weight_dir
        Directory of the files that a `location` names.
    paths_by_id
        Files by `file_id`, see `value_bins`.
    user_memory
        Address and bytes of device memory of the caller's that holds a file from its start, by the file's name.
    """

    weight_dir: WeightDirectory
    paths_by_id: Mapping[str, str] = field(default_factory=dict)
    user_memory: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def lowering_file_constant(op: VarOp, files: FileConstantFiles, shared: LoweringGlobalData) -> LowerResult:
    """Lower a FileConstant to a kernel of the init part, once for each slice of a file.

    Parameters
    ----------
    op
        The node, with its output and its attributes ``shape`` and ``original_shape``.
    files
        Where its bytes are.
    shared
        What the nodes of the model share.

    Raises
    ------
    VariableError
        The node is of another type, or an attribute is missing (status PARAM_INVALID); it names no file (FAILED); or
        the caller's memory is too small (ACL_ERROR_GE_PARAM_INVALID).
    """
    if op.op_type != FILECONSTANT:
        raise VariableError(op.name, f"a {op.op_type} is no {FILECONSTANT}", status=PARAM_INVALID)
    for name in ("shape", "original_shape"):
        try:
            op.ints_attr(name)
        except ValueError as error:
            raise VariableError(op.name, str(error), status=PARAM_INVALID) from error
    info = file_constant_info(op, files.paths_by_id)
    given = files.user_memory.get(info.base_name)
    if given is not None:
        files.weight_dir.check_given(info)
        return _in_user_memory(info, given, shared)
    key = f"{info.named_by} {info.file}:{info.offset}:{info.length}:{info.size_bytes}"

    def make() -> LowerResult:
        inputs = [shared.session(), shared.const(op.name), shared.allocator(_HBM)]
        inputs += [shared.const(info.size_bytes), shared.const(files.weight_dir)]
        return LowerResult(shared.graph.add(Stage.INIT, KERNEL_FILE_CONSTANT, inputs, value=info), _HBM)

    return shared.file_slice(key, make)


def _in_user_memory(info: FileConstantInfo, given: tuple[int, int], shared: LoweringGlobalData) -> LowerResult:
    dev_addr, size_bytes = given
    if size_bytes <= info.offset or size_bytes - info.offset < info.tensor_bytes:
        reason = f"{info.tensor_bytes} B at {info.offset} do not lie in the {size_bytes} B that are given"
        raise VariableError(info.name, f"{reason} for {info.base_name}", status=ACL_ERROR_GE_PARAM_INVALID)
    tensor = TensorData(dev_addr + info.offset, info.tensor_bytes, _HBM)
    holder = shared.const(tensor)
    return LowerResult(shared.graph.add(Stage.INIT, KERNEL_FILE_CONSTANT_USER_MEM, [holder]), _HBM)


def file_constant(context: KernelContext, inputs: Sequence[object], value: object) -> tuple[object, ...]:
    """Give the memory of a FileConstant; inputs are session, name, allocator, size of the output, weight directory.

    Memory that the kernel gets goes when the model is unloaded.

    Raises
    ------
    StateError
        An input is missing (status FAILED).
    VariableError
        Its length is above the size of the output or below that of the tensor; or the session has a smaller variable of
        its name (status PARAM_INVALID).
    LoadError
        The file is not there, ends early, or leads out of its directory.
    AclError, OutOfMemoryError
        The device refuses memory or a copy.
    """
    session = input_of(KERNEL_FILE_CONSTANT, inputs, 0, RtSession)
    name = input_of(KERNEL_FILE_CONSTANT, inputs, 1, str)
    allocator = input_of(KERNEL_FILE_CONSTANT, inputs, 2, Allocator)
    size_bytes = input_of(KERNEL_FILE_CONSTANT, inputs, 3, int)
    weight_dir = input_of(KERNEL_FILE_CONSTANT, inputs, 4, WeightDirectory)
    info = input_of(KERNEL_FILE_CONSTANT, (value,), 0, FileConstantInfo)
    known = _of_session(session, name, context.device_id)
    if known is not None:
        if known.size_bytes < info.tensor_bytes:
            reason = f"the session's variable of this name has {known.size_bytes} B, the tensor {info.tensor_bytes} B"
            raise VariableError(name, reason, status=PARAM_INVALID)
        return (known,)
    region = info.region(weight_dir.find(info))
    return (_loaded(region, max(size_bytes, region.size_bytes), allocator.manager, context),)


def _of_session(session: RtSession, name: str, device_id: DeviceId) -> TensorData | None:
    """The place of a FileConstant that the session has as a variable."""
    if session.rt_var_manager is None:
        return None
    try:
        return session.rt_var_manager.get_var_shape_and_memory(name, device_id).tensor_data
    except VariableError:
        return None


def _loaded(region: FileRegion, size_bytes: int, manager: MemoryManager, context: KernelContext) -> TensorData:
    """Get memory for a slice of a file and copy the slice there."""
    hbm, device_id = MemType.RT_MEMORY_HBM, context.device_id
    addr = manager.malloc_memory(hbm, f"weights of {region.path.name}", max(size_bytes, 1), device_id)
    context.releases.callback(manager.free_memory, hbm, addr, device_id)
    for done, part in region_parts(region):
        manager.memcpy_in(DevAddr(addr + done), size_bytes - done, part, device_id)
    return TensorData(addr, size_bytes, _HBM)


def file_constant_user_mem(_context: KernelContext, inputs: Sequence[object], _value: object) -> tuple[object, ...]:
    """Give memory of the caller's; raises `StateError` where there is none (status FAILED)."""
    return (input_of(KERNEL_FILE_CONSTANT_USER_MEM, inputs, 0, TensorData),)


FILE_CONSTANT_KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {**KERNELS, KERNEL_FILE_CONSTANT: file_constant, KERNEL_FILE_CONSTANT_USER_MEM: file_constant_user_mem}
)
"""All kernels by name, these among them."""
