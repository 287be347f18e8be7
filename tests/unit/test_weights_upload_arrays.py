"""Requests as objects become arrays, and arrays give objects."""

from pathlib import Path

import numpy as np
import pytest

from gevar.om.regular_file import FileState
from gevar.weights import FileRegion, UploadArrays, UploadRequest
from gevar.weights.upload_arrays import arrays_of
from tests.helpers.runtime import host_runtime

STATE, OTHER = FileState(*range(len(FileState._fields))), FileState(*range(1, 1 + len(FileState._fields)))


def test_objects_and_back() -> None:
    device = host_runtime().device(0)
    buffer = memoryview(bytearray(range(100)))
    requests = [
        UploadRequest(FileRegion(Path("a"), 5, 6), 2**64 - 6),
        UploadRequest(buffer, 7, device, None),
        UploadRequest(FileRegion(Path("b"), 0, 0), 0, None, b"d" * 16),
        UploadRequest(FileRegion(Path("a"), 1, 2), 3, device),
    ]
    found = arrays_of(requests)
    assert len(found) == 4
    assert found.sources == (Path("a"), buffer, Path("b"))
    assert found.devices == (None, device)
    assert found.states == ()
    assert found.has_digest is not None
    assert found.has_digest.tolist() == [False, False, True, False]
    assert [found[number] for number in range(4)] == requests
    assert arrays_of(found) is found


def test_equal_paths_are_one_file_and_buffers_are_not() -> None:
    same = [UploadRequest(FileRegion(Path("x"), 0, 1), 0), UploadRequest(FileRegion(Path("x"), 1, 1), 1)]
    assert arrays_of(same).sources == (Path("x"),)
    assert arrays_of(same).device is None
    assert arrays_of(same).digests is None
    assert arrays_of(same).has_digest is None
    buffers = [UploadRequest(memoryview(b"same"), at) for at in (0, 4)]
    assert len(arrays_of(buffers).sources) == 2
    twice = memoryview(b"twice")
    assert len(arrays_of([UploadRequest(twice, 0), UploadRequest(twice, 5)]).sources) == 1


def test_states_of_a_file_are_gathered() -> None:
    requests = [
        UploadRequest(FileRegion(Path("a"), 0, 1, state), at) for at, state in enumerate([None, STATE, OTHER, STATE])
    ]
    requests.append(UploadRequest(FileRegion(Path("b"), 0, 1), 9))
    assert arrays_of(requests).states == (frozenset({STATE, OTHER}), frozenset())


def test_no_requests() -> None:
    found = arrays_of([])
    assert (len(found), found.sources, int(found.size_bytes.sum())) == (0, (), 0)


@pytest.mark.parametrize(
    ("offset", "size"), [(-1, 4), (0, -4), (2**63, 1), (2**63 - 1, 1), (2**62, 2**62), (5, 2**64), (-(2**63), 1)]
)
def test_numbers_out_of_range_are_refused(offset: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"out of range|give numbers from 0"):
        arrays_of([UploadRequest(FileRegion(Path("x"), offset, size), 0)])


@pytest.mark.parametrize("addr", [-1, 2**64])
def test_addresses_out_of_range_are_refused(addr: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        arrays_of([UploadRequest(memoryview(b"x"), addr)])


COLUMN = np.zeros(2, np.int64)
ADDRS = np.zeros(2, np.uint64)


def test_columns_must_fit() -> None:
    buffer = memoryview(bytes(10))
    with pytest.raises(ValueError, match=r"\[1, 2\] rows"):
        UploadArrays((buffer,), COLUMN, COLUMN, COLUMN[:1], ADDRS)
    with pytest.raises(ValueError, match="source of a request is 0 to 1: there are 1"):
        UploadArrays((buffer,), np.array([0, 1]), COLUMN, COLUMN, ADDRS)
    with pytest.raises(ValueError, match="device of a request is -1 to 0"):
        UploadArrays((buffer,), COLUMN, COLUMN, COLUMN, ADDRS, device=np.array([0, -1]))
    with pytest.raises(ValueError, match="request 1 is for 6 B from offset 5 of buffer of 10 B"):
        UploadArrays((buffer,), COLUMN, COLUMN + 5, np.array([5, 6]), ADDRS)
    with pytest.raises(ValueError, match="dev_addr is int64 of 1 dimensions: give 1 of uint64"):
        UploadArrays((buffer,), COLUMN, COLUMN, COLUMN, ADDRS.view(np.int64))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offset is int64 of 2 dimensions"):
        UploadArrays((buffer,), COLUMN, COLUMN.reshape(2, 1), COLUMN, ADDRS)


@pytest.mark.parametrize("size", [0, 8, 15, 17])
def test_a_digest_of_another_size_is_refused(size: int) -> None:
    good = UploadRequest(FileRegion(Path("x"), 0, 1), 0, digest=bytes(16))
    with pytest.raises(ValueError, match=f"a digest has {size} B: give the 16 B of xxh3-128"):
        arrays_of([good, UploadRequest(FileRegion(Path("x"), 0, 1), 0, digest=bytes(size))])
    assert arrays_of([good]).digests == [bytes(16)]


@pytest.mark.parametrize(
    ("offsets", "addrs", "copies"), [([0, 4, 8], [0, 4, 8], 1), ([0, 4, 8], [0, 4, 9], 2), ([0, 5, 9], [0, 4, 8], 2)]
)
def test_requests_that_go_on_are_one_copy(offsets: list[int], addrs: list[int], copies: int) -> None:
    requests = [UploadRequest(FileRegion(Path("x"), at, 4), addr) for at, addr in zip(offsets, addrs, strict=True)]
    assert arrays_of(requests).copies == copies
    assert arrays_of([*requests, UploadRequest(FileRegion(Path("y"), 12, 4), 12)]).copies == copies + 1
    assert arrays_of([]).copies == 0


@pytest.mark.parametrize("buffer", [memoryview(b"abcdef")[::2], memoryview(np.zeros((2, 3), order="F"))])
def test_a_buffer_in_pieces_is_refused(buffer: memoryview) -> None:
    zeros = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match=f"buffer of {buffer.nbytes} B is not C-contiguous"):
        arrays_of([UploadRequest(memoryview(b"ab"), 0), UploadRequest(buffer, 0)])
    with pytest.raises(ValueError, match=f"buffer of {buffer.nbytes} B is not C-contiguous"):
        UploadArrays((buffer,), zeros, zeros, zeros, zeros.astype(np.uint64))


@pytest.mark.parametrize("source", [b"bytes", "name", np.zeros(3), None])
def test_a_source_of_another_kind_is_refused(source: object) -> None:
    zeros = np.zeros(1, np.int64)
    with pytest.raises(TypeError, match=f"a source is {type(source).__name__}: give"):
        arrays_of([UploadRequest(source, 0)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"a source is {type(source).__name__}: give"):
        arrays_of([UploadRequest(FileRegion(source, 0, 1), 0)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"a source is {type(source).__name__}: give"):
        UploadArrays((source,), zeros, zeros, zeros, zeros.astype(np.uint64))  # type: ignore[arg-type]


def test_an_array_without_elements_is_given_back() -> None:
    zeros = np.zeros(1, np.int64)
    arrays = UploadArrays((memoryview(np.zeros((0, 3))),), zeros, zeros, zeros, zeros.astype(np.uint64))
    assert arrays[0].size_bytes == 0


@pytest.mark.parametrize(("size", "is_refused"), [(0, False), (1, False), (16, False), (17, True), (2**62, True)])
def test_no_destination_reaches_beyond_the_last_address(size: int, is_refused: bool) -> None:
    requests = [UploadRequest(FileRegion(Path("a"), 0, n), 2**64 - 16) for n in (1, size)]
    if is_refused:
        with pytest.raises(ValueError, match=f"request 1 is for {size} B at device address 0xfffffffffffffff0"):
            arrays_of(requests)
    else:
        assert arrays_of(requests).dev_addr.tolist() == [2**64 - 16] * 2
