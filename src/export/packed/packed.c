/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/packed.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/packed/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef gumbel_status (*find_function)(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                       gumbel_error *error);
typedef bool (*name_function)(const gb_packed_query *query, char text[GB_PACKED_NAME]);

typedef struct method {
    find_function find;
    name_function name;
    const char *mark; /* how the name of one tensor of each packed matrix ends, and no other's */
} method;

/* A checkpoint whose configuration is silent may be one of ExecuTorch's, which are torchao's. */
static const method METHODS[] = {
    [GB_QUANTIZATION_NONE] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
    [GB_QUANTIZATION_MLX] = {gb_packed_find_mlx, gb_packed_mlx_name, ".scales"},
    [GB_QUANTIZATION_COMPRESSED_TENSORS] = {gb_packed_find_compressed, gb_packed_compressed_name,
                                            ".weight_packed"},
    [GB_QUANTIZATION_TORCHAO] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
};

/* ---- Stacks of matrices -------------------------------------------------------------------------------- */

/* "mlp.switch_mlp.up_proj.weight" of expert 3 is "mlp.experts.3.up_proj.weight". */
static bool member_name(const char *name, uint64_t member, char text[GB_PACKED_NAME]) {
    static const char STACK[] = ".switch_mlp.";
    const char *at = strstr(name, STACK);
    if (!at)
        return false;
    int length = snprintf(text, GB_PACKED_NAME, "%.*s.experts.%" PRIu64 ".%s", (int)(at - name), name, member,
                          at + strlen(STACK));
    return length < GB_PACKED_NAME;
}

static gumbel_status find_member(const gb_packed_query *stack, uint64_t index, gb_packed *members,
                                 gumbel_error *error) {
    char name[GB_PACKED_NAME];
    gb_packed *found = &members[index];
    gb_packed_query query = *stack;
    bool is_found = false;
    if (!member_name(stack->name, index, name))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the names of experts are too long",
                       gb_checkpoint_path(query.checkpoint));
    query.name = name;
    query.rank = 2;
    query.dims = stack->dims + 1;
    *found = (gb_packed){.rows = (uint64_t)query.dims[0], .columns = (uint64_t)query.dims[1]};
    GB_TRY(METHODS[query.packing->method].find(&query, found, &is_found, error));
    if (!is_found)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s is missing or not packed as expert 0's is",
                       gb_checkpoint_path(query.checkpoint), name);
    if (found->bits != members->bits || found->group != members->group ||
        found->offset_kind != members->offset_kind || found->scales->dtype != members->scales->dtype)
        return gb_packed_fail(&query, found->codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "is not packed as expert 0's is");
    return GUMBEL_OK;
}

static gumbel_status find_stack(const gb_packed_query *query, gb_packed *packed, gumbel_error *error) {
    uint64_t count = (uint64_t)query->dims[0];
    gb_packed *members = gb_allocate((size_t)count, sizeof *members);
    if (!members)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the experts of %s", query->name);
    packed->members = members;
    packed->member_count = count;
    for (uint64_t i = 0; i < count; i++)
        GB_TRY(find_member(query, i, members, error));
    GB_TRY(gb_packed_choose_format(query, members, count, error));
    packed->bits = members->bits;
    packed->group = members->group;
    packed->format = members->format;
    return GUMBEL_OK;
}

/* Whether there is a stack of that name in single matrices. */
static bool has_members(const gb_packed_query *query) {
    char name[GB_PACKED_NAME], text[GB_PACKED_NAME];
    gb_packed_query first = *query;
    first.name = name;
    return member_name(query->name, 0, name) && METHODS[query->packing->method].name(&first, text) &&
           gb_checkpoint_find(query->checkpoint, text);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

gumbel_status gb_packed_find(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                             const char *name, int32_t rank, const int64_t *dims, gb_packed *packed,
                             bool *is_found, gumbel_error *error) {
    gb_packed_query query = {
        .packing = packing, .checkpoint = checkpoint, .name = name, .rank = rank, .dims = dims};
    *packed = (gb_packed){.rows = 1, .columns = (uint64_t)dims[rank - 1]};
    *is_found = false;
    for (int32_t i = 0; i < rank - 1; i++)
        packed->rows *= (uint64_t)dims[i]; /* of sizes that config.json may have: no overflow */
    GB_TRY(METHODS[packing->method].find(&query, packed, is_found, error));
    if (*is_found)
        return gb_packed_choose_format(&query, packed, 1, error);
    *is_found = rank == 3 && has_members(&query);
    return *is_found ? find_stack(&query, packed, error) : GUMBEL_OK;
}

void gb_packed_free(gb_packed *packed) {
    gb_free(packed->members);
    packed->members = NULL;
}

bool gb_packed_has(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name) {
    gb_packed_query query = {.packing = packing, .checkpoint = checkpoint, .name = name};
    char text[GB_PACKED_NAME];
    return (METHODS[packing->method].name(&query, text) && gb_checkpoint_find(checkpoint, text)) ||
           has_members(&query);
}

bool gb_packed_has_any(const gb_quantization *packing, const gb_checkpoint *checkpoint) {
    char text[GB_PACKED_NAME];
    for (size_t i = 0; i < gb_checkpoint_count(checkpoint); i++)
        if (gb_packed_rename(gb_checkpoint_at(checkpoint, i)->name, METHODS[packing->method].mark, "", text))
            return true;
    return false;
}

bool gb_packed_uses(const gb_packed *packed, const gb_tensor *tensor) {
    for (uint64_t i = 0; packed->members && i < packed->member_count; i++)
        if (gb_packed_uses(&packed->members[i], tensor))
            return true;
    return tensor == packed->codes || tensor == packed->scales || tensor == packed->offsets ||
           tensor == packed->shape;
}

static void release_rows(const gb_tensor *tensor, const gb_packed *packed, uint64_t first, uint64_t count) {
    uint64_t row_bytes = tensor->size / packed->rows;
    if (!tensor->is_in_memory)
        gb_release_pages(tensor->data + first * row_bytes, count * row_bytes);
}

void gb_packed_release(const gb_packed *packed, uint64_t first, uint64_t count) {
    if (packed->members) { /* those whose last row is among the released ones */
        uint64_t rows = packed->rows / packed->member_count;
        for (uint64_t i = first / rows; i < (first + count) / rows; i++)
            gb_packed_release(&packed->members[i], 0, rows);
        return;
    }
    release_rows(packed->codes, packed, first, count);
    if (packed->row_stride == 1) /* a column for each row: all are read until the end */
        return;
    release_rows(packed->scales, packed, first, count);
    if (packed->offset_kind == GB_OFFSETS_BIASES)
        release_rows(packed->offsets, packed, first, count);
}
