/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the quantized linear kernels by instruction set and format: decode (GB/s of weight) beside plain
 * reading of memory, batches and prefill (products per second) beside the most that registers give, both
 * measured in the same run.
 *
 *     bench_kernels [THREADS [OUTPUTS INPUTS [SET]]]
 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tensor/packing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 256, REPEATS = 7, ROTATION = 128 };

/* A format, and how its inputs are rounded. */
typedef struct weight_kind {
    gb_format format;
    gb_activation activation;
} weight_kind;

static const weight_kind kinds[] = {
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_TOKEN},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, GB_ACTIVATION_INT8_PER_TOKEN},
    {{GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_TOKEN},
    {{GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_TOKEN},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, GB_ACTIVATION_INT8_PER_TOKEN},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 128, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 5, true, 0, GB_F16, 64, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 6, true, 0, GB_F16, 64, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_F16, 64, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_TWO_LEVEL, 4, true, 6, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_TWO_LEVEL, 5, true, 6, GB_F16, 32, 0}, GB_ACTIVATION_INT8_PER_GROUP},
    {{GB_FORMAT_TWO_LEVEL, 6, false, 8, GB_F16, 16, 0}, GB_ACTIVATION_INT8_PER_GROUP},
};

typedef struct bench {
    gb_team *team;
    unsigned threads;
    size_t outputs, inputs;
    gb_quantized_matrix matrix;
    uint8_t *weight, *scratch, *shared;
    float *x, *y;
    gb_node node;
    gb_cpu_tensor x_tensor, weight_tensor, y_tensor;
    gb_kernel_call call;
    uint64_t products; /* of all threads in one run of run_peak */
    uint32_t *sums;    /* [threads] */
} bench;

static void run_linear(void *user, unsigned index) {
    bench *b = user;
    gb_worker worker = {index, b->threads, b->scratch + index * (size_t)GB_LINEAR_SCRATCH, b->shared};
    gb_kernel_quantize(&b->call, &worker);
    gb_team_wait(b->team);
    gb_kernel_linear(&b->call, &worker);
}

/* Adds up all words of the weight. */
static void run_read(void *user, unsigned index) {
    enum { UNIT = 256 };
    bench *b = user;
    gb_share share =
        gb_share_of(&(gb_worker){index, b->threads, NULL, NULL}, b->matrix.planes.size / UNIT, 1);
    b->sums[index] = b->call.vector->read(b->weight + share.first * UNIT, (share.end - share.first) * UNIT);
}

static void run_peak(void *user, unsigned index) {
    bench *b = user;
    uint8_t codes[128];
    uint64_t products;
    memset(codes, (int)index + 3, sizeof codes);
    b->sums[index] = b->call.vector->peak(codes, 100000, &products);
    if (index == 0)
        b->products = products * b->threads;
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

static void set_tokens(bench *b, size_t tokens) {
    b->x_tensor = (gb_cpu_tensor){.data = b->x, .dtype = GB_F32, .rank = 2, .dims = {tokens, b->inputs}};
    b->y_tensor = (gb_cpu_tensor){.data = b->y, .dtype = GB_F32, .rank = 2, .dims = {tokens, b->outputs}};
}

/* Products per second with that many tokens. */
static double multiply_rate(bench *b, size_t tokens) {
    set_tokens(b, tokens);
    return (double)tokens * (double)(b->outputs * b->inputs) / measure(b, run_linear);
}

/* Inputs that are rounded per token are rotated first where they can be. */
static gb_node node_of(gb_activation activation, size_t inputs) {
    gb_node node = {.op = GB_OP_LINEAR,
                    .attribute_count = 1,
                    .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, activation)}};
    if (activation == GB_ACTIVATION_INT8_PER_TOKEN && inputs % ROTATION == 0)
        node.attributes[node.attribute_count++] = gb_int(GB_ATTRIBUTE_ROTATION, ROTATION);
    return node;
}

static void bench_kind(bench *b, const weight_kind *kind, const char *set) {
    const gb_format *format = &kind->format;
    gb_packing packing;
    char text[GB_FORMAT_TEXT];
    b->matrix = (gb_quantized_matrix){.format = *format, .is_interleaved = true, .data = b->weight};
    if (!gb_packing_interleaved(format, b->outputs, b->inputs, &packing) ||
        !gb_format_planes(format, b->outputs, b->inputs, &b->matrix.planes))
        return;
    b->node = node_of(kind->activation, b->inputs);
    const double bytes = (double)b->matrix.planes.size;
    for (size_t i = 0; i < b->matrix.planes.size; i++)
        b->weight[i] = (uint8_t)(i * 2654435761u >> 13 & 0x3b); /* no scale is a NaN */
    b->weight_tensor = (gb_cpu_tensor){.data = b->weight,
                                       .dtype = GB_QUANTIZED,
                                       .rank = 2,
                                       .dims = {b->outputs, b->inputs},
                                       .quantized = &b->matrix};
    const gb_vector_kernels *vector;
    for (size_t i = 0; (vector = gb_available_vector_kernels(i)); i++) {
        if (set && strcmp(set, vector->name) != 0)
            continue;
        b->call.vector = vector;
        const double peak_seconds = measure(b, run_peak), peak = (double)b->products / peak_seconds;
        double read = bytes / measure(b, run_read);
        const double one = multiply_rate(b, 1) / (double)(b->outputs * b->inputs) * bytes;
        const double again = bytes / measure(b, run_read);
        read = again > read ? again : read;
        printf("%-20s %-9s %-10s read %5.1f GB/s, decode %5.1f (%.2f); peak %4.0f GMAC/s,",
               gb_format_text(format, text),
               kind->activation == GB_ACTIVATION_INT8_PER_TOKEN ? "per token" : "per group", vector->name,
               read * 1e-9, one * 1e-9, one / read, peak * 1e-9);
        for (size_t tokens = 4; tokens <= MAX_TOKENS; tokens *= tokens == 8 ? 32 : 2) {
            const double rate = multiply_rate(b, tokens);
            printf(" %zu tokens %.0f (%.2f)", tokens, rate * 1e-9, rate / peak);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    bench b = {.threads = gb_available_cores(), .outputs = 10752, .inputs = 5376};
    const char *set = argc > 4 ? argv[4] : NULL;
    if (argc > 1)
        b.threads = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 3) {
        b.outputs = strtoul(argv[2], NULL, 10);
        b.inputs = strtoul(argv[3], NULL, 10);
    }
    gumbel_error error;
    if (b.threads == 0 || b.outputs == 0 || b.inputs == 0 ||
        gb_team_create(b.threads, &b.team, &error) != GUMBEL_OK) {
        fprintf(stderr, "usage: bench_kernels [THREADS [OUTPUTS INPUTS [SET]]]\n");
        return 2;
    }
    uint64_t shared = 0;
    gb_activations_bytes(MAX_TOKENS, b.inputs, &(gb_rounding){.group = 16}, &shared);
    b.weight = gb_allocate_aligned(b.outputs * b.inputs, 2);
    b.x = gb_allocate_aligned(MAX_TOKENS * b.inputs, sizeof(float));
    b.y = gb_allocate_aligned(MAX_TOKENS * b.outputs, sizeof(float));
    b.scratch = gb_allocate_aligned(b.threads, GB_LINEAR_SCRATCH);
    b.shared = gb_allocate_aligned((size_t)shared, 1);
    b.sums = gb_allocate_aligned(b.threads, sizeof *b.sums);
    if (!b.weight || !b.x || !b.y || !b.scratch || !b.sums || !b.shared) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (size_t i = 0; i < MAX_TOKENS * b.inputs; i++)
        b.x[i] = (float)(i % 101) * 0.01f - 0.5f;
    b.call = (gb_kernel_call){
        .node = &b.node, .operands = {&b.x_tensor, &b.weight_tensor}, .results = {&b.y_tensor}};
    printf("linear %zu x %zu, %u threads\n", b.outputs, b.inputs, b.threads);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        bench_kind(&b, &kinds[k], set);
    gb_free(b.weight);
    gb_free(b.x);
    gb_free(b.y);
    gb_free(b.scratch);
    gb_free(b.shared);
    gb_free(b.sums);
    gb_team_destroy(b.team);
    return 0;
}
