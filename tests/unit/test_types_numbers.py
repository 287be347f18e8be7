"""Plain numbers by name: kinds of memory, status numbers, and what the package of types exports."""

import pytest

import gevar.types
from gevar import status
from gevar.types import MemType


def test_kinds_of_memory() -> None:
    assert {kind.name.removeprefix("RT_MEMORY_"): int(kind) for kind in MemType} == {
        "DEFAULT": 0,
        "HBM": 2,
        "RDMA_HBM": 3,
        "DDR": 4,
        "SPM": 8,
        "P2P_HBM": 16,
        "P2P_DDR": 17,
        "DDR_NC": 32,
        "TS": 64,
        "HOST": 129,
        "HOST_SVM": 144,
        "RESERVED": 256,
    }


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SUCCESS", 0),
        ("FAILED", 4294967295),
        ("GRAPH_PARAM_INVALID", 50331649),
        ("MEMALLOC_FAILED", 1343225856),
        ("PARAM_INVALID", 1343225857),
        ("RT_FAILED", 1343225859),
        ("INTERNAL_ERROR", 1343225860),
        ("UNSUPPORTED", 1343225956),
        ("OUT_OF_MEMORY", 1343225957),
        ("GE_MULTI_INIT", 1343234048),
        ("GE_GRAPH_MALLOC_FAILED", 1343242245),
        ("GE_GRAPH_FREE_FAILED", 1343242246),
        ("GE_GRAPH_OPTIONS_INVALID", 1343242291),
        ("GE_GRAPH_MEMORY_ALLOC_FAILED", 1343242297),
        ("ACL_ERROR_GE_PARAM_INVALID", 145000),
        ("ACL_ERROR_GE_INTERNAL_ERROR", 545000),
    ],
)
def test_status_numbers(name: str, number: int) -> None:
    assert getattr(status, name) == number


def test_second_names_of_two_status_numbers() -> None:
    assert (status.GRAPH_SUCCESS, status.GRAPH_FAILED) == (status.SUCCESS, status.FAILED)


def test_every_other_status_number_has_one_name() -> None:
    numbers = [v for k, v in vars(status).items() if k.isupper() and k not in ("GRAPH_SUCCESS", "GRAPH_FAILED")]
    assert len(set(numbers)) == len(numbers) == 26


def test_all_is_sorted_and_importable() -> None:
    assert gevar.types.__all__ == sorted(gevar.types.__all__)
    assert all(hasattr(gevar.types, name) for name in gevar.types.__all__)
