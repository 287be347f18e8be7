"""Damaging OM files at random, as often as asked: each must be read, or refused with `ModelFileError`.

Some are damaged at any byte, some keep whole messages with other numbers, texts and fields in their model definitions.
What is read is loaded into device memory of the host runtime, too, which must end well or with one of the project's
errors. Neither may take more memory than four times the file and 64 MiB; some files have one attribute, one description
or many operators that are small in the file and large in memory, so that they would.
"""

import random
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gevar.errors import GevarError
from gevar.om.facts import om_facts
from gevar.om.om_file import Kind, OmFile
from tests.helpers import om_builder as build
from tests.helpers.om_loading import load_outcome
from tests.helpers.om_message_edits import edit_model_defs
from tests.helpers.om_mutations import (
    AT_LENGTH,
    AT_MODEL_LENGTH,
    AT_MODEL_NUM,
    AT_MODELTYPE,
    AT_UNKNOW,
    AT_VERSION,
    BUNDLE,
    HEADER_BYTES,
    Layout,
    layout_of,
    outcome,
)
from tests.helpers.om_swollen import swollen_file
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.shared import shared_files

FULL_EXAMPLES = 50_000
SWOLLEN_SHARE = 200
"""One swollen file comes to so many damaged ones."""
SWOLLEN_BYTES = (300_000, 2_000_000, 5_000_000)
SHARE = 50
"""The tests run one part in so many of the full number."""
MAX_SEED_BYTES = 20_000
"""Larger real files are left to the fixed mutations."""
HEADER_SPOTS = (AT_VERSION, AT_MODELTYPE, AT_MODEL_NUM, AT_MODEL_LENGTH, AT_UNKNOW)
NUMBERS = (0, 1, 7, 8, 9, 12, 24, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
WIDTHS = ("B", "<H", "<I", "<Q")

Edit = tuple[str, int, int, int]
"""Kind of edit and three numbers that place it and give its content."""


@dataclass
class Campaign:
    """What a campaign saw: files read, refusals by field, files loaded, and refusals to load by class of error."""

    examples: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    loaded: int = 0
    not_loaded: Counter[str] = field(default_factory=Counter)
    swollen: int = 0


def seed_files() -> list[tuple[bytes, Kind]]:
    """Return undamaged files of every dialect and composition, built here and real ones where they are at hand."""
    ordinary = build.small_partitions()
    nested = build.g3(ordinary)
    compressed = build.compression(["value", "_init_value"], [False, False])
    built: list[tuple[bytes, Kind]] = [
        (build.g1(ordinary), "model"),
        (build.g2(ordinary), "model"),
        (nested, "model"),
        (build.g3(build.small_partitions(**compressed)), "model"),
        (build.mobile([(0, build.model_def("m", build.small_graphs())), (1, build.WEIGHTS)]), "model"),
        (build.dynamic([ordinary[1:2], ordinary[1:], ordinary[1:]]), "model"),
        (build.flow(build.model_def("r", []), [("a", "NPU", nested), ("b", "HOST_CPU", nested)]), "model"),
        (build.bundle([nested, nested]), "bundle"),
    ]
    real = [path.read_bytes() for path in shared_files("data/om*/*.om")]
    small = [data for data in real if 256 <= len(data) <= MAX_SEED_BYTES]
    return built + [(data, "bundle" if data[82] == 5 else "model") for data in small]


def edits(spots: Sequence[int], size: int) -> st.SearchStrategy[Edit]:
    """Return a strategy of edits, some at a structural place, most in the body."""
    places = st.one_of(st.sampled_from(spots), st.integers(HEADER_BYTES, size), st.integers(HEADER_BYTES, size))
    return st.tuples(
        st.sampled_from(("flip", "flip", "number", "number", "add", "cut", "remove", "insert", "copy")),
        places,
        st.integers(0, 2**64 - 1),
        st.integers(0, 255),
    )


def apply_edit(data: bytes, edit: Edit) -> bytes:
    """Return the bytes after one edit."""
    kind, at, number, small = edit
    at = min(at, len(data))
    if kind == "cut":
        return data[:at]
    if kind == "remove":
        return data[:at] + data[at + 1 + small % 32 :]
    if kind == "insert":
        return data[:at] + number.to_bytes(8, "little")[: 1 + small % 8] + data[at:]
    if kind == "copy":
        start = number % (len(data) + 1)
        return data[:at] + data[start : start + small] + data[at:]
    if kind == "flip":
        return data[:at] + bytes([byte ^ 1 << small % 8 for byte in data[at : at + 1]]) + data[at + 1 :]
    code = WIDTHS[small % len(WIDTHS)]
    width = struct.calcsize(code)
    if at + width > len(data):
        return data
    old = struct.unpack_from(code, data, at)[0] if kind == "add" else 0
    change = NUMBERS[number % len(NUMBERS)] if kind == "number" or number % 2 else -1
    return data[:at] + struct.pack(code, (old + change) % (1 << 8 * width)) + data[at + width :]


def with_true_length(data: bytes) -> bytes:
    """Return the bytes with the declared length corrected, so that the damage behind it is reached."""
    if len(data) < HEADER_BYTES:
        return data
    bundle = data[AT_MODELTYPE] == BUNDLE
    if struct.unpack_from("<Q", data, AT_MODEL_LENGTH)[0]:
        length = struct.pack("<Q", len(data) if bundle else len(data) - HEADER_BYTES)
        return data[:AT_MODEL_LENGTH] + length + data[AT_MODEL_LENGTH + 8 :]
    return data[:AT_LENGTH] + struct.pack("<I", len(data) - HEADER_BYTES) + data[AT_LENGTH + 4 :]


def with_true_table(layout: Layout, before: bytes, data: bytes, at: int) -> bytes:
    """Return an edited file with the table corrected for a partition that the edit made longer or shorter.

    `layout` is that of the bytes before.
    """
    grown = len(data) - len(before)
    if not grown or not HEADER_BYTES <= at < len(data):
        return data
    places = [(entry, start, end) for entry, (start, end) in zip(layout.entries, layout.places, strict=True)]
    for entry, start, end in places:
        if start <= at < end and at >= layout.size_at(entry) + struct.calcsize(layout.size_code):
            size_at = layout.size_at(entry)
            size = struct.unpack_from(layout.size_code, data, size_at)[0] + grown
            data = _packed(data, size_at, layout.size_code, size)
        elif start > at:
            offset_at = layout.size_at(entry) - struct.calcsize(layout.size_code)
            if offset_at < at:
                offset = struct.unpack_from(layout.size_code, data, offset_at)[0] + grown
                data = _packed(data, offset_at, layout.size_code, offset)
    return data


def _packed(data: bytes, at: int, code: str, number: int) -> bytes:
    width = struct.calcsize(code)
    return data[:at] + struct.pack(code, number % (1 << 8 * width)) + data[at + width :]


def run(examples: int, seed_number: int | None = None) -> Campaign:
    """Damage files `examples` times; print the seed, so that a failure can be run again.

    Raises
    ------
    Exception
        Whatever a reader raised that is not `ModelFileError`, or a failed check, for the smallest damage found.
    """
    number = random.SystemRandom().randrange(2**32) if seed_number is None else seed_number
    number_of_run = number
    print(f"om campaign: {examples} examples, seed {number}")
    files = seed_files()
    layouts = [layout_of(data) for data, _ in files]
    strategies = []
    for index, ((data, kind), layout) in enumerate(zip(files, layouts, strict=True)):
        spots = [*HEADER_SPOTS, *sorted({*layout.boundaries, *layout.entries, *map(layout.size_at, layout.entries)})]
        lists = st.lists(edits(spots, len(data)), min_size=1, max_size=4)
        repairs = st.sampled_from((True, True, True, False))
        seeds = st.none() | st.integers(0, 2**32 - 1) if kind == "model" else st.none()
        strategies.append(st.tuples(st.just(index), st.just(kind), lists, repairs, seeds))
    seen = Campaign()

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.one_of(strategies))
    def damage(case: tuple[int, Kind, list[Edit], bool, int | None]) -> None:
        index, kind, changes, repair, message_seed = case
        data = files[index][0]
        if message_seed is not None:
            data, changes = edit_model_defs(data, layouts[index], message_seed), changes[1:]
        for number, change in enumerate(changes):
            before = data
            data = apply_edit(data, change)
            if repair and not number and message_seed is None:
                data = with_true_table(layouts[index], before, data, change[1])
        if repair:
            data = with_true_length(data)
        with bounded_memory(len(data)):
            error = outcome(data, kind)
            refusal = load_outcome(data, kind) if error is None else None
        seen.examples += 1
        if error is not None:
            seen.refused[error.field] += 1
            return
        seen.read += 1
        if refusal is None:
            seen.loaded += 1
        else:
            seen.not_loaded[type(refusal).__name__] += 1

    damage()
    chance = random.Random(number_of_run)
    while seen.swollen < examples // SWOLLEN_SHARE:
        check_swollen(swollen_file(chance.randrange(2**32), chance.choice(SWOLLEN_BYTES)))
        seen.swollen += 1
    return seen


def check_swollen(data: bytes) -> None:
    """Look at a file, make its graph and load it: each is done or refused, in little memory."""
    for use in (lambda om: om_facts(om), lambda om: om.models[0].graph_ir()):
        with bounded_memory(len(data)), suppress(GevarError), OmFile.from_bytes(data) as om:
            use(om)
    with bounded_memory(len(data)):
        load_outcome(data)
