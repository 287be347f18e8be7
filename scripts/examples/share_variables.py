"""Two models in one session share the variables that both have: python share_variables.py ONE.om TWO.om"""

import sys

from gevar import Session, load_model

with Session() as session:
    places = []
    for path in sys.argv[1:3]:
        model = load_model(path, session=session)  # closed with the session
        places.append({row.name: row.dev_addr for row in model.rows if row.kind == "Variable"})
    one, two = places
    for name, dev_addr in two.items():
        print(name, "is shared" if one.get(name) == dev_addr else "has a place of its own")
