"""Say what changed from one model to another: python compare_models.py A.om B.om"""

import sys

from gevar.cli.model_changes import model_changes
from gevar.om import open_om

with open_om(sys.argv[1]) as first, open_om(sys.argv[2]) as second:
    changes = list(model_changes(first, second))
for change in changes:
    print(change.what, change.how, change.name, change.before and f"from {change.before} to {change.after}")
print("equal" if not changes else f"{len(changes)} changes")
