/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/packed.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/expert_names.h"
#include "export/packed/parts.h"

#include <string.h>

typedef gumbel_status (*find_function)(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                       gumbel_error *error);
typedef bool (*name_function)(const gb_packed_query *query, char text[GB_PACKED_NAME]);

typedef struct method {
    find_function find;
    name_function name;
    const char *mark; /* how the name of one tensor of each packed matrix ends, and no other's */
} method;

/* A checkpoint whose configuration is silent may be one of ExecuTorch's, which are torchao's; so may one of
 * 8-bit floats be in parts. */
static const method METHODS[] = {
    [GB_QUANTIZATION_NONE] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
    [GB_QUANTIZATION_MLX] = {gb_packed_find_mlx, gb_packed_mlx_name, ".scales"},
    [GB_QUANTIZATION_COMPRESSED_TENSORS] = {gb_packed_find_compressed, gb_packed_compressed_name,
                                            ".weight_packed"},
    [GB_QUANTIZATION_TORCHAO] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
    [GB_QUANTIZATION_MXFP4] = {gb_packed_find_mxfp4, gb_packed_mxfp4_name, "_blocks"},
    [GB_QUANTIZATION_GPTQ] = {gb_packed_find_gptq, gb_packed_qweight_name, ".qweight"},
    [GB_QUANTIZATION_AWQ] = {gb_packed_find_awq, gb_packed_qweight_name, ".qweight"},
    [GB_QUANTIZATION_NVFP4] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
    [GB_QUANTIZATION_FP8] = {gb_packed_find_torchao, gb_packed_torchao_name, "_qdata"},
};

/* ---- Stacks of matrices -------------------------------------------------------------------------------- */

/* Whether one format can hold both. */
static bool is_alike(const gb_packed *a, const gb_packed *b) {
    return a->bits == b->bits && a->group == b->group && a->book == b->book &&
           a->offset_kind == b->offset_kind && a->scales->dtype == b->scales->dtype;
}

static gumbel_status find_member(const gb_packed_query *stack, uint64_t index, gb_packed *members,
                                 gumbel_error *error) {
    char name[GB_PACKED_NAME];
    gb_packed *found = &members[index];
    gb_packed_query query = *stack;
    bool is_found = false;
    if (!gb_expert_member_name(stack->name, index, name, sizeof name))
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
    if (!is_alike(found, members))
        return gb_packed_fail(&query, found->codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "is not packed as expert 0's is");
    return GUMBEL_OK;
}

/* What a stack has in common with its members. */
static void describe_stack(gb_packed *packed) {
    packed->bits = packed->members->bits;
    packed->group = packed->members->group;
    packed->format = packed->members->format;
}

static gumbel_status find_stack(const gb_packed_query *query, gb_packed *packed, gumbel_error *error) {
    uint64_t count = (uint64_t)query->dims[0];
    gb_packed *members = gb_allocate((size_t)count, sizeof *members);
    if (!members)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the experts of %s", query->name);
    packed->members = members;
    packed->stacking = (gb_stacking){.parts = count, .run = (uint64_t)query->dims[1]};
    for (uint64_t i = 0; i < count; i++)
        GB_TRY(find_member(query, i, members, error));
    GB_TRY(gb_packed_choose_format(query, members, count, error));
    describe_stack(packed);
    return GUMBEL_OK;
}

/* Whether there is a stack of that name in single matrices. */
static bool has_members(const gb_packed_query *query) {
    char name[GB_PACKED_NAME], text[GB_PACKED_NAME];
    gb_packed_query first = *query;
    first.name = name;
    return gb_expert_member_name(query->name, 0, name, sizeof name) &&
           METHODS[query->packing->method].name(&first, text) && gb_checkpoint_find(query->checkpoint, text);
}

/* ---- Stacks of two found matrices ---------------------------------------------------------------------- */

static uint64_t leaf_count(const gb_packed *packed) {
    return packed->members ? packed->stacking.parts : 1;
}

/* The single matrices of both parts in turns, or NULL where there is no memory. */
static gb_packed *leaves_of(const gb_packed parts[GB_PACKED_PARTS], uint64_t count) {
    gb_packed *leaves = gb_allocate((size_t)(GB_PACKED_PARTS * count), sizeof *leaves);
    for (uint64_t i = 0; leaves && i < GB_PACKED_PARTS * count; i++) {
        const gb_packed *part = &parts[i % GB_PACKED_PARTS];
        leaves[i] = part->members ? part->members[i / GB_PACKED_PARTS] : *part;
    }
    return leaves;
}

/* Gives all leaves one format, if there is one that holds every group. */
static bool unify(const gb_packed_query *query, gb_packed *leaves, uint64_t count) {
    bool is_one_format = true;
    for (uint64_t i = 1; i < count; i++) {
        if (!is_alike(&leaves[i], leaves))
            return false;
        is_one_format = is_one_format && gb_format_equal(&leaves[i].format, &leaves->format);
    }
    return is_one_format || gb_packed_choose_format(query, leaves, count, NULL) == GUMBEL_OK;
}

gumbel_status gb_packed_stack(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                              gb_packed parts[GB_PACKED_PARTS], uint64_t run, gb_packed *whole,
                              bool *is_stacked, gumbel_error *error) {
    const gb_packed_query query = {.packing = packing, .checkpoint = checkpoint, .name = ""};
    const uint64_t count = leaf_count(&parts[0]);
    *is_stacked = false;
    if (leaf_count(&parts[1]) != count)
        return GUMBEL_OK;
    gb_packed *leaves = leaves_of(parts, count);
    if (!leaves)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the experts' matrices");
    *is_stacked = unify(&query, leaves, GB_PACKED_PARTS * count);
    if (!*is_stacked) {
        gb_free(leaves);
        return GUMBEL_OK;
    }
    *whole = (gb_packed){.rows = GB_PACKED_PARTS * parts[0].rows,
                         .columns = parts[0].columns,
                         .members = leaves,
                         .stacking = {.parts = GB_PACKED_PARTS * count, .run = run}};
    describe_stack(whole);
    for (uint64_t i = 0; i < GB_PACKED_PARTS; i++)
        gb_packed_free(&parts[i]);
    return GUMBEL_OK;
}

/* ---- A part of one ------------------------------------------------------------------------------------- */

gumbel_status gb_packed_take_runs(gb_packed *packed, const uint64_t *firsts, uint64_t count, uint64_t run,
                                  gumbel_error *error) {
    gb_packed *members = gb_allocate((size_t)count, sizeof *members);
    if (!members)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the parts of a matrix");
    for (uint64_t i = 0; i < count; i++) {
        members[i] = *packed;
        members[i].first_row = firsts[i];
    }
    *packed = (gb_packed){.rows = count * run,
                          .columns = members->columns,
                          .members = members,
                          .stacking = {.parts = count, .run = run}};
    describe_stack(packed);
    return GUMBEL_OK;
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
    for (size_t i = 0; i < gb_checkpoint_count(checkpoint); i++) {
        const gb_tensor *tensor = gb_checkpoint_at(checkpoint, i);
        const bool is_mxfp8 =
            packing->method == GB_QUANTIZATION_MLX && gb_mxfp8_has_scales(checkpoint, tensor);
        if (!is_mxfp8 && gb_packed_rename(tensor->name, METHODS[packing->method].mark, "", text))
            return true;
    }
    return false;
}

void gb_packed_visit(const gb_packed *packed, gb_tensor_visit visit, void *user) {
    const gb_tensor *const own[] = {packed->codes, packed->scales, packed->offsets, packed->shape,
                                    packed->group_index};
    for (uint64_t i = 0; packed->members && i < packed->stacking.parts; i++)
        gb_packed_visit(&packed->members[i], visit, user);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i])
            visit(user, own[i]);
}

static void release_tensor(const gb_tensor *tensor) {
    if (!tensor->is_in_memory)
        gb_release_pages(tensor->data, tensor->size);
}

static void release_rows(const gb_tensor *tensor, const gb_packed *packed, uint64_t first, uint64_t count) {
    uint64_t row_bytes = tensor->size / packed->rows;
    if (!tensor->is_in_memory)
        gb_release_pages(tensor->data + (packed->first_row + first) * row_bytes, count * row_bytes);
}

void gb_packed_release(const gb_packed *packed, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; packed->members && i < packed->stacking.parts; i++) {
        uint64_t begin = gb_part_rows_before(&packed->stacking, i, first);
        uint64_t end = gb_part_rows_before(&packed->stacking, i, first + count);
        if (begin < end)
            gb_packed_release(&packed->members[i], begin, end - begin);
    }
    if (packed->members || packed->row_pairs > 0) /* in turns: neighbours are still to be read */
        return;
    if (packed->layout != GB_LAYOUT_ROWS) { /* a page has a part of many rows */
        if (packed->first_row + first + count == packed->rows)
            release_tensor(packed->codes);
        return;
    }
    release_rows(packed->codes, packed, first, count);
    if (packed->row_stride == 1) /* a column for each row: all are read until the end */
        return;
    release_rows(packed->scales, packed, first, count);
    if (packed->offset_kind == GB_OFFSETS_BIASES)
        release_rows(packed->offsets, packed, first, count);
}
