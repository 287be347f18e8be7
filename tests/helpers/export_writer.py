"""A process that forks two writers of external weights to one folder and kills the first: `serve` answers plans."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gevar.om import OmBuilder
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.model_cache_writer import LineCounter, Plan, fork, told

SIZES = (3, 700, 40_000)
INTERRUPTED = 130


def weights_of(number: int) -> dict[str, bytes]:
    """The weights of the n-th model: one that all models have, and others of its own."""
    own = {f"w{size}": bytes([number % 251 + 1, number // 251, 7]) * size for size in SIZES}
    return {"common": b"common" * 999, **own}


def export(plan: Plan, tell: Callable[[str], None]) -> None:
    """Write a model whose weights lie in the folder; the process may end at a line of it, or be interrupted.

    Tells the lines that ran.
    """
    builder = OmBuilder("net")
    for name, data in weights_of(plan["number"]).items():
        builder.const(name, data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (len(data),)))
    error = KeyboardInterrupt if "interrupt" in plan else None
    line = plan.get("line") or plan.get("interrupt", 0)
    folder, counter = Path(plan["folder"]), LineCounter(line, error=error)
    if line:
        counter.begin()
    try:
        builder.write(folder / plan["file"], external_weight=plan["mode"], weight_dir=folder / "weight")
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    sys.settrace(None)
    tell(f"{counter.lines}\n")


def serve() -> None:
    """Run the plans on standard input, each a list of writers; answer with what they told and how they ended."""
    for line in sys.stdin:
        plans = json.loads(line)
        children = [fork(export, plan) for plan in plans]
        if "seconds" in plans[0]:
            time.sleep(plans[0]["seconds"])
            os.kill(children[0][0], signal.SIGKILL)
        answers = [(told(pipe), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid, pipe in children]
        print(json.dumps(answers), flush=True)
