"""Load a model into device memory, look at it, train one step by hand: python load_a_model.py PATH.om"""

import sys

import gevar

with gevar.load_model(sys.argv[1]) as model:
    for row in model.rows:
        place = "-" if row.dev_addr is None else f"{row.dev_addr:#x}"
        print(f"{row.kind:<12} {place:>16} {row.size_bytes:>10}  {row.name}")
    for row in model.rows:
        if row.kind == "Variable" and row.name == "ge_global_step":
            model.write(row, model.read(row) + 1)
            print(row.name, "is now", model.read(row))
