"""FileConstants in the execution graph: one kernel for each slice, bytes from the file, memory of the caller's."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gevar.errors import AclError, LoadError, StateError, VariableError
from gevar.runtime import (
    FileConstantFiles,
    LoweringGlobalData,
    LowerResult,
    ModelExecutor,
    ModelRtVarManager,
    RtSession,
    lowering_file_constant,
)
from gevar.status import ACL_ERROR_GE_PARAM_INVALID, FAILED, PARAM_INVALID
from gevar.types import DataType, DeviceId, Format, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from gevar.weights import WeightDirectory
from tests.helpers.var_memory import FakeMemory

ZERO = DeviceId(0)
DATA = bytes(range(256))
DESC = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=64)
SHAPES = {"shape": (4,), "original_shape": (4,)}


def constant(name: str, **attrs: int | str | tuple[int, ...]) -> VarOp:
    return VarOp(name, "FileConstant", (DESC,), attrs={**SHAPES, **attrs})


class Model:
    """A folder with a file, and a graph."""

    def __init__(self, folder: Path) -> None:
        (folder / "weight").mkdir(exist_ok=True)
        (folder / "weight" / "w.bin").write_bytes(DATA)
        self.files = FileConstantFiles(WeightDirectory(folder / "weight", None))
        self.memory, self.session, self.shared = FakeMemory(), RtSession(1), LoweringGlobalData()

    def lower(self, op: VarOp, user_memory: Mapping[str, tuple[int, int]] | None = None) -> LowerResult:
        files = FileConstantFiles(self.files.weight_dir, self.files.paths_by_id, user_memory or {})
        return lowering_file_constant(op, files, self.shared)

    def executor(self) -> ModelExecutor:
        return ModelExecutor(self.shared.graph, self.session, self.memory, ZERO)

    def kernels(self) -> list[str]:
        return [node.kernel for node in self.shared.graph.init if "FileConstant" in node.kernel]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(tmp_path)


def test_bytes_come_once_per_load(model: Model) -> None:
    holder = model.lower(constant("a", location="/elsewhere/w.bin", offset=8, length=16)).addr
    with model.executor() as executor:
        assert model.memory.blocks == {}
        executor.load()
        assert len(model.memory.blocks) == 1
        for _ in range(2):
            assert executor.execute([holder])[0][:16] == DATA[8:24]
        assert len(model.memory.blocks) == 1
    assert model.memory.blocks == {}


def test_nodes_of_one_slice_share_a_kernel(model: Model) -> None:
    one = model.lower(constant("a", location="w.bin", offset=8, length=16))
    assert model.lower(constant("b", location="w.bin", offset=8, length=16)) == one
    assert model.lower(constant("c", location="w.bin", offset=8, length=32)) != one  # edge 12: the length counts
    assert model.lower(constant("d", location="w.bin", offset=0, length=16)) != one
    assert model.kernels() == ["FileConstantKernel"] * 3
    assert model.shared.graph.main == []


def test_a_path_and_an_id(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far.bin").write_bytes(DATA[64:])
    model.files = FileConstantFiles(WeightDirectory(None, None), {"one": str(tmp_path / "far.bin")})
    holders = [model.lower(constant("p", file_path="far.bin")).addr, model.lower(constant("i", file_id="one")).addr]
    with model.executor() as executor:
        executor.load()
        assert [value[:16] for value in executor.execute(holders)] == [DATA[64:80]] * 2


def test_a_variable_of_the_session_comes_first(model: Model, tmp_path: Path) -> None:
    """No file is touched then."""
    vm = VarManager(1)
    manager = ModelRtVarManager(1, vm, model.memory)
    manager.init(ZERO, 1 << 37, 4096)
    manager.restore_device_variables([VarOp("a", "Variable", (DESC,), (1 << 37,))], ZERO)
    model.session = RtSession(1, manager)
    addr = vm.get_var_addr("a", DESC)
    vm.write_var_memory(addr, DATA[100:164], ZERO)
    holder = model.lower(constant("a", location="gone.bin")).addr
    other = model.lower(constant("b", location="w.bin")).addr
    with model.executor() as executor:
        executor.load()
        assert executor.execute([holder, other]) == [DATA[100:164], DATA[:64]]


def test_a_variable_of_the_session_that_is_too_small(model: Model) -> None:
    vm = VarManager(1)
    manager = ModelRtVarManager(1, vm, model.memory)
    manager.init(ZERO, 1 << 37, 4096)
    small = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (8,), size=8)
    manager.restore_device_variables([VarOp("a", "Variable", (small,), (1 << 37,))], ZERO)
    model.session = RtSession(1, manager)
    model.lower(constant("a", location="w.bin"))
    with model.executor() as executor, pytest.raises(VariableError, match=r"'a'.* has 8 B, the tensor 16 B") as caught:
        executor.load()
    assert caught.value.status == PARAM_INVALID


def test_a_path_and_a_location_of_one_name_are_two_files(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.bin").write_bytes(DATA[64:])
    holders = [model.lower(constant(attr, **{attr: "w.bin"})).addr for attr in ("location", "file_path")]
    assert len(model.kernels()) == 2
    with model.executor() as executor:
        executor.load()
        assert executor.execute(holders) == [DATA[:64], DATA[64:128]]


def test_memory_of_the_caller_for_two_files_of_one_name(model: Model) -> None:
    user_memory = {"w.bin": (1 << 40, 64)}
    model.lower(constant("a", location="one/w.bin"), user_memory)
    model.lower(constant("b", location="w.bin"), user_memory)
    with pytest.raises(VariableError, match=r"'c': memory is given for w\.bin, .* in one and in two"):
        model.lower(constant("c", location="two/w.bin"), user_memory)


def test_memory_of_the_caller_comes_before_the_file(model: Model) -> None:
    addr = model.memory.malloc_memory(MemType.RT_MEMORY_HBM, "of the caller", 64, ZERO)
    model.memory.memcpy_in(addr, 64, DATA[:64], ZERO)
    holder = model.lower(constant("a", location="x/gone.bin", offset=8), {"gone.bin": (addr, 64)}).addr
    assert model.kernels() == ["FileConstantUserMemKernel"]
    with model.executor() as executor:
        executor.load()
        assert executor.execute([holder]) == [DATA[8:24]]
    assert list(model.memory.blocks) == [(ZERO, addr)]


@pytest.mark.parametrize(("offset", "size"), [(64, 64), (65, 64), (52, 64), (0, 15), (0, 0)])
def test_memory_of_the_caller_that_is_too_small(model: Model, offset: int, size: int) -> None:
    with pytest.raises(VariableError, match=f"16 B at {offset} do not lie in the {size} B") as caught:
        model.lower(constant("a", location="w.bin", offset=offset), {"w.bin": (1 << 40, size)})
    assert caught.value.status == ACL_ERROR_GE_PARAM_INVALID


@pytest.mark.parametrize(
    ("op", "status", "words"),
    [
        (VarOp("v", "Variable", (DESC,)), PARAM_INVALID, "no FileConstant"),
        (VarOp("a", "FileConstant", (DESC,), attrs={"location": "w.bin"}), PARAM_INVALID, "shape"),
        (VarOp("a", "FileConstant", (DESC,), attrs={"location": "w.bin", "shape": (4,)}), PARAM_INVALID, "original"),
        (constant("a"), FAILED, "names no file"),
        (constant("a", file_id="none"), FAILED, "file_id 'none'"),
        (constant("a", location="w.bin", offset=-1), PARAM_INVALID, "give numbers from 0"),
    ],
)
def test_nodes_that_are_refused(model: Model, op: VarOp, status: int, words: str) -> None:
    with pytest.raises(VariableError, match=words) as caught:
        model.lower(op)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"location": "none.bin"}, "cannot be opened"),
        ({"location": "../w.bin"}, "leads out"),
        ({"location": "w.bin", "offset": 250, "length": 16}, "there are 256 B"),
    ],
)
def test_files_that_are_refused_leave_nothing(model: Model, attrs: dict[str, int | str], words: str) -> None:
    model.lower(constant("good", location="w.bin"))
    model.lower(constant("a", **attrs))
    executor = model.executor()
    with pytest.raises(LoadError, match=words):
        executor.load()
    assert model.memory.blocks == {}
    assert not executor.is_loaded


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_a_call_that_is_refused_leaves_nothing(model: Model, call: int) -> None:
    for name, offset in (("a", 0), ("b", 64)):
        model.lower(constant(name, location="w.bin", offset=offset))
    model.memory.fail_at = call
    with pytest.raises(AclError):
        model.executor().load()
    assert model.memory.blocks == {}


def test_a_kernel_without_its_inputs(model: Model) -> None:
    from gevar.runtime import Stage

    for kernel in ("FileConstantKernel", "FileConstantUserMemKernel"):
        model.shared.graph.add(Stage.INIT, kernel, [])
        with pytest.raises(StateError, match=f"input 0 of {kernel}") as caught:
            model.executor().load()
        assert caught.value.status == FAILED
        model.shared = LoweringGlobalData()
