"""What does the second load of the same weights in a session read? Nothing: reads and bytes are counted, not seconds.

The same weights lie in a safetensors file and in the two kinds of external weights of a model. Each is loaded twice
into one session; what the first load reads is the reference.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from acl_shim import open_runtime
from benchmarks.harness import Promise, Row, scratch_folder
from gevar.om import OmBuilder
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.session import LoadedModel, LoadedWeights, Session, load_model, load_weights
from gevar.types import DataType
from gevar.weights import PreadReader

TENSORS = 200
TENSOR_BYTES = 1 << 20
MIB = 1 << 20
BACKEND = "host"


class _CountedReader(PreadReader):
    """A file of which every read is counted; it gives no descriptor away, so that none goes past it."""

    descriptor = None
    reads = read_bytes = 0

    def read_into(self, offset: int, view: memoryview) -> int:
        got = super().read_into(offset, view)
        _CountedReader.reads += 1
        _CountedReader.read_bytes += got
        return got


def _write(folder: Path) -> dict[str, Path]:
    """Write the files; return them by what they are."""
    rng = np.random.default_rng(1)
    arrays = {f"w{number}": rng.integers(0, 256, TENSOR_BYTES, np.uint8) for number in range(TENSORS)}
    tensors = [NamedTensor(name, DataType.DT_UINT8, array.shape, array.data) for name, array in arrays.items()]
    write_tensors(folder / "w.safetensors", tensors)
    found = {"safetensors": folder / "w.safetensors"}
    for what, mode in (("a file for each", 1), ("one file", 2)):
        builder = OmBuilder("w")
        for name, array in arrays.items():
            builder.const(name, array)
        path = folder / str(mode) / "w.om"
        path.parent.mkdir()
        builder.write(path, external_weight=1 if mode == 1 else 2)
        found[f"external weights, {what}"] = path
    return found


def _counted(load: Callable[[], LoadedModel | LoadedWeights]) -> tuple[LoadedModel | LoadedWeights, int, int]:
    """Load, and return what was loaded, with the reads and the bytes that it took."""
    _CountedReader.reads = _CountedReader.read_bytes = 0
    return load(), _CountedReader.reads, _CountedReader.read_bytes


def upload_second() -> Row:
    """Count what first and second loads read."""
    runtime = open_runtime(BACKEND)
    subject: list[float] = []
    reference: list[float] = []
    faults: list[str] = []
    reads = 0
    with scratch_folder() as folder:
        for what, path in _write(folder).items():
            with Session(runtime) as session:

                def load(path: Path = path, session: Session = session) -> LoadedModel | LoadedWeights:
                    if path.suffix == ".om":
                        return load_model(path, session=session, open_file=_CountedReader)
                    return load_weights(path, session=session, open_file=_CountedReader)

                first, _, first_bytes = _counted(load)
                second, second_reads, second_bytes = _counted(load)
                reference.append(first_bytes / MIB)
                subject.append(second_bytes / MIB)
                reads += second_reads
                if first_bytes < TENSORS * TENSOR_BYTES:
                    faults.append(f"{what}: the first load read {first_bytes} B, the weights have more")
                if second.verify(path).differences:
                    faults.append(f"{what}: the second load has other bytes than the file")
                second.close()
                first.close()
    return Row(
        name="upload-second",
        backend=runtime.backend,
        unit="MiB",
        subject=tuple(subject),
        reference=tuple(reference),
        figure=float(reads),
        figure_unit="reads of files by second loads",
        promise=Promise("none", 0, at_most=True),
        conditions={"tensors": TENSORS, "tensor_bytes": TENSOR_BYTES, "kinds": "safetensors, external weights 1 and 2"},
        faults=tuple(faults),
    )
