"""Models with external weights made up at random, loaded, and held against the rules of `file_constant_rules`."""

import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final

from acl_shim.host import host_controls
from gevar import Session, load_model
from gevar.errors import LoadError, VariableError
from gevar.graph import AttrValue, ComputeGraph, Node, OpDesc
from gevar.memory import MemoryManager
from gevar.om.root_model_writer import root_model_blob
from gevar.runtime import FileConstantFiles, LoweringGlobalData, ModelExecutor, RtSession, lowering_file_constant
from gevar.session import ExternalWeightAddress
from gevar.session.loaded_model import LoadedModel
from gevar.types import DataType, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var import VarOp
from gevar.weights import WeightDirectory, value_bins
from tests.helpers import file_constant_rules as rules
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, lasting_model
from tests.helpers.runtime import host_runtime
from tests.helpers.training_graphs import outputs

FULL_EXAMPLES: Final = 5_000
KINDS: Final = ("models", "init graphs", "graphs of sessions")
SIZES: Final = {"a.bin": 4096, "b.bin": 600, "c.bin": 33, "empty.bin": 0}
TENSORS: Final = (0, 1, 4, 16, 31, 32, 33, 64, 500, 600)
STORED: Final = (*(0, 32, 64) * 10, 1, -1, -4)
"""Bytes that an output stores beyond its tensor; often as GE pads."""
FOLDERS: Final = ("", "", "", "", "./", "stage/", "stage/./", "/made/")
ODD_FOLDERS: Final = ("", "../", "dir/")
ERRORS: Final[dict[str, tuple[type[Exception], ...]]] = {
    "variable": (VariableError,),
    "load": (LoadError,),
    "load or variable": (LoadError, VariableError),
    "value": (ValueError,),
}


@dataclass
class Campaign:
    """Examples by kind and outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class World:
    """Folders with files, and the memory of the caller's that holds some of them."""

    root: Path
    chance: random.Random
    files: dict[str, bytes] = field(default_factory=dict)

    def make(self) -> None:
        for folder, names in (
            ("model/weight", SIZES),
            ("other", ("a.bin", "c.bin")),
            ("here", ("a.bin", "b.bin")),
            ("far", ("a.bin", "b.bin")),
        ):
            (self.root / folder / "dir").mkdir(parents=True)
            for name in names:
                path = self.root / folder / name
                path.write_bytes(self.chance.randbytes(SIZES[name]))
                self.files[str(path)] = path.read_bytes()

    def disk(self, weight_dir: str | None, *, has_model: bool) -> rules.Disk:
        folders = {str(path) for path in self.root.rglob("*") if path.is_dir()}
        model_dir = str(self.root / "model") if has_model else None
        found = str(self.root / weight_dir) if weight_dir else model_dir and f"{model_dir}/weight"
        return rules.Disk(self.files, folders, str(self.root / "here"), found, model_dir)


def run(count: int, seed: int) -> Campaign:
    """Make so many examples of each kind.

    Raises
    ------
    AssertionError
        Something is not as the rules say, or was left on the device.
    Exception
        Whatever else was raised.
    """
    seen, chance = Campaign(), random.Random(seed)
    host_controls(host_runtime()).configure(devices=2)
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder).resolve(), chance)
        world.make()
        here = Path.cwd()
        os.chdir(world.root / "here")
        try:
            for _ in range(count):
                models(world, seen)
                init_graph(world, seen)
                graph_of_session(world, seen)
        finally:
            os.chdir(here)
    return seen


# --- what is made up --------------------------------------------------------------------------------------------------


def bins(world: World) -> str:
    """The text of the option of ids, sometimes a wrong one."""
    chance, root = world.chance, world.root
    files = {
        "one": f"{root}/far/a.bin",
        "two": "b.bin",
        "gone": f"{root}/far/none.bin",
        "void": "",
        "dir": f"{root}/far",
    }
    rows: list[dict[str, object]] = [
        {"value_bin_id": key, "value_bin_file": file} for key, file in files.items() if chance.random() < 0.9
    ]
    rows += [{"value_bin_id": "one", "value_bin_file": "a.bin"}, {"else": 1}]
    cut = chance.randrange(len(rows))
    if chance.random() < 0.03:
        rows.insert(0, {"value_bin_id": 3})
    text = json.dumps({"value_bins": rows[:cut], "zz": rows[cut:]})
    return chance.choice(("", "{", "[]", '{"a": 1}', text[:-1])) if chance.random() < 0.03 else text


def weight(world: World, number: int, known: Sequence[rules.Weight]) -> rules.Weight:
    """A FileConstant, often one that is near those before."""
    chance, root = world.chance, world.root
    if known and chance.random() < 0.35:
        like = chance.choice(known)
        names = {"location": like.location, "file_path": like.file_path, "file_id": like.file_id}
        offset, length, tensor = like.offset, like.length, like.tensor_bytes
        if chance.random() < 0.3:
            tensor = chance.choice(TENSORS)
            length = tensor if length else 0
        if chance.random() < 0.1 and names["location"]:
            names = {"location": "", "file_path": names["location"], "file_id": ""}
    else:
        is_odd = chance.random() < 0.12
        file = chance.choice(
            ("empty.bin", "none.bin", "dir", "b.bin", "c.bin") if is_odd else ("a.bin", "a.bin", "b.bin")
        )
        paths = [file, f"./{file}", f"{root}/here/{file}", f"{root}/other/{file}"]
        paths += ["../far/a.bin", f"{root}/far/{file}", f"{root}/model/weight/{file}"] if is_odd else []
        names = {
            "location": chance.choice(ODD_FOLDERS if is_odd else FOLDERS) + file if chance.random() < 0.7 else "",
            "file_path": chance.choice(paths) if chance.random() < 0.5 else "",
            "file_id": chance.choice(("gone", "void", "dir", "unknown", "") if is_odd else ("one", "two")),
        }
        tensor = chance.choice(TENSORS)
        offset = chance.choice((568, 4064, 4096, 10**6, 2**62, -1) if is_odd else (0, 0, 0, 1, 16, 32, 512))
        length = chance.choice((tensor + 1, tensor - 1, 2**40) if is_odd else (0, tensor, tensor))
    stored = 0 if chance.random() < 0.05 else max(tensor + chance.choice(STORED), 0)
    near = (BASE + 2048 * (number - 1)) if number and chance.random() < 0.1 else BASE + 2048 * number
    return rules.Weight(f"w{number}", tensor, stored, near, offset=offset, length=length, **names)


def weights_of(world: World) -> list[rules.Weight]:
    found: list[rules.Weight] = []
    for number in range(world.chance.choice((1, 2, 2, 3, 4))):
        found.append(weight(world, number, found))
    return found


def op_attrs(one: rules.Weight) -> dict[str, AttrValue]:
    texts = {key: getattr(one, key) for key in ("location", "file_path", "file_id") if getattr(one, key)}
    return {**texts, "offset": one.offset, "length": one.length}


def desc_of(one: rules.Weight) -> TensorDesc:
    return TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (one.tensor_bytes,), size=one.stored_bytes)


def om_of(weights: Sequence[rules.Weight]) -> bytes:
    ops = []
    for one in weights:
        attrs = {
            key: build.attr_s(value) if isinstance(value, str) else build.attr_i(int(str(value)))
            for key, value in op_attrs(one).items()
        }
        desc = build.tensor_desc((one.tensor_bytes,), build.DT_UINT8, size=one.stored_bytes)
        ops.append(build.op(one.name, "FileConstant", attrs, [desc], output_i=[one.logic_addr]))
    return lasting_model(ops)


@contextmanager
def memory_of_caller(
    world: World, memory: MemoryManager, device_id: DeviceId
) -> Iterator[dict[str, tuple[ExternalWeightAddress, bytes]]]:
    """Memory that holds some files by their names; sometimes it is too small."""
    found: dict[str, tuple[ExternalWeightAddress, bytes]] = {}
    share = world.chance.choice((0, 0, 0.5))
    with ExitStack() as stack:
        for name in SIZES:
            if world.chance.random() < share:
                data = world.chance.randbytes(32 * world.chance.choice((1, 4, 19, 128)))
                addr = memory.malloc_memory(MemType.RT_MEMORY_HBM, "caller", len(data), device_id)
                stack.callback(memory.free_memory, MemType.RT_MEMORY_HBM, addr, device_id)
                memory.memcpy_in(addr, len(data), data, device_id)
                found[name] = ExternalWeightAddress(addr, len(data)), data
        yield found


# --- models by the first loader ---------------------------------------------------------------------------------------


def models(world: World, seen: Campaign) -> None:
    """Load two models into one session, on one device or two; the second one is sometimes the first again."""
    text, chance = bins(world), world.chance
    with Session(host_runtime(), options={"ge.exec.value_bins": text}) as session, ExitStack() as stack:
        first = weights_of(world)
        loaded: list[tuple[LoadedModel, Mapping[str, rules.Place]]] = []
        blocks: dict[DeviceId, dict[object, list[int]]] = {DeviceId(0): {}, DeviceId(1): {}}
        for weights in (first, first if chance.random() < 0.5 else weights_of(world)):
            device_id = DeviceId(chance.randrange(2))
            given = stack.enter_context(memory_of_caller(world, session.memory_manager, device_id))
            found = model(world, session, weights, text, given, device_id, blocks[device_id])
            seen.outcomes["models loaded" if found else "models refused"] += 1
            if found:
                loaded.append(found)
        while loaded:
            for one, places in loaded:
                check_bytes(one, places)
            loaded.pop(0)[0].close()
        assert session.external_weights.device_bytes == 0


def model(
    world: World,
    session: Session,
    weights: Sequence[rules.Weight],
    text: str,
    given: Mapping[str, tuple[ExternalWeightAddress, bytes]],
    device_id: DeviceId,
    blocks: dict[object, list[int]],
) -> tuple[LoadedModel, Mapping[str, rules.Place]] | None:
    """Load a model in one of the ways that there are; None where it is refused, as it must be then."""
    chance = world.chance
    weight_dir, has_model = chance.choice(
        ((None, True), (None, True), ("other", True), ("other", False), (None, False))
    )
    disk = world.disk(weight_dir, has_model=has_model)
    path = world.root / "model" / "m.om"
    path.write_bytes(om_of(weights))
    places, refusals = dict[str, rules.Place](), list[rules.Refusal]()
    try:
        places, refusals = rules.load(
            weights, disk, rules.ids_of(text), {name: data for name, (_, data) in given.items()}
        )
    except rules.Refusal as refusal:
        refusals = [refusal]

    def load() -> LoadedModel:
        return load_model(
            path if has_model else path.read_bytes(),
            session=session,
            device_id=device_id,
            weight_dir=world.root / weight_dir if weight_dir else None,
            external_weights={name: memory for name, (memory, _) in given.items()},
        )

    loaded = attempt(load, refusals, session)
    if loaded is None:
        return None
    assert loaded.statistics.device_bytes == rules.new_bytes(places.values(), blocks)
    check_places(loaded, weights, places, given)
    for one in weights:
        assert session.var_manager.is_var_ready(one.name, desc_of(one), device_id)
    check_bytes(loaded, places)
    return loaded, places


def attempt(load: Callable[[], LoadedModel], refusals: Sequence[rules.Refusal], session: Session) -> LoadedModel | None:
    """Load, or see the refusal that the rules know of; nothing is left on the device then."""
    counts, before = session.memory_manager.counts, session.external_weights.device_bytes
    live = counts.live_blocks, counts.live_bytes
    try:
        loaded = load()
    except (LoadError, VariableError, ValueError) as error:
        check_refusal(error, refusals)
        counts = session.memory_manager.counts
        assert (counts.live_blocks, counts.live_bytes) == live
        assert session.external_weights.device_bytes == before
        return None
    assert not refusals, f"loaded, in spite of {refusals}"
    return loaded


def check_refusal(error: Exception, refusals: Sequence[rules.Refusal]) -> None:
    text = str(error)
    assert "\n" not in text
    matching = [
        one for one in refusals if isinstance(error, ERRORS[one.kind]) and all(part in text for part in one.tells)
    ]
    assert matching, f"{type(error).__name__}: {text} is none of {refusals}"


def check_places(
    loaded: LoadedModel,
    weights: Sequence[rules.Weight],
    places: Mapping[str, rules.Place],
    given: Mapping[str, tuple[ExternalWeightAddress, bytes]],
) -> None:
    """Look where the weights lie: blocks of one slice at the place that the rules say, others apart."""
    spans: set[tuple[int, int, object]] = set()
    for one in weights:
        place, row = places[one.name], loaded.tensor(one.name)
        if not place.block_bytes:
            assert row.dev_addr is None
            continue
        assert row.dev_addr is not None
        assert row.dev_addr == loaded.models[0].file_constants[LogicAddr(one.logic_addr)]
        start = row.dev_addr - place.inner
        if place.block[0] == "given":
            assert start == given[str(place.block[1])][0].dev_addr
        spans.add((start, start + place.block_bytes, place.block))
    for (start, end, block), (other_start, other_end, other) in combinations(spans, 2):
        assert (start, block) == (other_start, other) or end <= other_start or other_end <= start


def check_bytes(loaded: LoadedModel, places: Mapping[str, rules.Place]) -> None:
    for name, place in places.items():
        if place.data:
            assert loaded.read(name).tobytes() == place.data, name


# --- the kernel of the init part --------------------------------------------------------------------------------------


def init_graph(world: World, seen: Campaign) -> None:
    """Lower weights into an init part, without variables, and run it: bytes by slices, never by whole files."""
    text, weights, device_id = bins(world), weights_of(world), DeviceId(0)
    disk = world.disk("other", has_model=False)
    with Session(host_runtime()) as session:
        memory = session.memory_manager
        with memory_of_caller(world, memory, device_id) as given:
            user = {name: (int(one.dev_addr), one.size_bytes) for name, (one, _) in given.items()}
            places, refusals = init_rules(weights, disk, text, {name: data for name, (_, data) in given.items()})
            live = memory.counts.live_blocks
            try:
                files = FileConstantFiles(WeightDirectory(world.root / "other", None), value_bins(text), user)
                shared = LoweringGlobalData()
                shapes = {one.name: (one.tensor_bytes,) for one in weights}
                holders = {
                    one.name: lowering_file_constant(
                        VarOp(
                            one.name,
                            "FileConstant",
                            (desc_of(one),),
                            attrs={**_plain(one), "shape": shapes[one.name], "original_shape": shapes[one.name]},
                        ),
                        files,
                        shared,
                    ).addr
                    for one in weights
                }
                with ModelExecutor(shared.graph, RtSession(session.id), memory, device_id) as executor:
                    executor.load()
                    assert not refusals, f"loaded, in spite of {refusals}"
                    values = executor.execute(list(holders.values()))
                    for name, value in zip(holders, values, strict=True):
                        assert value[: len(places[name].data)] == places[name].data, name
                seen.outcomes["init graphs loaded"] += 1
            except (LoadError, VariableError, ValueError) as error:
                check_refusal(error, refusals)
                seen.outcomes["init graphs refused"] += 1
            assert memory.counts.live_blocks == live


def _plain(one: rules.Weight) -> dict[str, int | str]:
    return {key: value for key, value in op_attrs(one).items() if isinstance(value, int | str)}


def init_rules(
    weights: Sequence[rules.Weight], disk: rules.Disk, text: str, given: Mapping[str, bytes]
) -> tuple[dict[str, rules.Place], list[rules.Refusal]]:
    """Section 5.5, without variables: each weight by itself, memory of the caller's first."""
    places: dict[str, rules.Place] = {}
    refusals: list[rules.Refusal] = []
    of_caller: list[tuple[rules.Weight, rules.Source]] = []
    for one in weights:
        try:
            source = rules.source_of(one, rules.ids_of(text))
            memory = given.get(source.path.rpartition("/")[2])
            if memory is not None:
                of_caller.append((one, source))
                rules.check_given(of_caller, disk)
                places[one.name] = rules.given_place(one, source, memory, is_strict=True)
            else:
                path = rules.path_of(one, source, disk)
                places[one.name] = rules.own_place(one, source, path, disk.files[path])
        except rules.Refusal as refusal:
            refusals.append(refusal)
    return places, refusals


# --- graphs of a session ----------------------------------------------------------------------------------------------


def graph_of_session(world: World, seen: Campaign) -> None:
    """Run a graph that gives its weights, twice, with the memory of variables freed in between."""
    text = bins(world)
    weights = [one for one in weights_of(world) if one.tensor_bytes]
    if not weights:
        return
    padded = [rules.Weight(**{**vars(one), "stored_bytes": -(-(one.tensor_bytes + 32) // 32) * 32}) for one in weights]
    places, refusals = init_rules(padded, world.disk("other", has_model=False), text, {})
    options = {"ge.exec.value_bins": text, "ge.externalWeightDir": str(world.root / "other")}
    with Session(host_runtime()) as session:
        graph = ComputeGraph("g")
        outputs(graph, *(_given_out(graph, one) for one in weights))
        session.add_graph(1, graph, options)
        try:
            for _ in range(2):
                results = session.run(1)
                assert not refusals, f"run, in spite of {refusals}"
                for one, array in zip(weights, results, strict=True):
                    assert array.tobytes() == places[one.name].data, one.name
                as_model(world, session, places, text)
                session.var_manager.free_var_memory()
            seen.outcomes["graphs of sessions loaded"] += 1
        except (LoadError, VariableError, ValueError) as error:
            check_refusal(error, refusals)
            assert session.memory_manager.counts.live_blocks == 0
            assert session.var_manager.get_var_malloc_mem_size() == 0
            seen.outcomes["graphs of sessions refused"] += 1


def as_model(world: World, session: Session, places: Mapping[str, rules.Place], text: str) -> None:
    """Load the model that the graph became: in its session it has the variables, elsewhere the same bytes."""
    data, ids = root_model_blob(session.compile(1).model).read(), rules.ids_of(text)
    with load_model(data, session=session, weight_dir=world.root / "other", paths_by_id=ids) as loaded:
        check_bytes(loaded, places)
        assert {loaded.tensor(name).sharing for name in places} == {"shared: variable of the session"}
        assert (loaded.upload.size_bytes, loaded.statistics.device_bytes) == (0, 0)
    with load_model(data, backend="host", weight_dir=world.root / "other", paths_by_id=ids) as loaded:
        check_bytes(loaded, places)


def _given_out(graph: ComputeGraph, one: rules.Weight) -> Node:
    desc = TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (one.tensor_bytes,), size=one.tensor_bytes)
    source = graph.add_node(OpDesc(one.name, "FileConstant", outputs=[desc], attrs=op_attrs(one)))
    node = graph.add_node(OpDesc(f"{one.name}_out", "Reshape", inputs=[desc], outputs=[desc]))
    source.out_data_anchor(0).link_to(node.in_data_anchor(0))
    return node
