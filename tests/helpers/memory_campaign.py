"""Device memory in any order of calls: the machines of allocators and of sessions, as often as asked."""

import logging

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.helpers.memory_machine import GrowingMemory
from tests.helpers.session_machine import SessionMachine

FULL_RUNS = 3_000
"""Runs of each machine, of up to `STEPS` steps; about 20 minutes together."""

SHARE = 120
"""The tests run one part in so many of the full number."""

STEPS = 40
MACHINES: tuple[type[RuleBasedStateMachine], ...] = (GrowingMemory, SessionMachine)


def run(runs: int, seed_number: int | None = None) -> int:
    """Make so many runs of each machine and return the number. A run that finds something raises.

    With a seed the runs are those of that seed; else new ones.
    """
    chosen = settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    logging.disable(logging.WARNING)  # each refusal that leads to other memory is a warning
    try:
        for machine in MACHINES:
            factory: type[RuleBasedStateMachine] = type(machine.__name__, (machine,), {})  # a seed stays with its class
            run_state_machine_as_test(factory if seed_number is None else seed(seed_number)(factory), settings=chosen)
    finally:
        logging.disable(logging.NOTSET)
    return runs
