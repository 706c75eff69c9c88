/* SPDX-License-Identifier: Apache-2.0 */
#include "export/matrix_source.h"

#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/expert_names.h"
#include "export/quantize/import_blocks.h"
#include "program/program.h"

#include <string.h>

enum { MEMBER_NAME = 384 };

typedef struct query {
    const gb_checkpoint *checkpoint;
    const gb_quantization *packing; /* or NULL */
    const char *name;
    int32_t rank;
    const int64_t *dims;
} query;

void gb_matrix_source_free(gb_matrix_source *source) {
    gb_free(source->tensors);
    gb_free(source->parts);
    gb_free(source->fp8);
    gb_free(source->scales);
    gb_packed_free(&source->packed);
    source->tensors = NULL;
    source->parts = NULL;
    source->fp8 = NULL;
    source->scales = NULL;
    source->tensor_count = 0;
}

static gumbel_status allocate(gb_matrix_source *source, size_t tensors, size_t parts, gumbel_error *error) {
    source->tensors = gb_allocate(tensors, sizeof *source->tensors);
    source->parts = gb_allocate(parts, sizeof *source->parts);
    source->tensor_count = tensors;
    return source->tensors && source->parts
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
}

/* ---- One tensor ---------------------------------------------------------------------------------------- */

/* Rows that stand in pairs are two parts, of which each has every other row. */
gumbel_status gb_matrix_source_of(const gb_tensor *tensor, gb_matrix_source *source, gumbel_error *error) {
    *source = (gb_matrix_source){0};
    GB_TRY(allocate(source, 1, 2, error));
    source->tensors[0] = tensor;
    source->parts[0] = tensor->data;
    if (tensor->row_pairs > 0) {
        source->stacking = (gb_stacking){.parts = 2, .run = (uint64_t)tensor->row_pairs, .stride = 2};
        source->parts[1] = tensor->data + tensor->size / (uint64_t)tensor->dims[0];
    }
    return GUMBEL_OK;
}

/* ---- One tensor for each expert ------------------------------------------------------------------------ */

static bool has_one(const gb_checkpoint *checkpoint, const gb_quantization *packing, const char *name) {
    return gb_checkpoint_find(checkpoint, name) || gb_fp8_has(packing, checkpoint, name);
}

static bool has_members(const gb_checkpoint *checkpoint, const gb_quantization *packing, const char *name) {
    char member[MEMBER_NAME];
    return gb_expert_member_name(name, 0, member, sizeof member) && has_one(checkpoint, packing, member);
}

/* Takes note that the tensor of that index is of 8-bit floats. */
static gumbel_status keep_fp8(gb_matrix_source *source, size_t index, const gb_fp8_found *found,
                              gumbel_error *error) {
    if (!source->fp8) {
        source->fp8 = gb_allocate(source->tensor_count, sizeof *source->fp8);
        source->scales = gb_allocate(2 * source->tensor_count, sizeof *source->scales);
    }
    if (!source->fp8 || !source->scales)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of scales");
    source->fp8[index] = found->matrix;
    source->scales[index] = found->scales;
    source->scales[source->tensor_count + index] = found->global;
    return GUMBEL_OK;
}

static bool is_stored_alike(const gb_tensor *a, const gb_tensor *b) {
    return a->dtype == b->dtype && a->blocks == b->blocks;
}

static gumbel_status find_member(const query *stack, uint64_t index, gb_matrix_source *source,
                                 gumbel_error *error) {
    char name[MEMBER_NAME];
    if (!gb_expert_member_name(stack->name, index, name, sizeof name))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the names of experts are too long",
                       gb_checkpoint_path(stack->checkpoint));
    const gb_tensor **tensor = &source->tensors[index];
    gb_fp8_found found;
    bool is_fp8;
    GB_TRY(gb_fp8_find(stack->packing, stack->checkpoint, name, stack->dims + 1, &found, &is_fp8, error));
    *tensor = found.codes;
    if (is_fp8)
        GB_TRY(keep_fp8(source, index, &found, error));
    else
        GB_TRY(gb_checkpoint_get_matrix(stack->checkpoint, name, 2, stack->dims + 1, tensor, error));
    source->parts[index] = (*tensor)->data;
    if (!is_stored_alike(*tensor, source->tensors[0]))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "%s: tensor %s has the dtype %s, expected %s as of %s",
                       gb_checkpoint_path(stack->checkpoint), name, (*tensor)->dtype_name,
                       source->tensors[0]->dtype_name, source->tensors[0]->name);
    return GUMBEL_OK;
}

static gumbel_status find_members(const query *stack, gb_matrix_source *source, gumbel_error *error) {
    const size_t count = (size_t)stack->dims[0];
    GB_TRY(allocate(source, count, count, error));
    source->stacking = (gb_stacking){.parts = count, .run = (uint64_t)stack->dims[1]};
    for (size_t i = 0; i < count; i++)
        GB_TRY(find_member(stack, i, source, error));
    return GUMBEL_OK;
}

/* Experts in one tensor, which is a part for each, so that each has its scales. */
static gumbel_status find_fp8_stack(const query *one, gb_matrix_source *source, bool *is_fp8,
                                    gumbel_error *error) {
    gb_fp8_found found;
    const size_t count = (size_t)one->dims[0];
    GB_TRY(gb_fp8_find_stack(one->packing, one->checkpoint, one->name, one->dims, &found, is_fp8, error));
    if (!*is_fp8)
        return GUMBEL_OK;
    GB_TRY(allocate(source, count, count, error));
    source->stacking = (gb_stacking){.parts = count, .run = (uint64_t)one->dims[1]};
    for (size_t i = 0; i < count; i++) {
        const gb_fp8_found member = {.scales = found.scales, .matrix = gb_fp8_member(&found, count, i)};
        source->tensors[i] = found.codes;
        source->parts[i] = member.matrix.codes;
        GB_TRY(keep_fp8(source, i, &member, error));
    }
    return GUMBEL_OK;
}

/* Matrices of 8-bit floats, if the tensor of that name is of them. */
static gumbel_status find_fp8(const query *one, gb_matrix_source *source, bool *is_fp8, gumbel_error *error) {
    gb_fp8_found found;
    *is_fp8 = false;
    if (one->rank == 3)
        return find_fp8_stack(one, source, is_fp8, error);
    if (one->rank == 2)
        GB_TRY(gb_fp8_find(one->packing, one->checkpoint, one->name, one->dims, &found, is_fp8, error));
    if (!*is_fp8)
        return GUMBEL_OK;
    GB_TRY(gb_matrix_source_of(found.codes, source, error));
    return keep_fp8(source, 0, &found, error);
}

static gumbel_status find_one(const query *one, gb_matrix_source *source, gumbel_error *error) {
    const gb_tensor *tensor = NULL;
    bool is_fp8;
    *source = (gb_matrix_source){0};
    if (one->packing)
        GB_TRY(gb_packed_find(one->packing, one->checkpoint, one->name, one->rank, one->dims, &source->packed,
                              &source->is_packed, error));
    if (source->is_packed)
        return GUMBEL_OK;
    if (one->rank == 3 && !gb_checkpoint_find(one->checkpoint, one->name) &&
        has_members(one->checkpoint, one->packing, one->name))
        return find_members(one, source, error);
    GB_TRY(find_fp8(one, source, &is_fp8, error));
    if (is_fp8)
        return GUMBEL_OK;
    GB_TRY(gb_checkpoint_get_matrix(one->checkpoint, one->name, one->rank, one->dims, &tensor, error));
    return gb_matrix_source_of(tensor, source, error);
}

/* ---- Two of them --------------------------------------------------------------------------------------- */

/* The tensors of both in turns. */
static gumbel_status interleave(const gb_matrix_source parts[GB_PACKED_PARTS], uint64_t run,
                                gb_matrix_source *source, gumbel_error *error) {
    const size_t count = GB_PACKED_PARTS * parts[0].tensor_count;
    GB_TRY(allocate(source, count, count, error));
    source->stacking = (gb_stacking){.parts = count, .run = run};
    for (size_t i = 0; i < count; i++) {
        const gb_matrix_source *part = &parts[i % GB_PACKED_PARTS];
        source->tensors[i] = part->tensors[i / GB_PACKED_PARTS];
        source->parts[i] = part->parts[i / GB_PACKED_PARTS];
        if (part->fp8)
            GB_TRY(keep_fp8(source, i,
                            &(gb_fp8_found){.scales = part->scales[i / GB_PACKED_PARTS],
                                            .global = part->scales[part->tensor_count + i / GB_PACKED_PARTS],
                                            .matrix = part->fp8[i / GB_PACKED_PARTS]},
                            error));
    }
    return GUMBEL_OK;
}

/* Makes one of two parts. *is_stacked is false where they are stored in different ways. */
static gumbel_status stack(const query *whole, gb_matrix_source parts[GB_PACKED_PARTS], uint64_t run,
                           gb_matrix_source *source, bool *is_stacked, gumbel_error *error) {
    *is_stacked = parts[0].is_packed == parts[1].is_packed && !parts[0].fp8 == !parts[1].fp8 &&
                  parts[0].tensor_count == parts[1].tensor_count;
    if (*is_stacked && parts[0].is_packed) {
        gb_packed packed[GB_PACKED_PARTS] = {parts[0].packed, parts[1].packed};
        GB_TRY(gb_packed_stack(whole->packing, whole->checkpoint, packed, run, &source->packed, is_stacked,
                               error));
        source->is_packed = true;
        if (*is_stacked)
            parts[0].packed.members = parts[1].packed.members = NULL; /* the stack's now */
        return GUMBEL_OK;
    }
    *is_stacked = *is_stacked && is_stored_alike(parts[0].tensors[0], parts[1].tensors[0]);
    return *is_stacked ? interleave(parts, run, source, error) : GUMBEL_OK;
}

/* Finds the two tensors of a request and stacks them. */
static gumbel_status find_two(const query *whole, const char *const names[GB_PACKED_PARTS],
                              gb_matrix_source *source, bool *is_stacked, gumbel_error *error) {
    gb_matrix_source parts[GB_PACKED_PARTS];
    memset(parts, 0, sizeof parts);
    int64_t dims[GB_MAX_RANK];
    memcpy(dims, whole->dims, (size_t)whole->rank * sizeof *dims);
    dims[whole->rank - 2] /= GB_PACKED_PARTS;
    query half = *whole;
    half.dims = dims;
    gumbel_status status = GUMBEL_OK;
    for (int i = 0; i < GB_PACKED_PARTS && status == GUMBEL_OK; i++) {
        half.name = names[i];
        status = find_one(&half, &parts[i], error);
    }
    if (status == GUMBEL_OK)
        status = stack(whole, parts, (uint64_t)dims[whole->rank - 2], source, is_stacked, error);
    for (int i = 0; i < GB_PACKED_PARTS; i++)
        gb_matrix_source_free(&parts[i]);
    return status;
}

/* ---- A part of one ------------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The tensor's row that is the part's. */
static uint64_t row_in_runs(const gb_matrix_request *request, int64_t row) {
    const gb_row_runs *runs = request->runs;
    while (row >= runs->run * runs->count) {
        row -= runs->run * runs->count;
        runs++;
    }
    return (uint64_t)(runs->first + row / runs->run * runs->period + row % runs->run);
}

/* Points at equal pieces of the runs, which are parts of one row of turns. */
static gumbel_status point_at_runs(const uint64_t *firsts, uint64_t count, uint64_t run, uint64_t whole_rows,
                                   gb_matrix_source *source, gumbel_error *error) {
    if (source->is_packed)
        return gb_packed_take_runs(&source->packed, firsts, count, run, error);
    const gb_tensor *tensor = source->tensors[0];
    const uint64_t row_bytes = tensor->size / whole_rows;
    gb_free(source->parts);
    source->parts = gb_allocate((size_t)count, sizeof *source->parts);
    if (!source->parts)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the parts of %s", tensor->name);
    for (uint64_t i = 0; i < count; i++)
        source->parts[i] = tensor->data + firsts[i] * row_bytes;
    source->stacking = (gb_stacking){.parts = count, .run = run};
    return GUMBEL_OK;
}

static gumbel_status take_runs(const gb_matrix_request *request, gb_matrix_source *source,
                               gumbel_error *error) {
    int64_t run = request->runs->run;
    for (size_t i = 1; i < request->run_count; i++)
        run = common_divisor(run, request->runs[i].run);
    const uint64_t count = (uint64_t)(request->dims[0] / run);
    uint64_t *firsts = gb_allocate((size_t)count, sizeof *firsts);
    if (!firsts)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the parts of %s", request->name);
    for (uint64_t i = 0; i < count; i++)
        firsts[i] = row_in_runs(request, (int64_t)i * run);
    gumbel_status status =
        point_at_runs(firsts, count, (uint64_t)run, (uint64_t)request->whole_rows, source, error);
    gb_free(firsts);
    return status;
}

static gumbel_status find_part(const query *part, const gb_matrix_request *request, gb_matrix_source *source,
                               gumbel_error *error) {
    const int64_t dims[] = {request->whole_rows, part->dims[1]};
    query whole = *part;
    whole.dims = dims;
    GB_TRY(find_one(&whole, source, error));
    if (source->stacking.parts > 1)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "%s: rows of a tensor that is stored as several are not supported", request->name);
    if (request->runs)
        return take_runs(request, source, error);
    if (source->is_packed)
        source->packed.first_row = (uint64_t)request->first_row;
    else
        source->parts[0] +=
            (uint64_t)request->first_row * (source->tensors[0]->size / (uint64_t)request->whole_rows);
    return GUMBEL_OK;
}

gumbel_status gb_matrix_source_find(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                                    const gb_matrix_request *request, gb_matrix_source *source,
                                    bool *is_found, gumbel_error *error) {
    const query whole = {checkpoint, packing, request->tensors[0], request->rank, request->dims};
    *is_found = true;
    *source = (gb_matrix_source){0};
    if (request->whole_rows > 0)
        return find_part(&whole, request, source, error);
    return request->tensors[1] ? find_two(&whole, request->tensors, source, is_found, error)
                               : find_one(&whole, source, error);
}

bool gb_matrix_source_exists(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                             const char *name) {
    return has_one(checkpoint, packing, name) || has_members(checkpoint, packing, name) ||
           (packing && gb_packed_has(packing, checkpoint, name));
}

void gb_matrix_source_visit(const gb_matrix_source *source, gb_tensor_visit visit, void *user) {
    for (size_t i = 0; i < source->tensor_count; i++)
        visit(user, source->tensors[i]);
    for (size_t i = 0; source->fp8 && i < 2 * source->tensor_count; i++)
        if (source->scales[i])
            visit(user, source->scales[i]);
    if (source->is_packed)
        gb_packed_visit(&source->packed, visit, user);
}

gb_dtype gb_matrix_source_dtype(const gb_matrix_source *source) {
    return source->fp8 ? GB_BF16 : source->tensors[0]->dtype;
}

const gb_block_info *gb_matrix_source_blocks(const gb_matrix_source *source) {
    const gb_tensor *tensor = source->tensor_count > 0 && !source->fp8 ? source->tensors[0] : NULL;
    return tensor && tensor->blocks ? gb_block_find(tensor->blocks->number) : NULL;
}
