"""Damaging stored states at random, as often as asked: each is restored whole, or refused with one kind of error."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gevar.errors import GevarError, ModelFileError
from gevar.proto.parse import parse_message
from gevar.proto.var_manager import VarManagerInfo
from gevar.status import PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import FakeMemory, constant, make_desc, make_manager, place_holder
from tests.helpers.var_states import BASE, full_manager, state_bytes

FULL_EXAMPLES = 50_000
SHARE = 50
"""The tests run one part in so many of the full number."""

NUMBERS = (0, 1, 2, 3, 4, 16, 511, 512, 1024, BASE, BASE + 1, BASE + 2048, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
TEXTS = ("", "v", "c", "v2_0", "c2_2", "c_2_2", "w12_2", "2_2", "x" * 70, "变")
BITS = {
    FieldDescriptor.CPPTYPE_INT32: (32, True),
    FieldDescriptor.CPPTYPE_INT64: (64, True),
    FieldDescriptor.CPPTYPE_UINT32: (32, False),
    FieldDescriptor.CPPTYPE_UINT64: (64, False),
    FieldDescriptor.CPPTYPE_ENUM: (32, True),
}

Edit = tuple[str, int, int]
"""Kind of edit and two numbers that place it and give its content."""
EDITS = st.tuples(
    st.sampled_from(("value", "value", "value", "drop", "key", "swap", "flip", "cut", "insert")),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)


@dataclass
class Campaign:
    """What a campaign saw: states restored, and refusals by field."""

    examples: int = 0
    restored: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def seed_states() -> list[bytes]:
    """Return undamaged states: with everything, of one variable, of none, with keys of one text, of many variables."""
    one = make_manager()
    one.assign_var_mem("v", None, make_desc(24, DataType.DT_FLOAT))
    twins = make_manager()
    twins.assign_var_mem("w1", None, make_desc(4))
    twins.assign_var_mem("w", None, make_desc(8, fmt=Format.FORMAT_NC1HWC0_C04))
    many = make_manager()
    for number in range(30):
        many.assign_var_mem(f"v{number}", constant("c", bytes([number % 4]) * 8, make_desc(8)), make_desc(8))
    full = full_manager()
    lean = full.var_manager_to_serial(extension=False).SerializeToString()
    return [
        state_bytes(full),
        lean,
        state_bytes(one),
        state_bytes(make_manager()),
        state_bytes(twins),
        state_bytes(many),
    ]


def _is_map(descriptor: FieldDescriptor) -> bool:
    return descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry


def _is_repeated(message: Message, descriptor: FieldDescriptor) -> bool:
    return hasattr(getattr(message, descriptor.name), "__len__") and not isinstance(
        getattr(message, descriptor.name), (str, bytes)
    )


def messages(message: Message) -> Iterator[Message]:
    """Yield a message and every one in it."""
    yield message
    for descriptor, value in message.ListFields():
        if _is_map(descriptor):
            if descriptor.message_type.fields_by_name["value"].message_type is not None:
                for key in sorted(value):
                    yield from messages(value[key])
        elif descriptor.message_type is not None:
            for one in value if _is_repeated(message, descriptor) else [value]:
                yield from messages(one)


def _number(descriptor: FieldDescriptor, choice: int) -> int:
    """A number that the field can hold, often at the edge of something."""
    bits, signed = BITS[descriptor.cpp_type]
    number = NUMBERS[choice % len(NUMBERS)] if choice % 3 else choice
    number %= 1 << bits
    return number - (1 << bits) if signed and number >> (bits - 1) else number


def _scalar(descriptor: FieldDescriptor, choice: int) -> object:
    if descriptor.cpp_type in BITS:
        return _number(descriptor, choice)
    if descriptor.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return bool(choice % 2)
    if descriptor.cpp_type == FieldDescriptor.CPPTYPE_FLOAT:
        return float(choice)
    text = TEXTS[choice % len(TEXTS)]
    return text.encode() + bytes([choice % 256]) if descriptor.type == FieldDescriptor.TYPE_BYTES else text


def edit_value(message: Message, place: int, choice: int) -> None:
    """Set one plain field of a message to something else."""
    plain = [one for one in message.DESCRIPTOR.fields if one.message_type is None and not _is_repeated(message, one)]
    if plain:
        descriptor = plain[place % len(plain)]
        setattr(message, descriptor.name, _scalar(descriptor, choice))


def edit_structure(message: Message, kind: str, place: int, choice: int) -> None:
    """Drop a field, or give an entry of a map another key, or the value of another entry."""
    present = message.ListFields()
    if not present:
        return
    if kind == "drop":
        message.ClearField(present[place % len(present)][0].name)
        return
    maps = [(descriptor, value) for descriptor, value in present if _is_map(descriptor)]
    if not maps:
        return
    descriptor, entries = maps[place % len(maps)]
    keys = sorted(entries)
    old = keys[choice % len(keys)]
    new = keys[(choice // 7) % len(keys)]
    if kind == "key":
        new = _scalar(descriptor.message_type.fields_by_name["key"], choice)
    if descriptor.message_type.fields_by_name["value"].message_type is not None:
        entries[new].CopyFrom(entries[old])
    else:
        entries[new] = entries[old]
    if kind == "key" and new != old:
        del entries[old]


def apply_edit(data: bytes, edit: Edit) -> bytes:
    """Return the bytes of a state after one edit; one of the message needs bytes that still are one."""
    kind, place, choice = edit
    at = place % (len(data) + 1)
    if kind == "flip":
        return data[:at] + bytes(byte ^ 1 << choice % 8 for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == "cut":
        return data[:at] + data[at + 1 + choice % 16 :]
    if kind == "insert":
        return data[:at] + choice.to_bytes(4, "little")[: 1 + choice % 4] + data[at:]
    try:
        info = parse_message(VarManagerInfo, data)
    except ModelFileError:
        return data
    inside = list(messages(info))
    target = inside[place % len(inside)]
    if kind == "value":
        edit_value(target, place // len(inside), choice)
    else:
        edit_structure(target, kind, place // len(inside), choice)
    return info.SerializeToString(deterministic=True)


def outcome(data: bytes, vm: VarManager) -> str | None:
    """Restore a state: return the field that it was refused for, None where it was restored.

    Raises
    ------
    AssertionError
        A refusal changed something or has another status, or what was restored is not sound in itself.
    Exception
        Whatever was raised that is not `ModelFileError`.
    """
    before, config = state_bytes(vm), vm.memory_config
    refusal: ModelFileError | None = None
    try:
        vm.var_manager_to_deserial(data)
    except ModelFileError as error:
        refusal = error
    if refusal is not None:
        assert refusal.status == PARAM_INVALID
        assert state_bytes(vm) == before
        assert vm.memory_config == config
        vm.check()
        return refusal.field.partition("[")[0]
    vm.check()
    again, stored = VarManager(1), state_bytes(vm)
    again.var_manager_to_deserial(stored)
    again.check()
    assert state_bytes(again) == stored
    _use(again)
    return None


def _use(vm: VarManager) -> None:
    """Go on with a restored manager: only what it says may be wrong with a request is raised."""
    vm.set_mem_manager(FakeMemory())
    vm.set_var_mem_max_size(1 << 40)
    base = vm.get_var_mem_logic_base()
    calls: list[Callable[[], object]] = [
        lambda: vm.assign_var_mem("fresh", constant("fresh", b"\x01\x02\x03\x04", make_desc(4)), make_desc(4)),
        lambda: vm.assign_var_mem("c", None, make_desc(4)),
        lambda: vm.assign_var_mem("p", place_holder("p", 4096, 64), make_desc(4)),
        lambda: vm.restore_var_mem("r2", VarOp("r2", "Variable", (), (base + 4096,)), make_desc(4)),
        lambda: vm.renew_cur_var_desc("v", make_desc(4, fmt=Format.FORMAT_NHWC)),
        lambda: vm.get_var_memory_addr(LogicAddr(base)),
        lambda: vm["v"].dev_addr(),
    ]
    for call in calls:
        with suppress(GevarError):
            call()
    vm.check()
    vm.destroy()


def run(examples: int, seed_number: int | None = None) -> Campaign:
    """Damage states `examples` times; print the seed, so that a failure can be run again.

    Raises
    ------
    Exception
        As `outcome`, for the smallest damage found.
    """
    number = random.SystemRandom().randrange(2**32) if seed_number is None else seed_number
    print(f"var campaign: {examples} examples, seed {number}")
    log, level = logging.getLogger("gevar.var"), logging.getLogger("gevar.var").level
    log.setLevel(logging.ERROR)  # states with keys of one text are told of at every example
    states = seed_states()
    seen = Campaign()

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.integers(0, len(states) - 1), st.lists(EDITS, min_size=1, max_size=4), st.booleans())
    def damage(index: int, edits: list[Edit], initialised: bool) -> None:
        data = states[index]
        for edit in edits:
            data = apply_edit(data, edit)
        vm = VarManager(1)
        if initialised:
            vm = make_manager()
            vm.assign_var_mem("own", None, make_desc(4))
        found = outcome(data, vm)
        seen.examples += 1
        if found is None:
            seen.restored += 1
        else:
            seen.refused[found] += 1

    try:
        damage()
    finally:
        log.setLevel(level)
    return seen
