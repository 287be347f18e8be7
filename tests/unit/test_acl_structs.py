"""C structs made from numbers, arrays, cells with a value."""

import pytest
from acl_shim._acl import ffi

from acl_shim.batch import BatchArguments, BatchCopy
from acl_shim.codes import MemAttr, MemcpyKind
from acl_shim.mem_info import GIANT_PAGE_BYTES, HUGE_PAGE_BYTES, physical_pages
from acl_shim.structs import (
    new_access_descs,
    new_batch_attrs,
    new_event_key,
    new_location,
    new_malloc_config,
    new_physical_prop,
    new_pool_props,
    new_usage_infos,
    new_uuid,
    struct_bytes,
)
from acl_shim.table import address_of, new_array, new_cell, new_float_cell


def test_a_property_of_physical_memory() -> None:
    prop = new_physical_prop(MemAttr.ACL_HBM_MEM_HUGE1G, 3)
    assert (prop.handleType, prop.allocationType, prop.memAttr, prop.reserve) == (0, 0, 10, 0)
    assert (prop.location.type, prop.location.id) == (1, 3)


def test_descriptions_of_access() -> None:
    descs = new_access_descs([4, 5])
    assert [(descs[at].flags, descs[at].location.type, descs[at].location.id) for at in (0, 1)] == [
        (3, 1, 4),
        (3, 1, 5),
    ]


def test_a_location() -> None:
    location = new_location(1, 7)
    assert (location.type, location.id) == (1, 7)


def test_attributes_of_a_batch() -> None:
    attrs = new_batch_attrs((1, 2), (0, 0))
    assert (attrs[0].dstLoc.type, attrs[0].dstLoc.id) == (1, 2)
    assert (attrs[0].srcLoc.type, attrs[0].srcLoc.id) == (0, 0)


def test_properties_of_a_pool() -> None:
    props = new_pool_props(2, 1 << 40)
    assert (props.allocType, props.handleType, props.maxSize) == (0, 0, 1 << 40)
    assert (props.location.type, props.location.id) == (1, 2)


def test_a_config_with_several_attributes() -> None:
    config, array = new_malloc_config([{"attr": 1, "value": {"moduleId": 3}}, {"attr": 2, "value": {"deviceId": 1}}])
    assert config.numAttrs == 2  # type: ignore[attr-defined]
    assert array[1].value.deviceId == 1  # type: ignore[index]


def test_zeroed_structs() -> None:
    assert struct_bytes(new_uuid().bytes) == bytes(16)
    assert struct_bytes(new_event_key().reserved) == bytes(64)
    assert new_usage_infos(3)[2].curMemSize == 0


def test_a_key_of_an_event() -> None:
    assert struct_bytes(new_event_key(bytes(range(64))).reserved) == bytes(range(64))


@pytest.mark.parametrize("size", [0, 1, 63, 65])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"key of {size} bytes: give the 64 bytes"):
        new_event_key(bytes(size))


def test_arrays_and_cells() -> None:
    array = new_array("uintptr_t[]", [1, (1 << 64) - 1])
    assert (len(array), array[1]) == (2, (1 << 64) - 1)
    assert new_cell("size_t *", (1 << 64) - 1)[0] == (1 << 64) - 1
    assert new_float_cell()[0] == 0.0
    cell = new_cell("int32_t *", -5)
    assert ffi.cast("int32_t *", address_of(cell))[0] == -5
    with pytest.raises(OverflowError):
        new_array("int32_t[]", [1 << 31])


class TestBatch:
    COPIES = (BatchCopy(1 << 44, 100, 5000, 10), BatchCopy(2 << 44, 200, 6000, 20))

    @pytest.mark.parametrize(
        ("kind", "dst", "src"),
        [
            (MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE, (1, 3), (0, 0)),
            (MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST, (0, 0), (1, 3)),
        ],
    )
    def test_arrays(self, kind: int, dst: tuple[int, int], src: tuple[int, int]) -> None:
        batch = BatchArguments(self.COPIES, kind, 3)
        dsts, maxs, srcs, sizes, count, attrs, starts, attr_count = batch.arrays
        assert [list(one) for one in (dsts, maxs, srcs, sizes)] == [  # type: ignore[call-overload]
            [1 << 44, 2 << 44],
            [100, 200],
            [5000, 6000],
            [10, 20],
        ]
        assert (count, attr_count, starts[0], batch.fail_index[0]) == (2, 1, 0, (1 << 64) - 1)
        assert (attrs[0].dstLoc.type, attrs[0].dstLoc.id) == dst
        assert (attrs[0].srcLoc.type, attrs[0].srcLoc.id) == src

    def test_arguments_of_an_error(self) -> None:
        batch = BatchArguments(self.COPIES, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE, 0)
        assert batch.error_arguments() == {"copies": 2}
        batch.fail_index[0] = 1  # type: ignore[index]
        assert batch.error_arguments()["failed"] == 1
        assert batch.error_arguments()["dst"] == 2 << 44


class TestPhysicalPages:
    @pytest.mark.parametrize(
        ("page_bytes", "p2p", "attr"),
        [
            (HUGE_PAGE_BYTES, False, MemAttr.ACL_HBM_MEM_HUGE),
            (GIANT_PAGE_BYTES, False, MemAttr.ACL_HBM_MEM_HUGE1G),
            (HUGE_PAGE_BYTES, True, MemAttr.ACL_MEM_P2P_HUGE),
            (GIANT_PAGE_BYTES, True, MemAttr.ACL_MEM_P2P_HUGE1G),
        ],
    )
    def test_of_a_size(self, page_bytes: int, p2p: bool, attr: MemAttr) -> None:
        assert physical_pages(page_bytes, p2p).attr is attr

    @pytest.mark.parametrize("page_bytes", [0, 4096, HUGE_PAGE_BYTES + 1])
    def test_of_another_size(self, page_bytes: int) -> None:
        with pytest.raises(ValueError, match=rf"page_bytes is {page_bytes}: give 2097152 \(2 MiB\) or 1073741824"):
            physical_pages(page_bytes, False)
