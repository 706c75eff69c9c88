/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiny program with random weights on CPU backends, driven step by step.
 */
#ifndef GUMBEL_TESTS_CPU_TINY_BACKEND_H
#define GUMBEL_TESTS_CPU_TINY_BACKEND_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "base/memory.h"
#include "support/assertions.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { STEP_TOKENS = 16, MOST_SLOTS = 4 };

/* Gives the constants data; free the program with free_tiny. */
static inline void fill_tiny(gb_program *program) {
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
}

/* The program with its constants' data; free with free_tiny. */
static inline gb_program *new_tiny(bool use_sampling) {
    gb_program *program = tiny_program_build(use_sampling);
    fill_tiny(program);
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

/* A batch under construction; its inputs have the names of roles.def. */
typedef struct tiny_batch {
    gb_batch batch;
#define COUNT_N STEP_TOKENS
#define COUNT_B MOST_SLOTS
#define COUNT_BL MOST_SLOTS *TINY_BIASES
#define COUNT_BW MOST_SLOTS *TINY_MASK_WORDS
#define ARRAY_INPUT(dtype, name, dims) GB_C_TYPE(dtype) name[COUNT_##dims];
#define ARRAY_OUTPUT(dtype, name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    ARRAY_##direction(dtype, name, dims)
#include "program/roles.def"
    int32_t next[MOST_SLOTS];
} tiny_batch;

static inline gb_batch_arrays tiny_arrays(tiny_batch *b) {
    gb_batch_arrays arrays = {.next = b->next, .widths = {TINY_BIASES, TINY_MASK_WORDS}};
#define TAKE_INPUT(name) arrays.name = b->name;
#define TAKE_OUTPUT(name)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) TAKE_##direction(name)
#include "program/roles.def"
    return arrays;
}

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
    const gb_batch_arrays arrays = tiny_arrays(b);
    gb_batch_clear_row(&arrays, i);
    b->rows[i] = (int32_t)row;
}

static inline void run_batch(gb_backend *backend, tiny_batch *b) {
    const gb_batch_arrays arrays = tiny_arrays(b);
    gb_batch_use(&arrays, &b->batch);
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

/* Where a slot is saved to and loaded from. */
typedef struct tiny_stream {
    uint8_t bytes[1 << 16];
    uint64_t size, position;
} tiny_stream;

static inline gumbel_status tiny_write(void *user, const void *data, uint64_t size, gumbel_error *error) {
    tiny_stream *s = user;
    if (size > sizeof s->bytes - s->size)
        return gb_fail(error, GUMBEL_ERROR_IO, "full");
    memcpy(s->bytes + s->size, data, (size_t)size);
    s->size += size;
    return GUMBEL_OK;
}

static inline gumbel_status tiny_read(void *user, void *data, uint64_t size, gumbel_error *error) {
    tiny_stream *s = user;
    if (size > s->size - s->position)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "short");
    memcpy(data, s->bytes + s->position, (size_t)size);
    s->position += size;
    return GUMBEL_OK;
}

#endif
