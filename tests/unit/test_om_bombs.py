"""Small files that stand for much: what they would take is limited before it is there."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from gevar import Session, load_model
from gevar.errors import GevarError, ModelFileError
from gevar.om import GeRootModel, OmFile
from gevar.om.facts import om_facts
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.runtime import host_runtime

LONG = "v" * (1 << 20)
FIRST = "\0\1"


def numbered(op_type: str, attr: bytes, count: int, table: dict[str, bytes]) -> bytes:
    """A model whose operators have one attribute with a number for a name."""
    descs = [build.tensor_desc((4,), size=16, attrs={FIRST: attr})]
    ops = [build.op(f"x{i}", op_type, {FIRST: attr}, descs, output_i=[BASE + 2048 * i]) for i in range(count)]
    space = {"task_gen_variable_addr": build.attr_i(BASE), "variable_size": build.attr_i(1 << 30)}
    return build.g3([(0, build.model_def("m", [build.graph("g", ops)], space | table))])


TEXTS = build.compression(["location"], [True], [LONG])
NAMES = build.compression([f"{n:x}" for n in range(600_000)])
VALUES = [
    build.op(f"c{i}", "Const", {"value": build.attr_t(build.tensor(build.tensor_desc(attrs={FIRST: build.attr_i(0)})))})
    for i in range(500)
]
BOMBS = {
    "a long text of many operators": numbered("Data", build.attr_i(0), 2000, TEXTS),
    "a long text many times in a list": numbered("Data", build.attr_ints([0] * 2000), 1, TEXTS),
    "a long text of many variables": numbered("Variable", build.attr_i(0), 500, TEXTS),
    "a long text many times in a variable": numbered("Variable", build.attr_ints([0] * 2000), 1, TEXTS),
    "a long text of many values": build.g3([(0, build.model_def("m", [build.graph("g", VALUES)], TEXTS))]),
    "a long name of many operators": numbered("Data", build.attr_i(0), 2000, build.compression([LONG])),
    "a long table of names": numbered(
        "Data", build.attr_i(0), 1, build.compression([f"{n:x}" for n in range(600_000)])
    ),
    "operators without bytes": build.g3([(0, build.field(7, b"\x32\0" * 700_000))]),
    "graphs without bytes": build.g3([(0, b"\x3a\0" * 700_000)]),
    "records without bytes": build.g3([(0, build.model_def("m", [])), (8, build.record(9, b"") * 1_000_000)]),
    "kernels without bytes": build.g3([(0, build.model_def("m", [])), (3, build.kernel_item("", b"") * 500_000)]),
}


def in_full(data: bytes) -> None:
    with OmFile.from_bytes(data) as om:
        om.models[0].model_def()


def as_graph(data: bytes) -> None:
    with OmFile.from_bytes(data) as om:
        GeRootModel.from_om(om)


def as_facts(data: bytes) -> None:
    with OmFile.from_bytes(data) as om:
        om_facts(om, deep=True)


def one_by_one(data: bytes) -> None:
    """Look at everything of every operator, and keep it."""
    with OmFile.from_bytes(data) as om:
        kept = [(node.attrs, node.output_descs, node.attr("location")) for node in om.models[0].nodes()]
        assert kept is not None


def onto_a_device(data: bytes) -> None:
    with Session(host_runtime()) as session, load_model(data, session=session) as model:
        assert model.rows is not None


@pytest.mark.parametrize("read", [in_full, as_graph, as_facts, one_by_one, onto_a_device])
@pytest.mark.parametrize("bomb", BOMBS)
def test_what_a_file_stands_for_is_limited(bomb: str, read: Callable[[bytes], None]) -> None:
    with Session(host_runtime()):  # what the runtime takes for itself is there before
        data = BOMBS[bomb]
        with bounded_memory(len(data)), suppress(GevarError):
            read(data)


def test_the_error_says_what_is_too_much() -> None:
    with pytest.raises(ModelFileError, match="restored attribute names and texts would take more memory") as caught:
        in_full(BOMBS["a long text of many operators"])
    assert (caught.value.field, caught.value.status) == ("MODEL_DEF", 545002)
    with pytest.raises(ModelFileError, match=r"\d+ operators and graphs would take more memory than the \d+ B"):
        as_facts(BOMBS["operators without bytes"])


def test_long_texts_of_some_operators_are_in_order() -> None:
    data = numbered("Data", build.attr_i(0), 10, TEXTS)
    with OmFile.from_bytes(data) as om:
        for _ in range(9):  # each call has the whole allowance
            message = om.models[0].model_def()
        assert {op.attr["location"].s for op in message.graph[0].op} == {LONG.encode()}
        for node in om.models[0].nodes():
            assert node.attrs["location"].s == LONG.encode()


def test_many_small_operators_are_in_order() -> None:
    ops = [build.op(f"node{i}", "Relu", None, [build.tensor_desc((4,))]) for i in range(50_000)]
    with OmFile.from_bytes(build.g3([(0, build.model_def("m", [build.graph("g", ops)]))])) as om:
        assert len(om.models[0].graphs[0].nodes) == 50_000
