"""What does ``gevar inspect`` of a 1 GiB model cost, and does it leave the weights alone?

The model is sparse: its weights are holes, so it takes a moment to make and no room on the disk. Memory is the child's
own high-water mark as the kernel keeps it (VmHWM). It counts pages of files as well, so it is never less than the peak
of anonymous memory, which the kernel does not keep. That no weight was read shows in the page cache: the file is put
out of it before, and afterwards no page of the weights may be there, but for what the kernel reads ahead of the
neighbouring parts.
"""

import statistics
from pathlib import Path

from benchmarks import page_cache
from benchmarks.harness import Promise, Row, alternate, run_python, scratch_folder
from gevar.om import open_om
from gevar.om.builder import OmBuilder
from gevar.om.weights_layout import SparseBytes
from gevar.types import DataType, Format, TensorDesc

ROUNDS = 5
CONSTS = 64
CONST_BYTES = 16 << 20
_MIB = 1 << 20
_CHILD = """
import atexit, sys

def report():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print("VmHWM", lines["VmHWM"].split()[0], "RssAnon", lines["RssAnon"].split()[0], file=sys.stderr)

atexit.register(report)
from gevar.cli.main import main
sys.argv = ["gevar", "inspect", sys.argv[1]]
main()
"""


def _write_model(path: Path, const_bytes: int) -> None:
    builder = OmBuilder("sparse")
    desc = TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (const_bytes,))
    names = [builder.const(f"weight_{index}", SparseBytes(const_bytes), desc) for index in range(CONSTS)]
    builder.output(names[-1])
    builder.write(path)


def _inspect(path: Path) -> tuple[float, float]:
    """Run the command in a fresh process; return its high-water mark and its last anonymous memory, in MiB."""
    words = run_python(_CHILD, str(path)).stderr.split()[-4:]
    return int(words[1]) / 1024, int(words[3]) / 1024


def _weights_range(path: Path) -> tuple[int, int]:
    """Return where the weights begin and end in the file, less what may be read ahead on either side."""
    with open_om(path) as om:
        weights = om.models[0].weights
    assert weights is not None
    margin = page_cache.read_ahead_bytes(path)
    return weights.file_offset + margin, weights.file_offset + weights.mem_size - margin


def inspect_memory() -> Row:
    with scratch_folder() as folder:
        large, small = folder / "large.om", folder / "small.om"
        _write_model(large, CONST_BYTES)
        _write_model(small, 512)
        start, end = _weights_range(large)
        detects = page_cache.shows_reads(large, (start + end) // 2)
        anonymous: list[float] = []

        def peak(path: Path) -> float:
            high_water, last_anonymous = _inspect(path)
            anonymous.append(last_anonymous)
            return high_water

        subject, reference = alternate(lambda: peak(large), lambda: peak(small), ROUNDS)
        pages = page_cache.resident_pages(large, start, end)
    faults = []
    if not detects:
        faults.append("this file system does not show which pages were read")
    if pages:
        faults.append(f"{pages} pages of the weights were read")
    return Row(
        name="inspect-memory",
        backend="none",
        unit="MiB",
        subject=subject,
        reference=reference,
        figure=max(subject),
        figure_unit="MiB at most, pages of files included",
        promise=Promise("under 100 MiB and no weight read", 100, at_most=True),
        conditions={
            "model": f"{CONSTS * CONST_BYTES // _MIB} MiB of weights, sparse",
            "reference model": f"{CONSTS * 512 // 1024} KiB of weights",
            "last_anonymous_mib": statistics.median(anonymous),
            "weight_pages_looked_at": (end - start) // page_cache.PAGE_BYTES,
            "weight_pages_read": pages,
        },
        faults=tuple(faults),
    )
