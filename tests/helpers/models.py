"""Small models for tests, written by the project's own writer."""

from pathlib import Path

import numpy as np

from gevar.om.builder import OmBuilder
from gevar.types import DataType, Format, TensorDesc

F32, ND = DataType.DT_FLOAT, Format.FORMAT_ND


def small_model(path: Path, *, seed: int = 1, kernel_bytes: int = 4096) -> dict[str, np.ndarray]:
    """Write a model with every kind of tensor; return what each should hold on the device, by name."""
    rng = np.random.default_rng(seed)
    kernel = rng.random((kernel_bytes // 4,), np.float32)
    bias, scale = rng.random(7, np.float32), rng.integers(0, 99, (2, 3), np.int32)
    start = rng.random((3, 5), np.float32)
    net = OmBuilder("small")
    x = net.data("x", TensorDesc(F32, ND, (7,)))
    x = net.node("Add", "add", [x, net.const("kernel", kernel), net.const("bias", bias)], [TensorDesc(F32, ND, (7,))])
    x = net.node(
        "Mul",
        "mul",
        [
            x,
            net.constant("scale", scale),
            net.constant("scale_again", scale),
            net.variable("start", TensorDesc(F32, ND, (3, 5)), init=start),
            net.variable("empty", TensorDesc(DataType.DT_BF16, ND, (4,))),
        ],
        [TensorDesc(F32, ND, (7,))],
    )
    net.output(x, "y")
    net.write(path)
    return {"kernel": kernel, "bias": bias, "scale": scale, "scale_again": scale, "start": start}
