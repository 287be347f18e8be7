"""Make a model from your own weights, then load it: python build_from_weights.py WEIGHTS.safetensors|npz|onnx OUT.om"""

import sys

import gevar
from gevar.om.named_tensor import read_tensors
from gevar.om.weights_model import weights_model

source, path = sys.argv[1:3]
net = weights_model("mine", read_tensors(source))
net.write(path, external_weight=2)  # all weights in one file in the folder "weight" beside the model
with gevar.load_model(path) as model:
    for row in model.rows:
        print(f"{row.name[:-65]:<30} {row.dtype.name:<10} {row.size_bytes:>10}")  # without the digest in its name
    report = model.verify(path)
    print(report.tensors - len(report.differences), "of", report.tensors, "tensors on the device are those of the file")
