/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_slots *own(gb_slots_of_engine *slots) {
    return (fake_slots *)slots;
}

/* ---- States -------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static void run_token(fake_slot *slot, int32_t token) {
    slot->hashes[slot->position] = slot->hash;
    slot->tokens[slot->position++] = token;
    slot->hash = mix(slot->hash, (uint64_t)token);
}

/* What marks a token, where it matters how it was run. */
static int32_t mark_of(const fake_slots *fake, bool is_decoded) {
    return is_decoded && fake->base.reuse == GB_REUSE_PROMPT ? FAKE_DECODED : 0;
}

static int32_t draw(const fake_slots *fake, const fake_slot *slot, uint64_t seed) {
    uint64_t hash = 1;
    for (uint32_t i = 0; i < slot->position; i++)
        hash = mix(hash, (uint64_t)slot->tokens[i]);
    if (slot->tokens[slot->position - 1] == FAKE_ENDING)
        return FAKE_STOP;
    if (fake->base.needs_snapshots)
        hash = mix(hash, slot->hash);
    return (int32_t)(mix(hash, seed) % FAKE_FAULT);
}

static uint32_t used_tokens(const fake_slots *fake) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < fake->base.count; i++)
        sum += fake->slots[i].position;
    return sum;
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static bool has_token(const gb_step_part *part, int32_t token) {
    for (uint32_t i = 0; i < part->count; i++)
        if (part->tokens[i] == token)
            return true;
    return false;
}

/* A prompt that goes on amid a block has other states. */
static void begin_run(const fake_slots *fake, fake_slot *slot, int32_t token) {
    const uint32_t grain = fake->base.grain;
    const bool goes_on =
        slot->position > 0 && token != slot->drawn && !(slot->tokens[slot->position - 1] & FAKE_DECODED);
    if (grain > 1 && goes_on && slot->position % grain != 0)
        slot->hash = mix(slot->hash, grain);
}

static void wait_at_gate(fake_slots *fake) {
    pthread_mutex_lock(&fake->mutex);
    fake->arrived++;
    pthread_cond_broadcast(&fake->changed);
    while (fake->has_gates && fake->open < fake->arrived)
        pthread_cond_wait(&fake->changed, &fake->mutex);
    pthread_mutex_unlock(&fake->mutex);
}

static void log_step(fake_slots *fake, const gb_step_part *parts, size_t count) {
    size_t used = strlen(fake->log);
    for (size_t i = 0; i < count && used + 32 < FAKE_LOG; i++)
        used += (size_t)snprintf(fake->log + used, FAKE_LOG - used, "%s%u:%u%s", i ? " " : "", parts[i].slot,
                                 parts[i].count, parts[i].draws ? "+" : "");
    if (used + 2 < FAKE_LOG)
        strcpy(fake->log + used, "|");
}

static gumbel_status check_step(const fake_slots *fake, const gb_step_part *parts, size_t count,
                                gumbel_error *error) {
    uint32_t tokens = 0;
    if (fake->is_lost)
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "device 1: lost");
    for (size_t i = 0; i < count; i++) {
        tokens += parts[i].count + parts[i].draft_count;
        if (has_token(&parts[i], FAKE_FAULT))
            return gb_fail(error, GUMBEL_ERROR_BACKEND, "the fault's step");
    }
    if (tokens > fake->base.step_tokens)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%u tokens in a step", tokens);
    if (fake->memory > 0 && used_tokens(fake) + tokens > fake->memory)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "the device has no memory");
    return GUMBEL_OK;
}

static void clear(gb_slots_of_engine *slots, uint32_t slot) {
    own(slots)->slots[slot] = (fake_slot){.drawn = -1};
}

/* Draws a token for each row, and runs the draft's as long as they are those. */
static void draw_rows(const fake_slots *fake, fake_slot *slot, gb_step_part *part) {
    uint32_t accepted = 0;
    for (uint32_t r = 0; r <= part->draft_count; r++) {
        const int32_t token = draw(fake, slot, part->seed + r);
        part->results[r] =
            (gumbel_result){.size = sizeof *part->results, .token = token, .seed = part->seed + r};
        slot->drawn = token;
        if (r == part->draft_count || token != part->draft[r] || token == FAKE_STOP)
            break;
        run_token(slot, token | mark_of(fake, true));
        accepted++;
    }
    part->results[0].accepted = accepted;
}

static gumbel_status step(gb_slots_of_engine *slots, gb_step_part *parts, size_t count, gumbel_error *error) {
    fake_slots *fake = own(slots);
    gumbel_status status = GUMBEL_OK;
    wait_at_gate(fake);
    log_step(fake, parts, count);
    fake->following = count == 1 ? parts[0].following : 0;
    status = check_step(fake, parts, count, error);
    for (size_t i = 0; status == GUMBEL_ERROR_BACKEND && fake->fault_empties && i < count; i++)
        clear(slots, parts[i].slot);
    if (status != GUMBEL_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        gb_step_part *part = &parts[i];
        fake_slot *slot = &fake->slots[part->slot];
        begin_run(fake, slot, part->tokens[0]);
        for (uint32_t t = 0; t < part->count; t++)
            run_token(slot, part->tokens[t] | mark_of(fake, t == 0 && part->tokens[t] == slot->drawn));
        slot->drawn = -1;
        if (part->draws && has_token(part, FAKE_POISON)) {
            part->results[0] =
                (gumbel_result){.size = sizeof *part->results, .token = -1, .seed = part->seed};
            part->results[0].status = status = GUMBEL_ERROR_NUMERIC;
            part->results[0].problem = "poisoned";
        } else if (part->draws) {
            draw_rows(fake, slot, part);
        }
    }
    return status;
}

static void truncate_draft(gb_slots_of_engine *slots, uint32_t slot, uint32_t position) {
    fake_slot *of = &own(slots)->slots[slot];
    of->drawn = of->tokens[position] & ~FAKE_DECODED;
    while (of->position > position)
        of->hash = of->hashes[--of->position];
}

/* ---- Moving -------------------------------------------------------------------------------------------- */

static uint32_t position(const gb_slots_of_engine *slots, uint32_t slot) {
    return ((const fake_slots *)slots)->slots[slot].position;
}

static uint32_t cut(const gb_slots_of_engine *slots, uint32_t slot, uint32_t end, uint32_t wanted) {
    (void)slot;
    if (wanted >= end && (slots->grain <= 1 || end % slots->grain == 0))
        return end;
    return slots->needs_snapshots ? 0 : wanted;
}

static void set_prefix(fake_slot *slot, const gb_token_prefix *prefix) {
    slot->position = prefix->position;
    slot->drawn = prefix->position >= prefix->prompt_end ? prefix->tokens[prefix->position] : -1;
}

static gumbel_status take(gb_slots_of_engine *slots, uint32_t from, uint32_t to,
                          const gb_token_prefix *prefix, gumbel_error *error) {
    (void)error;
    fake_slot *target = &own(slots)->slots[to];
    *target = own(slots)->slots[from]; /* later tokens stay, to be overwritten */
    set_prefix(target, prefix);
    return GUMBEL_OK;
}

typedef struct fake_states {
    gb_host_states base;
    uint64_t hash;
    int32_t tokens[FAKE_CONTEXT + 1];
} fake_states;

static void release(gb_host_states *states) {
    free(states);
}

static gumbel_status save(gb_slots_of_engine *slots, uint32_t slot, gb_saved_states saved,
                          gb_host_states **states, gumbel_error *error) {
    const fake_slot *from = &own(slots)->slots[slot];
    fake_states *made = own(slots)->save_fails ? NULL : malloc(sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory");
    own(slots)->saves++;
    made->base = (gb_host_states){.bytes = sizeof made->hash, .release = release};
    made->hash = from->hash;
    if (saved == GB_SAVED_ALL) {
        memcpy(made->tokens, from->tokens, from->position * sizeof *from->tokens);
        made->base.bytes += from->position * sizeof *from->tokens;
    }
    *states = &made->base;
    return GUMBEL_OK;
}

static gumbel_status load(gb_slots_of_engine *slots, uint32_t slot, const gb_token_prefix *prefix,
                          gb_saved_states saved, const gb_host_states *states, gumbel_error *error) {
    (void)error;
    fake_slot *to = &own(slots)->slots[slot];
    const fake_states *from = (const fake_states *)states;
    to->hash = from->hash;
    if (saved == GB_SAVED_ALL)
        memcpy(to->tokens, from->tokens, prefix->position * sizeof *to->tokens);
    set_prefix(to, prefix);
    return GUMBEL_OK;
}

static uint64_t bytes(const gb_slots_of_engine *slots, uint32_t end) {
    (void)slots;
    return end;
}

static gumbel_status settle(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                            gumbel_sampling *settled, gumbel_error *error) {
    (void)slots, (void)submission, (void)error;
    *settled = (gumbel_sampling){.size = sizeof *settled, .temperature = 1, .top_p = 1};
    return GUMBEL_OK;
}

static void destroy(gb_slots_of_engine *slots) {
    pthread_mutex_destroy(&own(slots)->mutex);
    pthread_cond_destroy(&own(slots)->changed);
}

/* ---- For tests ----------------------------------------------------------------------------------------- */

static const gb_slots_functions functions = {.step = step,
                                             .position = position,
                                             .truncate = truncate_draft,
                                             .clear = clear,
                                             .cut = cut,
                                             .take = take,
                                             .save = save,
                                             .load = load,
                                             .bytes = bytes,
                                             .settle = settle,
                                             .destroy = destroy};

void fake_slots_init(fake_slots *fake, uint32_t slots, uint32_t step_tokens, uint32_t chunk, bool recurrent) {
    static const int32_t stop = FAKE_STOP;
    memset(fake, 0, sizeof *fake);
    fake->base = (gb_slots_of_engine){.functions = &functions,
                                      .count = slots,
                                      .max_context = FAKE_CONTEXT,
                                      .step_tokens = step_tokens,
                                      .prefill_chunk = chunk,
                                      .short_step_tokens = step_tokens,
                                      .short_chunk = chunk,
                                      .vocab_size = FAKE_VOCABULARY,
                                      .stop_tokens = {.ids = &stop, .count = 1},
                                      .step_times = &fake->step_times,
                                      .reuse = GB_REUSE_ALL,
                                      .needs_snapshots = recurrent};
    for (uint32_t i = 0; i < FAKE_SLOTS; i++)
        clear(&fake->base, i);
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void fake_wait_for_step(fake_slots *fake, unsigned n) {
    pthread_mutex_lock(&fake->mutex);
    while (fake->arrived < n)
        pthread_cond_wait(&fake->changed, &fake->mutex);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_let_pass(fake_slots *fake, unsigned count) {
    pthread_mutex_lock(&fake->mutex);
    fake->open += count;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_answer(const fake_slots *fake, const int32_t *prompt, uint32_t prompt_count, uint64_t seed,
                 int32_t *tokens, uint32_t count) {
    fake_slot slot = {.position = 0};
    for (uint32_t i = 0; i < prompt_count; i++)
        run_token(&slot, prompt[i]);
    for (uint32_t i = 0; i < count; i++) {
        tokens[i] = draw(fake, &slot, seed + i);
        run_token(&slot, tokens[i] | mark_of(fake, true));
    }
}
