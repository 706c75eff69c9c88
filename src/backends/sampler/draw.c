/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/sampler/draw.h"

#include "backends/sampler/rule.h"

#include <float.h>
#include <math.h>

/* With more logits than this to draw for in a pair of blocks, hashing the whole blocks is faster. */
enum { FEW = 24 };

typedef struct draw_state {
    const gb_row *row;
    uint64_t seed;
    float temperature, least;
    float max; /* the largest s */
    gb_floor floor;
    bool has_floor;
    bool infinite; /* the candidates are the logits of +inf, with s = 0 */
    float bound;   /* logits below it cannot win */
    float score;   /* the best one so far */
    uint32_t best;
    bool has_nan;
} draw_state;

static float scaled_logit(const draw_state *draw, float x) {
    return draw->infinite ? 0.0f : gb_scale(x, draw->temperature);
}

/* Raises the bound to what can still beat the best score, clear of all roundings. */
static void raise_bound(draw_state *draw) {
    if (draw->infinite)
        return;
    const float reach = gb_reach(draw->score);
    draw->bound = gb_logit_bound(reach > draw->least ? reach : draw->least, draw->temperature);
}

/* Lets a logit compete, if it is a candidate; bits are its random word. */
static void consider(draw_state *draw, uint32_t index, uint32_t bits) {
    const float x = draw->row->logits[index];
    const float s = scaled_logit(draw, x);
    if (x < draw->bound || x == gb_negative_infinity() || !(s >= draw->least))
        return;
    if (draw->has_floor && !gb_is_above(draw->floor, s, draw->max, gb_mass(s, draw->max)))
        return;
    const float score = s + gb_gumbel(bits);
    draw->has_nan |= score != score;
    if (score > draw->score || (score == draw->score && index < draw->best)) {
        draw->score = score;
        draw->best = index;
        raise_bound(draw);
    }
}

/* A word such that smaller ones give too little noise for a logit of at most max to reach the best score:
 * that takes g >= need, so u >= exp(-exp(-need)). Clear of the errors of all functions involved. */
static uint32_t least_word(const draw_state *draw, float max) {
    const float s = scaled_logit(draw, max);
    const float need = draw->score - s - 1e-3f - (fabsf(draw->score) + fabsf(s)) * 0x1p-20f;
    if (!(need > -3.0f))
        return 0;
    const float u = gb_exp(-gb_exp(-need));
    const float word = u * (0x1p+32f - 0x1p+12f) - 1024.0f;
    return word > 0.0f ? (uint32_t)word : 0;
}

static void consider_words(draw_state *draw, uint32_t block, const uint32_t *words) {
    uint32_t size;
    const float *x = gb_row_block(draw->row, block, &size);
    const uint32_t first = (uint32_t)(x - draw->row->logits);
    const uint32_t least = least_word(draw, draw->row->block_max[block]);
    enum { STEP = 32 };
    for (uint32_t begin = 0; begin < size; begin += STEP) {
        /* Words past size are of no logit; they only make a step be looked at. */
        uint32_t any = 0;
        for (uint32_t i = 0; i < STEP; i++)
            any |= words[begin + i] >= least;
        for (uint32_t i = begin; any && i < begin + STEP && i < size; i++) {
            if (words[i] >= least)
                consider(draw, first + i, words[i]);
        }
    }
}

/* Draws all bits of a pair of blocks together. */
static void consider_whole_pair(draw_state *draw, uint32_t block) {
    uint32_t lower[GB_BLOCK], upper[GB_BLOCK];
    const uint32_t first = block * GB_BLOCK;
    for (uint32_t i = 0; i < GB_BLOCK; i++)
        gb_threefry(draw->seed, first + i, draw->row->upper + first + i, &lower[i], &upper[i]);
    if (draw->row->block_max[block] >= draw->bound)
        consider_words(draw, block, lower);
    if (draw->row->block_max[draw->row->half_blocks + block] >= draw->bound)
        consider_words(draw, draw->row->half_blocks + block, upper);
}

/* The logits of a block that can win: those that indices names, or more than FEW. */
static uint32_t find_reaching(const draw_state *draw, uint32_t block, uint32_t *indices) {
    if (draw->row->block_max[block] < draw->bound)
        return 0;
    uint32_t size;
    const float *x = gb_row_block(draw->row, block, &size);
    return gb_find_from(x, size, draw->bound, FEW + 1, indices);
}

/* Draws the bits of a few logits of a block one by one. */
static void consider_few(draw_state *draw, uint32_t block, const uint32_t *indices, uint32_t found) {
    uint32_t size;
    const uint32_t first = (uint32_t)(gb_row_block(draw->row, block, &size) - draw->row->logits);
    for (uint32_t i = 0; i < found; i++) {
        const uint32_t index = first + indices[i];
        consider(draw, index, gb_word_at(draw->seed, draw->row->count, index));
    }
}

static void visit_pair(draw_state *draw, uint32_t block) {
    const uint32_t partner = draw->row->half_blocks + block;
    uint32_t lower[GB_BLOCK], upper[GB_BLOCK];
    const uint32_t in_lower = find_reaching(draw, block, lower);
    const uint32_t in_upper = find_reaching(draw, partner, upper);
    if (in_lower + in_upper > FEW) {
        consider_whole_pair(draw, block);
        return;
    }
    consider_few(draw, block, lower, in_lower);
    consider_few(draw, partner, upper, in_upper);
}

int32_t gb_draw(const gb_row *row, const gb_draw_rule *rule) {
    const bool infinite = row->max > FLT_MAX;
    const float max = infinite ? 0.0f : gb_scale(row->max, rule->temperature);
    const float least = fmaxf(rule->least, gb_floor_bound(rule->floor, max));
    const uint64_t seed = rule->seed;
    draw_state draw = {.row = row,
                       .seed = seed,
                       .temperature = rule->temperature,
                       .least = infinite ? 0.0f : least,
                       .max = max,
                       .floor = rule->floor,
                       .has_floor = !infinite && !gb_floor_is_open(rule->floor),
                       .infinite = infinite,
                       .bound = infinite ? row->max : gb_negative_infinity(),
                       .score = gb_negative_infinity(),
                       .best = row->count};
    const uint32_t largest = gb_row_argmax(row);
    consider(&draw, largest, gb_word_at(seed, row->count, largest));
    for (uint32_t block = 0; block < row->half_blocks; block++) {
        if (row->block_max[block] >= draw.bound || row->block_max[row->half_blocks + block] >= draw.bound)
            visit_pair(&draw, block);
    }
    if (row->half < row->upper)
        consider(&draw, row->half, gb_word_at(seed, row->count, row->half));
    if (draw.has_nan)
        return GB_TOKEN_NAN;
    return draw.best < row->count ? (int32_t)draw.best : GB_TOKEN_NO_CANDIDATE;
}
