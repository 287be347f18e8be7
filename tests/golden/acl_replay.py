"""Make recorded calls: a worker process that forks one child for each sequence, before any call of the library.

The worker reads an object from standard input, `{"library": path, "limit_s": seconds, "sequences": [...]}` with `steps`
and `environment` of each sequence. It writes one JSON line for each step done, `[sequence, step path, what was found]`,
and one with step path null for the end of each sequence. A child that crashes or hangs ends its own sequence only.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TextIO

from tests.golden.acl_headers import constants, interface, names
from tests.golden.acl_values import Scope, UnknownForm, returned
from tests.golden.facts import Json

ALL_DEVICES = -1

Emit = Callable[[Sequence[int], Json], None]


class MissingSymbol(LookupError):
    """The library does not have a function that the headers declare."""


class Sequencer:
    """Run the steps of one sequence in this process."""

    def __init__(self, library: Any, emit: Emit) -> None:
        self._library = library
        self._emit = emit
        self._scope = Scope()
        self._ops: dict[str, Callable[[Mapping[str, Json]], dict[str, Json]]] = {
            "host_buffer": self._host_buffer,
            "host_fill": self._host_fill,
            "host_check": self._host_check,
            "device_hold": lambda _: self._control("hostacl_hold"),
            "device_release": lambda _: self._control("hostacl_release"),
            "sleep_ms": self._sleep_ms,
        }

    def run(self, steps: Sequence[Mapping[str, Json]], path: tuple[int, ...] = ()) -> bool:
        """Run steps and report each; return whether all were run."""
        for index, step in enumerate(steps):
            here = (*path, index)
            if step.get("op") == "thread":
                self._emit(here, {})
                if not self._in_thread(step["steps"], here):
                    return False
                continue
            try:
                found = self._step(step)
            except Exception as error:
                known = isinstance(error, UnknownForm | MissingSymbol)
                self._emit(here, {"stopped": str(error) if known else f"the step is not understood: {error!r}"})
                return False
            self._emit(here, found)
        return True

    def _in_thread(self, steps: Sequence[Mapping[str, Json]], path: tuple[int, ...]) -> bool:
        done: list[bool] = []
        thread = threading.Thread(target=lambda: done.append(self.run(steps, path)))
        thread.start()
        thread.join()
        return done == [True]

    def _step(self, step: Mapping[str, Json]) -> dict[str, Json]:
        if "fn" in step:
            return self._call(step)
        op = step.get("op")
        if op not in self._ops:
            raise UnknownForm(f"unknown step: {op!r} is no operation")
        return self._ops[op](step)

    def _function(self, name: str) -> Any:
        if name not in names() or name in constants():
            raise UnknownForm(f"the headers declare no function {name}")
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise MissingSymbol(f"missing symbol: the library has no {name}") from None

    def _call(self, step: Mapping[str, Json]) -> dict[str, Json]:
        function = self._function(str(step["fn"]))
        ctype = interface().typeof(function)
        forms = step.get("args", ())
        if len(forms) != len(ctype.args) and not (ctype.ellipsis and len(forms) > len(ctype.args)):
            raise UnknownForm(f"{step['fn']} takes {len(ctype.args)} arguments, {len(forms)} are given")
        arguments = [
            self._scope.argument(form, part) if part else self._scope.further_argument(form)
            for form, part in zip_longest(forms, ctype.args)
        ]
        result = returned(function(*arguments), ctype.result)
        outs = [str(form["out"]) for form in forms if isinstance(form, Mapping) and "out" in form]
        return {"ret": result, "outs": {name: self._scope.variables[name].found() for name in outs}}

    def _control(self, name: str) -> dict[str, Json]:
        code = self._function(name)(ALL_DEVICES)
        if code:
            raise UnknownForm(f"{name} returned {code}")
        return {}

    def _host_buffer(self, step: Mapping[str, Json]) -> dict[str, Json]:
        self._scope.add_buffer(str(step["name"]), step["size"])
        return self._host_fill(step)

    def _host_fill(self, step: Mapping[str, Json]) -> dict[str, Json]:
        self._span(step, 0)[:] = bytes([step["fill"]]) * step["size"]
        return {}

    def _host_check(self, step: Mapping[str, Json]) -> dict[str, Json]:
        span = self._span(step, step.get("offset", 0))
        return {"ok": bytes(span) == bytes([step["equals"]]) * step["size"]}

    def _span(self, step: Mapping[str, Json], offset: int) -> memoryview:
        name = str(step["name"])
        if name not in self._scope.buffers:
            raise UnknownForm(f"no step before this one makes the host buffer {name}")
        whole = memoryview(interface().buffer(self._scope.buffers[name])).cast("B")
        if offset + step["size"] > len(whole):
            raise UnknownForm(f"the host buffer {name} has {len(whole)} bytes, {offset + step['size']} are wanted")
        return whole[offset : offset + step["size"]]

    def _sleep_ms(self, step: Mapping[str, Json]) -> dict[str, Json]:
        time.sleep(step["ms"] / 1000)
        return {}


def run_forked(library: Any, job: Mapping[str, Json], limit_s: int, emit: Emit) -> str:
    """Run one sequence in a fork of this process, which has called nothing yet; return how it ended."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGALRM:
            return f"hung for {limit_s} s"
        return f"the process ended by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
    code = 1
    try:
        signal.alarm(limit_s)
        os.environ.update(job["environment"])
        Sequencer(library, emit).run(job["steps"])
        code = 0
    finally:
        os._exit(code)


def serve(source: TextIO, sink: TextIO) -> None:
    """Run the sequences that the source names and write what was found to the sink."""
    request = json.load(source)
    library = interface().dlopen(request["library"])
    for index, job in enumerate(request["sequences"]):

        def emit(path: Sequence[int] | None, found: Json, index: int = index) -> None:
            sink.write(json.dumps([index, path, found]) + "\n")
            sink.flush()

        emit(None, run_forked(library, job, request["limit_s"], emit))


def replies(lines: Iterator[str]) -> Iterator[tuple[int, tuple[int, ...] | None, Json]]:
    """Read what `serve` writes."""
    for line in lines:
        index, path, found = json.loads(line)
        yield index, None if path is None else tuple(path), found


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
