/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of GEMV and GEMM on a CUDA device, alone and one after the other in a captured graph, for the matrices
 * of both models at full size, in 4 bits in groups of 64 (decode with 8-bit activations), in those of the
 * recipe int4 (int8: rows in 8 bits) or bfloat16. Decode is printed beside the bytes of the weights over the
 * device's bandwidth, prefill in TFLOP/s (torch_products.py has cuBLAS's). Each GEMV of a graph has other
 * weights, so that none is in the cache; rows are prepared before, and both terms of an activation count as
 * one.
 *
 *     bench_cuda_products [prompt] [int8 | bf16] [rows, ..]      by default 1 2 8 16, of a prompt 512 1505
 * 2048
 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/products.h"
#include "backends/cuda/runtime/limits.h"
#include "random_logits.h"
#include "tensor/packing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPES = 8,
    PRODUCTS = 32,
    REPLAYS = 9,
    MOST_COUNTS = 16,
    MOST_ROWS = 256,
    MOST_PROMPT_ROWS = 4096,
    GROUP = 64,
    INT8_GROUP = 32,
};

/* Weights that are gone through before the first ones come again, and measured reading. */
static const size_t rotated_bytes = (size_t)768 << 20;

typedef struct bench_shape {
    const char *name;
    size_t outputs, inputs;
} bench_shape;

typedef struct bench_options {
    bool is_prompt, is_bf16, is_int8;
    size_t rows[MOST_COUNTS], count;
} bench_options;

/* Those of the same input are one product of generated tokens, and one each of a prompt. */
static const bench_shape prompt_shapes[SHAPES] = {
    {"Gemma q", 8192, 5376},     {"Gemma k", 4096, 5376},     {"Gemma output", 5376, 8192},
    {"Gemma gate", 21504, 5376}, {"Gemma down", 5376, 21504}, {"Qwen q, k, v", 8192, 2048},
    {"Qwen z", 4096, 2048},      {"Qwen output", 2048, 4096},
};
static const bench_shape shapes[SHAPES] = {
    {"Gemma q, k, v", 16384, 5376}, {"Gemma output", 5376, 8192}, {"Gemma gate, up", 43008, 5376},
    {"Gemma down", 5376, 21504},    {"Gemma head", 262144, 5376}, {"Qwen q, k, v, z", 12288, 2048},
    {"Qwen output", 2048, 4096},    {"Qwen head", 248320, 2048},
};

static void check(cudaError_t result, const char *doing) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(result));
    exit(1);
}

static void *allocate(size_t size) {
    void *memory;
    check(cudaMalloc(&memory, size), "allocating");
    return memory;
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

typedef struct weights {
    uint8_t *memory;
    size_t size; /* of a copy */
    size_t copies;
    gb_cuda_tensor matrix; /* the first copy */
} weights;

/* Random codes, or small bfloat16 numbers; scales and biases, from `codes` on, are all the same small one. */
static void fill_copy(uint8_t *copy, size_t codes, size_t size, bool is_bf16) {
    enum { BLOCK = 1 << 22 };
    static uint8_t *block;
    uint64_t state = 3;
    if (!block && !(block = malloc(BLOCK)))
        exit(1);
    for (size_t i = 0; i < BLOCK; i += sizeof state) {
        uint64_t random = next_random(&state);
        if (is_bf16)
            random = (random & 0x80ff80ff80ff80ffu) | 0x3c003c003c003c00u;
        memcpy(block + i, &random, sizeof random);
    }
    for (size_t at = 0; at < codes; at += BLOCK)
        check(cudaMemcpy(copy + at, block, codes - at < BLOCK ? codes - at : BLOCK, cudaMemcpyHostToDevice),
              "copying weights");
    if (codes < size)
        check(cudaMemset(copy + codes, 0x3c, size - codes), "filling scales");
}

static weights new_weights(const bench_shape *shape, const bench_options *options) {
    const gb_format affine = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, GROUP, 0},
                    progressive = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, INT8_GROUP, 0},
                    format = options->is_int8 ? progressive : affine;
    const bool is_bf16 = options->is_bf16;
    weights w = {.copies = 1, .size = shape->outputs * shape->inputs * sizeof(uint16_t)};
    w.matrix = (gb_cuda_tensor){.dtype = GB_BF16, .rank = 2, .dims = {shape->outputs, shape->inputs}};
    size_t codes = w.size;
    if (!is_bf16) {
        w.matrix.dtype = GB_QUANTIZED;
        w.matrix.format = format;
        w.matrix.is_packed = w.matrix.int8_input = true;
        if (!gb_format_planes(&format, shape->outputs, shape->inputs, &w.matrix.planes))
            exit(1);
        w.size = (size_t)w.matrix.planes.size;
        codes = (size_t)w.matrix.planes.scales.offset;
    }
    if (w.size < rotated_bytes)
        w.copies = rotated_bytes / w.size + 1;
    if (w.copies > PRODUCTS)
        w.copies = PRODUCTS;
    w.memory = allocate(w.copies * w.size);
    for (size_t i = 0; i < w.copies; i++)
        fill_copy(w.memory + i * w.size, codes, w.size, is_bf16);
    w.matrix.data = w.memory;
    return w;
}

/* ---- Time ---------------------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* PRODUCTS products, each with the next copy of the weights. */
static void launch_products(gb_cuda_call *call, const weights *w, cudaStream_t stream) {
    const gb_cuda_call *const part = call;
    const gb_cuda_problem problem = {.operands = call->operands, .parts = &part, .count = 1, .live = 1};
    gb_cuda_launch_list_clear(call->launches);
    for (size_t i = 0; i < PRODUCTS; i++) {
        gb_cuda_tensor matrix = w->matrix;
        matrix.data = w->memory + i % w->copies * w->size;
        call->operands[1] = &matrix;
        call->prepares_input = i == 0; /* the others find what the first one has stored */
        gb_cuda_choose_from(&gb_cuda_linear_kernels, &problem)->describe(&problem);
    }
    check(gb_cuda_launch_list_run(call->launches, stream), "multiplying");
}

/* The median time of a product, in seconds, over replays of a graph. */
static double time_of_product(gb_cuda_call *call, const weights *w, cudaStream_t stream) {
    float times[REPLAYS];
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaEvent_t begin, end;
    launch_products(call, w, stream);
    check(cudaStreamSynchronize(stream), "multiplying");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    launch_products(call, w, stream);
    check(cudaStreamEndCapture(stream, &graph), "capturing");
    check(cudaGraphInstantiate(&instance, graph, 0), "capturing");
    check(cudaEventCreate(&begin), "timing");
    check(cudaEventCreate(&end), "timing");
    for (int i = 0; i < REPLAYS; i++) {
        check(cudaEventRecord(begin, stream), "timing");
        check(cudaGraphLaunch(instance, stream), "multiplying");
        check(cudaEventRecord(end, stream), "timing");
        check(cudaEventSynchronize(end), "multiplying");
        check(cudaEventElapsedTime(&times[i], begin, end), "timing");
    }
    qsort(times, REPLAYS, sizeof *times, compare_floats);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    return 1e-3 * (double)times[REPLAYS / 2] / PRODUCTS;
}

static double bench_rows(const bench_shape *shape, const weights *w, size_t rows,
                         const bench_options *options, cudaStream_t stream) {
    gb_cuda_tensor x = {.dtype = GB_F32, .rank = 2, .dims = {rows, shape->inputs}},
                   y = {.dtype = GB_F32, .rank = 2, .dims = {rows, shape->outputs}};
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    gb_cuda_launch_list launches = {0};
    const gb_node node = {.op = GB_OP_LINEAR,
                          .attribute_count = options->is_int8 ? 2 : 0,
                          .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                         gb_int(GB_ATTRIBUTE_ROTATION, 128)}};
    gb_cuda_call call = {.node = &node,
                         .operands = {&x, &w->matrix},
                         .results = {&y},
                         .scratch = &scratch,
                         .row_class = gb_cuda_row_class_of(options->is_prompt, rows),
                         .launches = &launches};
    float *values = malloc(rows * shape->inputs * sizeof *values);
    if (!values)
        exit(1);
    uint64_t state = 5;
    for (size_t i = 0; i < rows * shape->inputs; i++)
        values[i] = next_normal(&state);
    x.data = allocate(rows * shape->inputs * sizeof *values);
    y.data = allocate(rows * shape->outputs * sizeof *values);
    check(cudaMemcpy(x.data, values, rows * shape->inputs * sizeof *values, cudaMemcpyHostToDevice),
          "copying rows");
    const gb_cuda_call *const part = &call;
    const gb_cuda_problem problem = {.operands = call.operands, .parts = &part, .count = 1, .live = 1};
    const gb_cuda_kernel *kernel = gb_cuda_choose_from(&gb_cuda_linear_kernels, &problem);
    gb_cuda_prepared input = {0};
    if (kernel->input) {
        input = kernel->input(&problem);
        input.data = allocate((size_t)gb_cuda_prepared_size(&input));
        call.input = &input;
    }
    if (kernel->scratch)
        scratch.bytes = allocate((size_t)kernel->scratch(&problem));
    scratch.arrivals = allocate(GB_CUDA_ARRIVALS * sizeof *scratch.arrivals);
    check(cudaMemset(scratch.arrivals, 0, GB_CUDA_ARRIVALS * sizeof *scratch.arrivals), "clearing");
    const double seconds = time_of_product(&call, w, stream);
    gb_cuda_launch_list_destroy(&launches);
    void *const all[] = {x.data, y.data, input.data, scratch.bytes, scratch.arrivals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(cudaFree(all[i]), "freeing");
    free(values);
    return seconds;
}

/* ---- The table ----------------------------------------------------------------------------------------- */

static bool add_rows(const char *argument, bench_options *options) {
    char *end;
    const size_t rows = strtoul(argument, &end, 10);
    if (options->count == MOST_COUNTS || *end) {
        fprintf(stderr, "bench_cuda_products: \"%s\" is not one of up to %d numbers of rows\n", argument,
                MOST_COUNTS);
        return false;
    }
    options->rows[options->count++] = rows;
    return true;
}

static bool read_options(int argc, char **argv, bench_options *options) {
    static const size_t usual[2][4] = {{1, 2, 8, 16}, {512, 1505, 2048}};
    *options = (bench_options){0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "prompt") == 0)
            options->is_prompt = true;
        else if (strcmp(argv[i], "bf16") == 0)
            options->is_bf16 = true;
        else if (strcmp(argv[i], "int8") == 0)
            options->is_int8 = true;
        else if (!add_rows(argv[i], options))
            return false;
    }
    const bool is_usual = options->count == 0;
    for (size_t i = 0; is_usual && i < 4 && usual[options->is_prompt][i] > 0; i++)
        options->rows[options->count++] = usual[options->is_prompt][i];
    const size_t most = options->is_prompt ? MOST_PROMPT_ROWS : MOST_ROWS;
    for (size_t i = 0; i < options->count; i++)
        if (options->rows[i] == 0 || options->rows[i] > most) {
            fprintf(stderr, "bench_cuda_products: rows are 1 to %zu\n", most);
            return false;
        }
    return true;
}

static void print_head(const bench_options *options, double bandwidth) {
    if (options->is_prompt)
        printf("microseconds a product, and TFLOP/s\n%-16s %9s", "", "MB");
    else
        printf("microseconds a product, and of the bandwidth of %.2f TB/s\n%-16s %9s", 1e-12 * bandwidth, "",
               "MB");
    for (size_t i = 0; i < options->count; i++)
        printf("    %7zu row%s", options->rows[i], options->rows[i] > 1 ? "s" : " ");
}

static void bench_shape_of(const bench_shape *shape, const bench_options *options, double bandwidth,
                           cudaStream_t stream) {
    weights w = new_weights(shape, options);
    printf("\n%-16s %9.2f", shape->name, 1e-6 * (double)w.size);
    for (size_t i = 0; i < options->count; i++) {
        const double seconds = bench_rows(shape, &w, options->rows[i], options, stream),
                     products = (double)shape->outputs * (double)shape->inputs * (double)options->rows[i];
        if (options->is_prompt)
            printf("  %8.1f %5.0f", 1e6 * seconds, 2e-12 * products / seconds);
        else
            printf(" %8.2f %4.1f %%", 1e6 * seconds, 100 * (double)w.size / seconds / bandwidth);
        fflush(stdout);
    }
    check(cudaFree(w.memory), "freeing");
}

int main(int argc, char **argv) {
    bench_options options;
    gumbel_error error;
    double bandwidth;
    cudaStream_t stream;
    if (!read_options(argc, argv, &options))
        return 2;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    if (gb_cuda_measure_read_rate(stream, rotated_bytes, &bandwidth, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    print_head(&options, bandwidth);
    for (size_t s = 0; s < SHAPES; s++)
        bench_shape_of(options.is_prompt ? &prompt_shapes[s] : &shapes[s], &options, bandwidth, stream);
    printf("\n");
    return 0;
}
