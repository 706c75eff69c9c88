/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata fields of a program as one structure, generated from metadata.def.
 */
#ifndef GUMBEL_PROGRAM_METADATA_H
#define GUMBEL_PROGRAM_METADATA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gb_token_list {
    const int32_t *ids;
    uint32_t count;
} gb_token_list;

static inline bool gb_lists_token(const gb_token_list *list, int32_t token) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->ids[i] == token)
            return true;
    return false;
}

#define GB_METADATA_C_STRING const char *
#define GB_METADATA_C_UINT uint64_t
#define GB_METADATA_C_FLOAT double
#define GB_METADATA_C_BOOL bool
#define GB_METADATA_C_TOKENS gb_token_list

/* An absent string is "". has_NAME tells whether the file gave the field. */
typedef struct gb_metadata {
#define GB_METADATA(number, type, name, required, what)                                                      \
    GB_METADATA_C_##type name;                                                                               \
    bool has_##name;
#include "program/metadata.def"
#undef GB_METADATA
} gb_metadata;

#endif
