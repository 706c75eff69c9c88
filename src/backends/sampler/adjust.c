/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/sampler/adjust.h"

#include "backends/sampler/rule.h"

#include <string.h>

static uint32_t bias_entries(const gb_bias_list *bias) {
    uint32_t entries = 0;
    while (entries < bias->limit && bias->ids[entries] >= 0)
        entries++;
    return entries;
}

uint32_t gb_add_biases(float *logits, uint32_t count, const gb_bias_list *bias, float *saved) {
    const uint32_t entries = bias_entries(bias);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < entries; i++) {
        const uint32_t id = (uint32_t)bias->ids[i];
        if (id >= count)
            continue;
        if (saved)
            saved[changed] = logits[id];
        changed++;
        logits[id] = gb_biased(logits[id], bias->values[i]);
    }
    return changed;
}

/* Backwards, since an id may stand in the list twice. */
void gb_restore_biases(float *logits, uint32_t count, const gb_bias_list *bias, const float *saved) {
    uint32_t changed = 0;
    const uint32_t entries = bias_entries(bias);
    for (uint32_t i = 0; i < entries; i++)
        changed += (uint32_t)bias->ids[i] < count;
    for (uint32_t i = entries; i-- > 0;)
        if ((uint32_t)bias->ids[i] < count)
            logits[bias->ids[i]] = saved[--changed];
}

static bool have_effect(const gb_penalties *penalties) {
    return penalties->repetition != 1.0f || penalties->frequency != 0.0f || penalties->presence != 0.0f;
}

static uint32_t count_entries(const gb_penalties *penalties) {
    return have_effect(penalties) ? penalties->limit : 0;
}

static float penalized(float x, const gb_token_count *token, const gb_penalties *penalties) {
    const int32_t repeats = token->generated + (penalties->prompt & GB_PROMPT_REPEATS ? token->prompt : 0);
    const int32_t occurs = token->generated + (penalties->prompt & GB_PROMPT_OCCURS ? token->prompt : 0);
    if (repeats != 0)
        x = gb_repetition_penalized(x, penalties->repetition);
    if (occurs != 0)
        x = gb_occurrence_penalized(x, (float)occurs, penalties->frequency, penalties->presence);
    return x;
}

uint32_t gb_add_penalties(float *logits, uint32_t count, const gb_penalties *penalties, float *saved) {
    const uint32_t entries = count_entries(penalties);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < entries && penalties->counts[i].id >= 0; i++) {
        const uint32_t id = (uint32_t)penalties->counts[i].id;
        if (id >= count)
            continue;
        if (saved)
            saved[changed] = logits[id];
        changed++;
        logits[id] = penalized(logits[id], &penalties->counts[i], penalties);
    }
    return changed;
}

void gb_restore_penalties(float *logits, uint32_t count, const gb_penalties *penalties, const float *saved) {
    const uint32_t entries = count_entries(penalties);
    uint32_t restored = 0;
    for (uint32_t i = 0; i < entries && penalties->counts[i].id >= 0; i++)
        if ((uint32_t)penalties->counts[i].id < count)
            logits[penalties->counts[i].id] = saved[restored++];
}

void gb_apply_bias(const float *logits, uint32_t count, const gb_bias_list *bias, float *y) {
    memcpy(y, logits, count * sizeof *y);
    gb_add_biases(y, count, bias, NULL);
}

void gb_penalize(const float *logits, uint32_t count, const gb_penalties *penalties, float *y) {
    memcpy(y, logits, count * sizeof *y);
    gb_add_penalties(y, count, penalties, NULL);
}

enum { BITS = 32 };

/* None but NaNs. */
static void ban_all(const float *x, uint32_t count, float *y) {
    for (uint32_t i = 0; i < count; i++)
        y[i] = x[i] != x[i] ? x[i] : gb_negative_infinity();
}

static void mask_word(const float *x, uint32_t count, uint32_t word, float *y) {
    ban_all(x, count, y);
    for (; word != 0; word &= word - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(word);
        if (i < count)
            y[i] = x[i];
    }
}

/* Most words have no bit, or all of them. */
void gb_apply_mask(const float *logits, uint32_t count, const uint32_t *mask, float *y) {
    uint32_t i = 0;
    for (; count - i >= BITS; i += BITS) {
        const uint32_t word = mask[i / BITS];
        if (word == 0)
            ban_all(logits + i, BITS, y + i);
        else if (word == UINT32_MAX)
            memcpy(y + i, logits + i, BITS * sizeof *y);
        else
            mask_word(logits + i, BITS, word, y + i);
    }
    if (i < count)
        mask_word(logits + i, count - i, mask[i / BITS], y + i);
}

size_t gb_sample_adjusted_scratch_bytes(uint32_t count, uint32_t bias_limit, uint32_t count_limit) {
    const size_t changed = (size_t)bias_limit + count_limit;
    return gb_sample_scratch_bytes(count) + (changed > count ? changed : count) * sizeof(float);
}

/* A token that is not allowed stays so under any bias and penalty, so the mask may come first. */
static int32_t sample_masked_row(const float *logits, uint32_t count, const gb_adjustments *a,
                                 const gb_row_settings *settings, void *scratch) {
    float *masked = (float *)scratch + gb_sample_scratch_bytes(count) / sizeof(float);
    gb_apply_mask(logits, count, a->mask, masked);
    gb_add_biases(masked, count, &a->bias, NULL);
    gb_add_penalties(masked, count, &a->penalties, NULL);
    return gb_sample_row(masked, count, settings, scratch);
}

int32_t gb_sample_adjusted_row(float *logits, uint32_t count, const gb_adjustments *a,
                               const gb_row_settings *settings, void *scratch) {
    if (a->mask)
        return sample_masked_row(logits, count, a, settings, scratch);
    float *before_bias = (float *)scratch + gb_sample_scratch_bytes(count) / sizeof(float);
    float *before_penalties = before_bias + gb_add_biases(logits, count, &a->bias, before_bias);
    gb_add_penalties(logits, count, &a->penalties, before_penalties);
    const int32_t token = gb_sample_row(logits, count, settings, scratch);
    gb_restore_penalties(logits, count, &a->penalties, before_penalties);
    gb_restore_biases(logits, count, &a->bias, before_bias);
    return token;
}
