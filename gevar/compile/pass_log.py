"""What passes did, for a person: what each changed, why it refused, how long it took."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a pass looked at and left alone.

    Attributes
    ----------
    subject : str
        The variable, node or graph.
    reason : str
        Why.
    """

    subject: str
    reason: str


@dataclass(slots=True)
class PassRecord:
    """One run of a pass on one graph.

    Attributes
    ----------
    pass_name, graph_name : str
        The pass and the graph.
    changes : list of str
        A line for each thing that was changed.
    refusals : list of Refusal
        What was left alone, and why.
    warnings : list of str
        What the pass found odd, and went on with as GE does.
    elapsed_s : float
        Time that it took, in seconds.
    is_finished : bool
        False where it raised.
    """

    pass_name: str
    graph_name: str
    changes: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0
    is_finished: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the record as lines: a head, then what was changed, found odd and refused."""
        state = "" if self.is_finished else ", failed"
        count, elapsed_ms = len(self.changes), self.elapsed_s * 1e3
        yield f"{self.pass_name} on {self.graph_name}: {count} changes, {elapsed_ms:.1f} ms{state}"
        yield from (f"  changed  {text}" for text in self.changes)
        yield from (f"  warning  {text}" for text in self.warnings)
        yield from (f"  refused  {refusal.subject}: {refusal.reason}" for refusal in self.refusals)


class PassLog:
    """The runs of passes, in order.

    Attributes
    ----------
    records : list of PassRecord
        One for each pass and graph, also where nothing was changed.

    Thread safety: one thread writes.
    """

    def __init__(self) -> None:
        self.records: list[PassRecord] = []

    @contextmanager
    def run_of(self, pass_name: str, graph_name: str) -> Iterator[None]:
        """Take what is logged in this block as one run."""
        record = PassRecord(pass_name, graph_name)
        self.records.append(record)
        start = perf_counter()
        try:
            yield
            record.is_finished = True
        finally:
            record.elapsed_s = perf_counter() - start

    def changed(self, text: str) -> None:
        """Say what the pass that runs has changed."""
        self.records[-1].changes.append(text)

    def refused(self, subject: str, reason: str) -> None:
        """Say what the pass that runs leaves alone, and why."""
        self.records[-1].refusals.append(Refusal(subject, reason))

    def warned(self, text: str) -> None:
        """Say what the pass that runs finds odd."""
        self.records[-1].warnings.append(text)

    @property
    def change_count(self) -> int:
        """Number of changes of all runs."""
        return sum(len(record.changes) for record in self.records)

    def text(self) -> str:
        """Return the whole log, a line for each thing."""
        return "\n".join(line for record in self.records for line in record.lines())
