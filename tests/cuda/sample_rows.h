/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of logits, each with settings of its own, and the sample step on them: by the CPU's sampler, and on
 * the device. For tests and benches.
 */
#ifndef GUMBEL_TESTS_CUDA_SAMPLE_ROWS_H
#define GUMBEL_TESTS_CUDA_SAMPLE_ROWS_H

#include "backends/cuda/lowering/steps.h"
#include "backends/sampler/sampler.h"

#include <string.h>

enum { MOST_ROWS = 64 };

typedef struct sample_rows {
    uint32_t size, count, bias_limit, count_limit;
    float *logits; /* [count, size] */
    uint64_t seed[MOST_ROWS];
#define GB_SETTING(number, NAME, name, dtype, ...) GB_C_TYPE(dtype) name[MOST_ROWS];
#include "program/roles.def"
    int32_t *bias_ids; /* [count, bias_limit] */
    float *bias_values;
    gb_token_count *counts; /* [count, count_limit] */
    int32_t prompt[MOST_ROWS];
    bool masked[MOST_ROWS];
    uint32_t *mask;         /* [count, gb_mask_words(size)]; or NULL: no row is masked */
    bool wanted[MOST_ROWS]; /* log-probabilities */
} sample_rows;

/* Row b's token. scratch: gb_sample_adjusted_scratch_bytes(size, bias_limit, count_limit) bytes, aligned
 * to 64. */
static inline int32_t token_on_cpu(const sample_rows *r, uint32_t b, void *scratch) {
    gb_row_settings settings = {.seed = r->seed[b]};
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(settings.name = r->name[b];)
#include "program/roles.def"
    const gb_adjustments adjustments = {
        .bias = {r->bias_ids + (size_t)b * r->bias_limit, r->bias_values + (size_t)b * r->bias_limit,
                 r->bias_limit},
        .penalties = {.counts = r->counts + (size_t)b * r->count_limit,
                      .limit = r->count_limit,
                      .repetition = r->repetition_penalty[b],
                      .frequency = r->frequency_penalty[b],
                      .presence = r->presence_penalty[b],
                      .prompt = r->prompt[b]},
        .mask = r->masked[b] ? r->mask + b * gb_mask_words(r->size) : NULL,
    };
    return gb_sample_adjusted_row(r->logits + (size_t)b * r->size, r->size, &adjustments, &settings, scratch);
}

/* Rows on the device, and the calls of their sample step. */
typedef struct device_step {
    gb_cuda_tensor operands[GB_SAMPLE_OPERANDS], wanted, token, normalizer, logprob;
    gb_cuda_scratch scratch;
    gb_cuda_call sample, normalizing, naming;
    gb_cuda_launch_list launches;
    cudaStream_t stream;
} device_step;

/* A tensor with a copy of data, or with none, unless something went wrong before. */
static inline void put_tensor(gb_cuda_tensor *tensor, gb_dtype dtype, const void *data, size_t rows,
                              size_t across, size_t deep, cudaError_t *result) {
    *tensor = (gb_cuda_tensor){.dtype = dtype, .dims = {rows, across, deep}};
    tensor->rank = deep > 1 ? 3 : across > 1 ? 2 : 1;
    const size_t bytes = gb_cuda_elements(tensor) * gb_dtype_size(dtype);
    if (*result == cudaSuccess)
        *result = cudaMalloc(&tensor->data, bytes);
    if (*result == cudaSuccess && data)
        *result = cudaMemcpy(tensor->data, data, bytes, cudaMemcpyHostToDevice);
}

/* Puts the first `count` rows on the device. Free with free_device_step, also after an error. */
static inline cudaError_t make_device_step(const sample_rows *r, uint32_t count, cudaStream_t stream,
                                           device_step *step) {
    cudaError_t result = cudaSuccess;
    gb_cuda_tensor *operands = step->operands;
    memset(step, 0, sizeof *step);
    put_tensor(&operands[GB_SAMPLE_LOGITS], GB_F32, r->logits, count, r->size, 1, &result);
    operands[GB_SAMPLE_LOGITS].rank = 2;
#define GB_SETTING(number, NAME, name, dtype, ...)                                                           \
    put_tensor(&operands[GB_SAMPLE_##NAME], dtype, r->name, count, 1, 1, &result);
#include "program/roles.def"
    put_tensor(&operands[GB_SAMPLE_SEED], GB_U64, r->seed, count, 1, 1, &result);
    put_tensor(&operands[GB_SAMPLE_BIAS_IDS], GB_I32, r->bias_ids, count, r->bias_limit, 1, &result);
    put_tensor(&operands[GB_SAMPLE_BIAS_VALUES], GB_F32, r->bias_values, count, r->bias_limit, 1, &result);
    put_tensor(&operands[GB_SAMPLE_COUNTS], GB_I32, r->counts, count, r->count_limit, 3, &result);
    put_tensor(&operands[GB_SAMPLE_PENALIZE_PROMPT], GB_I32, r->prompt, count, 1, 1, &result);
    if (r->mask) {
        put_tensor(&operands[GB_SAMPLE_MASKED], GB_BOOL, r->masked, count, 1, 1, &result);
        put_tensor(&operands[GB_SAMPLE_MASK], GB_U32, r->mask, count, gb_mask_words(r->size), 1, &result);
    }
    put_tensor(&step->wanted, GB_BOOL, r->wanted, count, 1, 1, &result);
    put_tensor(&step->token, GB_I32, NULL, count, 1, 1, &result);
    put_tensor(&step->normalizer, GB_F32, NULL, count, 2, 1, &result);
    put_tensor(&step->logprob, GB_F32, NULL, count, 1, 1, &result);
    for (int i = 0; i < GB_SAMPLE_OPERANDS; i++)
        step->sample.operands[i] = operands[i].rank > 0 ? &operands[i] : NULL;
    step->sample.results[0] = &step->token;
    step->sample.scratch = &step->scratch;
    step->stream = stream;
    step->normalizing = (gb_cuda_call){.operands = {NULL, &step->wanted}, .results = {&step->normalizer}};
    step->naming = (gb_cuda_call){.results = {&step->logprob}};
    void *scratch = NULL;
    if (result == cudaSuccess)
        result = cudaMalloc(&scratch, gb_cuda_sample_scratch(&step->sample));
    step->scratch.bytes = scratch;
    return result;
}

static inline void free_device_step(device_step *step) {
    gb_cuda_tensor *others[] = {&step->wanted, &step->token, &step->normalizer, &step->logprob};
    for (int i = 0; i < GB_SAMPLE_OPERANDS; i++)
        cudaFree(step->operands[i].data);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cudaFree(others[i]->data);
    cudaFree(step->scratch.bytes);
    gb_cuda_launch_list_destroy(&step->launches);
}

static inline void describe_step(const device_step *step, bool has_logprobs) {
    if (has_logprobs)
        gb_cuda_sample_with_logprob(
            &(gb_cuda_problem){.parts = (const gb_cuda_call *[]){[GB_LOGPROB_SAMPLER] = &step->sample,
                                                                 [GB_LOGPROB_NORMALIZER] = &step->normalizing,
                                                                 [GB_LOGPROB_RESULT] = &step->naming},
                               .count = GB_LOGPROB_PARTS});
    else
        gb_cuda_sample(&step->sample);
}

static inline void launch_step(device_step *step, bool has_logprobs) {
    step->sample.launches = &step->launches;
    gb_cuda_launch_list_clear(&step->launches);
    describe_step(step, has_logprobs);
    gb_cuda_launch_list_run(&step->launches, step->stream);
}

#endif
