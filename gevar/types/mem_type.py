"""Kinds of memory by GE's numbers."""

from enum import IntEnum


class MemType(IntEnum):
    """Kind of memory (rtMemType_t).

    A variable lies in `RT_MEMORY_HBM`; in `RT_MEMORY_RDMA_HBM` when its op asks for registered memory; in
    `RT_MEMORY_HOST` when it is placed on the host. `RT_MEMORY_RESERVED` also answers "no such variable".

    Source: CANN runtime headers, rt_external_mem.h, RT_MEMORY_*.
    """

    RT_MEMORY_DEFAULT = 0x0
    RT_MEMORY_HBM = 0x2
    RT_MEMORY_RDMA_HBM = 0x3
    RT_MEMORY_DDR = 0x4
    RT_MEMORY_SPM = 0x8
    RT_MEMORY_P2P_HBM = 0x10
    RT_MEMORY_P2P_DDR = 0x11
    RT_MEMORY_DDR_NC = 0x20
    RT_MEMORY_TS = 0x40
    RT_MEMORY_HOST = 0x81
    RT_MEMORY_HOST_SVM = 0x90
    RT_MEMORY_RESERVED = 0x100
