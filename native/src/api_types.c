/* Exported: sizes of data types and half precision numbers. Thread safety: any thread, any time. */
#include "acl/acl.h"
#include "entry.h"
#include "float16.h"

/* Types that do not fill whole bytes, text and unknown numbers have size 0. */
size_t aclDataTypeSize(aclDataType dataType) {
    ENTER_OR(0, aclDataTypeSize, dataType);
    switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
        return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16:
        return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
        return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
        return 8;
    case ACL_COMPLEX128:
        return 16;
    default:
        return 0;
    }
}

float aclFloat16ToFloat(aclFloat16 value) {
    ENTER_OR(0, aclFloat16ToFloat, value);
    return float16_to_float(value);
}

aclFloat16 aclFloatToFloat16(float value) {
    ENTER_OR(0, aclFloatToFloat16, value);
    return float16_from_float(value);
}
