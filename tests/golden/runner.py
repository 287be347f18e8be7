"""Compare expectation files with what gevar finds: `python -m tests.golden.runner FILE…`, or `scripts/golden FILE…`.

The schema of a file is told by its structure. Exit code 0 when every fact was compared and equal, else 1. A fact that
was not compared fails, with the reason; so does a key that the schema does not know.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tests.golden import acl_calls, formats, om_manifest, passes, var_manager
from tests.golden.facts import Report, State, load_document, place_text

SCHEMAS: tuple[ModuleType, ...] = (acl_calls, formats, om_manifest, passes, var_manager)
FIRST_DIFFERENCES = 20


def check_file(path: Path, profile: str | None = None) -> Report:
    """Compare one expectation file.

    Parameters
    ----------
    path
        The file.
    profile
        Profile of the host runtime on which recorded calls are made; other files have none.

    Raises
    ------
    ValueError
        The file is not JSON, or has the structure of no known schema, or a profile is given for no recorded calls.
    OSError
        The file cannot be read.
    """
    document = load_document(path)
    for schema in SCHEMAS:
        if schema.matches(document):
            if profile and schema is not acl_calls:
                raise ValueError("a profile is only for recorded calls")
            report = Report(document)
            schema.check(document, path.parent, report, **({"profile": profile} if profile else {}))
            return report
    raise ValueError("no known schema has this structure")


def summary(report: Report) -> str:
    """Return the counts of a report in one line."""
    counts = f"{report.count(State.COMPARED)} of {len(report.states)} facts compared"
    rest = [
        f"{report.count(State.INPUT)} input",
        f"{report.count(State.DOCUMENTATION)} documentation",
        f"{report.count(State.LEFT_OUT)} not compared",
        f"{report.count(State.UNKNOWN)} unknown or unreached",
        f"{len(report.differences)} differences",
    ]
    return f"{counts}, {', '.join(rest)}"


def print_findings(report: Report) -> None:
    """Print what a report says beside its counts: reasons, first differences, first unknown facts."""
    if report.steps:
        print(f"  {report.steps.total()} steps: {', '.join(f'{count} {what}' for what, count in report.steps.items())}")
    for reason, count in report.reasons.items():
        print(f"  not compared, {reason}: {count} facts")
    for name, count in report.accepted.items():
        print(f"  differs as documented, {name}: {count} {'steps' if report.steps else 'facts'}")
    lines = [f"  {place_text(place)}: {text}" for place, text in report.differences]
    unknown = [place for place, state in report.states.items() if state is State.UNKNOWN]
    lines += [f"  {place_text(place)}: key unknown, or nothing found to compare with" for place in unknown]
    for line in lines[:FIRST_DIFFERENCES]:
        print(line)
    if len(lines) > FIRST_DIFFERENCES:
        print(f"  … and {len(lines) - FIRST_DIFFERENCES} more")


def main(arguments: Sequence[str]) -> int:
    """Check the files named on the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="golden", description="Compare expectation files with what gevar finds.")
    parser.add_argument("--profile", choices=("card", "strict"), help="make recorded calls under this profile")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    passed = compared = facts = 0
    options = parser.parse_args(arguments)
    files: list[Path] = options.files
    for path in files:
        try:
            report = check_file(path, options.profile)
        except (OSError, ValueError) as error:
            print(f"{path}: FAILED: {error}")
            continue
        print(f"{path}: {'passed' if report.passed else 'FAILED'}: {summary(report)}")
        print_findings(report)
        passed += report.passed
        compared += report.count(State.COMPARED)
        facts += len(report.states)
    print(f"{passed} of {len(files)} files passed, {compared} of {facts} facts compared")
    return 0 if passed == len(files) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
