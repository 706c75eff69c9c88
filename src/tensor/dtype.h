/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types: what one stored number is. Used by values in a graph, constants in a file and tensors in a
 * checkpoint. Numbers are part of the program file and are never reused.
 */
#ifndef GUMBEL_TENSOR_DTYPE_H
#define GUMBEL_TENSOR_DTYPE_H

#include "base/anywhere.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* number, enumerator, name, bytes per element. Of GB_QUANTIZED elements, which only constants have, a format
 * (format.h) says how they are stored; GB_Q8 and GB_Q4, which only states have, are codes in groups with a
 * scale each (cache_codes.h). */
#define GB_DTYPES(X)                                                                                         \
    X(1, GB_F32, "f32", 4)                                                                                   \
    X(2, GB_F16, "f16", 2)                                                                                   \
    X(3, GB_BF16, "bf16", 2)                                                                                 \
    X(4, GB_I32, "i32", 4)                                                                                   \
    X(5, GB_U32, "u32", 4)                                                                                   \
    X(6, GB_U64, "u64", 8)                                                                                   \
    X(7, GB_BOOL, "bool", 1)                                                                                 \
    X(8, GB_QUANTIZED, "quantized", 0)                                                                       \
    X(9, GB_Q8, "q8", 0)                                                                                     \
    X(10, GB_Q4, "q4", 0)

typedef enum gb_dtype {
    GB_DTYPE_NONE = 0,
#define X(number, enumerator, name, size) enumerator = number,
    GB_DTYPES(X)
#undef X
        GB_DTYPE_COUNT
} gb_dtype;

/* The C type of an element of a dtype that a step's inputs have: GB_C_TYPE(GB_F32) is float. */
#define GB_C_TYPE(enumerator) GB_C_TYPE_##enumerator
#define GB_C_TYPE_GB_F32 float
#define GB_C_TYPE_GB_I32 int32_t
#define GB_C_TYPE_GB_U32 uint32_t
#define GB_C_TYPE_GB_U64 uint64_t
#define GB_C_TYPE_GB_BOOL bool

/* The name used in graphs and messages, or "?" for a number that is no dtype. */
const char *gb_dtype_name(gb_dtype dtype);

/* Bytes per element, 0 for GB_QUANTIZED, GB_Q8, GB_Q4 and for a number that is no dtype. */
size_t gb_dtype_size(gb_dtype dtype);

/* f32, f16 or bf16: what a weight of an unquantized model may be stored in. */
static inline bool gb_dtype_is_float(gb_dtype dtype) {
    return dtype == GB_F32 || dtype == GB_F16 || dtype == GB_BF16;
}

/* Whether elements are codes of cache_codes.h. */
GB_ANYWHERE bool gb_dtype_has_codes(gb_dtype dtype) {
    return dtype == GB_Q8 || dtype == GB_Q4;
}

#endif
