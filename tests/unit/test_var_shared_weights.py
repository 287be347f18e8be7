"""Sharing of blocks by content and by place in a file."""

import pytest

from gevar.types import DataType, LogicAddr, MemType
from gevar.var import VarOp
from gevar.var.constant_index import ConstantIndex, ConstantProbe, bytes_equal
from gevar.var.file_constant_index import FileConstantIndex
from gevar.var.shared_blocks import SharedBlocks
from gevar.var.var_block import VarBlock
from tests.helpers.var_memory import constant, make_desc

HBM = MemType.RT_MEMORY_HBM


def _block(addr: int, size: int, mem_type: MemType = HBM) -> VarBlock:
    return VarBlock(f"v{addr}", make_desc(size), LogicAddr(addr), mem_type)


def _probe(index: ConstantIndex, value: bytes, dtype: DataType = DataType.DT_INT8) -> ConstantProbe:
    probe = index.probe(constant("c", value, make_desc(len(value), dtype)))
    assert probe is not None
    return probe


@pytest.mark.parametrize("size", [0, 1, 5, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1_000_003])
def test_bytes_are_compared_to_the_last(size: int) -> None:
    data = bytes(i * 7 & 0xFF for i in range(size))
    assert bytes_equal(memoryview(data), memoryview(bytearray(data)))
    if size:
        for at in {0, size // 2, size - 1}:
            other = bytearray(data)
            other[at] ^= 1
            assert not bytes_equal(memoryview(data), memoryview(other))
    assert not bytes_equal(memoryview(data), memoryview(data + b"x"))


def test_the_oldest_block_that_is_large_enough_is_taken() -> None:
    first, small, large = _block(0, 100), _block(1, 50), _block(2, 200)
    blocks = SharedBlocks(first)
    for block in (small, large):
        blocks.add(block)
    assert blocks.fitting(0) is first
    assert blocks.fitting(50) is first
    assert blocks.fitting(100) is first
    assert blocks.fitting(101) is large
    assert blocks.fitting(200) is large
    assert blocks.fitting(201) is None
    assert SharedBlocks(small).fitting(51) is None


@pytest.mark.parametrize(
    "op",
    [
        None,
        VarOp("c", "Constant", (make_desc(4),)),
        VarOp("c", "Constant", (make_desc(4),), value=b""),
        VarOp("c", "Constant", (), value=b"1234"),
        VarOp("c", "Constant", (make_desc(4, DataType.DT_STRING),), value=b"1234"),
        VarOp("c", "Const", (make_desc(4),), value=b"1234"),
        VarOp("c", "Variable", (make_desc(4),), value=b"1234"),
        VarOp("c", "FileConstant", (make_desc(4),), value=b"1234"),
    ],
)
def test_ops_that_never_share_by_content(op: VarOp | None) -> None:
    assert ConstantIndex().probe(op) is None


def test_equal_bytes_and_width_share() -> None:
    index, block = ConstantIndex(), _block(0, 64)
    index.add(_probe(index, b"12345678", DataType.DT_INT32), block)
    assert index.find(_probe(index, b"12345678", DataType.DT_FLOAT), 64, HBM) is block
    assert index.find(_probe(index, b"12345678", DataType.DT_INT16), 64, HBM) is None
    assert index.find(_probe(index, b"12345679", DataType.DT_FLOAT), 64, HBM) is None
    assert index.find(_probe(index, b"1234567", DataType.DT_FLOAT), 64, HBM) is None
    assert index.find(_probe(index, b"12345678", DataType.DT_FLOAT), 65, HBM) is None
    assert index.find(_probe(index, b"12345678", DataType.DT_FLOAT), 64, MemType.RT_MEMORY_RDMA_HBM) is None


def test_packed_types_share_by_their_own_width() -> None:
    index, block = ConstantIndex(), _block(0, 64)
    index.add(_probe(index, b"12", DataType.DT_INT4), block)
    assert index.find(_probe(index, b"12", DataType.DT_FLOAT4_E2M1), 2, HBM) is block
    assert index.find(_probe(index, b"12", DataType.DT_UINT1), 2, HBM) is None


def test_any_contiguous_bytes_are_a_weight() -> None:
    index, block = ConstantIndex(), _block(0, 64)
    desc = make_desc(8)
    probes = [
        index.probe(VarOp("c", "Constant", (desc,), value=value))
        for value in (
            b"12345678",
            bytearray(b"12345678"),
            memoryview(b"xx12345678")[2:],
            memoryview(b"12345678").cast("i"),
        )
    ]
    assert probes[0] is not None
    index.add(probes[0], block)
    for probe in probes:
        assert probe is not None
        assert index.find(probe, 8, HBM) is block


def test_equal_digests_are_followed_by_a_comparison() -> None:
    index = ConstantIndex(digest=lambda value: b"same")
    first, second = _block(0, 8), _block(1, 8)
    index.add(_probe(index, b"aaaa"), first)
    assert index.find(_probe(index, b"bbbb"), 4, HBM) is None
    index.add(_probe(index, b"bbbb"), second)
    assert index.find(_probe(index, b"aaaa"), 4, HBM) is first
    assert index.find(_probe(index, b"bbbb"), 4, HBM) is second
    assert index.find(_probe(index, b"cccc"), 4, HBM) is None


def test_a_larger_block_of_the_same_content_is_found_too() -> None:
    index, small, large = ConstantIndex(), _block(0, 4), _block(1, 100)
    index.add(_probe(index, b"aaaa"), small)
    index.add(_probe(index, b"aaaa"), large)
    assert index.find(_probe(index, b"aaaa"), 4, HBM) is small
    assert index.find(_probe(index, b"aaaa"), 5, HBM) is large


def test_a_probe_remembers_its_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def count(first: memoryview, second: memoryview) -> bool:
        compared.append(first.nbytes)
        return bytes_equal(first, second)

    monkeypatch.setattr("gevar.var.constant_index.bytes_equal", count)
    index = ConstantIndex()
    index.add(_probe(index, b"aaaa"), _block(0, 4))
    probe = _probe(index, b"aaaa")
    for _ in range(3):
        assert index.find(probe, 4, HBM) is not None
    assert compared == [4]


def test_file_constants_share_by_path_offset_and_length() -> None:
    index, block = FileConstantIndex(), _block(0, 64)
    index.add(("/w/a", 0, 64), block)
    assert index.find(("/w/a", 0, 64), 64, HBM) is block
    assert index.find(("/w/a", 0, 64), 65, HBM) is None
    for other in (("/w/b", 0, 64), ("/w/a", 1, 64), ("/w/a", 0, 32)):
        assert index.find(other, 1, HBM) is None
    assert index.find(("/w/a", 0, 64), 64, MemType.RT_MEMORY_RDMA_HBM) is None


def test_what_a_block_holds_is_known_also_when_an_older_block_is_preferred() -> None:
    constants, files = ConstantIndex(), FileConstantIndex()
    first, second = _block(0, 8), _block(1, 8)
    for block in (first, second):
        constants.add(_probe(constants, b"12345678"), block)
        files.add(("/w", 0, 8), block)
    for block in (first, second):
        assert constants.holds(_probe(constants, b"12345678"), block)
        assert not constants.holds(_probe(constants, b"12345679"), block)
        assert files.holds(("/w", 0, 8), block)
        assert not files.holds(("/w", 0, 9), block)
    assert constants.find(_probe(constants, b"12345678"), 8, HBM) is first
    assert not constants.holds(_probe(constants, b"12345678"), _block(2, 8))
    assert not files.holds(("/w", 0, 8), _block(2, 8))


def test_a_restored_weight_is_known_by_its_digest_until_equal_bytes_come() -> None:
    index = ConstantIndex(digest=lambda value: bytes(16))
    probe, other = _probe(index, b"12345678"), _probe(index, b"87654321")
    first, second, third = _block(0, 8), _block(1000, 64), _block(2000, 128)
    index.add_restored(probe.key, first)
    index.add_restored(probe.key, second)
    assert index.find(probe, 8, HBM) is first
    assert index.find(probe, 9, HBM) is second
    assert index.holds(probe, second)
    index.add(_probe(index, b"12345678"), third)
    assert index.find(_probe(index, b"12345678"), 65, HBM) is third
    assert index.find(_probe(index, b"87654321"), 8, HBM) is None  # the bytes are known now
    assert index.find(other, 8, MemType.RT_MEMORY_RDMA_HBM) is None


def test_holders_are_told_in_the_order_they_were_made() -> None:
    index, large, small, twin = ConstantIndex(), _block(0, 64), _block(1000, 8), _block(2000, 64)
    probe = _probe(index, b"12345678")
    for block in (large, small, twin):
        index.add(probe, block)
    assert list(index.holders()) == [(probe.key, block) for block in (large, small, twin)]
    files = FileConstantIndex()
    for block in (small, large):
        files.add(("/w", 0, 8), block)
    assert list(files.holders()) == [(("/w", 0, 8), small), (("/w", 0, 8), large)]
    assert files.holds(("/w", 0, 8), large)
    assert not files.holds(("/w", 1, 8), large)
