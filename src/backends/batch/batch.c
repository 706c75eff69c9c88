/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/batch/batch.h"

#include "base/memory.h"

/* ---- From a role's dims to numbers of elements --------------------------------------------------------- */

/* The largest batch. */
typedef struct batch_size {
    uint64_t tokens, rows;
    gb_batch_widths widths;
} batch_size;

#define COUNT_N size->tokens
#define COUNT_B size->rows
#define COUNT_BL (size->rows * size->widths.max_bias)
#define COUNT_BW (size->rows * size->widths.mask_words)

/* Elements of a row; an array of tokens has none. */
#define PER_ROW_N 0
#define PER_ROW_B 1
#define PER_ROW_BL widths->max_bias
#define PER_ROW_BW widths->mask_words

gb_batch_widths gb_batch_widths_of(const gb_metadata *metadata) {
    return (gb_batch_widths){(uint32_t)metadata->max_bias, (uint32_t)gb_mask_words(metadata->vocab_size)};
}

/* ---- Arrays -------------------------------------------------------------------------------------------- */

enum { ARRAY_ALIGNMENT = 64 };

/* Puts an array behind those before it. */
static bool append_array(uint64_t count, size_t element_size, uint64_t *offset, uint64_t *end) {
    uint64_t size;
    return gb_multiply_size(count, element_size, &size) && gb_align_size(*end, ARRAY_ALIGNMENT, offset) &&
           gb_add_size(*offset, size, end);
}

/* Cuts all arrays from a block, which may be NULL to learn how large it has to be. */
static bool cut_arrays(const batch_size *size, char *block, gb_batch_arrays *arrays, uint64_t *end) {
    uint64_t offset;
    *end = 0;
#define CUT(array, count)                                                                                    \
    if (!append_array(count, sizeof *arrays->array, &offset, end))                                           \
        return false;                                                                                        \
    if (block)                                                                                               \
        arrays->array = (void *)(block + offset);
#define CUT_INPUT(name, dims) CUT(name, COUNT_##dims)
#define CUT_OUTPUT(name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) CUT_##direction(name, dims)
#include "program/roles.def"
    CUT(generated, size->tokens)
    CUT(draft, size->tokens)
    CUT(next, size->rows)
#undef CUT
    return *end <= SIZE_MAX;
}

bool gb_batch_arrays_reserve(const gb_metadata *metadata, uint32_t tokens, uint32_t rows,
                             gb_batch_arrays *arrays) {
    *arrays = (gb_batch_arrays){.widths = gb_batch_widths_of(metadata)};
    const batch_size size = {tokens, rows, arrays->widths};
    uint64_t bytes;
    if (!cut_arrays(&size, NULL, arrays, &bytes))
        return false;
    arrays->storage = gb_allocate_aligned((size_t)bytes, 1);
    return arrays->storage && cut_arrays(&size, arrays->storage, arrays, &bytes);
}

void gb_batch_arrays_free(gb_batch_arrays *arrays) {
    gb_free(arrays->storage);
    *arrays = (gb_batch_arrays){.storage = NULL};
}

void gb_batch_use(const gb_batch_arrays *arrays, gb_batch *batch) {
#define USE_INPUT(name) batch->name = arrays->name;
#define USE_OUTPUT(name)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) USE_##direction(name)
#include "program/roles.def"
    batch->generated = arrays->generated;
    batch->draft = arrays->draft;
    batch->next = arrays->next;
}

void gb_batch_clear_row(const gb_batch_arrays *arrays, uint32_t row) {
    const gb_batch_widths *widths = &arrays->widths;
#define CLEAR_INPUT(name, dims, neutral)                                                                     \
    if (PER_ROW_##dims > 0)                                                                                  \
        arrays->name[row * (size_t)PER_ROW_##dims] = neutral;
#define CLEAR_OUTPUT(name, dims, neutral)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    CLEAR_##direction(name, dims, neutral)
#include "program/roles.def"
}

/* ---- Batches ------------------------------------------------------------------------------------------- */

const void *gb_batch_input(const gb_batch *batch, gb_role role) {
    switch (role) {
#define CASE_INPUT(NAME, name)                                                                               \
    case GB_ROLE_##NAME:                                                                                     \
        return batch->name;
#define CASE_OUTPUT(NAME, name)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) CASE_##direction(NAME, name)
#include "program/roles.def"
    default:
        return NULL;
    }
}

void gb_batch_skip_rows(gb_batch *batch, uint32_t count, const gb_batch_widths *widths) {
#define SKIP_INPUT(name, dims) batch->name += (size_t)count * PER_ROW_##dims;
#define SKIP_OUTPUT(name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) SKIP_##direction(name, dims)
#include "program/roles.def"
    batch->next += count;
}

bool gb_batch_has_mask(const gb_batch *batch) {
    for (uint32_t row = 0; row < batch->row_count; row++)
        if (batch->masked[row])
            return true;
    return false;
}

uint32_t gb_batch_bias_count(const gb_batch *batch, uint32_t row, uint32_t max_bias) {
    const int32_t *ids = batch->bias_ids + (size_t)row * max_bias;
    uint32_t count = 0;
    while (count < max_bias && ids[count] >= 0)
        count++;
    return count;
}
