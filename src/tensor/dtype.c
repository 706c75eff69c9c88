/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/dtype.h"

const char *gb_dtype_name(gb_dtype dtype) {
    switch (dtype) {
#define X(number, enumerator, name, size)                                                                    \
    case enumerator:                                                                                         \
        return name;
        GB_DTYPES(X)
#undef X
    default:
        return "?";
    }
}

size_t gb_dtype_size(gb_dtype dtype) {
    switch (dtype) {
#define X(number, enumerator, name, size)                                                                    \
    case enumerator:                                                                                         \
        return size;
        GB_DTYPES(X)
#undef X
    default:
        return 0;
    }
}
