/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/results.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <string.h>

enum { FIRST_WORD = 16 }; /* the number has a line of its own */

static const gb_role roles[] = {GB_ROLE_NEXT, GB_ROLE_LOGPROB, GB_ROLE_TOP_IDS, GB_ROLE_TOP_LOGPROBS};

gumbel_status gb_cuda_results_create(const gb_program *program, uint32_t rows, uint32_t entries,
                                     gb_cuda_results *results, gumbel_error *error) {
    *results = (gb_cuda_results){.mailbox = {.entries = entries}};
    uint64_t words = FIRST_WORD, size = 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const gb_ref value = gb_program_output(program, roles[i]);
        if (value == GB_NO_VALUE)
            continue;
        const gb_shape *shape = &program->values[value].type.shape;
        const uint64_t row_words = shape->rank > 1 ? (uint64_t)shape->dims[1] : 1;
        results->outputs[results->count++] = (gb_cuda_output){value, (uint32_t)row_words, (uint32_t)words};
        if (row_words > UINT32_MAX || !gb_multiply_size(rows, row_words, &size) ||
            !gb_add_size(words, size, &words) || words > UINT32_MAX / 2)
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "the results of %u rows are out of range", rows);
    }
    results->mailbox.entry_words = (uint32_t)words;
    results->copied = gb_allocate((size_t)words, sizeof *results->copied);
    if (!results->copied)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the results of %u rows", rows);
    void *memory;
    size = entries * words * sizeof(uint32_t);
    GB_TRY(gb_cuda_allocate_pinned(size, "a step's results", &memory, error));
    memset(memory, 0, (size_t)size);
    results->mailbox.memory = memory;
    return GUMBEL_OK;
}

void gb_cuda_results_destroy(gb_cuda_results *results) {
    gb_cuda_free_pinned(results->mailbox.memory);
    gb_free(results->copied);
    *results = (gb_cuda_results){0};
}

void gb_cuda_results_describe(const gb_cuda_results *results, const gb_cuda_tensor *tensors,
                              uint32_t row_count, gb_cuda_post *post) {
    post->mailbox = results->mailbox;
    post->count = row_count > 0 ? results->count : 0;
    for (uint32_t i = 0; i < post->count; i++) {
        const gb_cuda_output *output = &results->outputs[i];
        post->results[i] =
            (gb_cuda_result){tensors[output->value].data, row_count * output->row_words, output->at};
    }
}

static const uint32_t *entry_of(const gb_cuda_results *results, uint32_t number) {
    return results->mailbox.memory +
           (size_t)(number % results->mailbox.entries) * results->mailbox.entry_words;
}

bool gb_cuda_results_are_posted(const gb_cuda_results *results, uint32_t number) {
    const _Atomic uint32_t *first = (const _Atomic uint32_t *)entry_of(results, number);
    return atomic_load_explicit(first, memory_order_acquire) == number;
}

void gb_cuda_results_collect(gb_cuda_results *results, uint32_t number, uint32_t first_row,
                             uint32_t row_count) {
    const uint32_t *entry = entry_of(results, number);
    for (uint32_t i = 0; i < results->count; i++) {
        const gb_cuda_output *output = &results->outputs[i];
        memcpy(results->copied + output->at + (size_t)first_row * output->row_words, entry + output->at,
               (size_t)row_count * output->row_words * sizeof *entry);
    }
}

/* The collected rows of an output, or NULL where the program lacks it. */
static const void *copied_output(const gb_cuda_results *results, const gb_program *program, gb_role role) {
    const gb_ref value = gb_program_output(program, role);
    for (uint32_t i = 0; i < results->count && value != GB_NO_VALUE; i++)
        if (results->outputs[i].value == value)
            return results->copied + results->outputs[i].at;
    return NULL;
}

void gb_cuda_results_copy_to(const gb_cuda_results *results, const gb_program *program, gb_batch *batch) {
    const bool has_rows = batch->row_count > 0;
    const int32_t *next = copied_output(results, program, GB_ROLE_NEXT);
    if (has_rows && next)
        memcpy(batch->next, next, batch->row_count * sizeof *next);
    batch->logprob = has_rows ? copied_output(results, program, GB_ROLE_LOGPROB) : NULL;
    batch->top_ids = has_rows ? copied_output(results, program, GB_ROLE_TOP_IDS) : NULL;
    batch->top_logprobs = has_rows ? copied_output(results, program, GB_ROLE_TOP_LOGPROBS) : NULL;
}
