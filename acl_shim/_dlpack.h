/* Tensors of bytes for DLPack, version 1.0 of its ABI: shape [size], type uint8, in one piece of memory with what they
 * need.
 *
 *   struct exported   owner     the Python object that keeps the memory; one reference is held
 *                     shape     the one dimension
 *                     managed   what the consumer sees, in the old or in the versioned form
 *
 * A consumer ends a tensor by its deleter, on any thread and without the interpreter lock; a capsule that nobody
 * consumed does it by its destructor. Either way the reference to the owner is given up.
 *
 * Source: DLPack, include/dlpack/dlpack.h, version 1.0. */
#ifndef ACL_SHIM_DLPACK_H
#define ACL_SHIM_DLPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { DL_UINT = 1, DL_MAJOR = 1, DL_MINOR = 0 };

typedef struct {
    void *data;
    struct {
        int32_t type;
        int32_t id;
    } device;
    int32_t dimensions;
    struct {
        uint8_t code;
        uint8_t bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

typedef struct {
    PyObject *owner;
    int64_t shape[1];
    union {
        dl_managed old;
        dl_versioned versioned;
    } managed;
} exported;

static void end_export(exported *tensor) {
    if (Py_IsInitialized()) { /* else the owner went with the interpreter */
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(tensor->owner);
        PyGILState_Release(state);
    }
    free(tensor);
}

static void delete_old(dl_managed *self) {
    end_export(self->context);
}

static void delete_versioned(dl_versioned *self) {
    end_export(self->context);
}

static void *acl_new_tensor(uintptr_t data, size_t size_bytes, int device_type, int device_id, uintptr_t owner,
                            bool versioned) {
    exported *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->owner = (PyObject *)owner;
    made->shape[0] = (int64_t)size_bytes;
    dl_tensor tensor = {
        .data = (void *)data,
        .device = {device_type, device_id},
        .dimensions = 1,
        .dtype = {.code = DL_UINT, .bits = 8, .lanes = 1},
        .shape = made->shape,
    };
    if (versioned)
        made->managed.versioned = (dl_versioned){
            .version = {DL_MAJOR, DL_MINOR}, .context = made, .deleter = delete_versioned, .tensor = tensor};
    else
        made->managed.old = (dl_managed){.tensor = tensor, .context = made, .deleter = delete_old};
    PyGILState_STATE state = PyGILState_Ensure(); /* the caller gave the interpreter lock up for this call */
    Py_INCREF(made->owner);
    PyGILState_Release(state);
    return &made->managed;
}

/* A consumer renames the capsule; one that still has its first name was not consumed. */
static void destroy_old(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        managed->deleter(managed);
    }
}

static void destroy_versioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        managed->deleter(managed);
    }
}

static uintptr_t acl_capsule_destructor(bool versioned) {
    return versioned ? (uintptr_t)destroy_versioned : (uintptr_t)destroy_old;
}

#endif
