/* SPDX-License-Identifier: Apache-2.0
 *
 * One GGUF file, version 2 or 3, little-endian: a header, key-value pairs, a table of tensors, then the
 * tensors' data (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). The file is mapped and
 * everything is a view; only names are copied. It is untrusted: after gb_gguf_open every value and every
 * tensor lies inside the file and has the size that its type and shape say.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_GGUF_H
#define GUMBEL_EXPORT_CHECKPOINT_GGUF_H

#include "base/file_map.h"
#include "base/status.h"
#include "export/checkpoint/safetensors.h"

/* number, enumerator, name, bytes (0: not fixed) */
#define GB_GGUF_TYPES(X)                                                                                     \
    X(0, GB_GGUF_UINT8, "uint8", 1)                                                                          \
    X(1, GB_GGUF_INT8, "int8", 1)                                                                            \
    X(2, GB_GGUF_UINT16, "uint16", 2)                                                                        \
    X(3, GB_GGUF_INT16, "int16", 2)                                                                          \
    X(4, GB_GGUF_UINT32, "uint32", 4)                                                                        \
    X(5, GB_GGUF_INT32, "int32", 4)                                                                          \
    X(6, GB_GGUF_FLOAT32, "float32", 4)                                                                      \
    X(7, GB_GGUF_BOOL, "bool", 1)                                                                            \
    X(8, GB_GGUF_STRING, "string", 0)                                                                        \
    X(9, GB_GGUF_ARRAY, "array", 0)                                                                          \
    X(10, GB_GGUF_UINT64, "uint64", 8)                                                                       \
    X(11, GB_GGUF_INT64, "int64", 8)                                                                         \
    X(12, GB_GGUF_FLOAT64, "float64", 8)

typedef enum gb_gguf_type {
#define X(number, enumerator, name, size) enumerator = number,
    GB_GGUF_TYPES(X)
#undef X
        GB_GGUF_TYPE_COUNT
} gb_gguf_type;

/* The name of a type for messages. */
const char *gb_gguf_type_name(gb_gguf_type type);

/* A value where it stands in the file. */
typedef struct gb_gguf_value {
    gb_gguf_type type;
    gb_gguf_type item_type; /* of an ARRAY */
    uint64_t count;         /* items of an ARRAY; bytes of a STRING; else 1 */
    const uint8_t *data;    /* the first item, the string's text, or the number; not aligned */
    uint64_t size;          /* bytes at data */
} gb_gguf_value;

typedef struct gb_gguf_key {
    const char *name;
    gb_gguf_value value;
} gb_gguf_key;

typedef struct gb_gguf {
    gb_file_map map;
    gb_gguf_key *keys; /* sorted by name */
    size_t key_count;
    gb_tensor *tensors; /* in the file's order, with GGUF's names; dimensions row-major, so reversed */
    size_t tensor_count;
} gb_gguf;

/* Whether the file at path is a GGUF: by its first bytes, or by its name where it cannot be read. */
bool gb_is_gguf(const char *path);

/* Maps the file at path and checks all of it but the tensors' numbers: at most 65536 keys and 2^20 tensors,
 * no name twice, arrays at most 4 deep. Tensor data must be without gaps, as ggml demands, and nothing but
 * padding may follow it. Errors: IO; FORMAT (beginning with the path, naming key or tensor, what was found
 * and what was expected); UNSUPPORTED for another version, big-endian files and tensor types that ggml does
 * not have; MEMORY. Close with gb_gguf_close, which is safe on a zeroed structure and twice. */
gumbel_status gb_gguf_open(const char *path, gb_gguf *file, gumbel_error *error);

/* The same from bytes in memory, which must outlive file; name stands for the path in messages. */
gumbel_status gb_gguf_parse(const char *name, const uint8_t *data, size_t size, gb_gguf *file,
                            gumbel_error *error);

void gb_gguf_close(gb_gguf *file);

/* The value of a key, or NULL. */
const gb_gguf_value *gb_gguf_find(const gb_gguf *file, const char *key);

/* A place in an array. */
typedef struct gb_gguf_items {
    const uint8_t *data;
    uint64_t size, left; /* bytes, items */
    gb_gguf_type type;
} gb_gguf_items;

/* The items of an ARRAY value of an open file, from the first one. */
gb_gguf_items gb_gguf_items_of(const gb_gguf_value *array);

/* Takes the next item, which may be an array itself; false at the end. */
bool gb_gguf_next(gb_gguf_items *items, gb_gguf_value *item);

/* Whether the value is an integer (a bool counts as 0 or 1) that int64_t holds, and which. */
bool gb_gguf_integer(const gb_gguf_value *value, int64_t *integer);

/* Whether the value is a FLOAT32 or FLOAT64, and which. A float32 gives the double of its shortest decimal
 * notation, which is what its author wrote: 1e-6, not 9.99999997e-7. */
bool gb_gguf_number(const gb_gguf_value *value, double *number);

#endif
