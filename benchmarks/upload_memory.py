"""How much host memory does a load take, beside the device memory that it fills?

A fresh process loads a file of 4 GiB in 500 regions; the figure is how far its high-water mark (VmHWM) rises meanwhile,
pinned memory included. The host runtime fills pages that nobody has touched through their memory file, so they do not
count as the process's own; those at the edges of regions do, which makes the figure too large, never too small. The
settings are those that suit the host, and those of a card: four readers with three buffers each.
"""

import os
from pathlib import Path

from benchmarks.harness import Promise, Row, run_python, scratch_folder

_SIZE_BYTES = 4 << 30
_REGIONS = 500
_ROUNDS = 2  # the figure hardly varies
_CODE = """
import sys
from itertools import pairwise
from pathlib import Path
from acl_shim import open_runtime
from gevar.weights import FileRegion, UploadRequest, upload

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

path, size, regions = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
workers, buffers = (int(word) or None for word in sys.argv[4:])
device = open_runtime("host").device(0)
with device.malloc(size) as block:
    ends = [size * number // regions for number in range(regions + 1)]
    requests = [UploadRequest(FileRegion(path, a, b - a), block.addr + a) for a, b in pairwise(ends)]
    before = high_water()
    report = upload(device, requests, workers=workers, buffers=buffers, past_cache=False)
    after = high_water()
    assert report.size_bytes == size and block.read(8, offset_bytes=size - 8) == b"the end."
print(after - before)
"""


def _rise(path: Path, workers: int, buffers: int) -> float:
    """Load in a fresh process; return by how many MiB its high-water mark rises. 0 is the default of a setting."""
    words = (str(path), str(_SIZE_BYTES), str(_REGIONS), str(workers), str(buffers))
    return int(run_python(_CODE, *words).stdout) / 1024


def upload_memory() -> Row:
    with scratch_folder() as folder:
        path = folder / "weights.bin"
        with path.open("wb") as file:
            os.truncate(file.fileno(), _SIZE_BYTES - 8)  # the holes are read like other bytes
            file.seek(_SIZE_BYTES - 8)
            file.write(b"the end.")
        host = tuple(_rise(path, 0, 0) for _ in range(_ROUNDS))
        card = tuple(_rise(path, 4, 3) for _ in range(_ROUNDS))
    return Row(
        name="upload-memory",
        backend="host",
        unit="MiB",
        subject=host,
        reference=card,
        figure=max(host + card),
        figure_unit="MiB at most, pinned memory included",
        promise=Promise("under 256 MiB", 256, at_most=True),
        conditions={
            "size_bytes": _SIZE_BYTES,
            "regions": _REGIONS,
            "subject": "settings for the host",
            "reference": "settings for a card: 4 readers with 3 buffers",
        },
    )
