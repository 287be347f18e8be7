"""Damaging OM files at random, as often as asked: each must be read, or refused with `ModelFileError`."""

import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gevar.om.om_file import Kind
from tests.helpers import om_builder as build
from tests.helpers.om_mutations import (
    AT_LENGTH,
    AT_MODEL_LENGTH,
    AT_MODEL_NUM,
    AT_MODELTYPE,
    AT_UNKNOW,
    AT_VERSION,
    BUNDLE,
    HEADER_BYTES,
    layout_of,
    outcome,
)
from tests.helpers.shared import shared_files

FULL_EXAMPLES = 50_000
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
    """What a campaign saw: files read, and refusals by field."""

    examples: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)


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
        st.sampled_from(("flip", "number", "add", "cut", "remove", "insert", "copy")),
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


def run(examples: int, seed_number: int | None = None) -> Campaign:
    """Damage files `examples` times; print the seed, so that a failure can be run again.

    Raises
    ------
    Exception
        Whatever a reader raised that is not `ModelFileError`, or a failed check, for the smallest damage found.
    """
    number = random.SystemRandom().randrange(2**32) if seed_number is None else seed_number
    print(f"om campaign: {examples} examples, seed {number}")
    files = seed_files()
    strategies = []
    for index, (data, kind) in enumerate(files):
        layout = layout_of(data)
        spots = [*HEADER_SPOTS, *sorted({*layout.boundaries, *layout.entries, *map(layout.size_at, layout.entries)})]
        lists = st.lists(edits(spots, len(data)), min_size=1, max_size=4)
        strategies.append(st.tuples(st.just(index), st.just(kind), lists, st.sampled_from((True, True, True, False))))
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
    def damage(case: tuple[int, Kind, list[Edit], bool]) -> None:
        index, kind, changes, repair = case
        data = files[index][0]
        for change in changes:
            data = apply_edit(data, change)
        if repair:
            data = with_true_length(data)
        error = outcome(data, kind)
        seen.examples += 1
        if error is None:
            seen.read += 1
        else:
            seen.refused[error.field] += 1

    damage()
    return seen
