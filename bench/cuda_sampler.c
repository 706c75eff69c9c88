/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of a sample step on a CUDA device, for 1, 16 and 64 rows of 262,144 logits that lie on it, in a
 * captured graph of many steps; beside it, copying the rows to the host and sampling there on one core.
 * The last case has the log-probability of the token as well, which the host's figures leave out.
 * Tokens are compared with those of the host.
 *
 *     bench_cuda_sampler [milliseconds per figure]
 */
#include "base/clock.h"
#include "base/memory.h"
#include "cuda/sample_rows.h"
#include "random_logits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 262144, BIASES = 32, COUNTS = 2048, STEPS = 20 };

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

static int32_t bias_ids[MOST_ROWS][BIASES];
static float bias_values[MOST_ROWS][BIASES];
static gb_token_count counts[MOST_ROWS][COUNTS];
static sample_rows inputs = {.size = VOCABULARY,
                             .count = MOST_ROWS,
                             .bias_limit = BIASES,
                             .count_limit = COUNTS,
                             .bias_ids = bias_ids[0],
                             .bias_values = bias_values[0],
                             .counts = counts[0]};

static void check(cudaError_t result, const char *doing) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(result));
    exit(1);
}

static void fill_inputs(const bench_case *settings) {
    uint64_t state = 2;
    for (uint32_t b = 0; b < MOST_ROWS; b++) {
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(inputs.name[b] = settings->settings.name;)
#include "program/roles.def"
        inputs.seed[b] = next_random(&state);
        for (uint32_t i = 0; i < BIASES; i++) {
            bias_ids[b][i] = settings->has_adjustments ? (int32_t)(next_random(&state) % VOCABULARY) : -1;
            bias_values[b][i] = i % 2 ? -INFINITY : 1.0f;
        }
        for (uint32_t i = 0; i < COUNTS; i++)
            counts[b][i] = (gb_token_count){(int32_t)(i * (VOCABULARY / COUNTS) + b), (int32_t)(i % 3),
                                            (int32_t)(i % 2 + 1)};
        inputs.repetition_penalty[b] = settings->has_adjustments ? 1.1f : 1.0f;
        inputs.frequency_penalty[b] = settings->has_adjustments ? 0.1f : 0.0f;
        inputs.presence_penalty[b] = settings->has_adjustments ? 1.5f : 0.0f;
        inputs.prompt[b] = GB_PROMPT_REPEATS;
        inputs.wanted[b] = settings->has_logprob;
    }
}

static int compare_floats(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* The median time of a step, in microseconds, over replays of a graph of STEPS steps. */
static double time_of_step(device_step *step, bool has_logprob, double milliseconds) {
    enum { MOST_TIMES = 1000 };
    static float times[MOST_TIMES];
    cudaStream_t stream = step->stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaEvent_t begin, end;
    launch_step(step, has_logprob);
    check(cudaStreamSynchronize(stream), "sampling");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int i = 0; i < STEPS; i++)
        launch_step(step, has_logprob);
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

/* Copies the logits to pinned memory and samples on one core; the time of a step in microseconds. */
static double time_on_host(const device_step *step, uint32_t rows, float *pinned, void *scratch,
                           int32_t *tokens) {
    double best = 1e30;
    sample_rows copied = inputs;
    copied.logits = pinned;
    for (int i = 0; i < 3; i++) {
        const double start = 1e6 * gb_seconds();
        check(cudaMemcpy(pinned, step->operands[GB_SAMPLE_LOGITS].data,
                         (size_t)rows * VOCABULARY * sizeof(float), cudaMemcpyDeviceToHost),
              "copying logits");
        for (uint32_t b = 0; b < rows; b++)
            tokens[b] = token_on_cpu(&copied, b, scratch);
        const double time = 1e6 * gb_seconds() - start;
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
        check(make_device_step(&inputs, row_counts[i], stream, &step), "putting rows on the device");
        printf(" %9.2f", time_of_step(&step, chosen->has_logprob, milliseconds));
        on_host[i] = time_on_host(&step, row_counts[i], pinned, scratch, expected);
        check(cudaMemcpy(found, step.token.data, row_counts[i] * sizeof *found, cudaMemcpyDeviceToHost),
              "fetching tokens");
        for (uint32_t b = 0; b < row_counts[i]; b++)
            different += found[b] != expected[b];
        free_device_step(&step);
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
