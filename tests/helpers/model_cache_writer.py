"""A process that forks writers of the model cache and kills them: `serve` reads a plan a line and answers with a line.

Writers are forked from one process that has imported everything and has one thread, so a writer costs milliseconds.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from gevar.compile.var_mem_assign_util import VarMemAssignUtil
from gevar.om import GeRootModel
from gevar.om.stored_bytes import StreamedBytes
from gevar.var import VarManager
from tests.helpers.cached_models import NCHW, cache_of, graph_of, model_graph, root_model
from tests.helpers.var_memory import make_manager

WEIGHT_BYTES = 50_000
CHUNK_BYTES = 5_000
Plan = dict[str, Any]


def weights_of(number: int) -> bytes:
    """The weights of the n-th model."""
    return bytes([number % 251 + 1, number % 13]) * (WEIGHT_BYTES // 2)


def make_model(number: int, weights: bytes | StreamedBytes | None = None) -> GeRootModel:
    """The n-th model: its name, its variable and its weights tell the number."""
    graph = model_graph({f"v{number}": NCHW})
    return root_model(graph, name=f"model_{number}", weights=weights_of(number) if weights is None else weights)


def store_number(folder: Path, key: str, number: int, model: GeRootModel, begin: Callable[[], None]) -> None:
    """Do what a session does with a graph that is not in the cache; `begin` is called before anything is written."""
    vm: VarManager = make_manager(session_id=1)
    graph = graph_of(model)
    with cache_of(folder, vm, graph, key=key) as cache:
        VarMemAssignUtil(vm, graph).assign_var_memory()
        begin()
        cache.try_cache_model(model)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stream_and_die(number: int, size_bytes: int) -> StreamedBytes:
    """Weights that end the process after some of their bytes."""

    def read() -> Iterator[bytes]:
        data = weights_of(number)[:size_bytes]
        yield from (data[at : at + CHUNK_BYTES] for at in range(0, size_bytes, CHUNK_BYTES))
        kill_self()

    return StreamedBytes(WEIGHT_BYTES, read)


class LineCounter:
    """Counts the lines of Python that run from `begin` on, and may end the process at one of them, or raise."""

    def __init__(self, last: int = 0, *, error: type[BaseException] | None = None) -> None:
        self.lines = 0
        self._last = last
        self._error = error

    def begin(self) -> None:
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, arg: object) -> "Callable[[FrameType, str, object], Any]":
        if event == "line":
            self.lines += 1
            if self.lines == self._last:
                if self._error is not None:
                    raise self._error
                kill_self()
        return self._trace


def write(plan: Plan, tell: Callable[[str], None]) -> None:
    """Store models one after the other and tell each that is stored; the last one may end the process."""
    folder, numbers = Path(plan["folder"]), plan["numbers"]
    for number in numbers:
        model, counter = make_model(number), LineCounter()
        if number == numbers[-1] and "byte" in plan:
            model = make_model(number, stream_and_die(number, plan["byte"]))
        if number == numbers[-1] and "line" in plan:
            counter = LineCounter(plan["line"])
            store_number(folder, plan["key"], number, model, counter.begin)
            sys.settrace(None)
        else:
            store_number(folder, plan["key"], number, model, lambda: None)
        tell(f"{counter.lines}\n")


def share(plan: Plan, tell: Callable[[str], None]) -> None:
    """Want a model for each number; tell what had to be stored, and what was loaded whole."""
    folder = Path(plan["folder"])
    for number in plan["numbers"]:
        vm = make_manager(session_id=1)
        graph = model_graph({f"v{number}": NCHW})
        key = f"k{number % plan['keys']}"
        with cache_of(folder, vm, graph, key=key) as cache:
            vm.assign_var_mem(f"v{number}", None, NCHW)  # as another graph of the session has it
            found = cache.try_load_model_from_cache()
            if found is None:
                cache.try_cache_model(make_model(number))
                tell(f"stored {number}\n")
                continue
        one = found.models[0]
        is_whole = one.model.name == f"model_{number}" and one.partitions[0][1].read() == weights_of(number)
        tell(f"loaded {number} {is_whole}\n")


def fork(work: Callable[[Plan, Callable[[str], None]], None], plan: Plan) -> tuple[int, int]:
    """Start a process; return its id and the pipe that it tells through."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        work(plan, lambda text: os.write(writing, text.encode()) and None)
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def told(reading: int) -> list[str]:
    """All that a process has told, when it has ended."""
    with open(reading, "rb") as pipe:
        return pipe.read().decode().splitlines()


def serve() -> None:
    """Run the plans on standard input; each answer is a list of the lines and exit states of its processes."""
    for line in sys.stdin:
        plan = json.loads(line)
        children = [fork(share if "keys" in plan else write, plan) for _ in range(plan.get("processes", 1))]
        if "seconds" in plan:
            time.sleep(plan["seconds"])
            os.kill(children[0][0], signal.SIGKILL)
        answers = [(told(reading), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid, reading in children]
        print(json.dumps(answers), flush=True)
