/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample step as its kernels share it: what a row is, what is known of it between launches, and the search
 * for what can win in it. docs/sampling.md has the rule, sample.cu says who does what.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_SAMPLING_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_SAMPLING_CUH

#include "backends/cuda/sampler/groups.cuh"
#include "backends/sampler/floor.h"

namespace gb_cuda {

enum { MASS_BINS = 2048 };
/* Of a short row: biases and counted tokens at most; each thread of a block has CHANGES_EACH of them. */
enum {
    MOST_SHORT_BIASES = 32,
    MOST_SHORT_COUNTS = GB_CUDA_COUNTS_TOGETHER,
    MOST_CHANGES = MOST_SHORT_COUNTS + MOST_SHORT_BIASES
};
enum { CHANGES_EACH = (int)MOST_SHORT_COUNTS / (int)ROW_THREADS + 1 };
enum { NO_CHANGE = -2, CHANGE_BIAS_SHIFT = 24 };

/* What biases and penalties change in short rows, in scratch: [B, MOST_CHANGES] each. */
struct row_changes {
    int32_t *ids; /* of tokens, and above them the place of its first bias, from 1 on; -1: a list's end */
    float *values;
    uint32_t *before; /* keys of the logits without the change */
};

/* What is left to be done for a row after run_sample_settle. */
enum row_kind {
    ROW_IS_DONE,
    ROW_IS_DRAWN, /* `drawn` has the token */
    ROW_IS_LEFT,  /* a token is drawn from what is kept, s >= least: top-k without a short list */
    ROW_IS_EVEN,  /* a token is drawn from the logits of +inf */
    ROW_IS_CUT,   /* top-p alone: masses have been summed, a token is drawn from what they keep */
};

struct row_state {
    uint32_t kind;
    uint32_t blocks_done; /* with drawing */
    uint32_t listed;      /* top-p alone: logits of the bin that has the threshold */
    float max_s, least;
    weight_sum drawn; /* the best score so far, packed */
    float largest;    /* where its log-probability is wanted: of the row's own logits */
    weight_sum mass;  /* likewise: all of them */
};

/* What a token's counts are stored as. */
struct token_count {
    int32_t id, prompt, generated;
};

struct sampling {
    const float *logits; /* [B, size] */
    uint32_t size, groups;
    uint32_t parts; /* blocks that share a row after the scan */
    const uint64_t *seed;
    /* the settings of roles.def; NULL for what the program does not have */
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...) const GB_C_TYPE(dtype) * name;
#include "program/roles.def"
    const int32_t *bias_ids; /* or NULL: [B, bias_limit] */
    const float *bias_values;
    uint32_t bias_limit;
    const token_count *counts; /* or NULL: [B, count_limit]; read in rows with penalties alone */
    uint32_t count_limit;
    const int32_t *prompt;
    const bool *masked;   /* or NULL: [B] */
    const uint32_t *mask; /* [B, mask_words]; read in masked rows alone */
    uint32_t mask_words;
    int32_t *token;
    const bool *wanted;          /* log-probabilities, or NULL */
    float *normalizer, *logprob; /* if so, for rows that want them: [B, 2] as log_normalizer has it, [B] */
    /* scratch, by row */
    float *adjusted;  /* [size]: the logits of a row with biases, penalties or a mask */
    uint32_t *listed; /* [size]: indices */
    row_state *rows;
    weight_sum *bins; /* [MASS_BINS] */
    row_changes changes;
    group_maxima maxima, adjusted_maxima;
};

/* A row's settings. */
struct row_settings {
    float temperature, top_p;
    uint32_t top_k; /* 0: all */
    uint64_t seed;
    gb_floor floor;
    bool is_biased, is_penalized, is_masked;
    bool is_short; /* one block finds the token among few groups, and knows what is adjusted */
    float repetition, frequency, presence;
    int32_t prompt;
};

/* All are read at once: only in a row with penalties something waits for two reads. */
__device__ inline row_settings settings_of(const sampling &a, size_t b) {
    row_settings r;
    gb_row_settings drawn;
    drawn.seed = a.seed[b];
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(drawn.name = a.name ? a.name[b] : neutral;)
#include "program/roles.def"
    const int32_t first_bias = a.bias_ids ? a.bias_ids[b * a.bias_limit] : -1;
    const int32_t next_bias =
        a.bias_limit > MOST_SHORT_BIASES ? a.bias_ids[b * a.bias_limit + MOST_SHORT_BIASES] : -1;
    r.repetition = a.counts ? a.repetition_penalty[b] : 1.0f;
    r.frequency = a.counts ? a.frequency_penalty[b] : 0.0f;
    r.presence = a.counts ? a.presence_penalty[b] : 0.0f;
    r.prompt = a.counts ? a.prompt[b] : 0;
    r.temperature = drawn.temperature;
    r.top_p = drawn.top_p;
    r.seed = drawn.seed;
    r.top_k = drawn.top_k <= 0 || (uint32_t)drawn.top_k >= a.size ? 0 : (uint32_t)drawn.top_k;
    r.floor = gb_floor_of(&drawn);
    r.is_biased = first_bias >= 0;
    r.is_masked = a.masked && a.masked[b];
    r.is_penalized = (r.repetition != 1.0f) | (r.frequency != 0.0f) | (r.presence != 0.0f);
    r.is_short = a.groups <= MOST_GROUPS &&
                 (r.temperature == 0.0f || (r.top_k != 0 && r.top_k <= MOST_WANTED)) &&
                 (next_bias < 0 || !r.is_biased) && !r.is_masked;
    if (r.is_penalized && a.count_limit > MOST_SHORT_COUNTS)
        r.is_short = r.is_short && a.counts[b * a.count_limit + MOST_SHORT_COUNTS].id < 0;
    return r;
}

__device__ inline bool is_adjusted(const row_settings &r) {
    return r.is_biased || r.is_penalized || r.is_masked;
}

/* The row that is sampled from. */
__device__ inline const float *row_of(const sampling &a, size_t b, const row_settings &r) {
    return (is_adjusted(r) ? a.adjusted : a.logits) + b * a.size;
}

/* Its groups' largest; of a row that is not short. */
__device__ inline group_maxima maxima_of(const sampling &a, size_t b, const row_settings &r) {
    return maxima_of_row(is_adjusted(r) ? a.adjusted_maxima : a.maxima, b, a.groups);
}

/* A score with its index; one that is not a number is larger than all. */
__device__ inline weight_sum pack_score(float score, uint32_t index) {
    return score == score ? pack_best(score, index) : ~(weight_sum)0;
}

/* That of an s with its random word. */
static __device__ __noinline__ weight_sum score_with(float s, uint32_t index, uint32_t word) {
    return pack_score(s + gb_gumbel(word), index);
}

static __device__ __noinline__ weight_sum score_of(uint64_t seed, uint32_t size, float s, uint32_t index) {
    return score_with(s, index, gb_word_at(seed, size, index));
}

/* The token of a row, or what it is instead. */
__device__ inline int32_t token_of(weight_sum best) {
    const int32_t no_candidate = -1, not_a_number = -2;
    if (best == ~(weight_sum)0)
        return not_a_number;
    return best == 0 ? no_candidate : (int32_t)best_index(best);
}

/* sample_finish.cu */
void launch_finish(const sampling &a, dim3 grid, gb_cuda_launch_list *launches);

} // namespace gb_cuda

#endif
