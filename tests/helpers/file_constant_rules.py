"""The rules of external weights and place holders a second time, in plain Python, without any code of the project.

What GE does quietly (a file that ends early, a folder in place of a file, negative numbers, two files of one name,
bytes that nobody brings) is a refusal here. A refusal says the kind of the error and what its text must tell.
"""

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

UNIT = 512
GUARDS = 2 * UNIT


class Refusal(Exception):
    """Why something is refused: "variable" (what a node says), "load" (what is in files), "value" (an argument)."""

    def __init__(self, kind: str, tells: tuple[str, ...] = ()) -> None:
        super().__init__(kind, tells)
        self.kind, self.tells = kind, tells


@dataclass(frozen=True)
class Weight:
    """A FileConstant: attributes, bytes of its tensor, and those that its output stores."""

    name: str
    tensor_bytes: int
    stored_bytes: int
    logic_addr: int = 0
    location: str = ""
    file_path: str = ""
    file_id: str = ""
    offset: int = 0
    length: int = 0


@dataclass(frozen=True)
class Source:
    """Where a weight says its bytes are."""

    attr: str
    path: str
    offset: int
    length: int


@dataclass
class Disk:
    """Regular files with their bytes, folders, and the folders that count; all paths are real ones."""

    files: dict[str, bytes]
    folders: set[str]
    work: str
    weight_dir: str | None
    model_dir: str | None = None
    folder_of_name: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """What a weight must be on the device: its block, where it lies there, the block's size, and the tensor's bytes."""

    block: tuple[object, ...]
    inner: int
    block_bytes: int
    data: bytes


def ids_of(text: str) -> dict[str, str]:
    """Section 5.2: every value of the top-level object is a list of records; the first of an id counts."""
    if not text:
        return {}
    try:
        top = json.loads(text)
    except ValueError:
        raise Refusal("value", ("ge.exec.value_bins",)) from None
    if not isinstance(top, dict):
        raise Refusal("value", ("ge.exec.value_bins",))
    found: dict[str, str] = {}
    for records in top.values():
        if not isinstance(records, list):
            raise Refusal("value", ("ge.exec.value_bins",))
        for record in records:
            if not isinstance(record, dict):
                raise Refusal("value", ("ge.exec.value_bins",))
            pair = record.get("value_bin_id", ""), record.get("value_bin_file", "")
            if not all(isinstance(text, str) for text in pair):
                raise Refusal("value", ("ge.exec.value_bins",))
            found.setdefault(*pair)
    return found


def source_of(weight: Weight, ids: Mapping[str, str]) -> Source:
    """Section 5.1: location, then file_path, then file_id; only the first brings offset and length."""
    if weight.location:
        if weight.offset < 0 or weight.length < 0:
            raise Refusal("variable", (weight.name, str(weight.offset), str(weight.length)))
        return Source("location", weight.location, weight.offset, weight.length)
    if weight.file_path:
        return Source("file_path", weight.file_path, 0, 0)
    path = ids.get(weight.file_id, "") if weight.file_id else ""
    if not path:
        raise Refusal("variable", (weight.name, weight.file_id))
    return Source("file_id", path, 0, 0)


def path_of(weight: Weight, source: Source, disk: Disk) -> str:
    """Section 5.4, step 2, and what must hold of the file: it is there, regular, and inside the folders that count."""
    tells = (weight.name,)
    if source.attr == "location":
        if ".." in source.path.split("/") or disk.weight_dir is None:
            raise Refusal("load", tells)
        folder, name = posixpath.split(source.path)
        if name in ("", "."):
            raise Refusal("load", tells)
        folder = posixpath.normpath(folder) if folder else "."
        if folder != "." and disk.folder_of_name.setdefault(name, folder) != folder:
            raise Refusal("load", (*tells, name))
        path = posixpath.join(disk.weight_dir, name)
    else:
        path = posixpath.normpath(posixpath.join(disk.work, source.path))
        roots = [root for root in (disk.weight_dir, disk.model_dir, disk.work) if root is not None]
        is_inside = any(path == root or path.startswith(root + "/") for root in roots)
        if source.attr == "file_path" and (".." in source.path.split("/") or not is_inside):
            raise Refusal("load", tells)
    if source.path.endswith("/") or path not in disk.files:
        raise Refusal("load", (*tells, posixpath.basename(path)))
    return path


def own_place(weight: Weight, source: Source, path: str, data: bytes) -> Place:
    """Sections 5.3 and 5.4, individual: a block of max(stored, tensor, length) bytes, filled from the offset on."""
    stored = weight.stored_bytes or weight.tensor_bytes
    if source.length > stored:
        raise Refusal("variable", (weight.name, f"{source.length} B", f"{stored} B"))
    needed = source.length or min(weight.tensor_bytes, stored)
    if needed and source.offset + needed > len(data):
        raise Refusal("load", (path, f"offset {source.offset}", f"{needed} B", f"{len(data)} B"))
    if (source.length or stored) < weight.tensor_bytes:
        raise Refusal("variable", (weight.name, path, f"{weight.tensor_bytes} B"))
    read = source.length or min(stored, max(len(data) - source.offset, 0))
    block = max(stored, weight.tensor_bytes, source.length)
    end = source.offset + weight.tensor_bytes
    return Place(("slice", path, source.offset, read), 0, block, data[source.offset : end])


def place_in_file(weight: Weight, source: Source, path: str, data: bytes) -> Place:
    """Section 5.4, combined: the whole file is one block, and the tensor lies at its offset in it."""
    end = source.offset + max(weight.tensor_bytes, source.length)
    if end > len(data):
        raise Refusal("load or variable", (path, str(source.offset), f"{len(data)} B"))
    tensor = data[source.offset : source.offset + weight.tensor_bytes]
    return Place(("slice", path, 0, len(data)), source.offset, len(data), tensor)


def given_place(weight: Weight, source: Source, given: bytes, *, is_strict: bool = False) -> Place:
    """Sections 5.4 and 5.6: memory of the caller's must hold offset + tensor; for an init graph more than that."""
    end = source.offset + weight.tensor_bytes
    if end > len(given) or (is_strict and source.offset >= len(given)):
        name = posixpath.basename(source.path)
        raise Refusal(
            "variable", (weight.name, name, str(source.offset), f"{len(given)} B", f"{weight.tensor_bytes} B")
        )
    return Place(("given", posixpath.basename(source.path)), source.offset, len(given), given[source.offset : end])


def check_given(weights: Iterable[tuple[Weight, Source]], disk: Disk) -> None:
    """Memory of the caller's goes by base name (section 5.6): two files of one name are a refusal."""
    folders: dict[str, str] = {}
    paths: dict[str, str] = {}
    for weight, source in weights:
        folder, name = posixpath.split(source.path)
        folder = posixpath.normpath(folder) if folder else "."
        if source.attr == "location":
            path = f"{disk.weight_dir}/{name}"
            if folder != "." and folders.setdefault(name, folder) != folder:
                raise Refusal("variable", (weight.name, name))
        else:
            path = posixpath.normpath(posixpath.join(disk.work, source.path))
        if paths.setdefault(name, path) != path:
            raise Refusal("variable", (weight.name, name))


def load(
    weights: Sequence[Weight], disk: Disk, ids: Mapping[str, str], given: Mapping[str, bytes]
) -> tuple[dict[str, Place], list[Refusal]]:
    """Place the weights of a model by the first loader; where anything is refused, all that is, and no places."""
    refusals: list[Refusal] = []
    sources: list[tuple[Weight, Source]] = []
    for weight in weights:
        try:
            sources.append((weight, source_of(weight, ids)))
        except Refusal as refusal:
            refusals.append(refusal)
    of_caller = {weight.name: given.get(posixpath.basename(source.path)) for weight, source in sources}
    paths: dict[str, str] = {}
    for weight, source in sources:
        try:
            memory = of_caller[weight.name]
            paths[weight.name] = (
                posixpath.basename(source.path) if memory is not None else path_of(weight, source, disk)
            )
        except Refusal as refusal:
            refusals.append(refusal)
    try:
        check_given([one for one in sources if of_caller[one[0].name] is not None], disk)
    except Refusal as refusal:
        refusals.append(refusal)
    is_combined = len(set(paths.values())) == 1 and len(paths) == len(weights)
    places: dict[str, Place] = {}
    for weight, source in sources:
        memory, path = of_caller[weight.name], paths.get(weight.name)
        try:
            if memory is not None:
                places[weight.name] = given_place(weight, source, memory)
            elif path is not None:
                place = place_in_file if is_combined else own_place
                places[weight.name] = place(weight, source, path, disk.files[path])
        except Refusal as refusal:
            refusals.append(refusal)
    places = at_one_address(weights, places)
    refusals += addresses(weights, places, {weight.name: source for weight, source in sources})
    return ({}, refusals) if refusals else (places, [])


def at_one_address(weights: Sequence[Weight], places: Mapping[str, Place]) -> dict[str, Place]:
    """Section 1.8: slices that differ in length alone may have one address; their block must hold the longest."""
    found = dict(places)
    for weight in weights:
        place = found.get(weight.name)
        if place is None or place.block[0] != "slice":
            continue
        alike = [
            found[other.name]
            for other in weights
            if other.logic_addr == weight.logic_addr
            and other.name in found
            and found[other.name].block[:3] == place.block[:3]
        ]
        block = max((one.block for one in alike), key=lambda block: int(str(block[3])))
        found[weight.name] = Place(block, place.inner, max(one.block_bytes for one in alike), place.data)
    return found


def addresses(weights: Sequence[Weight], places: Mapping[str, Place], sources: Mapping[str, Source]) -> list[Refusal]:
    """Section 5.4: the map goes from logical to device address, so an address stands for one place of one file."""
    known: dict[int, object] = {}
    for weight in weights:
        place = places.get(weight.name)
        if place is not None and place.block_bytes:
            what = (place.block[:2], sources[weight.name].offset)
            if known.setdefault(weight.logic_addr, what) != what:
                return [Refusal("variable", (weight.name, str(weight.logic_addr)))]
    return []


def new_bytes(places: Iterable[Place], blocks: dict[object, list[int]]) -> int:
    """Section 5.7: a slice that a block of the session holds takes no memory; `blocks` has their sizes."""
    total = 0
    for place in places:
        if place.block[0] == "slice" and place.block_bytes:
            sizes = blocks.setdefault(place.block, [])
            if all(size < place.block_bytes for size in sizes):
                sizes.append(place.block_bytes)
                total += place.block_bytes
    return total


# --- place holders and memory of the caller's for variables -----------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """A block of logical space: start, bytes of data; for a place holder also the caller's memory."""

    start: int
    size: int
    addr: int | None = None
    addr_bytes: int = 0
    is_live: bool = True

    @property
    def reserved_end(self) -> int:
        """Data, padding to 512, and guards."""
        return self.start + -(-self.size // UNIT) * UNIT + GUARDS


def holder_memory(attrs: Mapping[str, object], element_bytes: int) -> tuple[int, int]:
    """Section 5.9: all five attributes, on a device, at an address, large enough; gives address and size."""
    shape, size, placement, addr = (attrs.get(key) for key in ("storage_shape", "size", "placement", "addr"))
    if "dtype" not in attrs or not isinstance(shape, tuple):
        raise Refusal("value")
    if not isinstance(size, int) or not isinstance(placement, int) or not isinstance(addr, int):
        raise Refusal("value")
    needed = element_bytes
    for dim in shape:
        if dim < 0:
            raise Refusal("value")
        needed *= dim
    if placement != 1 or not addr or needed > size or needed >= 1 << 63 or addr % (1 << 64) + size >= 1 << 64:
        raise Refusal("value")
    return addr % (1 << 64), size


def resolve(
    address: int, variables: Iterable[Variable], base: int, region: tuple[int, int] | None
) -> tuple[Variable | None, int]:
    """Section 1.9 with edges 13, 15 and 24: where a logical address lies.

    Gives a variable with memory of the manager's and the distance from its first byte; or None and a device address.
    """
    blocks = list(variables)
    inside = [one for one in blocks if address == one.start or one.start < address < one.start + one.size]
    block = inside[0] if inside else None
    if block is not None and block.addr is not None:
        inner = address - block.start
        if not block.is_live or (inner and inner >= block.addr_bytes):
            raise Refusal("address", (str(address),))
        return None, block.addr + inner
    if region is not None:
        end = max((one.reserved_end for one in blocks if one.addr is None), default=base)
        if region[1] < end - base:
            raise Refusal("address", (str(address), f"{region[1]} B", f"{end - base} B"))
        if not 0 <= address - base < region[1]:
            raise Refusal("address", (str(address),))
        return None, region[0] + address - base
    if block is None:
        raise Refusal("address", (str(address),))
    return block, address - block.start
