/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiny program with random weights on CPU backends, driven step by step.
 */
#ifndef GUMBEL_TESTS_CPU_TINY_BACKEND_H
#define GUMBEL_TESTS_CPU_TINY_BACKEND_H

#include "base/memory.h"
#include "run/cpu/cpu.h"
#include "run/cpu/kernels/vector/vector_kernels.h"
#include "support/assertions.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { STEP_TOKENS = 16, MOST_SLOTS = 4 };

/* The program with its constants' data; free with free_tiny. */
static inline gb_program *new_tiny(bool use_sampling) {
    gb_program *program = tiny_program_build(use_sampling);
    uint32_t random = 7;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        gb_constant *constant = &program->constants[i];
        float *data = gb_allocate_aligned((size_t)constant->size, 1);
        assert_non_null(data);
        for (uint64_t j = 0; j < constant->size / sizeof *data; j++) {
            random = random * 1664525u + 1013904223u;
            data[j] = (float)(random >> 8) * 0x1p-23f - 1.0f;
        }
        constant->data = (const uint8_t *)data;
    }
    return program;
}

static inline void free_tiny(gb_program *program) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        gb_free((void *)(uintptr_t)program->constants[i].data);
    gb_program_destroy(program);
}

static inline gb_backend_options tiny_options(void) {
    return (gb_backend_options){.slots = MOST_SLOTS,
                                .max_context = TINY_CONTEXT,
                                .step_tokens = STEP_TOKENS,
                                .threads = 1,
                                .fuse = true,
                                .snapshots = true,
                                .lock = GUMBEL_LOCK_NONE};
}

/* Its threads share every step, however small. */
static inline gb_backend *new_sharing_backend(const gb_program *program, const gb_backend_options *options) {
    gb_backend *backend;
    gumbel_error error;
    assert_ok(gb_cpu_backend_create_sharing(program, options, 0, &backend, &error), &error);
    return backend;
}

static inline gb_backend *new_backend(const gb_program *program, const gb_backend_options *options) {
    gb_backend *backend;
    gumbel_error error;
    assert_ok(gb_cpu_backend_create(program, options, &backend, &error), &error);
    return backend;
}

/* A batch under construction. */
typedef struct tiny_batch {
    gb_batch batch;
    int32_t tokens[STEP_TOKENS], positions[STEP_TOKENS], slots[STEP_TOKENS];
    int32_t rows[MOST_SLOTS], top_k[MOST_SLOTS], next[MOST_SLOTS];
    float temperature[MOST_SLOTS], top_p[MOST_SLOTS];
    uint64_t seed[MOST_SLOTS];
    float min_p[MOST_SLOTS], repetition[MOST_SLOTS], frequency[MOST_SLOTS], presence[MOST_SLOTS];
    int32_t generated_from[MOST_SLOTS], penalize_prompt[MOST_SLOTS];
    int32_t bias_ids[MOST_SLOTS][TINY_BIASES];
    float bias_values[MOST_SLOTS][TINY_BIASES];
    bool want_logprobs[MOST_SLOTS];
} tiny_batch;

/* The token at a position of text number `text`. */
static inline int32_t text_token(uint32_t text, uint32_t position) {
    return (int32_t)((position * 2654435761u + text * 40503u + 977u) >> 7) % TINY_VOCABULARY;
}

/* Adds tokens of a text to a slot, from a position on. */
static inline void add_text(tiny_batch *b, uint32_t slot, uint32_t text, uint32_t position, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = b->batch.token_count++;
        assert_true(n < STEP_TOKENS);
        b->tokens[n] = text_token(text, position + i);
        b->positions[n] = (int32_t)(position + i);
        b->slots[n] = (int32_t)slot;
    }
}

/* Asks for the successor of token number `row` of the batch, greedily. */
static inline void add_row(tiny_batch *b, uint32_t row) {
    uint32_t i = b->batch.row_count++;
    assert_true(i < MOST_SLOTS);
    b->rows[i] = (int32_t)row;
    b->top_p[i] = b->repetition[i] = 1;
    b->generated_from[i] = b->bias_ids[i][0] = -1;
}

static inline void run_batch(gb_backend *backend, tiny_batch *b) {
    b->batch.tokens = b->tokens;
    b->batch.positions = b->positions;
    b->batch.slots = b->slots;
    b->batch.rows = b->rows;
    b->batch.temperature = b->temperature;
    b->batch.top_k = b->top_k;
    b->batch.top_p = b->top_p;
    b->batch.seed = b->seed;
    b->batch.min_p = b->min_p;
    b->batch.repetition_penalty = b->repetition;
    b->batch.frequency_penalty = b->frequency;
    b->batch.presence_penalty = b->presence;
    b->batch.generated_from = b->generated_from;
    b->batch.penalize_prompt = b->penalize_prompt;
    b->batch.bias_ids = b->bias_ids[0];
    b->batch.bias_values = b->bias_values[0];
    b->batch.want_logprobs = b->want_logprobs;
    b->batch.next = b->next;
    gumbel_error error;
    assert_ok(backend->functions->step(backend, &b->batch, &error), &error);
}

typedef float tiny_logits[TINY_VOCABULARY];

/* Runs positions first .. end - 1 of a text in one slot, in chunks; logits[p] becomes those after position p.
 */
static inline void run_text(gb_backend *backend, uint32_t slot, uint32_t text, uint32_t first, uint32_t end,
                            uint32_t chunk, tiny_logits *logits) {
    for (uint32_t position = first; position < end;) {
        uint32_t count = end - position < chunk ? end - position : chunk;
        tiny_batch b = {0};
        add_text(&b, slot, text, position, count);
        for (uint32_t i = 0; i < count; i++)
            add_row(&b, i);
        run_batch(backend, &b);
        memcpy(logits[position], b.batch.logits, count * sizeof(tiny_logits));
        position += count;
    }
}

#endif
