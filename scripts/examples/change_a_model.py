"""Insert a node into a model and write the model again: python change_a_model.py IN.om OUT.om"""

import sys

from gevar.graph import OpDesc, insert_node_before
from gevar.om import GeRootModel, open_om, write_om

source, target = sys.argv[1:3]
with open_om(source) as om:  # open until the end: the weights are copied from it
    root = GeRootModel.from_om(om)
    graph = root.models[0].model.graph
    assert graph is not None
    end = next(node for node in graph if node.type == "NetOutput")
    desc = end.op_desc.input_desc(0)
    insert_node_before(end.in_data_anchor(0), OpDesc("inserted", "Identity", inputs={"x": desc}, outputs={"y": desc}))
    root.is_compressed = True  # attribute names as numbers
    write_om(target, root)
print("inserted a node before", end.name)
