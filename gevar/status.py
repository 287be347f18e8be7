"""GE's status numbers by name; an error of gevar carries one in `.status` where GE returns it.

`GRAPH_SUCCESS` and `GRAPH_FAILED` are GE's second names of `SUCCESS` and `FAILED`.

Source: GE source, inc/framework/common/ge_inner_error_code.h; metadef source, inc/external/graph/ge_error_codes.h; the
numbers of `PARAM_INVALID` and `INTERNAL_ERROR` are those that the running GE returns.
"""

from typing import Final

SUCCESS: Final = 0
GRAPH_SUCCESS: Final = SUCCESS
FAILED: Final = 0xFFFFFFFF
GRAPH_FAILED: Final = FAILED

GRAPH_PARAM_INVALID: Final = 50331649

MEMALLOC_FAILED: Final = 1343225856
PARAM_INVALID: Final = 1343225857
RT_FAILED: Final = 1343225859
INTERNAL_ERROR: Final = 1343225860
UNSUPPORTED: Final = 1343225956
OUT_OF_MEMORY: Final = 1343225957
GE_MULTI_INIT: Final = 1343234048
GE_GRAPH_MALLOC_FAILED: Final = 1343242245
GE_GRAPH_FREE_FAILED: Final = 1343242246
GE_GRAPH_OPTIONS_INVALID: Final = 1343242291
GE_GRAPH_MEMORY_ALLOC_FAILED: Final = 1343242297

ACL_ERROR_GE_PARAM_INVALID: Final = 145000
ACL_ERROR_GE_INTERNAL_ERROR: Final = 545000
