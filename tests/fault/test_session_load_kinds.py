"""Every call that a load makes fails once, for files of every form with tensors of every kind: nothing is left."""

from collections.abc import Callable
from pathlib import Path

import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.om.om_file import Kind
from gevar.types import DeviceId, MemType
from tests.fault.test_acl_memory import FUNCTIONS
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, lasting_model, place_holder
from tests.helpers.runtime import fail_until_passes, host_runtime, used_functions

DEVICE = DeviceId(0)
BYTES = bytes(range(256)) * 8
INIT = {"_init_value": build.attr_t(build.tensor(build.tensor_desc((4,), 1), BYTES[:16]))}


def operators(place: int) -> list[bytes]:
    """Operators with a tensor of every kind; `place` is memory of the caller's."""
    host = {"_variable_placement": build.attr_s("host")}
    return [
        build.const("weight", 512, 64),
        build.inline_const("inside", BYTES[:40], "Const"),
        build.variable("variable", (4,), BASE, INIT),
        build.variable("bare", (300,), BASE + 4096),
        build.op("host", "Variable", host, [build.tensor_desc((4,), size=16, attrs=INIT)], output_i=[BASE + 8192]),
        build.inline_const("constant", BYTES[:60], address=BASE + 12288),
        file_constant("one", BASE + 16384, 8, location="a.bin", offset=4, length=32),
        file_constant("other", BASE + 20480, 8, location="b.bin"),
        place_holder("holder", BASE + 24576, 4, place),
    ]


def combined(place: int) -> list[bytes]:
    """Operators whose external weights lie in one file."""
    return [
        file_constant("first", BASE, 8, location="a.bin", length=32),
        file_constant("second", BASE + 2048, 4, location="a.bin", offset=512, length=16),
        place_holder("holder", BASE + 4096, 4, place),
    ]


def static(place: int) -> bytes:
    return lasting_model(operators(place), weights=build.WEIGHTS)


def dynamic(place: int) -> bytes:
    body = build.graph("body", operators(place))
    space = {"task_gen_variable_addr": build.attr_i(BASE), "variable_size": build.attr_i(1 << 20)}
    call = build.op("call", "PartitionedCall", None, subgraphs=["body"])
    root = [(0, build.model_def("r", [build.graph("root", [call]), body], space))]
    return build.dynamic([root, [(0, build.model_def("body", [body], space)), (1, build.WEIGHTS)]])


def flow(place: int) -> bytes:
    return build.flow(build.model_def("r", []), [("a", "NPU", static(place)), ("b", "NPU", dynamic(place))])


FORMS: dict[str, tuple[Callable[[int], bytes], Kind]] = {
    "static": (static, "model"),
    "combined": (lambda place: lasting_model(combined(place)), "model"),
    "dynamic": (dynamic, "model"),
    "flow": (flow, "model"),
    "bundle": (lambda place: build.bundle([lasting_model(combined(place)), lasting_model(combined(place))]), "bundle"),
}


def world(form: str, folder: Path, policy: str) -> Callable[[], None]:
    """Return what loads a file of a form, reads all of it, and gives everything back."""
    make, kind = FORMS[form]
    path = folder / "model.om"
    (folder / "weight").mkdir()
    (folder / "weight" / "a.bin").write_bytes(BYTES[:1024])
    (folder / "weight" / "b.bin").write_bytes(BYTES[512:544])

    def operation() -> None:
        with Session(host_runtime(), options={"ge.variableUse1gHugePage": policy}) as session:
            memory = session.memory_manager
            place = memory.malloc_memory(MemType.RT_MEMORY_HBM, "of the caller", 64, DEVICE)
            try:
                path.write_bytes(make(place))
                with (
                    load_model(path, kind=kind, session=session) as loaded,
                    load_model(path, kind=kind, session=session),
                ):
                    read = {
                        row.name: bytes(loaded.read(row)) for row in loaded.rows if row.name not in ("bare", "holder")
                    }
            finally:
                memory.free_memory(MemType.RT_MEMORY_HBM, place, DEVICE)
        assert {name: data for name, data in read.items() if data != EXPECTED[name]} == {}

    return operation


EXPECTED = {
    "weight": bytes(range(64)),
    "inside": BYTES[:40],
    "variable": BYTES[:16],
    "host": BYTES[:16],
    "constant": BYTES[:60],
    "one": BYTES[4:36],
    "other": BYTES[512:544],
    "first": BYTES[:32],
    "second": BYTES[512:528],
}


@pytest.mark.parametrize(("form", "policy"), [*((form, "0") for form in FORMS), ("static", "1"), ("flow", "2")])
def test_any_call_of_a_load_may_fail(host: HostControls, tmp_path: Path, form: str, policy: str) -> None:
    operation = world(form, tmp_path, policy)
    operation()  # the first use of a device sets it
    used = used_functions(host, FUNCTIONS, operation)
    assert {"aclrtMallocWithCfg", "aclrtMemcpy", "aclrtFree"} <= set(used)
    failed = {function: fail_until_passes(host, function, operation) for function in used}
    assert sum(failed.values()) >= len(used) / 2, failed
