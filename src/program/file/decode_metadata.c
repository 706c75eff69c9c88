/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/encode.h"
#include "program/file/format.h"
#include "program/file/storage.h"

#include <string.h>

/* Each reader takes one payload whole. FORMAT: it is not one of its type. MEMORY: there is none for it. */

static gumbel_status get_STRING(gb_program *program, gb_byte_view payload, const char **text) {
    if (payload.size && memchr(payload.data, 0, (size_t)payload.size))
        return GUMBEL_ERROR_FORMAT;
    const char *copy = gb_storage_string(program->storage, (const char *)payload.data, (size_t)payload.size);
    *text = copy ? copy : "";
    return copy ? GUMBEL_OK : GUMBEL_ERROR_MEMORY;
}

static gumbel_status get_UINT(gb_program *program, gb_byte_view payload, uint64_t *value) {
    (void)program;
    *value = gb_view_u64(&payload);
    return gb_view_ended(&payload) ? GUMBEL_OK : GUMBEL_ERROR_FORMAT;
}

static gumbel_status get_FLOAT(gb_program *program, gb_byte_view payload, double *value) {
    (void)program;
    *value = gb_view_f64(&payload);
    return gb_view_ended(&payload) ? GUMBEL_OK : GUMBEL_ERROR_FORMAT;
}

static gumbel_status get_BOOL(gb_program *program, gb_byte_view payload, bool *value) {
    (void)program;
    if (payload.size != 1 || payload.data[0] > 1)
        return GUMBEL_ERROR_FORMAT;
    *value = payload.data[0] == 1;
    return GUMBEL_OK;
}

static gumbel_status get_TOKENS(gb_program *program, gb_byte_view payload, gb_token_list *list) {
    uint32_t count = (uint32_t)(payload.size / 4);
    if (payload.size % 4 != 0)
        return GUMBEL_ERROR_FORMAT;
    int32_t *ids = gb_storage_take(program->storage, count, sizeof *ids);
    if (!ids)
        return GUMBEL_ERROR_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = (int32_t)gb_view_u32(&payload);
    *list = (gb_token_list){ids, count};
    return GUMBEL_OK;
}

static gumbel_status check_field(gumbel_status status, const char *name, const char *type,
                                 gumbel_error *error) {
    if (status == GUMBEL_ERROR_MEMORY)
        return gb_fail(error, status, "no memory for the metadata");
    if (status == GUMBEL_ERROR_FORMAT)
        return gb_fail(error, status, "metadata: %s is not a %s", name, type);
    return GUMBEL_OK;
}

static gumbel_status decode_field(gb_program *program, const gb_record *record, gumbel_error *error) {
    gb_metadata *metadata = &program->metadata;
    switch (record->tag) {
#define GB_METADATA(number, type, name, required, what)                                                      \
    case number:                                                                                             \
        if (metadata->has_##name)                                                                            \
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata: %s is given twice", #name);                \
        metadata->has_##name = true;                                                                         \
        return check_field(get_##type(program, record->payload, &metadata->name), #name, #type, error);
#include "program/metadata.def"
#undef GB_METADATA
    default:
        if (record->flags & GB_RECORD_CRITICAL)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "metadata field %u is not known to this version",
                           record->tag);
        return GUMBEL_OK;
    }
}

/* Strings that the file does not have are empty, all else zero. */
#define BEGIN_STRING(field) ((field) = "")
#define BEGIN_UINT(field) ((field) = 0)
#define BEGIN_FLOAT(field) ((field) = 0)
#define BEGIN_BOOL(field) ((field) = false)
#define BEGIN_TOKENS(field) ((field) = (gb_token_list){0})

static void begin_metadata(gb_metadata *metadata) {
#define GB_METADATA(number, type, name, required, what) BEGIN_##type(metadata->name);
#include "program/metadata.def"
#undef GB_METADATA
}

gumbel_status gb_decode_metadata(gb_byte_view section, gb_program *program, gumbel_error *error) {
    begin_metadata(&program->metadata);
    gb_record record;
    while (gb_next_record(&section, &record))
        GB_TRY(decode_field(program, &record, error));
    if (!gb_view_ended(&section))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata: a record leaves the section");
    return GUMBEL_OK;
}
