"""Fuzz campaigns at full size, run by hand: `python -m tests.helpers.campaigns NAME`, or `scripts/campaign NAME`."""

import argparse
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from tests.golden.var import sequence_campaign
from tests.helpers import (
    compile_campaign,
    export_campaign,
    export_models,
    file_constant_campaign,
    memory_campaign,
    model_cache_campaign,
    om_campaign,
    tensor_files_campaign,
    upload_campaign,
    var_campaign,
    weights_campaign,
)
from tests.helpers.shared import REPOSITORY, shared_files

ACL_CALLS = 200_000
FUZZERS = ("fuzz", "fuzz_streams", "fuzz_tasks", "fuzz_models")
"""Programs under native/tests: memory of every kind; streams that threads share; tasks over mapped memory; models."""
SANITIZERS = {"asan": ("address,undefined", 1), "tsan": ("thread", 4)}
"""Build folder, sanitizers, and the threads that call at a time."""
PROFILES = ("strict", "card")


class CampaignFailed(Exception):
    """A campaign found something; the text says what to run to see it again."""


def om(seed: int, count: int | None) -> str:
    """Damage OM files at random: each must be read, or refused as a model file; what is read is loaded as well."""
    seen = om_campaign.run(count or om_campaign.FULL_EXAMPLES, seed)
    outcomes = f"{seen.read} read, {seen.refused.total()} refused; {seen.loaded} of those read were loaded"
    return f"{seen.examples} damaged OM files: {outcomes}; {seen.swollen} swollen ones in little memory"


def var(seed: int, count: int | None) -> str:
    """Damage stored states at random: each must be restored whole, or refused with nothing changed."""
    seen = var_campaign.run(count or var_campaign.FULL_EXAMPLES, seed)
    return f"{seen.examples} damaged states: {seen.restored} restored, {seen.refused.total()} refused"


def var_sequences(seed: int, count: int | None) -> str:
    """Make up sequences of calls to variable managers: each step must be GE's, or as the page of differences says."""
    seen = sequence_campaign.run(count or sequence_campaign.FULL_SEQUENCES, seed)
    rough = ", ".join(f"{count} {verdict.value}" for verdict, count in seen.rough.most_common())
    correct = f"{seen.correct.total()} steps of correct use, all equal to GE"
    return f"{seen.sequences} sequences: {correct}; {seen.rough.total()} of rough use: {rough}"


def model_cache(seed: int, count: int | None) -> str:
    """Kill writers of the model cache at random points: no entry may be torn, and none that was stored lost."""
    seen = model_cache_campaign.run(count or model_cache_campaign.FULL_KILLS, seed)
    kinds = ", ".join(f"{count} by {kind}" for kind, count in sorted(seen.kills.items()))
    ends = f"{seen.old} left the old entries, {seen.new} the new one too, {seen.survived} ended before"
    found = f"no entry torn or lost, {seen.left_over} files that none names"
    return f"{seen.kills.total()} kills ({kinds}): {ends}; {found}"


def graphs(seed: int, count: int | None) -> str:
    """Do programs over shared variables in sessions: every number must be that of plain numpy."""
    seen = compile_campaign.run(count or compile_campaign.FULL_PROGRAMS, seed)
    roads = ", ".join(f"{number} with {roads} roads" for roads, number in sorted(seen.roads.items()))
    return f"{seen.programs} programs ({roads}), each in six sessions: all numbers as in numpy"


def export(seed: int, count: int | None) -> str:
    """Export weights by two processes and kill one, then any model to any folder: all must be as the rules say."""
    kills = count or export_campaign.FULL_KILLS
    seen = export_campaign.run(kills, seed)
    kinds = ", ".join(f"{count} by {kind}" for kind, count in sorted(seen.kills.items()))
    looked = f"{seen.models} models and {seen.regions} listed regions were looked at, all whole"
    exports = export_models.run(kills * export_models.FULL_EXPORTS // export_campaign.FULL_KILLS, seed)
    ends = ", ".join(f"{number} {end}" for end, number in sorted(exports.items()))
    killed = f"{seen.kills.total()} kills ({kinds}), {seen.survived} ended before; {looked}"
    return f"{killed}; {exports.total()} exports of any model ({ends}), all as the rules say"


def weights(seed: int, count: int | None) -> str:
    """Damage what says where external weights are: nothing leads out, and what is named is whole, or it is refused."""
    seen = weights_campaign.run(count or weights_campaign.FULL_EXAMPLES, seed)
    return f"{seen.examples} examples: {'; '.join(kinds_of(seen.outcomes))}"


def kinds_of(outcomes: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return each kind with how often each outcome was."""
    return [
        f"{kind} ({', '.join(f'{number} {outcome}' for outcome, number in sorted(found.items()))})"
        for kind, found in sorted(outcomes.items())
    ]


def file_constants(seed: int, count: int | None) -> str:
    """Make up models and graphs with external weights: places, bytes and refusals must be those of the rules."""
    seen = file_constant_campaign.run(count or file_constant_campaign.FULL_EXAMPLES, seed)
    found = ", ".join(f"{number} {outcome}" for outcome, number in sorted(seen.outcomes.items()))
    return f"{found}: all as the rules say"


def upload(seed: int, count: int | None) -> str:
    """Upload random regions and buffers in random ways, some with a fault: devices must hold what plain numpy says."""
    seen = upload_campaign.run(count or upload_campaign.FULL_UPLOADS, seed).outcomes
    return f"{seen.total()} uploads: {', '.join(f'{outcome} {number}' for outcome, number in sorted(seen.items()))}"


def tensor_files(seed: int, count: int | None) -> str:
    """Write files of tensors by their packages and damage most: gevar reads what the package reads, or refuses."""
    seen = tensor_files_campaign.run(count or tensor_files_campaign.FULL_EXAMPLES, seed)
    return f"{seen.examples} examples: {'; '.join(kinds_of(seen.outcomes))}"


def memory(seed: int, count: int | None) -> str:
    """Use device memory in any order of calls, failing ones among them, compared with plain dictionaries."""
    runs = memory_campaign.run(count or memory_campaign.FULL_RUNS, seed)
    return f"{runs} runs of up to {memory_campaign.STEPS} steps each by allocators, and as many by sessions"


def acl(seed: int, count: int | None) -> str:
    """Make random calls to the host runtime under sanitizers, compared with a model."""
    calls = count or ACL_CALLS
    for name, (sanitizers, threads) in SANITIZERS.items():
        folder = build_fuzzers(REPOSITORY / "build" / f"native-{name}", sanitizers)
        for fuzzer, profile in product(FUZZERS, PROFILES):
            files = map(str, model_files()) if fuzzer == "fuzz_models" else ()
            run([str(folder / fuzzer), str(calls), str(seed), profile, str(threads), *files])
    under = " and ".join(sanitizers for sanitizers, _ in SANITIZERS.values())
    return f"{calls} calls of {' and '.join(FUZZERS)} under {under}, profiles {' and '.join(PROFILES)}"


CAMPAIGNS: dict[str, Callable[[int, int | None], str]] = {
    "om": om,
    "acl": acl,
    "var": var,
    "var_sequences": var_sequences,
    "memory": memory,
    "model_cache": model_cache,
    "graphs": graphs,
    "export": export,
    "weights": weights,
    "file_constants": file_constants,
    "tensor_files": tensor_files,
    "upload": upload,
}


def model_files() -> list[Path]:
    """Return the small models that are at hand, to be damaged beside those that the program makes."""
    files = [*shared_files("data/om/*.om"), *shared_files("data/om_vars/*.om")]
    return [file for file in files if 0 < file.stat().st_size <= om_campaign.MAX_SEED_BYTES]


def build_fuzzers(folder: Path, sanitizers: str) -> Path:
    """Build the random calls with sanitizers and return the folder of the programs."""
    source = ["cmake", "-S", str(REPOSITORY / "native"), "-B", str(folder), "-G", "Ninja"]
    run([*source, "-DGEVAR_TESTS=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DGEVAR_SANITIZE={sanitizers}"])
    run(["cmake", "--build", str(folder), "--target", *FUZZERS])
    return folder / "tests"


def run(command: Sequence[str]) -> None:
    """Run a command and show what it says only when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout, end="")
        raise CampaignFailed(f"{' '.join(command)} ended with {done.returncode}")


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def main(arguments: Sequence[str]) -> int:
    """Run the campaign that is named; return 0 when it found nothing."""
    parser = argparse.ArgumentParser(prog="campaign", description="Run a fuzz campaign at full size.")
    parser.add_argument("name", metavar="NAME", choices=CAMPAIGNS, help=" | ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, help="seed of a run to make again")
    parser.add_argument("--count", type=_number, help="examples or calls, instead of the full number")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1, 2**32) if options.seed is None else options.seed
    print(f"campaign {options.name}, seed {seed}", flush=True)
    start = time.monotonic()
    try:
        result, passed = CAMPAIGNS[options.name](seed, options.count), True
    except CampaignFailed as error:
        result, passed = str(error), False
    except Exception as error:
        traceback.print_exc()
        result, passed = f"{type(error).__name__}: {error}".splitlines()[0], False
    minutes = (time.monotonic() - start) / 60
    print(f"| {options.name} | {datetime.now(UTC):%Y-%m-%d} | {seed} | {minutes:.1f} | {verdict(passed)}: {result} |")
    return 0 if passed else 1


def verdict(passed: bool) -> str:
    return "passed" if passed else "FAILED"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
