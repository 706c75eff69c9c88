/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of a sample step on a CUDA device, for 1, 16 and 64 rows of 262,144 logits that lie on it, in a
 * captured graph of many steps; beside it, copying the rows to the host and sampling there on one core.
 * The last case has the log-probability of the token as well, which the host's figures leave out.
 * Tokens are compared with those of the host.
 *
 *     bench_cuda_sampler [milliseconds per figure]
 */
#include "base/memory.h"
#include "measuring.h"
#include "run/cuda/kernels.h"
#include "run/sampler/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 262144, MOST_ROWS = 64, BIASES = 32, COUNTS = 2048, STEPS = 20 };

typedef struct bench_case {
    const char *name;
    gb_row_settings settings;
    bool has_adjustments, has_logprob;
} bench_case;

static const bench_case cases[] = {
    {"T=0", {.temperature = 0.0f, .top_p = 1.0f}, false, false},
    {"T=0.8", {.temperature = 0.8f, .top_p = 1.0f}, false, false},
    {"T=0.8 min-p 0.05", {.temperature = 0.8f, .top_p = 1.0f, .min_p = 0.05f}, false, false},
    {"T=0.8 top-p 0.95", {.temperature = 0.8f, .top_p = 0.95f}, false, false},
    {"T=0.8 top-k 64", {.temperature = 0.8f, .top_k = 64, .top_p = 1.0f}, false, false},
    {"T=0.8 both", {.temperature = 0.8f, .top_k = 64, .top_p = 0.95f}, false, false},
    {"all settings", {.temperature = 0.8f, .top_k = 64, .top_p = 0.95f, .min_p = 0.05f}, true, false},
    {"top-p, adjusted", {.temperature = 0.8f, .top_p = 0.95f, .min_p = 0.05f}, true, false},
    {"all, log-prob.", {.temperature = 0.8f, .top_k = 64, .top_p = 0.95f, .min_p = 0.05f}, true, true},
};

/* What a step of some rows takes, on the host. */
typedef struct step_inputs {
    float *logits;
    float temperature[MOST_ROWS], top_p[MOST_ROWS], min_p[MOST_ROWS];
    int32_t top_k[MOST_ROWS];
    uint64_t seed[MOST_ROWS];
    int32_t bias_ids[MOST_ROWS][BIASES];
    float bias_values[MOST_ROWS][BIASES];
    gb_token_count counts[MOST_ROWS][COUNTS];
    float repetition[MOST_ROWS], frequency[MOST_ROWS], presence[MOST_ROWS];
    int32_t prompt[MOST_ROWS];
} step_inputs;

static step_inputs inputs;

static void check(cudaError_t result, const char *doing) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(result));
    exit(1);
}

static void fill_inputs(const bench_case *settings) {
    uint64_t state = 2;
    for (uint32_t b = 0; b < MOST_ROWS; b++) {
        inputs.temperature[b] = settings->settings.temperature;
        inputs.top_k[b] = settings->settings.top_k;
        inputs.top_p[b] = settings->settings.top_p;
        inputs.min_p[b] = settings->settings.min_p;
        inputs.seed[b] = next_random(&state);
        for (uint32_t i = 0; i < BIASES; i++) {
            inputs.bias_ids[b][i] =
                settings->has_adjustments ? (int32_t)(next_random(&state) % VOCABULARY) : -1;
            inputs.bias_values[b][i] = i % 2 ? -INFINITY : 1.0f;
        }
        for (uint32_t i = 0; i < COUNTS; i++)
            inputs.counts[b][i] = (gb_token_count){(int32_t)(i * (VOCABULARY / COUNTS) + b), (int32_t)(i % 3),
                                                   (int32_t)(i % 2 + 1)};
        inputs.repetition[b] = settings->has_adjustments ? 1.1f : 1.0f;
        inputs.frequency[b] = settings->has_adjustments ? 0.1f : 0.0f;
        inputs.presence[b] = settings->has_adjustments ? 1.5f : 0.0f;
        inputs.prompt[b] = GB_PROMPT_REPEATS;
    }
}

/* A step of some rows, on the device. */
typedef struct device_step {
    gb_cuda_tensor operands[GB_SAMPLE_OPERANDS], token, wanted, normalizer, logprob;
    gb_cuda_scratch scratch;
    gb_cuda_call call, normalizing, naming;
    bool has_logprob;
} device_step;

static void *device_copy(const void *data, size_t size) {
    void *memory;
    check(cudaMalloc(&memory, size), "allocating");
    if (data)
        check(cudaMemcpy(memory, data, size, cudaMemcpyHostToDevice), "copying");
    return memory;
}

static gb_cuda_tensor operand_of(gb_dtype dtype, const void *data, uint32_t rows, size_t across,
                                 size_t deep) {
    gb_cuda_tensor tensor = {.dtype = dtype,
                             .rank = deep > 1     ? 3
                                     : across > 1 ? 2
                                                  : 1,
                             .dims = {rows, across, deep}};
    tensor.data = device_copy(data, gb_cuda_elements(&tensor) * gb_dtype_size(dtype));
    return tensor;
}

static void make_step(device_step *step, uint32_t rows, bool has_logprob, cudaStream_t stream) {
    gb_cuda_tensor *operands = step->operands;
    bool wanted[MOST_ROWS];
    memset(step, 0, sizeof *step);
    memset(wanted, has_logprob, sizeof wanted);
    operands[GB_SAMPLE_LOGITS] = operand_of(GB_F32, inputs.logits, rows, VOCABULARY, 1);
    operands[GB_SAMPLE_TEMPERATURE] = operand_of(GB_F32, inputs.temperature, rows, 1, 1);
    operands[GB_SAMPLE_TOP_K] = operand_of(GB_I32, inputs.top_k, rows, 1, 1);
    operands[GB_SAMPLE_TOP_P] = operand_of(GB_F32, inputs.top_p, rows, 1, 1);
    operands[GB_SAMPLE_SEED] = operand_of(GB_U64, inputs.seed, rows, 1, 1);
    operands[GB_SAMPLE_MIN_P] = operand_of(GB_F32, inputs.min_p, rows, 1, 1);
    operands[GB_SAMPLE_BIAS_IDS] = operand_of(GB_I32, inputs.bias_ids, rows, BIASES, 1);
    operands[GB_SAMPLE_BIAS_VALUES] = operand_of(GB_F32, inputs.bias_values, rows, BIASES, 1);
    operands[GB_SAMPLE_COUNTS] = operand_of(GB_I32, inputs.counts, rows, COUNTS, 3);
    operands[GB_SAMPLE_REPETITION] = operand_of(GB_F32, inputs.repetition, rows, 1, 1);
    operands[GB_SAMPLE_FREQUENCY] = operand_of(GB_F32, inputs.frequency, rows, 1, 1);
    operands[GB_SAMPLE_PRESENCE] = operand_of(GB_F32, inputs.presence, rows, 1, 1);
    operands[GB_SAMPLE_PENALIZE_PROMPT] = operand_of(GB_I32, inputs.prompt, rows, 1, 1);
    step->token = operand_of(GB_I32, NULL, rows, 1, 1);
    for (int i = 0; i < GB_SAMPLE_OPERANDS; i++)
        step->call.operands[i] = &operands[i];
    step->call.results[0] = &step->token;
    step->call.scratch = &step->scratch;
    step->call.stream = stream;
    step->has_logprob = has_logprob;
    step->wanted = operand_of(GB_BOOL, wanted, rows, 1, 1);
    step->normalizer = operand_of(GB_F32, NULL, rows, 2, 1);
    step->logprob = operand_of(GB_F32, NULL, rows, 1, 1);
    step->normalizing = (gb_cuda_call){.operands = {NULL, &step->wanted}, .results = {&step->normalizer}};
    step->naming = (gb_cuda_call){.results = {&step->logprob}};
    step->scratch.bytes = device_copy(NULL, gb_cuda_sample_scratch(&step->call));
}

static void launch_step(const device_step *step) {
    if (step->has_logprob)
        gb_cuda_sample_with_logprob(&step->call, &step->normalizing, &step->naming);
    else
        gb_cuda_sample(&step->call);
}

static void free_step(device_step *step) {
    for (int i = 0; i < GB_SAMPLE_OPERANDS; i++)
        check(cudaFree(step->operands[i].data), "freeing");
    check(cudaFree(step->token.data), "freeing");
    check(cudaFree(step->wanted.data), "freeing");
    check(cudaFree(step->normalizer.data), "freeing");
    check(cudaFree(step->logprob.data), "freeing");
    check(cudaFree(step->scratch.bytes), "freeing");
}

static int compare_floats(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* The median time of a step, in microseconds, over replays of a graph of STEPS steps. */
static double time_of_step(device_step *step, double milliseconds) {
    enum { MOST_TIMES = 1000 };
    static float times[MOST_TIMES];
    cudaStream_t stream = step->call.stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaEvent_t begin, end;
    launch_step(step);
    check(cudaStreamSynchronize(stream), "sampling");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int i = 0; i < STEPS; i++)
        launch_step(step);
    check(cudaStreamEndCapture(stream, &graph), "capturing");
    check(cudaGraphInstantiate(&instance, graph, 0), "capturing");
    check(cudaEventCreate(&begin), "timing");
    check(cudaEventCreate(&end), "timing");
    size_t count = 0;
    for (double passed = 0; count < 5 || (passed < milliseconds && count < MOST_TIMES);) {
        float time;
        check(cudaEventRecord(begin, stream), "timing");
        check(cudaGraphLaunch(instance, stream), "sampling");
        check(cudaEventRecord(end, stream), "timing");
        check(cudaEventSynchronize(end), "sampling");
        check(cudaEventElapsedTime(&time, begin, end), "timing");
        times[count++] = time;
        passed += (double)time;
    }
    qsort(times, count, sizeof *times, compare_floats);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    return (double)times[count / 2] * 1e3 / STEPS;
}

static int32_t token_on_host(float *row, uint32_t b, const bench_case *chosen, void *scratch) {
    gb_row_settings settings = chosen->settings;
    settings.seed = inputs.seed[b];
    if (!chosen->has_adjustments)
        return gb_sample_row(row, VOCABULARY, &settings, scratch);
    const gb_bias_list bias = {inputs.bias_ids[b], inputs.bias_values[b], BIASES};
    const gb_penalties penalties = {inputs.counts[b],     COUNTS,
                                    inputs.repetition[b], inputs.frequency[b],
                                    inputs.presence[b],   inputs.prompt[b]};
    return gb_sample_adjusted_row(row, VOCABULARY, &bias, &penalties, &settings, scratch);
}

/* Copies the logits to pinned memory and samples on one core; the time of a step in microseconds. */
static double time_on_host(const device_step *step, uint32_t rows, const bench_case *chosen, float *pinned,
                           void *scratch, int32_t *tokens) {
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        const double start = 1e6 * now();
        check(cudaMemcpy(pinned, step->operands[GB_SAMPLE_LOGITS].data,
                         (size_t)rows * VOCABULARY * sizeof(float), cudaMemcpyDeviceToHost),
              "copying logits");
        for (uint32_t b = 0; b < rows; b++)
            tokens[b] = token_on_host(pinned + (size_t)b * VOCABULARY, b, chosen, scratch);
        const double time = 1e6 * now() - start;
        best = time < best ? time : best;
    }
    return best;
}

static void bench_case_of(const bench_case *chosen, double milliseconds, float *pinned, void *scratch,
                          cudaStream_t stream) {
    static const uint32_t row_counts[] = {1, 16, 64};
    int32_t expected[MOST_ROWS], found[MOST_ROWS];
    double on_host[3];
    uint32_t different = 0;
    fill_inputs(chosen);
    printf("%-18s", chosen->name);
    for (int i = 0; i < 3; i++) {
        device_step step;
        make_step(&step, row_counts[i], chosen->has_logprob, stream);
        printf(" %9.2f", time_of_step(&step, milliseconds));
        on_host[i] = time_on_host(&step, row_counts[i], chosen, pinned, scratch, expected);
        check(cudaMemcpy(found, step.token.data, row_counts[i] * sizeof *found, cudaMemcpyDeviceToHost),
              "fetching tokens");
        for (uint32_t b = 0; b < row_counts[i]; b++)
            different += found[b] != expected[b];
        free_step(&step);
    }
    printf("   %9.0f %9.0f %9.0f%s\n", on_host[0], on_host[1], on_host[2],
           different ? "   TOKENS DIFFER" : "");
    fflush(stdout);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        float depth;
    } kinds[] = {{"peaked: 40 likely tokens, the bulk 20 under the top", 20.0f},
                 {"flat: all around 0, standard deviation 1", 0.0f}};
    const double milliseconds = argc > 1 ? strtod(argv[1], NULL) : 50.0;
    const size_t logits = (size_t)MOST_ROWS * VOCABULARY;
    cudaStream_t stream;
    void *pinned;
    void *scratch = gb_allocate_aligned(gb_sample_adjusted_scratch_bytes(VOCABULARY, BIASES, COUNTS), 1);
    inputs.logits = gb_allocate(logits, sizeof *inputs.logits);
    if (!scratch || !inputs.logits)
        return 1;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check(cudaMallocHost(&pinned, logits * sizeof(float)), "allocating");
    printf("%d logits, microseconds a step, beside copying them and sampling on one core\n", VOCABULARY);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint32_t b = 0; b < MOST_ROWS; b++)
            fill_row(inputs.logits + (size_t)b * VOCABULARY, VOCABULARY, kinds[k].depth, b + 1);
        printf("\n%s\n%-18s %9s %9s %9s   %9s %9s %9s\n", kinds[k].name, "", "1 row", "16 rows", "64 rows",
               "host: 1", "16", "64");
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            bench_case_of(&cases[c], milliseconds, pinned, scratch, stream);
    }
    gb_free(inputs.logits);
    gb_free(scratch);
    return 0;
}
