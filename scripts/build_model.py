"""Build a small network as an OM file, with every kind of lasting tensor: python build_model.py PATH"""

import sys

import ml_dtypes
import numpy as np

from gevar.om.builder import OmBuilder
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub

F16, F32, ND, NCHW = DataType.DT_FLOAT16, DataType.DT_FLOAT, Format.FORMAT_ND, Format.FORMAT_NCHW
NC1HWC0 = format_from_c0(Format.FORMAT_NC1HWC0, 5)  # C0 code 5: C0 is 16
FRACTAL_NZ = format_from_c0(Format.FORMAT_FRACTAL_NZ, 5)
FRACTAL_Z = format_from_c0(format_from_sub(Format.FORMAT_FRACTAL_Z, 2), 5)  # two groups

maps = TensorDesc(F16, NC1HWC0, (1, 2, 28, 28, 16), origin_format=NCHW, origin_shape=(1, 32, 28, 28))
filters = TensorDesc(F16, FRACTAL_Z, (9, 2, 16, 16), origin_format=NCHW, origin_shape=(32, 16, 3, 3))
matrix = TensorDesc(F16, FRACTAL_NZ, (64, 64, 16, 16), origin_format=ND, origin_shape=(1024, 1024))
hidden, vector = TensorDesc(F32, ND, (28, 1024)), TensorDesc(F32, ND, (1024,))
count = TensorDesc(DataType.DT_INT64, ND, (1,))

rng = np.random.default_rng(20240229)
net = OmBuilder("example")
image = net.data("image", TensorDesc(F32, NCHW, (1, 32, 28, 28)))
mean = net.const("preprocess/mean", rng.random((1, 32, 1, 1), np.float32), fmt=NCHW)
x = net.node("Sub", "preprocess", [image, mean], [TensorDesc(F32, NCHW, (1, 32, 28, 28))])
x = net.node("TransData", "conv/input", [x], [maps])
weight = net.variable("conv/weight", filters, init=rng.random(filters.shape, np.float32).astype(np.float16))
x = net.node("Conv2D", "conv", [x, weight], [maps], attrs={"groups": 2, "strides": [1, 1, 1, 1]})
x = net.node("Add", "conv/residual", [x, net.variable("conv/cache", maps)], [maps])
x = net.node("TransData", "embed/input", [x], [TensorDesc(F32, ND, (28, 896))])
table = net.const("embed/table", rng.random((896, 1024), np.float32).astype(ml_dtypes.bfloat16))
x = net.node("MatMulV2", "embed", [x, table], [hidden])
for layer in range(4):
    kernel = net.const(f"layer_{layer}/kernel", rng.random(matrix.shape, np.float32).astype(np.float16), matrix)
    delta = net.const(f"layer_{layer}/delta", rng.integers(-128, 128, (1024, 1024), np.int8))
    scale = net.constant(f"layer_{layer}/scale", np.full(1024, 2.0 ** -(layer // 2), np.float32))  # two and two alike
    bias = net.variable(f"layer_{layer}/bias", vector, init=rng.random(1024, np.float32))
    x = net.node("FFN", f"layer_{layer}", [x, kernel, delta, scale, bias], [hidden])
mask = net.variable("head/mask", TensorDesc(DataType.DT_BOOL, ND, (1024,)), init=rng.random(1024) < 0.9)
labels = net.constant("head/labels", np.arange(1024, dtype=np.int32))
x = net.node("MaskedFill", "head", [x, mask, labels], [hidden])
rate = net.variable("learning_rate", TensorDesc(DataType.DT_DOUBLE, ND, ()), init=np.array(1e-3))
net.output(net.node("Mul", "scaled", [x, rate], [hidden]), "logits")
step = net.variable("ge_global_step", count)
net.node("AssignAdd", "count", [step, net.const("one", np.ones(1, np.int64))], [count], assigns={0: step})
net.write(sys.argv[1])
