"""Look into a model without a device, weights untouched: python inspect_a_model.py PATH.om"""

import sys
from collections import Counter

from gevar.om import open_om

with open_om(sys.argv[1]) as om:
    print(f"dialect {om.dialect}, {len(om.models)} models")
    for model in om.models:
        print(model.name, dict(Counter(node.type for node in model.nodes())))
        for const in model.const_nodes():
            print(f"{const.node.type:<9} {const.name:<20} {const.size_bytes:>8} B {const.storage}")
        for node in model.variable_nodes():
            print(f"{node.type:<9} {node.name:<20} at {node.output_i[0]:#x}")
