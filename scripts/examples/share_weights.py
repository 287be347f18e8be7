"""Equal weights of two files take device memory once: python share_weights.py ONE.safetensors TWO.npz"""

import sys

from gevar import load_weights

one, two = (load_weights(path, share_equal=True) for path in sys.argv[1:3])  # each in a session of its own
with one, two:
    for row in two.rows:
        print(row.name, row.sharing or "has a block of its own")
    print(f"{two.statistics.saved_bytes} B saved")
