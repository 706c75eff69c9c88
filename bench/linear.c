/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the linear op by instruction set: decode (one token, limited by memory) and prefill (64 tokens,
 * limited by arithmetic), beside plain reading of memory.
 *
 *     bench_linear [THREADS [OUTPUTS INPUTS]]
 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tensor/convert.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TOKENS = 64, REPEATS = 5 };

typedef struct bench {
    gb_team *team;
    unsigned threads;
    size_t outputs, inputs;
    void *weight;
    float *x, *y;
    uint8_t *scratch;
    gb_cpu_tensor x_tensor, weight_tensor, y_tensor;
    gb_kernel_call call;
    uint64_t *sums; /* [threads, 8] */
} bench;

static void run_linear(void *user, unsigned index) {
    bench *b = user;
    gb_worker worker = {index, b->threads, b->scratch + index * (size_t)GB_LINEAR_SCRATCH, NULL};
    gb_kernel_linear(&b->call, &worker);
}

/* Adds up all words of the weight. */
static void run_read(void *user, unsigned index) {
    bench *b = user;
    size_t words = b->outputs * b->inputs * gb_dtype_size(b->weight_tensor.dtype) / 8;
    gb_share share = gb_share_of(&(gb_worker){index, b->threads, NULL, NULL}, words, 8);
    const uint64_t *from = b->weight;
    uint64_t sums[8] = {0};
    for (size_t i = share.first; i + 8 <= share.end; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += from[i + j];
    for (size_t j = 0; j < 8; j++)
        b->sums[index * 8 + j] = sums[j];
}

/* Seconds of the fastest of some runs. */
static double measure(bench *b, gb_team_work work) {
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        double start = gb_seconds();
        gb_team_run(b->team, work, b);
        double seconds = gb_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static void set_shapes(bench *b, gb_dtype dtype, size_t tokens, const gb_vector_kernels *vector) {
    b->x_tensor = (gb_cpu_tensor){.data = b->x, .dtype = GB_F32, .rank = 2, .dims = {tokens, b->inputs}};
    b->weight_tensor =
        (gb_cpu_tensor){.data = b->weight, .dtype = dtype, .rank = 2, .dims = {b->outputs, b->inputs}};
    b->y_tensor = (gb_cpu_tensor){.data = b->y, .dtype = GB_F32, .rank = 2, .dims = {tokens, b->outputs}};
    b->call = (gb_kernel_call){.operands = {&b->x_tensor, &b->weight_tensor},
                               .results = {&b->y_tensor},
                               .vector = vector,
                               .split = GB_SPLIT_OWN};
}

static void bench_dtype(bench *b, gb_dtype dtype) {
    double bytes = (double)(b->outputs * b->inputs * gb_dtype_size(dtype));
    double operations = 2.0 * (double)(b->outputs * b->inputs);
    for (size_t i = 0; i < b->outputs * b->inputs; i++) {
        float value = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
        if (dtype == GB_F32)
            ((float *)b->weight)[i] = value;
        else
            ((uint16_t *)b->weight)[i] =
                dtype == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
    }
    set_shapes(b, dtype, 1, NULL);
    double read = bytes / measure(b, run_read);
    printf("%-5s memory read %.1f GB/s\n", gb_dtype_name(dtype), read * 1e-9);
    const gb_vector_kernels *vector;
    for (size_t i = 0; (vector = gb_available_vector_kernels(i)); i++) {
        set_shapes(b, dtype, 1, vector);
        double decode = bytes / measure(b, run_linear);
        set_shapes(b, dtype, MAX_TOKENS, vector);
        double prefill = operations * MAX_TOKENS / measure(b, run_linear);
        printf("%-5s %-9s decode %.1f GB/s (%.2f of reading), prefill of %d %.0f GFLOP/s\n",
               gb_dtype_name(dtype), vector->name, decode * 1e-9, decode / read, MAX_TOKENS, prefill * 1e-9);
    }
}

int main(int argc, char **argv) {
    bench b = {.threads = gb_available_cores(), .outputs = 16384, .inputs = 4096};
    if (argc > 1)
        b.threads = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 3) {
        b.outputs = strtoul(argv[2], NULL, 10);
        b.inputs = strtoul(argv[3], NULL, 10);
    }
    gumbel_error error;
    if (b.threads == 0 || b.outputs == 0 || b.inputs == 0 ||
        gb_team_create(b.threads, &b.team, &error) != GUMBEL_OK) {
        fprintf(stderr, "usage: bench_linear [THREADS [OUTPUTS INPUTS]]\n");
        return 2;
    }
    b.weight = gb_allocate_aligned(b.outputs * b.inputs, sizeof(float));
    b.x = gb_allocate_aligned(MAX_TOKENS * b.inputs, sizeof(float));
    b.y = gb_allocate_aligned(MAX_TOKENS * b.outputs, sizeof(float));
    b.scratch = gb_allocate_aligned(b.threads, GB_LINEAR_SCRATCH);
    b.sums = gb_allocate_aligned(b.threads, 8 * sizeof *b.sums);
    if (!b.weight || !b.x || !b.y || !b.scratch || !b.sums) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (size_t i = 0; i < MAX_TOKENS * b.inputs; i++)
        b.x[i] = (float)(i % 101) * 0.01f - 0.5f;
    printf("linear %zu x %zu, %u threads\n", b.outputs, b.inputs, b.threads);
    bench_dtype(&b, GB_F32);
    bench_dtype(&b, GB_BF16);
    bench_dtype(&b, GB_F16);
    gb_free(b.weight);
    gb_free(b.x);
    gb_free(b.y);
    gb_free(b.scratch);
    gb_free(b.sums);
    gb_team_destroy(b.team);
    return 0;
}
