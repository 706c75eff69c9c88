/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/linear/quantized.h"

/* For canonical matrices. Activations of some tokens are gathered for a block of inputs, then every row of
 * the weight takes its codes out once for all of them. y holds the sums between the blocks, so that their
 * order along k is the same whatever the block. */

enum {
    BLOCK_CODES = 32 * 1024, /* inputs of a block times its tokens */
    BLOCK_TOKENS = 32,
    LEAST_GROUP = 16,
    BLOCK_GROUPS = BLOCK_CODES / LEAST_GROUP
};

typedef struct activations {
    int16_t codes[BLOCK_CODES];
    float scales[BLOCK_GROUPS]; /* of each group of each token */
    float sums[BLOCK_GROUPS];   /* scale * sum of the codes */
} activations;

_Static_assert(sizeof(activations) <= GB_LINEAR_SCRATCH, "the scratch holds the activations");

/* Part of the work: inputs first .. first + count - 1 of some tokens. */
typedef struct block {
    size_t first, count, group;
    size_t token, tokens;
    size_t groups; /* of the part */
} block;

static void gather_block(const gb_linear *l, const block *b, activations *a) {
    const gb_activations *x = l->activations;
    size_t group = b->first / b->group;
    for (size_t t = 0; t < b->tokens; t++) {
        size_t row = gb_linear_input_row(l, b->token + t);
        const int8_t *codes = x->codes + row * x->stride + b->first;
        for (size_t i = 0; i < b->count; i++)
            a->codes[t * b->count + i] = codes[i];
        memcpy(a->scales + t * b->groups, x->scales + row * x->groups + group, b->groups * sizeof(float));
        memcpy(a->sums + t * b->groups, x->sums + row * x->groups + group, b->groups * sizeof(float));
    }
}

GB_INLINE int32_t dot(const int16_t *a, const int16_t *b, size_t count) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* A run of codes of one row, a whole number of groups. */
typedef struct row_run {
    size_t at, count; /* relative to the block */
    int16_t codes[GB_CODE_RUN];
    gb_affine affines[GB_CODE_RUN / LEAST_GROUP];
} row_run;

static void read_run(const gb_linear *l, const block *b, size_t row, row_run *run) {
    const gb_quantized_matrix *matrix = l->quantized;
    size_t first = b->first + run->at, groups = (run->count + b->group - 1) / b->group;
    gb_unpack_codes(matrix, row, first, run->count, run->codes);
    for (size_t g = 0; g < groups; g++)
        run->affines[g] = gb_format_affine(&matrix->format, &matrix->planes, matrix->data, row,
                                           (first + g * b->group) / matrix->planes.group);
}

/* The run's products with the tokens of the block. group is a constant where this is inlined, or any number;
 * only then may the last group of the run be shorter. */
GB_INLINE void add_run(const gb_linear *l, const block *b, const row_run *run, const activations *a,
                       size_t row, size_t group, bool has_bias) {
    size_t groups = (run->count + group - 1) / group, first_group = run->at / group;
    for (size_t t = 0; t < b->tokens; t++) {
        const int16_t *x = a->codes + t * b->count + run->at;
        const float *scales = a->scales + t * b->groups + first_group;
        const float *sums = a->sums + t * b->groups + first_group;
        float *y = gb_linear_result(l, b->token + t) + row;
        float sum = b->first + run->at == 0 ? 0.0f : *y;
        for (size_t g = 0; g < groups; g++) {
            size_t at = g * group, left = run->count - at;
            bool is_whole = __builtin_constant_p(group) || left >= group;
            int32_t product = dot(run->codes + at, x + at, is_whole ? group : left);
            sum += (scales[g] * run->affines[g].scale) * (float)product;
            if (has_bias)
                sum += sums[g] * run->affines[g].bias;
        }
        *y = sum;
    }
}

/* So that the compiler knows how long the usual groups are. */
GB_INLINE void add_run_of(const gb_linear *l, const block *b, const row_run *run, const activations *a,
                          size_t row, bool has_bias) {
    if (b->group == 64)
        add_run(l, b, run, a, row, 64, has_bias);
    else if (b->group == 32)
        add_run(l, b, run, a, row, 32, has_bias);
    else if (b->group == 16)
        add_run(l, b, run, a, row, 16, has_bias);
    else if (run->count % 128 == 0)
        add_run(l, b, run, a, row, 128, has_bias);
    else
        add_run(l, b, run, a, row, b->group, has_bias);
}

static void add_block(const gb_linear *l, const block *b, size_t first_row, size_t end_row,
                      const activations *a) {
    row_run run;
    for (size_t row = first_row; row < end_row; row++) {
        for (run.at = 0; run.at < b->count; run.at += run.count) {
            run.count = b->count - run.at < GB_CODE_RUN ? b->count - run.at : GB_CODE_RUN;
            read_run(l, b, l->first_row + row, &run);
            if (l->quantized->format.has_bias)
                add_run_of(l, b, &run, a, row, true);
            else
                add_run_of(l, b, &run, a, row, false);
        }
    }
}

/* As many tokens as there are, and inputs in whole runs as far as the scratch goes. */
void GB_FOR_ISA(gb_linear_int8)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    activations *a = scratch;
    if (l->quantized->is_interleaved) {
        GB_FOR_ISA(gb_linear_interleaved)(l, first, end, scratch);
        return;
    }
    block b = {.group = l->activations->group};
    for (b.token = 0; b.token < l->tokens; b.token += b.tokens) {
        size_t left = l->tokens - b.token;
        b.tokens = left < BLOCK_TOKENS ? left : BLOCK_TOKENS;
        size_t most = BLOCK_CODES / b.tokens / GB_CODE_RUN * GB_CODE_RUN;
        for (b.first = 0; b.first < l->inputs; b.first += b.count) {
            b.count = l->inputs - b.first < most ? l->inputs - b.first : most;
            b.groups = (b.count + b.group - 1) / b.group;
            gather_block(l, &b, a);
            add_block(l, &b, first, end, a);
        }
    }
}
