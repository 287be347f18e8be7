"""Exceptions of the binding: tree, messages, fields, pickling."""

import copy
import pickle

import pytest

from acl_shim import errors
from acl_shim.codes import AclErrorCode, MemMallocPolicy
from acl_shim.errors import (
    AclError,
    Attempt,
    BackendUnavailableError,
    GevarError,
    HostFunctionError,
    OutOfMemoryError,
    Shortage,
    StateError,
    error_from_code,
    size_text,
)

SHORTAGE = Shortage(
    requested_bytes=3 << 30, free_bytes=1 << 20, total_bytes=64 << 30, device_id=1, page_kind="2 MiB pages"
)
EXAMPLES: list[GevarError] = [
    GevarError("plain"),
    StateError("closed"),
    BackendUnavailableError("nothing serves", (Attempt("/a.so", "no such file"), Attempt("/b.so", "lacks x", ("x",)))),
    AclError(107000, "aclrtFree", {"addr": 1 << 40}, "EE1003 bad"),
    error_from_code(
        207001, "aclrtMalloc", {"size_bytes": 3 << 30, "policy": MemMallocPolicy.HUGE_ONLY}, None, shortage=SHORTAGE
    ),
]


def fields(error: GevarError) -> dict[str, object]:
    return dict(vars(error))


class TestTree:
    def test_everything_hangs_on_the_root(self) -> None:
        classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, BaseException)]
        assert len(classes) == 6
        assert all(issubclass(c, GevarError) for c in classes)

    def test_out_of_memory_is_caught_as_memory_error_and_as_acl_error(self) -> None:
        error = error_from_code(207001, "aclrtMalloc", {})
        assert isinstance(error, OutOfMemoryError)
        assert isinstance(error, MemoryError)
        assert isinstance(error, AclError)

    def test_a_state_error_is_a_runtime_error(self) -> None:
        assert issubclass(StateError, RuntimeError)

    def test_the_root_has_no_status(self) -> None:
        assert GevarError("x").status is None


class TestErrorFromCode:
    @pytest.mark.parametrize("code", [int(code) for code in AclErrorCode if code not in (0, 207001)])
    def test_every_code_gives_an_acl_error_with_its_name(self, code: int) -> None:
        error = error_from_code(code, "aclrtFree", {"addr": 16 << 40})
        assert type(error) is AclError
        assert (error.code, error.status, error.name) == (code, code, AclErrorCode(code).name)
        assert f"returned {code} {error.name}" in str(error)

    def test_only_207001_is_out_of_memory(self) -> None:
        assert type(error_from_code(207001, "aclrtMalloc", {})) is OutOfMemoryError
        assert type(error_from_code(207018, "aclrtMalloc", {})) is AclError
        assert type(error_from_code(200000, "aclrtMalloc", {})) is AclError

    def test_an_unknown_code_keeps_its_number(self) -> None:
        error = error_from_code(-7, "aclrtFree", {})
        assert (error.code, error.name) == (-7, "unknown code -7")

    def test_the_figures_are_fields(self) -> None:
        error = error_from_code(207001, "aclrtMalloc", {}, shortage=SHORTAGE)
        assert isinstance(error, OutOfMemoryError)
        assert error.requested_bytes == 3 << 30
        assert error.free_bytes == 1 << 20
        assert error.total_bytes == 64 << 30
        assert error.device_id == 1
        assert error.page_kind == "2 MiB pages"

    def test_figures_may_be_unknown(self) -> None:
        error = error_from_code(207001, "aclrtCreateEvent", {})
        assert isinstance(error, OutOfMemoryError)
        assert (
            error.requested_bytes is error.free_bytes is error.total_bytes is error.device_id is error.page_kind is None
        )


class TestMessage:
    def test_it_names_call_arguments_code_text_and_next_step(self) -> None:
        arguments = {"addr": 0x1234_5678_9ABC, "size_bytes": 1536, "policy": MemMallocPolicy.HUGE_FIRST, "n": 5}
        error = AclError(107000, "aclrtFree", arguments, "EE1003:\n bad\taddress ")
        assert str(error) == (
            "aclrtFree(addr=0x123456789abc, size_bytes=1.50 KiB (1536 B), policy=ACL_MEM_MALLOC_HUGE_FIRST, n=5)"
            " returned 107000 ACL_ERROR_RT_PARAM_INVALID; runtime says: EE1003: bad address;"
            " check that the address is alive and starts its block, and that sizes fit"
        )

    def test_out_of_memory_tells_the_figures(self) -> None:
        message = str(error_from_code(207001, "aclrtMalloc", {}, shortage=SHORTAGE))
        assert "device 1 was asked for 3.00 GiB (3221225472 B) in 2 MiB pages" in message
        assert "1.00 MiB (1048576 B) free of 64.00 GiB (68719476736 B)" in message
        assert message.endswith("free memory, ask for less or choose another page class")

    def test_unknown_figures_are_said_to_be_unknown(self) -> None:
        shortage = Shortage(8, None, None, 0, "4 KiB pages")
        assert str(shortage) == "device 0 was asked for 8 B in 4 KiB pages: figures unknown"

    @pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
    def test_it_is_one_line(self, error: GevarError) -> None:
        assert "\n" not in str(error)

    def test_every_attempt_is_a_clause(self) -> None:
        assert str(EXAMPLES[2]) == "nothing serves; tried /a.so: no such file; /b.so: lacks x"

    def test_without_attempts_there_are_no_clauses(self) -> None:
        assert str(BackendUnavailableError("nothing serves")) == "nothing serves"

    def test_the_runtimes_text_is_kept_as_it_came(self) -> None:
        assert AclError(107000, "f", {}, "a\n b").text == "a\n b"
        assert AclError(107000, "f", {}, "").text is None


class TestPickle:
    @pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_type_message_and_fields_come_back(self, error: GevarError, protocol: int) -> None:
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert fields(again) == fields(error)
        assert again.status == error.status

    @pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
    def test_a_copy_is_equal(self, error: GevarError) -> None:
        again = copy.copy(error)
        assert again is not error
        assert (type(again), again.args, fields(again)) == (type(error), error.args, fields(error))

    def test_a_subclass_with_its_own_constructor_needs_nothing_more(self) -> None:
        again = pickle.loads(pickle.dumps(WithConstructor(3, name="x")))
        assert (str(again), again.number, again.name) == ("x is 3", 3, "x")

    @pytest.mark.parametrize("builtin", [LookupError, ValueError, OSError, MemoryError])
    def test_a_branch_on_a_built_in_class_comes_back(self, builtin: type[Exception]) -> None:
        again = pickle.loads(pickle.dumps(BRANCHES[builtin]("gone")))
        assert isinstance(again, builtin)
        assert isinstance(again, GevarError)
        assert str(again) == "gone"


class LookupBranch(GevarError, LookupError):
    pass


class ValueBranch(GevarError, ValueError):
    pass


class OSBranch(GevarError, OSError):
    pass


class MemoryBranch(GevarError, MemoryError):
    pass


BRANCHES = {LookupError: LookupBranch, ValueError: ValueBranch, OSError: OSBranch, MemoryError: MemoryBranch}


class WithConstructor(GevarError):
    def __init__(self, number: int, *, name: str) -> None:
        super().__init__(f"{name} is {number}")
        self.number = number
        self.name = name


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB (1024 B)"),
        (1536, "1.50 KiB (1536 B)"),
        (1 << 20, "1.00 MiB (1048576 B)"),
        (1610612736, "1.50 GiB (1610612736 B)"),
        (5 << 50, "5120.00 TiB (5629499534213120 B)"),
    ],
)
def test_size_text(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_what_host_functions_raised_is_told_and_kept() -> None:
    first, second = ValueError("one"), KeyError("two")
    error = HostFunctionError((first, second))
    assert error.errors == (first, second)
    assert str(error) == (
        "a Python function on the stream raised ValueError: one (2 functions did); see errors for each"
    )
    assert "functions did" not in str(HostFunctionError((first,)))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert [repr(one) for one in again.errors] == ["ValueError('one')", "KeyError('two')"]
