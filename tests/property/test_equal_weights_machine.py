"""Sessions load, write and close weights in any order: tensors keep their bytes, blocks go with their last user."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gevar import LoadedWeights, Session, load_weights
from gevar.errors import StateError
from gevar.session.equal_weights import EqualWeights
from tests.helpers.runtime import host_runtime
from tests.helpers.weight_files import weight_file

CONTENTS = {name: np.full(600, number, np.int16) for number, name in enumerate("pqr")}
CONTENTS["tail"] = np.where(np.arange(600) == 599, 1, CONTENTS["p"]).astype(np.int16)
FILES = (("p", "q"), ("q", "p", "q"), ("r", "tail"), ("tail", "p", "r"))
"""What the tensors of each file hold; two kinds of files have them."""
KINDS = ("safetensors", "npz")


class EqualWeightsMachine(RuleBasedStateMachine):
    """Two sessions and eight files."""

    def __init__(self) -> None:
        super().__init__()
        self.runtime = host_runtime()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(TemporaryDirectory()))
        self.paths = [
            [
                weight_file(folder / f"{kind}{number}", kind, {f"{at}": CONTENTS[c] for at, c in enumerate(contents)})
                for number, contents in enumerate(FILES)
            ]
            for kind in KINDS
        ]
        self.sessions = [Session(self.runtime) for _ in range(2)]
        self.loaded: list[tuple[int, bool, LoadedWeights, dict[str, np.ndarray]]] = []

    @rule(kind=st.integers(0, 1), number=st.integers(0, 3), session=st.integers(0, 1), share=st.booleans())
    def load(self, kind: int, number: int, session: int, share: bool) -> None:
        weights = load_weights(self.paths[kind][number], session=self.sessions[session], share_equal=share)
        values = {f"{at}": CONTENTS[content].copy() for at, content in enumerate(FILES[number])}
        self.loaded.append((session, share, weights, values))
        assert weights.statistics.saved_bytes + weights.statistics.device_bytes == weights.statistics.size_bytes

    @precondition(lambda self: self.loaded)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        _, _, weights, _ = self.loaded.pop(data.draw(st.integers(0, len(self.loaded) - 1)))
        weights.close()

    @precondition(lambda self: self.loaded)
    @rule(data=st.data(), value=st.integers(10, 20))
    def write(self, data: st.DataObject, value: int) -> None:
        """It is refused where another tensor lies in the same block, and only there."""
        _, _, weights, values = self.loaded[data.draw(st.integers(0, len(self.loaded) - 1))]
        name = data.draw(st.sampled_from(sorted(values)))
        addr = weights.tensor(name).dev_addr
        users = sum(row.dev_addr == addr for _, _, other, _ in self.loaded for row in other.rows)
        try:
            weights.write(name, np.full(600, value, np.int16))
        except StateError:
            assert users > 1
        else:
            assert users == 1
            values[name][:] = value

    @rule(number=st.integers(0, 1))
    def close_session(self, number: int) -> None:
        self.sessions[number].close()
        self.sessions[number] = Session(self.runtime)
        for _, _, weights, _ in (one for one in self.loaded if one[0] == number):
            assert weights.closed
        self.loaded = [one for one in self.loaded if one[0] != number]

    @invariant()
    def every_tensor_keeps_its_bytes(self) -> None:
        for _, _, weights, values in self.loaded:
            for name, value in values.items():
                assert np.array_equal(weights.read(name), value)

    @invariant()
    def blocks_have_users(self) -> None:
        """Device memory is that of the addresses that tensors have, and nothing else."""
        addrs = Counter(row.dev_addr for _, _, weights, _ in self.loaded for row in weights.rows)
        held = EqualWeights.instance(self.runtime).device_bytes
        held += sum(session.external_weights.device_bytes for session in self.sessions)
        assert held == 1200 * len(addrs)

    def teardown(self) -> None:
        for _, _, weights, _ in self.loaded:
            weights.close()
        assert EqualWeights.instance(self.runtime).device_bytes == 0
        for session in self.sessions:
            session.close()
        self.stack.close()


TestEqualWeights = EqualWeightsMachine.TestCase
TestEqualWeights.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
