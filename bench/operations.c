/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the kernels that are not matrix products, by instruction set, at the widths of Gemma 4 31B and
 * Qwen3.5-35B-A3B: what reads a cache or a state as a part of the speed at which the threads read that many
 * bytes, what multiplies much as a part of the speed of multiplying and adding float32 in registers, all
 * others as times; and the time of a barrier.
 *
 *     bench_operations [THREADS [SET]]
 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tensor/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 15, MAX_TENSORS = 8, MEMORY = 256 << 20, MEETINGS = 1000, VOCABULARY = 248320 };

typedef struct bench {
    gb_team *team;
    unsigned threads;
    const gb_vector_kernels *vector;
    uint8_t *memory, *scratch;
    size_t used, scratch_bytes;
    gb_cpu_tensor tensors[MAX_TENSORS];
    size_t tensor_count;
    gb_node node;
    gb_kernel_call call;
    gb_kernel kernel;
    double bytes, products; /* that a call must read, and multiply and add */
    double peak;            /* products per second */
    float *sums;            /* [threads, 16] */
} bench;

/* ---- Measuring ----------------------------------------------------------------------------------------- */

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

static void run_kernel(void *user, unsigned index) {
    bench *b = user;
    gb_worker worker = {index, b->threads, b->scratch + index * b->scratch_bytes, NULL};
    b->kernel(&b->call, &worker);
}

/* Reads as many bytes as the call does, from the same memory. */
static void run_read(void *user, unsigned index) {
    bench *b = user;
    gb_share share =
        gb_share_of(&(gb_worker){index, b->threads, NULL, NULL}, (size_t)b->bytes / sizeof(uint64_t), 8);
    const uint64_t *from = (const uint64_t *)(const void *)b->memory;
    uint64_t sums[8] = {0};
    for (size_t i = share.first; i + 8 <= share.end; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += from[i + j];
    for (size_t j = 0; j < 8; j++)
        b->sums[index * 16 + j] = (float)sums[j];
}

enum { PEAK_ROUNDS = 1 << 20, PEAK_SUMS = 10, PEAK_LANES = 16 };

typedef float lanes __attribute__((vector_size(4 * PEAK_LANES)));

/* Sums of products that do not wait for each other. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
multiply_and_add(float *result) {
    lanes sums[PEAK_SUMS], a, b;
    memcpy(&a, result, sizeof a);
    b = a + 1;
    for (int i = 0; i < PEAK_SUMS; i++)
        sums[i] = a * (float)i;
    for (size_t r = 0; r < PEAK_ROUNDS; r++) {
#pragma GCC unroll 16
        for (int i = 0; i < PEAK_SUMS; i++)
            sums[i] += sums[i] * b;
    }
    for (int i = 1; i < PEAK_SUMS; i++)
        sums[0] += sums[i];
    memcpy(result, &sums[0], sizeof a);
}

static void run_peak(void *user, unsigned index) {
    bench *b = user;
    multiply_and_add(b->sums + index * PEAK_LANES);
}

static void run_meetings(void *user, unsigned index) {
    bench *b = user;
    (void)index;
    for (int i = 0; i < MEETINGS; i++)
        gb_team_wait(b->team);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static void begin_call(bench *b, gb_op op, gb_kernel kernel, gb_split split) {
    b->node = (gb_node){.op = op};
    b->call = (gb_kernel_call){.node = &b->node, .vector = b->vector, .split = split};
    b->kernel = kernel;
    b->used = b->tensor_count = 0;
    b->bytes = b->products = 0;
}

static gb_cpu_tensor *new_tensor(bench *b, gb_dtype dtype, int32_t rank, size_t first, size_t second,
                                 size_t third) {
    gb_cpu_tensor *tensor = &b->tensors[b->tensor_count++];
    *tensor = (gb_cpu_tensor){.dtype = dtype, .rank = rank, .dims = {first, second, third}};
    tensor->data = b->memory + b->used;
    tensor->slot_bytes = gb_elements(tensor) * gb_dtype_size(dtype);
    b->used += (tensor->slot_bytes + 4095) / 4096 * 4096;
    if (b->used > MEMORY) {
        fprintf(stderr, "a call needs more than %d bytes\n", MEMORY);
        exit(1);
    }
    for (size_t i = 0; i < gb_elements(tensor); i++) {
        float value = (float)(i * 2654435761u % 100003) * 1e-5f - 0.5f;
        if (dtype == GB_F32)
            ((float *)tensor->data)[i] = value;
        else if (dtype == GB_BF16)
            ((uint16_t *)tensor->data)[i] = gb_bf16_from_float(value);
        else if (dtype == GB_I32)
            ((int32_t *)tensor->data)[i] = 0;
    }
    return tensor;
}

static void set_attribute(bench *b, gb_attribute attribute) {
    b->node.attributes[b->node.attribute_count++] = attribute;
}

static void report(bench *b, const char *name) {
    double seconds = measure(b, run_kernel);
    printf("%-11s %-34s %10.1f us", b->vector->name, name, seconds * 1e6);
    if (b->bytes > 0)
        printf("  %6.1f GB/s, %3.0f %% of reading", b->bytes / seconds * 1e-9,
               100 * measure(b, run_read) / seconds);
    if (b->products > 0)
        printf("  %6.1f G products/s, %3.0f %% of the peak", b->products / seconds * 1e-9,
               100 * b->products / seconds / b->peak);
    printf("\n");
}

/* ---- Attention ----------------------------------------------------------------------------------------- */

typedef struct attention_case {
    const char *name;
    size_t heads, kv_heads, size, window, tokens, depth;
} attention_case;

static const attention_case attention_cases[] = {
    {"attention Q 1 token at 2048", 16, 2, 256, 0, 1, 2048},
    {"attention G full 1 token at 2048", 32, 4, 512, 0, 1, 2048},
    {"attention G sliding 1 token", 32, 16, 256, 1024, 1, 2048},
    {"attention Q 256 tokens", 16, 2, 256, 0, 256, 0},
    {"attention Q 512 tokens at 512", 16, 2, 256, 0, 512, 512},
    {"attention G full 512 at 512", 32, 4, 512, 0, 512, 512},
    {"attention G sliding 512 at 1024", 32, 16, 256, 1024, 512, 1024},
};

static void bench_attention(bench *b, const attention_case *c) {
    begin_call(b, GB_OP_ATTENTION, gb_kernel_attention, GB_SPLIT_OWN);
    size_t capacity = c->depth + c->tokens, keys = 0;
    b->call.operands[5] = new_tensor(b, GB_BF16, 3, capacity, c->kv_heads, c->size);
    b->call.operands[6] = new_tensor(b, GB_BF16, 3, capacity, c->kv_heads, c->size);
    b->call.operands[0] = new_tensor(b, GB_F32, 3, c->tokens, c->heads, c->size);
    b->call.operands[1] = new_tensor(b, GB_F32, 3, c->tokens, c->kv_heads, c->size);
    b->call.operands[2] = b->call.operands[1];
    gb_cpu_tensor *positions = new_tensor(b, GB_I32, 1, c->tokens, 1, 1);
    b->call.operands[3] = positions;
    b->call.operands[4] = new_tensor(b, GB_I32, 1, c->tokens, 1, 1);
    b->call.results[0] = new_tensor(b, GB_F32, 3, c->tokens, c->heads, c->size);
    set_attribute(b, gb_float(GB_ATTRIBUTE_SCALE, 0.0625));
    set_attribute(b, gb_int(GB_ATTRIBUTE_WINDOW, (int64_t)c->window));
    for (size_t n = 0; n < c->tokens; n++) {
        size_t seen = c->depth + n + 1;
        ((int32_t *)positions->data)[n] = (int32_t)(c->depth + n);
        keys += c->window && seen > c->window ? c->window : seen;
    }
    if (c->tokens == 1)
        b->bytes = (double)(keys * c->kv_heads * c->size * 4);
    b->products = (double)(keys * c->heads * c->size * 2);
    report(b, c->name);
}

/* ---- Delta net ----------------------------------------------------------------------------------------- */

enum { DELTA_HEADS = 32, DELTA_KEY_HEADS = 16, DELTA_SIZE = 128, CHANNELS = 8192 };

static void bench_delta(bench *b, const char *name, size_t tokens) {
    begin_call(b, GB_OP_GATED_DELTA, gb_kernel_gated_delta, GB_SPLIT_OWN);
    b->call.operands[6] = new_tensor(b, GB_F32, 3, DELTA_HEADS, DELTA_SIZE, DELTA_SIZE);
    b->call.operands[0] = new_tensor(b, GB_F32, 3, tokens, DELTA_KEY_HEADS, DELTA_SIZE);
    b->call.operands[1] = b->call.operands[0];
    b->call.operands[2] = new_tensor(b, GB_F32, 3, tokens, DELTA_HEADS, DELTA_SIZE);
    gb_cpu_tensor *gates = new_tensor(b, GB_F32, 2, tokens, DELTA_HEADS, 1);
    for (size_t i = 0; i < tokens * DELTA_HEADS; i++)
        ((float *)gates->data)[i] = 0.5f;
    b->call.operands[3] = b->call.operands[4] = gates;
    b->call.operands[5] = new_tensor(b, GB_I32, 1, tokens, 1, 1);
    b->call.results[0] = new_tensor(b, GB_F32, 3, tokens, DELTA_HEADS, DELTA_SIZE);
    double state = DELTA_HEADS * DELTA_SIZE * DELTA_SIZE;
    b->bytes = tokens == 1 ? state * sizeof(float) : 0;
    b->products = 3 * state * (double)tokens;
    report(b, name);
}

static void bench_conv(bench *b, const char *name, size_t tokens) {
    begin_call(b, GB_OP_CAUSAL_CONV, gb_kernel_causal_conv, GB_SPLIT_COLUMNS);
    b->call.operands[0] = new_tensor(b, GB_F32, 2, tokens, CHANNELS, 1);
    b->call.operands[1] = new_tensor(b, GB_BF16, 3, CHANNELS, 1, 4);
    b->call.operands[2] = new_tensor(b, GB_I32, 1, tokens, 1, 1);
    b->call.operands[3] = new_tensor(b, GB_F32, 2, 3, CHANNELS, 1);
    b->call.results[0] = new_tensor(b, GB_F32, 2, tokens, CHANNELS, 1);
    report(b, name);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* An op with one operand and a result of its shape; heads of 1: a row per token. */
typedef struct row_case {
    const char *name;
    gb_op op;
    gb_kernel kernel;
    size_t tokens, heads, size;
} row_case;

static const row_case row_cases[] = {
    {"rms_norm 5376", GB_OP_RMS_NORM, gb_kernel_rms_norm, 1, 1, 5376},
    {"rms_norm 256 x 5376", GB_OP_RMS_NORM, gb_kernel_rms_norm, 256, 1, 5376},
    {"rms_norm 32 x 512", GB_OP_RMS_NORM, gb_kernel_rms_norm, 1, 32, 512},
    {"l2_normalize 16 x 128", GB_OP_L2_NORMALIZE, gb_kernel_l2_normalize, 1, 16, 128},
    {"gelu_tanh 21504", GB_OP_GELU_TANH, gb_kernel_gelu_tanh, 1, 1, 21504},
    {"gelu_tanh 256 x 21504", GB_OP_GELU_TANH, gb_kernel_gelu_tanh, 256, 1, 21504},
    {"silu 8 x 512", GB_OP_SILU, gb_kernel_silu, 1, 8, 512},
    {"silu 256 x 8192", GB_OP_SILU, gb_kernel_silu, 256, 1, 8192},
    {"sigmoid 4096", GB_OP_SIGMOID, gb_kernel_sigmoid, 1, 1, 4096},
    {"soft_cap 262144", GB_OP_SOFT_CAP, gb_kernel_soft_cap, 1, 1, 262144},
};

static void bench_row(bench *b, const row_case *c) {
    begin_call(b, c->op, c->kernel, c->tokens > 1 ? GB_SPLIT_TOKENS : GB_SPLIT_COLUMNS);
    if (c->op == GB_OP_RMS_NORM || c->op == GB_OP_L2_NORMALIZE)
        b->call.split = GB_SPLIT_OWN;
    b->call.operands[0] = new_tensor(b, GB_F32, 3, c->tokens, c->heads, c->size);
    if (c->op == GB_OP_RMS_NORM)
        b->call.operands[1] = new_tensor(b, GB_BF16, 1, c->size, 1, 1);
    b->call.results[0] = new_tensor(b, GB_F32, 3, c->tokens, c->heads, c->size);
    set_attribute(b, gb_float(GB_ATTRIBUTE_EPSILON, 1e-6));
    set_attribute(b, gb_float(GB_ATTRIBUTE_SCALE, 1));
    set_attribute(b, gb_float(GB_ATTRIBUTE_CAP, 30));
    report(b, c->name);
}

static void bench_route(bench *b, const char *name, size_t tokens) {
    begin_call(b, GB_OP_ROUTE_TOP_K, gb_kernel_route_top_k, GB_SPLIT_TOKENS);
    b->call.operands[0] = new_tensor(b, GB_F32, 2, tokens, 256, 1);
    b->call.results[0] = new_tensor(b, GB_I32, 2, tokens, 8, 1);
    b->call.results[1] = new_tensor(b, GB_F32, 2, tokens, 8, 1);
    set_attribute(b, gb_int(GB_ATTRIBUTE_NORMALIZE, 1));
    report(b, name);
}

static void bench_rope(bench *b, const char *name, size_t tokens) {
    begin_call(b, GB_OP_ROPE, gb_kernel_rope, tokens > 1 ? GB_SPLIT_TOKENS : GB_SPLIT_OWN);
    b->call.operands[0] = new_tensor(b, GB_F32, 3, tokens, 32, 256);
    b->call.operands[1] = new_tensor(b, GB_I32, 1, tokens, 1, 1);
    b->call.operands[2] = new_tensor(b, GB_F32, 1, 128, 1, 1);
    b->call.results[0] = new_tensor(b, GB_F32, 3, tokens, 32, 256);
    set_attribute(b, gb_int(GB_ATTRIBUTE_PAIR_OFFSET, 128));
    report(b, name);
}

static void bench_sample(bench *b, const char *name, float temperature) {
    begin_call(b, GB_OP_NONE, gb_kernel_sample, GB_SPLIT_OWN);
    gb_cpu_tensor *logits = new_tensor(b, GB_F32, 2, 1, VOCABULARY, 1);
    b->call.operands[GB_SAMPLE_LOGITS] = logits;
    for (size_t i = 0; i < VOCABULARY; i++)
        ((float *)logits->data)[i] *= 12;
    static const uint32_t floats[] = {GB_SAMPLE_TEMPERATURE, GB_SAMPLE_TOP_P};
    const float values[] = {temperature, 0.95f};
    for (size_t i = 0; i < 2; i++) {
        gb_cpu_tensor *setting = new_tensor(b, GB_F32, 1, 1, 1, 1);
        *(float *)setting->data = values[i];
        b->call.operands[floats[i]] = setting;
    }
    gb_cpu_tensor *top_k = new_tensor(b, GB_I32, 1, 1, 1, 1), *seed = new_tensor(b, GB_U64, 1, 1, 1, 1);
    *(int32_t *)top_k->data = 64;
    *(uint64_t *)seed->data = 1;
    b->call.operands[GB_SAMPLE_TOP_K] = top_k;
    b->call.operands[GB_SAMPLE_SEED] = seed;
    b->call.results[0] = new_tensor(b, GB_I32, 1, 1, 1, 1);
    report(b, name);
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static void bench_set(bench *b) {
    for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++)
        bench_attention(b, &attention_cases[i]);
    bench_delta(b, "gated_delta", 1);
    bench_delta(b, "gated_delta 256 tokens", 256);
    bench_conv(b, "causal_conv", 1);
    bench_conv(b, "causal_conv 256 tokens", 256);
    for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++)
        bench_row(b, &row_cases[i]);
    bench_route(b, "route_top_k", 1);
    bench_route(b, "route_top_k 256 tokens", 256);
    bench_rope(b, "rope", 1);
    bench_rope(b, "rope 256 tokens", 256);
    bench_sample(b, "sample at 0", 0);
    bench_sample(b, "sample at 0.8, top-k 64, top-p 0.95", 0.8f);
}

static int bench_all(bench *b, const char *set) {
    b->sums[0] = 0;
    b->peak = (double)PEAK_ROUNDS * PEAK_SUMS * PEAK_LANES * b->threads / measure(b, run_peak);
    printf("%u threads, a barrier: %.2f us; multiplying and adding float32: %.0f G products/s\n", b->threads,
           measure(b, run_meetings) * 1e6 / MEETINGS, b->peak * 1e-9);
    for (size_t i = 0; (b->vector = gb_available_vector_kernels(i)); i++)
        if (!set || strcmp(set, b->vector->name) == 0)
            bench_set(b);
    return 0;
}

int main(int argc, char **argv) {
    bench b = {.threads = gb_available_cores()};
    gumbel_error error;
    if (argc > 1)
        b.threads = (unsigned)strtoul(argv[1], NULL, 10);
    if (b.threads == 0 || gb_team_create(b.threads, &b.team, &error) != GUMBEL_OK) {
        fprintf(stderr, "usage: bench_operations [THREADS [SET]]\n");
        return 2;
    }
    b.scratch_bytes = gb_kernel_scratch_bytes(&(gb_row_lengths){.logits = VOCABULARY}) / 64 * 64 + 64;
    b.scratch = gb_allocate_aligned(b.threads, b.scratch_bytes);
    b.memory = gb_allocate_aligned(MEMORY, 1);
    b.sums = gb_allocate_aligned(b.threads, PEAK_LANES * sizeof *b.sums);
    int status = b.scratch && b.memory && b.sums ? bench_all(&b, argc > 2 ? argv[2] : NULL) : 1;
    gb_free(b.sums);
    gb_free(b.memory);
    gb_free(b.scratch);
    gb_team_destroy(b.team);
    return status;
}
