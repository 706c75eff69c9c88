/* SPDX-License-Identifier: Apache-2.0
 *
 * What quantizing costs a linear layer at real widths: the relative error |y_q - y| / |y| of its output, by
 * method, bits and group, with and without 8-bit activations; of formats with exact sums with inputs rounded
 * per token, rotated ("search, int8 x") and not. Each layer has some of the output rows of the model's, since
 * rows do not depend on each other.
 *
 *     bench_quantization [DIRECTORY]
 *
 * With a directory it also writes each layer's weights and activations there, LAYER.weight [ROWS, inputs] and
 * LAYER.x [TOKENS, inputs] in float32, for other quantizers (tests/oracle/quantization_errors.py).
 *
 * There is no checkpoint behind the numbers. Weights are drawn from Student's t-distribution with 5 degrees
 * of freedom, which has the heavier tails of trained matrices, and rounded to bfloat16. Activations are
 * normal, or, where the layer follows a gate, products of two normal numbers; each input has a width of its
 * own, exp(normal / 2), and one input of 256 is 16 times as wide, as trained models have.
 */
#include "backends/cpu/kernels/kernels.h"
#include "base/memory.h"
#include "export/quantize/quantizer.h"
#include "export/random_weights.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ROWS = 256,
    TOKENS = 32,
    CHUNK = 512,
    MOST_INPUTS = 21504,
    MOST_ACTIVATION_BYTES = TOKENS * MOST_INPUTS * 2 /* codes, and the scales and sums of groups of 32 */
};

typedef struct layer {
    const char *name;
    uint32_t inputs;
    bool is_gated; /* its inputs come from a gated product */
} layer;

static const layer layers[] = {
    {"gemma4-31b.q_proj", 5376, false},          {"gemma4-31b.o_proj", 8192, false},
    {"gemma4-31b.gate_proj", 5376, false},       {"gemma4-31b.down_proj", 21504, true},
    {"qwen3.5-35b.o_proj", 4096, true},          {"qwen3.5-35b.expert.gate_proj", 2048, false},
    {"qwen3.5-35b.expert.down_proj", 512, true},
};
enum { LAYERS = sizeof layers / sizeof *layers };

typedef struct bench {
    const layer *layer;
    const gb_vector_kernels *vector;
    float *weight;   /* [ROWS, inputs] */
    float *rotated;  /* [inputs]: a row of it */
    float *x;        /* [TOKENS, inputs] */
    float *expected; /* [TOKENS, ROWS]: in float32 from the weights as they are */
    float *y;        /* the same with quantized weights */
    uint8_t *data;   /* a quantized weight's planes */
    void *scratch, *shared;
} bench;

/* ---- Random numbers ------------------------------------------------------------------------------------ */

/* count pairs of evenly drawn numbers in (0, 1], from pair first of a stream on. */
static void draw_pairs(uint64_t stream, uint64_t first, size_t count, float pairs[][2]) {
    gb_random_fill(stream, (gb_uniform){0, 1}, GB_F32, 2 * first, 2 * count, pairs);
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < 2; j++)
            pairs[i][j] = 1.0f - pairs[i][j];
}

/* Box and Muller, 1958. */
static double normal(const float pair[2]) {
    return sqrt(-2 * log((double)pair[0])) * cos(6.283185307179586 * (double)pair[1]);
}

/* Bailey, "Polar generation of random variates with the t-distribution", 1994; 5 degrees of freedom. */
static double student(const float pair[2]) {
    return sqrt(5 * (pow((double)pair[0], -2.0 / 5) - 1)) * cos(6.283185307179586 * (double)pair[1]);
}

static void draw_weights(const bench *b) {
    float pairs[CHUNK][2];
    uint64_t stream = gb_random_stream(0, b->layer->name);
    double size = 1 / sqrt((double)b->layer->inputs);
    for (size_t first = 0; first < (size_t)ROWS * b->layer->inputs; first += CHUNK) {
        draw_pairs(stream, first, CHUNK, pairs);
        for (size_t i = 0; i < CHUNK; i++)
            b->weight[first + i] = gb_float_from_bf16(gb_bf16_from_float((float)(size * student(pairs[i]))));
    }
}

static void draw_activations(const bench *b) {
    float pairs[TOKENS + 1][2], gates[TOKENS][2];
    uint64_t stream = gb_random_stream(1, b->layer->name), gate_stream = gb_random_stream(2, b->layer->name);
    uint32_t inputs = b->layer->inputs;
    for (uint32_t k = 0; k < inputs; k++) {
        draw_pairs(stream, (uint64_t)k * (TOKENS + 1), TOKENS + 1, pairs);
        draw_pairs(gate_stream, (uint64_t)k * TOKENS, TOKENS, gates);
        double width = exp(0.5 * normal(pairs[TOKENS])) * (k % 256 == 100 ? 16 : 1);
        for (uint32_t t = 0; t < TOKENS; t++) {
            double value = normal(pairs[t]) * (b->layer->is_gated ? normal(gates[t]) : 1);
            b->x[(size_t)t * inputs + k] = (float)(width * value);
        }
    }
}

/* ---- One layer ----------------------------------------------------------------------------------------- */

/* y = x times the weight, in float32 or as the format and the activation say. */
static void multiply(const bench *b, const gb_quantized_matrix *matrix, gb_activation activation,
                     uint32_t rotation, float *y) {
    gb_node node = {.op = GB_OP_LINEAR, .attribute_count = 2};
    node.attributes[0] = gb_int(GB_ATTRIBUTE_ACTIVATION, activation);
    node.attributes[1] = gb_int(GB_ATTRIBUTE_ROTATION, rotation);
    gb_cpu_tensor x = {.data = b->x, .dtype = GB_F32, .rank = 2, .dims = {TOKENS, b->layer->inputs}};
    gb_cpu_tensor weight = {.data = matrix ? (void *)b->data : b->weight,
                            .dtype = matrix ? GB_QUANTIZED : GB_F32,
                            .rank = 2,
                            .dims = {ROWS, b->layer->inputs},
                            .quantized = matrix};
    gb_cpu_tensor result = {.data = y, .dtype = GB_F32, .rank = 2, .dims = {TOKENS, ROWS}};
    gb_kernel_call call = {
        .node = &node, .operands = {&x, &weight}, .results = {&result}, .vector = b->vector};
    const gb_worker worker = {0, 1, b->scratch, b->shared};
    if (activation != GB_ACTIVATION_NONE)
        gb_kernel_quantize(&call, &worker);
    gb_kernel_linear(&call, &worker);
}

/* A row of the weight, rotated in place if it is to be. */
static const float *row_of(const bench *b, size_t row, uint32_t rotation) {
    const size_t inputs = b->layer->inputs;
    memcpy(b->rotated, b->weight + row * inputs, inputs * sizeof *b->rotated);
    if (rotation > 0)
        gb_rotate_row(b->rotated, inputs, rotation);
    return b->rotated;
}

static bool quantize(const bench *b, gb_quantize_method method, uint32_t rotation,
                     gb_quantized_matrix *matrix) {
    const gb_planes *planes = &matrix->planes;
    if (!gb_format_planes(&matrix->format, ROWS, b->layer->inputs, &matrix->planes))
        return false;
    matrix->data = b->data;
    bool fits = true;
    for (size_t row = 0; row < ROWS; row++) {
        uint8_t *codes = b->data + planes->codes.offset + row * planes->codes.row_bytes;
        const gb_quantized_row to = gb_quantized_row_in(&matrix->format, planes, row, codes, b->data, 0);
        fits &= gb_quantize_row(method, &matrix->format, row_of(b, row, rotation), b->layer->inputs, &to);
    }
    return fits;
}

static double relative_error(const bench *b) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < (size_t)TOKENS * ROWS; i++) {
        error += pow((double)b->y[i] - (double)b->expected[i], 2);
        norm += pow((double)b->expected[i], 2);
    }
    return sqrt(error / norm);
}

static void print_name(const bench *b, const gb_format *format) {
    char text[GB_FORMAT_TEXT];
    printf("%-28s %5u  %-20s", b->layer->name, b->layer->inputs, gb_format_text(format, text));
}

static bool print_row(const bench *b, gb_format format) {
    gb_quantized_matrix matrix = {.format = format};
    print_name(b, &format);
    for (gb_quantize_method method = GB_METHOD_MIN_MAX; method <= GB_METHOD_HQQ; method++) {
        if (!gb_can_quantize(method, &format)) {
            printf("  %8s  %8s", "-", "-");
            continue;
        }
        if (!quantize(b, method, 0, &matrix))
            return false;
        for (gb_activation activation = GB_ACTIVATION_NONE; activation <= GB_ACTIVATION_INT8_PER_GROUP;
             activation++) {
            multiply(b, &matrix, activation, 0, b->y);
            printf("  %8.5f", relative_error(b));
        }
    }
    printf("\n");
    fflush(stdout);
    return true;
}

/* Inputs rounded per token, without a rotation and with one. */
static bool print_exact_row(const bench *b, gb_format format) {
    static const uint32_t rotations[] = {0, 128};
    const gb_quantize_method method =
        format.kind == GB_FORMAT_PROGRESSIVE ? GB_METHOD_SEARCH : GB_METHOD_MIN_MAX;
    gb_quantized_matrix matrix = {.format = format};
    print_name(b, &format);
    for (size_t r = 0; r < sizeof rotations / sizeof *rotations; r++) {
        if (!quantize(b, method, rotations[r], &matrix))
            return false;
        multiply(b, &matrix, GB_ACTIVATION_INT8_PER_TOKEN, rotations[r], b->y);
        printf("  %s %8.5f", rotations[r] ? "rotated" : "per token", relative_error(b));
    }
    printf("\n");
    fflush(stdout);
    return true;
}

static bool write_floats(const char *directory, const char *name, const char *ending, const float *values,
                         size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, ending);
    FILE *file = fopen(path, "wb");
    bool is_written = file && fwrite(values, sizeof *values, count, file) == count;
    if (file && fclose(file) != 0)
        is_written = false;
    if (!is_written)
        fprintf(stderr, "%s: cannot be written\n", path);
    return is_written;
}

static bool measure_layer(const bench *b, const char *directory) {
    static const uint8_t widths[] = {4, 5, 6, 8};
    static const uint32_t groups[] = {32, 64, 128};
    size_t inputs = b->layer->inputs;
    draw_weights(b);
    draw_activations(b);
    multiply(b, NULL, GB_ACTIVATION_NONE, 0, b->expected);
    if (directory && (!write_floats(directory, b->layer->name, "weight", b->weight, ROWS * inputs) ||
                      !write_floats(directory, b->layer->name, "x", b->x, TOKENS * inputs)))
        return false;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
            gb_format format = {GB_FORMAT_ONE_LEVEL, widths[w], true, 0, GB_F16, groups[g], 0};
            if (!print_row(b, format))
                return false;
        }
    if (!print_row(b, (gb_format){GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 64, 0}))
        return false;
    for (uint8_t bits = 4; bits <= 6; bits++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            if (!print_exact_row(b, (gb_format){GB_FORMAT_PROGRESSIVE, bits, false, 8, GB_F16, groups[g], 0}))
                return false;
    return print_exact_row(b, (gb_format){GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0});
}

int main(int argc, char **argv) {
    size_t most = 0;
    for (size_t i = 0; i < LAYERS; i++)
        most = layers[i].inputs > most ? layers[i].inputs : most;
    bench b = {.weight = gb_allocate_aligned(ROWS * most, sizeof *b.weight),
               .x = gb_allocate_aligned(TOKENS * most, sizeof *b.x),
               .rotated = gb_allocate_aligned(most, sizeof *b.rotated),
               .expected = gb_allocate_aligned(TOKENS * ROWS, sizeof *b.expected),
               .y = gb_allocate_aligned(TOKENS * ROWS, sizeof *b.y),
               .data = gb_allocate_aligned(2 * ROWS * most, 1),
               .scratch = gb_allocate_aligned(GB_LINEAR_SCRATCH, 1),
               .shared = gb_allocate_aligned(MOST_ACTIVATION_BYTES, 1)};
    bool is_done = b.weight && b.rotated && b.x && b.expected && b.y && b.data && b.scratch && b.shared;
    for (size_t i = 0; gb_available_vector_kernels(i); i++)
        b.vector = gb_available_vector_kernels(i);
    printf("%-28s %5s  %-20s  %8s  %8s  %8s  %8s\n", "layer", "in", "format", "min-max", "int8 x", "hqq",
           "int8 x");
    for (size_t i = 0; i < LAYERS && is_done; i++) {
        b.layer = &layers[i];
        is_done = measure_layer(&b, argc > 1 ? argv[1] : NULL);
    }
    gb_free(b.weight);
    gb_free(b.rotated);
    gb_free(b.x);
    gb_free(b.expected);
    gb_free(b.y);
    gb_free(b.data);
    gb_free(b.shared);
    gb_free(b.scratch);
    return is_done ? 0 : 1;
}
