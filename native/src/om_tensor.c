/* Descriptions of tensors: numbers of types and formats as a program knows them, sizes, shapes.
 *
 * Source: GE source, graph_metadef/proto/ge_ir.proto; metadef source, inc/external/graph/types.h; graph_metadef/graph/
 * normal_graph/ge_tensor.cc. Messages have passed om_schema.c. Thread safety: constant data only. */
#include "om_tensor.h"

#include <string.h>

#include "acl/acl_base.h"

/* Fields of ge.proto.TensorDescriptor. */
enum { TENSOR_TYPE = 2, TENSOR_SHAPE = 3, TENSOR_LAYOUT = 4, TENSOR_SIZE = 10 };

/* By number in the model: number of aclDataType, bits of an element. */
static const struct {
    int8_t type;
    uint8_t bits;
} types[] = {
    {-1, 0},  {0, 32},  {1, 16},   {2, 8},   {4, 8},   {6, 16},  {7, 16},   {3, 32}, {9, 64},  {8, 32},  {10, 64},
    {12, 8},  {11, 64}, {13, 128}, {14, 8},  {15, 8},  {16, 64}, {17, 128}, {18, 8}, {19, 16}, {20, 32}, {21, 8},
    {22, 16}, {23, 64}, {24, 128}, {25, 40}, {26, 64}, {27, 16}, {29, 4},   {30, 1}, {31, 2},  {32, 2},  {33, 32},
    {34, 8},  {35, 8},  {36, 8},   {37, 8},  {38, 6},  {39, 6},  {40, 4},   {41, 4}, {42, 4},
};

/* Names of the formats by number; null: none. */
static const char *const formats[] = {
    "NCHW",
    "NHWC",
    "ND",
    "NC1HWC0",
    "FRACTAL_Z",
    "NC1C0HWPAD",
    "NHWC1C0",
    "FSR_NCHW",
    "FRACTAL_DECONV",
    "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE",
    "FRACTAL_DECONV_SP_STRIDE_TRANS",
    "NC1HWC0_C04",
    "FRACTAL_Z_C04",
    "CHWN",
    "DECONV_SP_STRIDE8_TRANS",
    "HWCN",
    "NC1KHKWHWC0",
    "BN_WEIGHT",
    "FILTER_HWCK",
    "LOOKUP_LOOKUPS",
    "LOOKUP_KEYS",
    "LOOKUP_VALUE",
    "LOOKUP_OUTPUT",
    "LOOKUP_HITS",
    "C1HWNCoC0",
    "MD",
    "NDHWC",
    NULL,
    "FRACTAL_NZ",
    "NCDHW",
    "DHWCN",
    "NDC1HWC0",
    "FRACTAL_Z_3D",
    "CN",
    "NC",
    "DHWNC",
    "FRACTAL_Z_3D_TRANSPOSE",
    "FRACTAL_ZN_LSTM",
    "FRACTAL_Z_G",
    NULL,
    "ALL",
    "NULL",
    "ND_RNN_BIAS",
    "FRACTAL_ZN_RNN",
    "NYUV",
    "NYUV_A",
    "NCL",
    "FRACTAL_Z_WINO",
    "C1HWC0",
    "FRACTAL_NZ_C0_16",
    "FRACTAL_NZ_C0_32",
    "FRACTAL_NZ_C0_2",
    "FRACTAL_NZ_C0_4",
    "FRACTAL_NZ_C0_8",
};

/* The format of a text such as "NCHW" or "FRACTAL_Z:2". */
static int32_t format_of(struct bytes text) {
    const uint8_t *colon = text.size ? memchr(text.at, ':', text.size) : NULL;
    if (colon)
        text.size = (size_t)(colon - text.at);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i] && bytes_equal(text, formats[i]))
            return (int32_t)i;
    }
    return ACL_FORMAT_UNDEFINED;
}

struct om_tensor om_tensor_read(const struct attrs *description) {
    struct om_tensor tensor = {.type = ACL_DT_UNDEFINED, .format = ACL_FORMAT_UNDEFINED};
    struct wire_field field;
    int64_t value;
    if (wire_find(description->message, TENSOR_TYPE, WIRE_VARINT, &field) &&
        field.value < sizeof(types) / sizeof(types[0])) {
        tensor.type = types[field.value].type;
        tensor.bits = types[field.value].bits;
    }
    if (attr_number(description, "format_for_int", &value))
        tensor.format = (int32_t)(value & 0xff);
    else if (wire_find(description->message, TENSOR_LAYOUT, WIRE_BYTES, &field))
        tensor.format = format_of(field.bytes);
    if (attr_number(description, "size", &value))
        tensor.stored_size = value;
    else if (wire_find(description->message, TENSOR_SIZE, WIRE_VARINT, &field))
        tensor.stored_size = (int64_t)field.value;
    tensor.shape = wire_open((struct bytes){NULL, 0});
    if (wire_find(description->message, TENSOR_SHAPE, WIRE_BYTES, &field))
        tensor.shape = wire_inside(&description->message, &field);
    return tensor;
}

/* Takes the next dimension of a shape, packed or not. *packed starts empty. */
static bool next_dim(struct wire *shape, struct wire *packed, uint64_t *dim) {
    struct wire_field field;
    while (!wire_next_packed(packed, dim)) {
        if (!wire_next(shape, &field))
            return false;
        *dim = field.value;
        if (field.number == 1 && field.type == WIRE_VARINT)
            return true;
        if (field.number == 1 && field.type == WIRE_BYTES)
            *packed = wire_open(field.bytes);
    }
    return true;
}

size_t om_tensor_dims(const struct om_tensor *tensor, int64_t *dims, size_t room) {
    struct wire shape = tensor->shape, packed = wire_open((struct bytes){NULL, 0});
    size_t count = 0;
    for (uint64_t dim; next_dim(&shape, &packed, &dim); count++) {
        if (count < room)
            dims[count] = (int64_t)dim;
    }
    return count;
}

uint64_t om_tensor_bytes(const struct om_tensor *tensor) {
    struct wire shape = tensor->shape, packed = wire_open((struct bytes){NULL, 0});
    uint64_t bits = tensor->bits;
    for (uint64_t dim; next_dim(&shape, &packed, &dim);) {
        if (dim > INT64_MAX || (dim && bits > INT64_MAX / dim))
            return 0;
        bits *= dim;
    }
    return bits / 8 + (bits % 8 > 0);
}
