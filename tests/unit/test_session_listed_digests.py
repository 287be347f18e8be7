"""Which bytes a side file lists, against a look at each byte."""

import os
import random
from pathlib import Path

import pytest

from gevar.errors import LoadError
from gevar.om.weight_digests import DIGESTS_FILE, RegionDigest, digests_text
from gevar.session.listed_digests import ListedDigests
from gevar.weights import FileRegion

FILE_BYTES = 60


def random_regions(chance: random.Random) -> list[tuple[int, int]]:
    """Regions of the file that are apart, in any order; some touch."""
    at, found = chance.randrange(4), []
    while at < FILE_BYTES:
        size = chance.randrange(1, 9)
        found.append((at, min(size, FILE_BYTES - at)))
        at += size + chance.choice((0, 0, 1, 5))
    kept = [one for one in found if chance.random() < 0.9]
    chance.shuffle(kept)
    return kept


@pytest.mark.parametrize("seed", range(40))
def test_pieces_and_listed_bytes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    regions = random_regions(chance)
    rows = [RegionDigest("w", at, size, f"{at:032x}") for at, size in regions]
    others = [RegionDigest("other", 0, FILE_BYTES, "00" * 16)]
    (tmp_path / DIGESTS_FILE).write_bytes(digests_text([*rows, *others]))
    path = Path(os.path.realpath(tmp_path)) / "w"
    digests = ListedDigests()
    for _ in range(60):
        start = chance.randrange(FILE_BYTES)
        region = FileRegion(path, start, chance.randrange(FILE_BYTES - start + 1))
        end = start + region.size_bytes
        first = chance.choice((0, start, chance.randrange(start + 1)))
        last = chance.choice((FILE_BYTES, end, chance.randrange(end, FILE_BYTES + 1)))
        compared = {byte for at, size in regions if first <= at <= at + size <= last for byte in range(at, at + size)}
        if compared.issuperset(range(start, end)):
            digests.check_listed(region, FileRegion(path, first, last - first))
        else:
            with pytest.raises(LoadError, match="lists no digest"):
                digests.check_listed(region, FileRegion(path, first, last - first))
        inside = sorted((at, size) for at, size in regions if start <= at and at + size <= end)
        if region.size_bytes and not inside:
            with pytest.raises(LoadError, match="lists no digest"):
                digests.pieces(region)
            continue
        pieces = digests.pieces(region)
        assert [(one.offset, one.size_bytes, digest) for one, digest in pieces if digest is not None] == [
            (at, size, at.to_bytes(16, "big")) for at, size in inside
        ]
        covered = [byte for one, _ in pieces for byte in range(one.offset, one.offset + one.size_bytes)]
        assert covered == list(range(start, end))
        assert all(one.size_bytes and one.path == path for one, _ in pieces)
