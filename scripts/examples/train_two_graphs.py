"""Two graphs share a variable in two formats; a second start compiles nothing: python train_two_graphs.py FOLDER"""

import sys

import numpy as np

from gevar import Session
from gevar.formats import transfer
from gevar.graph import ComputeGraph, OpDesc
from gevar.types import DataType, Format, TensorDesc

W = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_NCHW, (4, 20, 3, 3), Format.FORMAT_NCHW, (4, 20, 3, 3))
W5 = W.replace(format=Format.FORMAT_NC1HWC0 | 5 << 24, shape=(4, 2, 3, 3, 16))  # 5 stands for a C0 of 16
WZ = W.replace(format=Format.FORMAT_FRACTAL_Z | 5 << 24, shape=(18, 1, 16, 16))


def graph_of(name: str, **rows: tuple[str, str, TensorDesc]) -> ComputeGraph:
    graph = ComputeGraph(name)
    for node, (kind, sources, desc) in rows.items():
        edges = [graph[source].out_data_anchor(0) for source in sources.split()]
        inputs = {key: edge.node.op_desc.output_desc(0) for key, edge in zip(("ref", "x"), edges, strict=False)}
        made = graph.add_node(OpDesc(node, kind, inputs=inputs, outputs={"ref" if "Assign" in kind else "y": desc}))
        for index, edge in enumerate(edges):
            edge.link_to(made.in_data_anchor(index))
    graph.set_outputs([made.out_data_anchor(0)])  # the last one
    return graph


w, w5, wz = ("Variable", "", W), ("TransData", "w", W5), ("TransData", "plain", WZ)
twice, plain = ("Add", "w5 w5", W5), ("TransData", "twice", W)
with Session(options={"ge.graph_compiler_cache_dir": sys.argv[1]}) as session:
    session.add_graph(1, graph_of("t", w=w, g=("Data", "", W), o=("AssignSub", "w g", W)), {"ge.graph_key": "t"})
    session.add_graph(2, graph_of("u", w=w, w5=w5, twice=twice, plain=plain, wz=wz), {"ge.graph_key": "u"})
    session.compile(1)
    session.var_manager.write("w", value := np.ones(W.shape, np.float32))
    for step in range(5):
        [new], [used] = session.run(1, {"g": np.full(W.shape, step, np.float32)}), session.run(2)
        same = np.array_equal(new, value - step) and np.array_equal(used, transfer((value := new) * 2, W, WZ))
        print(step, "as in numpy:", same, "found in the cache:", session.compile(2).is_from_cache)
