/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "program/verify/verify.h"
#include "tensor/cache_codes.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rule 8: names ------------------------------------------------------------------------------------- */

static gumbel_status check_name(const char *what, uint32_t index, const char *name, gumbel_error *error) {
    size_t length = strlen(name);
    if (length < 1 || length > GB_MAX_NAME)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s %u: a name of %zu bytes, expected 1 .. %d", what,
                       index, length, (int)GB_MAX_NAME);
    for (const char *byte = name; *byte; byte++) {
        if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s %u: a control character in its name", what, index);
    }
    return GUMBEL_OK;
}

static int compare_names(const void *a, const void *b) {
    const char *first, *second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return strcmp(first, second);
}

/* Sorts the names and looks at neighbours. */
static gumbel_status check_unique(const char *what, const char **names, uint32_t count, gumbel_error *error) {
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "two %ss are called %s", what, names[i]);
    }
    return GUMBEL_OK;
}

static gumbel_status check_names(const gb_program *program, gumbel_error *error) {
    uint32_t constants = program->constant_count, states = program->state_count;
    const char **names = gb_allocate((size_t)constants + states, sizeof *names);
    if (!names)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for verifying names");
    gumbel_status status = GUMBEL_OK;
    for (uint32_t i = 0; i < constants && !status; i++)
        status = check_name("constant", i, names[i] = program->constants[i].name, error);
    for (uint32_t i = 0; i < states && !status; i++)
        status = check_name("state", i, names[constants + i] = program->states[i].name, error);
    if (!status)
        status = check_unique("constant", names, constants, error);
    if (!status)
        status = check_unique("state", names + constants, states, error);
    gb_free(names);
    return status;
}

/* ---- Rules 9-13, 42
 * ---------------------------------------------------------------------------------------- */

static gumbel_status check_data_type(const char *what, const char *name, const gb_type *type, uint64_t *bytes,
                                     gumbel_error *error) {
    char text[GB_TYPE_TEXT];
    if (!gb_type_valid(type) || type->shape.rank < 1 || !gb_type_bytes(type, bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s %s: %s is not a type with sizes", what, name,
                       gb_type_text(type, text));
    return GUMBEL_OK;
}

/* Rule 42. */
static gumbel_status check_packing(const gb_constant *constant, gumbel_error *error) {
    uint64_t rows, columns;
    char text[GB_TYPE_TEXT], format[GB_FORMAT_TEXT];
    if (constant->packing.block_rows == 0 ||
        (gb_constant_matrix(constant, &rows, &columns) &&
         gb_packing_fits(&constant->packing, &constant->format, rows, columns)))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "constant %s: %s in the weight format %s cannot have its packing", constant->name,
                   gb_type_text(&constant->type, text), gb_constant_format_text(constant, format));
}

/* Rule 9. */
static gumbel_status check_constant(const gb_constant *constant, gumbel_error *error) {
    uint64_t bytes;
    char text[GB_TYPE_TEXT], format[GB_FORMAT_TEXT];
    if (gb_dtype_has_codes(constant->type.dtype))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s: dtype %s, which only states have",
                       constant->name, gb_dtype_name(constant->type.dtype));
    if (constant->type.dtype != GB_QUANTIZED)
        GB_TRY(check_data_type("constant", constant->name, &constant->type, &bytes, error));
    if (!gb_constant_bytes(constant, &bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s: %s cannot have the weight format %s",
                       constant->name, gb_type_text(&constant->type, text),
                       gb_format_text(&constant->format, format));
    if (constant->size != bytes)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s: %llu bytes, its type has %llu",
                       constant->name, (unsigned long long)constant->size, (unsigned long long)bytes);
    return check_packing(constant, error);
}

/* Rule 12. What a token overwrites must be older than what it still reads. */
static gumbel_status check_ring(const gb_state *state, gumbel_error *error) {
    uint64_t capacity = (uint64_t)state->type.shape.dims[0];
    if (state->window < 1)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "state %s: a ring without a window", state->name);
    if (capacity <= state->window || capacity > UINT32_MAX)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "state %s: a ring of %llu positions, expected more than its window of %u", state->name,
                       (unsigned long long)capacity, state->window);
    return GUMBEL_OK;
}

/* Rule 10, of codes: rows of heads that are whole groups, and that a kernel has room for. */
static gumbel_status check_coded_state(const gb_state *state, gumbel_error *error) {
    const gb_shape *shape = &state->type.shape;
    char text[GB_TYPE_TEXT];
    if (state->kind == GB_STATE_RECURRENT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "state %s: dtype %s, which only caches and rings have",
                       state->name, gb_dtype_name(state->type.dtype));
    if (shape->rank != 3 || shape->dims[2] % GB_CODE_GROUP != 0 || shape->dims[2] > GB_MAX_CODED_HEAD)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "state %s: %s, expected rank 3 and heads of a multiple of %d, at most %d", state->name,
                       gb_type_text(&state->type, text), (int)GB_CODE_GROUP, (int)GB_MAX_CODED_HEAD);
    return GUMBEL_OK;
}

/* Rules 10-12. */
static gumbel_status check_state(const gb_state *state, const gb_metadata *metadata, uint64_t *bytes,
                                 gumbel_error *error) {
    gb_dtype dtype = state->type.dtype;
    if (gb_dtype_has_codes(dtype))
        GB_TRY(check_coded_state(state, error));
    GB_TRY(check_data_type("state", state->name, &state->type, bytes, error));
    if (dtype != GB_F32 && dtype != GB_BF16 && dtype != GB_I32 && !gb_dtype_has_codes(dtype))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "state %s: dtype %s, expected f32, bf16, i32, q8 or q4",
                       state->name, gb_dtype_name(dtype));
    if (state->kind < GB_STATE_CACHE || state->kind > GB_STATE_RECURRENT)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "state %s: kind %u is not known to this version",
                       state->name, (unsigned)state->kind);
    if (state->kind == GB_STATE_RING)
        return check_ring(state, error);
    if (state->window != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "state %s: has a window but is no ring", state->name);
    if (state->kind == GB_STATE_CACHE && (uint64_t)state->type.shape.dims[0] != metadata->max_context)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "state %s: %lld positions, expected max_context = %llu",
                       state->name, (long long)state->type.shape.dims[0],
                       (unsigned long long)metadata->max_context);
    return GUMBEL_OK;
}

gumbel_status gb_verify_data(const gb_program *program, gumbel_error *error) {
    GB_TRY(check_names(program, error));
    for (uint32_t i = 0; i < program->constant_count; i++)
        GB_TRY(check_constant(&program->constants[i], error));
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->state_count; i++) {
        uint64_t bytes;
        GB_TRY(check_state(&program->states[i], &program->metadata, &bytes, error));
        if (!gb_add_size(total, bytes, &total) || total > GB_MAX_SESSION_BYTES) /* rule 13 */
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "state %s: the states of a session need over 2^48 bytes", program->states[i].name);
    }
    return GUMBEL_OK;
}
