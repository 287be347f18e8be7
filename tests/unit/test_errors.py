"""The exceptions of gevar: the tree, the message, the fields, and pickling of each."""

import inspect
import pickle
from pathlib import Path

import pytest

import acl_shim.errors
import gevar.errors
from acl_shim.errors import Attempt
from gevar.errors import (
    AclError,
    AddressError,
    BackendUnavailableError,
    FormatError,
    GevarError,
    GraphError,
    HostFunctionError,
    LoadError,
    ModelFileError,
    OutOfMemoryError,
    SizeOverflowError,
    StateError,
    VariableError,
)
from gevar.status import FAILED, INTERNAL_ERROR

# Each exception with its fields and its message.
CASES: list[tuple[GevarError, dict[str, object], str]] = [
    (
        AddressError(137438953472, "belongs to no variable", nearest=(137438955008, 1536), status=FAILED),
        {"logic_addr": 137438953472, "nearest": (137438955008, 1536), "reason": "belongs to no variable"},
        (
            "logical address 137438953472: belongs to no variable; "
            "the nearest range starts at 137438955008 and has 1.50 KiB (1536 B)"
        ),
    ),
    (
        AddressError(1, "belongs to no variable"),
        {"nearest": None, "status": None},
        "logical address 1: belongs to no variable",
    ),
    (
        VariableError("w2_0", "not assigned; call assign_var_mem", close=["w", "v"], status=INTERNAL_ERROR),
        {"var_key": "w2_0", "close": ("w", "v"), "status": INTERNAL_ERROR},
        "variable 'w2_0': not assigned; call assign_var_mem; close to it: 'w', 'v'",
    ),
    (VariableError("w", "not here"), {"close": (), "status": None}, "variable 'w': not here"),
    (
        SizeOverflowError("1 B + 2 B", 3, 2, status=INTERNAL_ERROR),
        {"what": "1 B + 2 B", "value": 3, "limit": 2, "status": INTERNAL_ERROR},
        "1 B + 2 B gives 3, more than 2; use smaller sizes",
    ),
    (
        SizeOverflowError("1 B", 3, 2, status=1, next_step="use less").named("variable 'w'"),
        {"what": "variable 'w': 1 B", "value": 3, "limit": 2, "status": 1, "next_step": "use less"},
        "variable 'w': 1 B gives 3, more than 2; use less",
    ),
    (
        FormatError("NCHW (1, 3)", "rank must be 4", destination="NC1HWC0", status=145021),
        {"source": "NCHW (1, 3)", "rule": "rank must be 4", "destination": "NC1HWC0", "status": 145021},
        "NCHW (1, 3) to NC1HWC0: rank must be 4",
    ),
    (FormatError("ND", "no size"), {"destination": None}, "ND: no size"),
    (
        GraphError("main", "input 3 is asked for, it has 2 inputs", node="add", status=FAILED),
        {"graph": "main", "node": "add", "reason": "input 3 is asked for, it has 2 inputs", "status": FAILED},
        "graph 'main', node 'add': input 3 is asked for, it has 2 inputs",
    ),
    (GraphError("main", "has a cycle"), {"node": None, "status": None}, "graph 'main': has a cycle"),
    (GraphError(None, "was removed", node="add"), {"graph": None}, "node 'add': was removed"),
    (
        ModelFileError(Path("m.om"), 156, "model_num", "is 9, expected 1 to 8"),
        {"file": "m.om", "offset": 156, "field": "model_num", "reason": "is 9, expected 1 to 8"},
        "m.om: model_num at offset 156: is 9, expected 1 to 8",
    ),
    (ModelFileError(None, None, "ge.proto.ModelDef", "cut off"), {"file": None}, "ge.proto.ModelDef: cut off"),
    (ModelFileError("m.om", 0, "magic", "x"), {"offset": 0}, "m.om: magic at offset 0: x"),
    (
        LoadError("w.bin", 512, 2048, 100),
        {"path": "w.bin", "offset": 512, "wanted": 2048, "got": 100},
        "w.bin: 2.00 KiB (2048 B) wanted at offset 512, 100 B read: the file is too short",
    ),
    (
        LoadError(Path("w.bin"), 0, 1, 0, "Permission denied", status=FAILED),
        {"path": "w.bin", "reason": "Permission denied", "status": FAILED},
        "w.bin: 1 B wanted at offset 0, 0 B read: Permission denied",
    ),
]
IDS = [f"{type(error).__name__}-{number}" for number, (error, _, _) in enumerate(CASES)]


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (GevarError, (Exception,)),
        (BackendUnavailableError, (GevarError,)),
        (AclError, (GevarError,)),
        (OutOfMemoryError, (AclError, MemoryError)),
        (StateError, (GevarError, RuntimeError)),
        (AddressError, (GevarError, LookupError)),
        (VariableError, (GevarError, LookupError)),
        (SizeOverflowError, (GevarError, OverflowError)),
        (FormatError, (GevarError, ValueError)),
        (ModelFileError, (GevarError, ValueError)),
        (LoadError, (GevarError, OSError)),
    ],
)
def test_the_tree(error: type[Exception], parents: tuple[type[Exception], ...]) -> None:
    assert error.__bases__ == parents
    assert error.__name__ in (gevar.errors.__doc__ or "")


def test_all_holds_every_exception() -> None:
    made_here = {n for n, v in vars(gevar.errors).items() if inspect.isclass(v) and issubclass(v, GevarError)}
    from_binding = {n for n, v in vars(acl_shim.errors).items() if inspect.isclass(v) and issubclass(v, GevarError)}
    assert set(gevar.errors.__all__) == made_here
    assert from_binding <= made_here
    assert gevar.errors.__all__ == sorted(gevar.errors.__all__)


@pytest.mark.parametrize(("error", "fields", "message"), CASES, ids=IDS)
def test_message_and_fields(error: GevarError, fields: dict[str, object], message: str) -> None:
    assert str(error) == message
    assert {name: getattr(error, name) for name in fields} == fields


@pytest.mark.parametrize(("error", "fields", "message"), CASES, ids=IDS)
def test_pickling_keeps_type_message_and_fields(error: GevarError, fields: dict[str, object], message: str) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == message
    assert vars(back) == vars(error)


def test_every_exception_made_here_is_among_the_cases() -> None:
    made_here = {v for v in vars(gevar.errors).values() if inspect.isclass(v) and v.__module__ == "gevar.errors"}
    assert {type(error) for error, _, _ in CASES} == made_here


@pytest.mark.parametrize(
    "error",
    [
        AddressError(1, "two\nlines"),
        VariableError("odd\n'name\"", "two\nlines", close=["a\nb"]),
        FormatError("ND", "two\nlines"),
        ModelFileError("odd\nfile", 0, "field", "two\nlines"),
        LoadError("odd\nfile", 0, 1, 0, "two\nlines"),
    ],
)
def test_a_message_is_one_line_whatever_it_names(error: GevarError) -> None:
    assert "\n" not in str(error)
    assert "two lines" in str(error)


UNSAFE = "a\nb\r\x1b[2J\x00\x7f\x9b\u2028\u202e\ud800\U000e0001"
"""Line ends, controls of terminals in one and in two bytes, a turn of direction, half a character, an unseen mark."""


@pytest.mark.parametrize(
    "error",
    [
        GevarError(UNSAFE),
        StateError(UNSAFE),
        BackendUnavailableError(UNSAFE, (Attempt(UNSAFE, UNSAFE),)),
        AclError(107000, "aclrtFree", {"name": UNSAFE}, UNSAFE),
        OutOfMemoryError(207001, "aclrtMalloc", {"name": UNSAFE}, UNSAFE),
        HostFunctionError((ValueError(UNSAFE),)),
        AddressError(1, UNSAFE),
        VariableError(UNSAFE, UNSAFE, close=[UNSAFE]),
        SizeOverflowError(UNSAFE, 3, 2),
        FormatError(UNSAFE, UNSAFE, destination=UNSAFE),
        GraphError(UNSAFE, UNSAFE, node=UNSAFE),
        ModelFileError(UNSAFE, 0, UNSAFE, UNSAFE),
        LoadError(UNSAFE, 0, 1, 0, UNSAFE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_name_upsets_a_terminal(error: GevarError) -> None:
    assert str(error).isprintable()
    assert all(escape in str(error) for escape in (r"\x1b[2J", r"\x9b", r"\u202e", r"\ud800", r"\U000e0001"))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_path_in_an_error_keeps_its_spaces() -> None:
    assert str(ModelFileError("two  spaces\n.om", 0, "file", "x")).startswith(r"two  spaces\n.om: ")
    assert str(LoadError("two  spaces\t.bin", 0, 1, 0)).startswith(r"two  spaces\t.bin: ")


def test_a_load_error_is_an_os_error_without_a_number() -> None:
    error = LoadError("w.bin", 0, 1, 0)
    assert error.errno is None
    with pytest.raises(OSError, match=r"^w\.bin: 1 B"):
        raise error
