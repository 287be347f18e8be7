"""Host memory of arrays, buffers and DLPack objects."""

import array
import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from acl_shim.host_memory import lasting_array, read_access, write_access
from tests.helpers.child import expect_output


class Exporter:
    """Exports an array by DLPack and by nothing else."""

    def __init__(self, values: np.ndarray[Any, Any], device_type: int = 1) -> None:
        self.values = values
        self.device_type = device_type

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, 0


class OldExporter(Exporter):
    """Knows only the first form of the protocol, whose capsules are read-only to numpy."""

    def __dlpack__(self, stream: None = None) -> Any:
        return self.values.__dlpack__()


READABLE: list[tuple[str, Any, int]] = [
    ("bytes", b"abcd", 4),
    ("bytearray", bytearray(7), 7),
    ("memoryview", memoryview(b"abcdef")[2:], 4),
    ("array", array.array("d", [1, 2, 3]), 24),
    ("mmap", mmap.mmap(-1, 4096), 4096),
    ("ndarray", np.zeros((3, 4), np.float32), 48),
    ("empty", np.zeros(0, np.float32), 0),
    ("scalar", np.float64(3), 8),
    ("zero dimensions", np.array(3, np.int16), 2),
    ("slice of rows", np.zeros((4, 4), np.uint8)[1:3], 8),
    ("bfloat16", np.zeros(5, ml_dtypes.bfloat16), 10),
    ("float8", np.zeros(5, ml_dtypes.float8_e4m3fn), 5),
    ("datetime", np.zeros(2, "datetime64[s]"), 16),
    ("structure", np.zeros(2, "i4,f8"), 24),
    ("dlpack", Exporter(np.arange(6, dtype=np.int64)), 48),
    ("old dlpack", OldExporter(np.arange(6, dtype=np.int64)), 48),
]


@pytest.mark.parametrize(("source", "size_bytes"), [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_a_buffer_can_be_read(source: Any, size_bytes: int) -> None:
    memory = read_access(source)
    assert memory.size_bytes == size_bytes
    assert memory.addr


def test_the_address_is_that_of_the_first_byte() -> None:
    values = np.arange(16, dtype=np.uint8)
    base = values.__array_interface__["data"][0]
    assert read_access(values).addr == base
    assert read_access(values[5:]).addr == base + 5
    assert write_access(values[5:]).addr == base + 5
    assert read_access(Exporter(values)).addr == base


def test_the_memory_stays_where_it_is_to_the_end_of_the_block() -> None:
    growing = bytearray(8)
    with write_access(growing), pytest.raises(BufferError):
        growing.extend(b"more")
    growing.extend(b"more")


def test_an_error_in_the_block_keeps_no_hold() -> None:
    """The collector of an interpreter before 3.12 crashes on a memoryview and a hold on it in one cycle."""
    code = """
        import gc
        from acl_shim.host_memory import read_access

        class Kept(Exception):
            pass

        def fail(view):
            with read_access(view) as memory:
                raise Kept(memory)

        for _ in range(3):
            view = memoryview(bytearray(8))
            try:
                fail(view)
            except Kept as error:
                error.ring = [view, error]
            del view
            gc.collect()
        print("alive")
    """
    expect_output(code, "alive")


@pytest.mark.parametrize("source", [np.zeros((4, 4)).T, np.zeros((4, 4))[:, ::2], np.zeros(8)[::-1]])
def test_memory_with_gaps_is_refused(source: Any) -> None:
    for access in (read_access, write_access):
        with pytest.raises(ValueError, match=r"ndarray of shape \(.*\) is not C-contiguous: copy it with numpy"):
            access(source)


def test_a_memoryview_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memoryview of shape \(4,\) is not C-contiguous"):
        read_access(memoryview(b"abcdefgh")[::2])


def test_dlpack_memory_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="is not C-contiguous"):
        read_access(Exporter(np.zeros((4, 4)).T))


def read_only_array() -> Any:
    values = np.zeros(4)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (b"abc", "bytes"),
        (read_only_array(), "ndarray"),
        (memoryview(b"abc"), "memoryview"),
        (OldExporter(np.zeros(3)), "ndarray"),
    ],
    ids=["bytes", "ndarray", "memoryview", "old dlpack"],
)
def test_read_only_memory_cannot_be_written(source: Any, name: str) -> None:
    assert read_access(source).size_bytes
    with pytest.raises(ValueError, match=f"{name} is read-only: pass a writable buffer"):
        write_access(source)


def test_dlpack_memory_can_be_written() -> None:
    values = np.arange(4, dtype=np.int32)
    if not np.from_dlpack(Exporter(values)).flags.writeable:
        pytest.skip("this numpy only reads by DLPack")
    assert write_access(Exporter(values)).addr == values.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "source", ["text", 5, None, [1, 2], {"a": 1}, object()], ids=lambda source: type(source).__name__
)
def test_what_has_no_buffer_is_refused(source: Any) -> None:
    for access in (read_access, write_access):
        with pytest.raises(TypeError, match=f"{type(source).__name__} has no buffer: pass a numpy array"):
            access(source)


@pytest.mark.parametrize("device_type", [2, 12])
def test_dlpack_memory_of_a_device_is_refused(device_type: int) -> None:
    with pytest.raises(TypeError, match=f"Exporter lies on DLPack device type {device_type}, not in host memory"):
        read_access(Exporter(np.zeros(2), device_type))


def test_dlpack_memory_that_numpy_cannot_read_is_refused() -> None:
    class Broken(Exporter):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("bfloat16 is not in DLPack's list")

    with pytest.raises(TypeError, match=r"numpy cannot read this Broken by DLPack \(bfloat16 is not"):
        read_access(Broken(np.zeros(2)))


class Interface:
    """Describes memory to numpy and by nothing else."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return dict(self.values.__array_interface__)


class TestInterface:
    def test_memory_that_numpy_knows_is_read_and_written(self) -> None:
        values = np.arange(6, dtype=np.int16)
        with write_access(Interface(values)) as memory:  # type: ignore[arg-type]
            assert memory.addr == values.__array_interface__["data"][0]
            assert memory.size_bytes == 12

    def test_memory_with_gaps_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not C-contiguous"):
            read_access(Interface(np.zeros((4, 4))[:, 1]))  # type: ignore[arg-type]


class TestLastingArray:
    @pytest.mark.parametrize(
        "source",
        [
            b"abcd",
            bytearray(b"abcd"),
            memoryview(b"..abcd")[2:],
            np.frombuffer(b"abcd", np.uint16),
            np.frombuffer(b"abcd", np.uint8).view(ml_dtypes.float8_e4m3fn),
            Exporter(np.frombuffer(b"abcd", np.uint8).copy()),
            Interface(np.frombuffer(b"abcd", np.uint8)),
        ],
        ids=lambda source: type(source).__name__,
    )
    def test_it_has_the_bytes_themselves(self, source: Any) -> None:
        values = lasting_array(source, False)
        assert (values.dtype, values.tobytes()) == (np.uint8, b"abcd")
        with read_access(source) as memory:
            assert values.__array_interface__["data"][0] == memory.addr

    def test_a_bytearray_cannot_move_meanwhile(self) -> None:
        source = bytearray(b"abcd")
        values = lasting_array(source, True)
        with pytest.raises(BufferError):
            source.extend(b"more")
        values[0] = ord("A")
        del values
        source.extend(b"more")
        assert source == b"Abcdmore"

    def test_it_keeps_its_source(self) -> None:
        values = lasting_array(bytes(bytearray(b"only here")), False)
        assert values.tobytes() == b"only here"

    def test_nothing_is_an_array_too(self) -> None:
        assert lasting_array(b"", False).size == 0
        assert lasting_array(bytearray(), True).size == 0

    def test_what_is_refused(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            lasting_array(b"abcd", True)
        with pytest.raises(ValueError, match="not C-contiguous"):
            lasting_array(np.zeros((3, 3)).T, False)
        with pytest.raises(TypeError, match="int has no buffer"):
            lasting_array(3, False)  # type: ignore[arg-type]
