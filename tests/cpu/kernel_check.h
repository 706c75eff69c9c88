/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one kernel call in the manner of dav1d's checkasm: every instruction set and several team sizes
 * must give the bytes of the portable set on one thread and write nothing beside their outputs.
 */
#ifndef GUMBEL_TESTS_CPU_KERNEL_CHECK_H
#define GUMBEL_TESTS_CPU_KERNEL_CHECK_H

#include "backends/cpu/kernels/kernels.h"
#include "base/memory.h"
#include "tensor/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 64, MAX_TEAM = 3 };

/* Bytes between two guards. The end is exact, so that a sanitizer also sees reads past it. */
static inline void *new_guarded(size_t size) {
    uint8_t *base = malloc(size + 2 * GUARD);
    assert_non_null(base);
    memset(base, 0xa5, size + 2 * GUARD);
    return base + GUARD;
}

static inline void assert_guarded(const void *data, size_t size) {
    const uint8_t *before = (const uint8_t *)data - GUARD, *after = (const uint8_t *)data + size;
    for (int i = 0; i < GUARD; i++)
        if (before[i] != 0xa5 || after[i] != 0xa5)
            fail_msg("byte %d outside of an output of %zu was written", i, size);
}

static inline void free_guarded(void *data) {
    free((uint8_t *)data - GUARD);
}

/* ---- Random values ------------------------------------------------------------------------------------- */

static inline uint32_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static inline size_t random_below(uint64_t *state, size_t limit) {
    return random_bits(state) % limit;
}

/* In -1 .. 1. */
static inline float random_float(uint64_t *state) {
    return (float)(random_bits(state) >> 8) * 0x1p-23f - 1.0f;
}

/* ---- Tensors ------------------------------------------------------------------------------------------- */

static inline gb_cpu_tensor new_tensor(gb_dtype dtype, int32_t rank, size_t a, size_t b, size_t c) {
    gb_cpu_tensor tensor = {.dtype = dtype, .rank = rank, .dims = {a, b, c}};
    tensor.data = new_guarded(gb_elements(&tensor) * gb_dtype_size(dtype));
    return tensor;
}

static inline size_t tensor_bytes(const gb_cpu_tensor *tensor) {
    return gb_elements(tensor) * gb_dtype_size(tensor->dtype);
}

static inline void set_element(const gb_cpu_tensor *tensor, size_t i, float value) {
    if (tensor->dtype == GB_F32)
        ((float *)tensor->data)[i] = value;
    else if (tensor->dtype == GB_BF16)
        ((uint16_t *)tensor->data)[i] = gb_bf16_from_float(value);
    else
        ((uint16_t *)tensor->data)[i] = gb_f16_from_float(value);
}

static inline float element(const gb_cpu_tensor *tensor, size_t i) {
    if (tensor->dtype == GB_F32)
        return ((const float *)tensor->data)[i];
    uint16_t half = ((const uint16_t *)tensor->data)[i];
    return tensor->dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

static inline gb_cpu_tensor random_tensor(uint64_t *state, gb_dtype dtype, int32_t rank, size_t a, size_t b,
                                          size_t c) {
    gb_cpu_tensor tensor = new_tensor(dtype, rank, a, b, c);
    for (size_t i = 0; i < gb_elements(&tensor); i++)
        set_element(&tensor, i, random_float(state));
    return tensor;
}

static inline void free_tensor(const gb_cpu_tensor *tensor) {
    free_guarded(tensor->data);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

/* What a linear step shares between its two halves; 0 bytes for other calls. */
static inline void *new_shared(const gb_kernel_call *call, uint64_t *bytes) {
    const gb_cpu_tensor *x = call->operands[0];
    *bytes = 0;
    if (call->node)
        assert_true(gb_kernel_shared_bytes(call, gb_elements(x) / x->dims[x->rank - 1], bytes));
    return new_guarded((size_t)*bytes);
}

/* What a team would do, one thread after the other, with what runs before and after the kernel of a node. */
static inline void run_as_team(gb_kernel kernel, const gb_kernel_call *call, size_t count) {
    gb_kernel before = NULL, after = NULL;
    size_t least_tokens;
    if (call->node && gb_find_kernel(call, &before) == kernel)
        after = gb_find_kernel_after(call, &least_tokens);
    else
        before = NULL;
    void *scratch = gb_allocate_aligned(gb_kernel_scratch_bytes(&(gb_row_lengths){.logits = 1 << 16}), 1);
    uint64_t shared_bytes;
    void *shared = new_shared(call, &shared_bytes);
    assert_non_null(scratch);
    const gb_kernel all[] = {before, kernel, after};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < count && all[k]; i++)
            all[k](call, &(gb_worker){i, count, scratch, shared});
    assert_guarded(shared, (size_t)shared_bytes);
    free_guarded(shared);
    gb_free(scratch);
}

/* The results' bytes one after the other into `to`, which has room for them. */
static inline void collect_results(const gb_kernel_call *call, uint8_t *to) {
    for (size_t r = 0; r < GB_MAX_RESULTS && call->results[r]; r++) {
        memcpy(to, call->results[r]->data, tensor_bytes(call->results[r]));
        to += tensor_bytes(call->results[r]);
    }
}

/* Runs the kernel on every set and team; leaves a result in the results. */
static inline void check_kernel(gb_kernel kernel, gb_kernel_call *call) {
    size_t size = 0;
    for (size_t r = 0; r < GB_MAX_RESULTS && call->results[r]; r++)
        size += tensor_bytes(call->results[r]);
    uint8_t *expected = malloc(size), *found = malloc(size);
    assert_true(expected && found);
    for (size_t set = 0; (call->vector = gb_available_vector_kernels(set)); set++) {
        for (size_t team = 1; team <= MAX_TEAM; team++) {
            for (size_t r = 0; r < GB_MAX_RESULTS && call->results[r]; r++)
                memset(call->results[r]->data, 0x5a, tensor_bytes(call->results[r]));
            run_as_team(kernel, call, team);
            for (size_t r = 0; r < GB_MAX_RESULTS && call->results[r]; r++)
                assert_guarded(call->results[r]->data, tensor_bytes(call->results[r]));
            collect_results(call, set == 0 && team == 1 ? expected : found);
            if ((set > 0 || team > 1) && memcmp(expected, found, size) != 0)
                fail_msg("%s on %zu threads differs from portable on one", call->vector->name, team);
        }
    }
    free(expected);
    free(found);
}

static inline void assert_near(double found, double expected, double tolerance, const char *what) {
    double difference = found - expected;
    if (!(difference <= tolerance && difference >= -tolerance))
        fail_msg("%s: %.9g, expected %.9g within %g", what, found, expected, tolerance);
}

#endif
