/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/schedule.h"

void gb_schedule_begin(gb_schedule *schedule, const void *shared) {
    schedule->shared = shared;
    schedule->open_count = 0;
}

void gb_schedule_meet(gb_schedule *schedule) {
    schedule->open_count = 0;
}

/* The accesses of one step. */
typedef struct accesses {
    gb_access list[GB_MAX_STEP_OPERANDS + GB_MAX_STEP_RESULTS + 1];
    size_t count;
} accesses;

static void add_access(accesses *a, const gb_cpu_tensor *tensor, gb_split split, bool is_write) {
    const uint8_t *data = tensor->data;
    size_t bytes = gb_elements(tensor) * gb_dtype_size(tensor->dtype);
    size_t tokens = tensor->rank > 0 ? tensor->dims[0] : 1;
    size_t columns = tensor->rank > 1 ? tensor->dims[tensor->rank - 1] : 1;
    if (tensor->slot_bytes > 0)
        bytes = 1; /* slots hold one state after another: where it begins in the first one names it */
    if (!data || bytes == 0)
        return;
    if ((split == GB_SPLIT_TOKENS && tokens == 1) || (split == GB_SPLIT_COLUMNS && columns <= GB_COLUMN_UNIT))
        split = GB_SPLIT_ALONE; /* one unit is thread 0's */
    a->list[a->count++] = (gb_access){data, data + bytes, tokens, columns, split, is_write};
}

static bool touches_own_share(const gb_kernel_traits *traits, uint32_t operand, gb_split split) {
    switch (split) {
    case GB_SPLIT_ALONE:
        return true;
    case GB_SPLIT_TOKENS:
        return traits->own_tokens >> operand & 1u;
    case GB_SPLIT_COLUMNS:
        return traits->own_columns >> operand & 1u;
    case GB_SPLIT_OWN:
        break;
    }
    return false;
}

/* What a step touches if it is split like that. */
static accesses accesses_of(const gb_schedule *schedule, const gb_kernel_call *call,
                            const gb_kernel_traits *traits, gb_split split) {
    accesses a = {.count = 0};
    if (traits->shared != GB_SHARED_UNUSED) {
        gb_split access = split == GB_SPLIT_ALONE ? GB_SPLIT_ALONE : GB_SPLIT_OWN;
        a.list[a.count++] = (gb_access){
            schedule->shared, schedule->shared + 1, 1, 1, access, traits->shared == GB_SHARED_WRITTEN};
    }
    for (uint32_t i = 0; i < GB_MAX_STEP_OPERANDS; i++) {
        if (!call->operands[i])
            continue;
        gb_split access = touches_own_share(traits, i, split) ? split : GB_SPLIT_OWN;
        add_access(&a, call->operands[i], access, traits->changed >> i & 1u);
    }
    for (uint32_t i = 0; i < GB_MAX_STEP_RESULTS; i++)
        if (call->results[i])
            add_access(&a, call->results[i], split, true);
    return a;
}

/* Whether each byte that both touch is touched by the same thread. */
static bool same_threads(const gb_access *a, const gb_access *b) {
    if (a->split != b->split)
        return false;
    switch (a->split) {
    case GB_SPLIT_ALONE:
        return true;
    case GB_SPLIT_TOKENS:
        return a->first == b->first && a->end == b->end && a->tokens == b->tokens;
    case GB_SPLIT_COLUMNS:
        return a->first == b->first && a->end == b->end && a->columns == b->columns;
    case GB_SPLIT_OWN:
        break;
    }
    return false;
}

static bool conflict(const gb_access *a, const gb_access *b) {
    bool overlap = a->first < b->end && b->first < a->end;
    return overlap && (a->is_write || b->is_write) && !same_threads(a, b);
}

static bool fits(const gb_schedule *schedule, const accesses *a) {
    if (schedule->open_count + a->count > GB_MAX_OPEN_ACCESSES)
        return false;
    for (size_t i = 0; i < schedule->open_count; i++)
        for (size_t j = 0; j < a->count; j++)
            if (conflict(&schedule->open[i], &a->list[j]))
                return false;
    return true;
}

static void open_accesses(gb_schedule *schedule, const accesses *a) {
    for (size_t i = 0; i < a->count; i++)
        schedule->open[schedule->open_count++] = a->list[i];
}

bool gb_schedule_step(gb_schedule *schedule, const gb_kernel_call *call, const gb_kernel_traits *traits,
                      gb_split preferred, gb_split *split) {
    const gb_split others[] = {preferred, GB_SPLIT_COLUMNS, GB_SPLIT_TOKENS, GB_SPLIT_ALONE};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool is_possible = others[i] == preferred || (traits->splits & (unsigned)others[i]) != 0;
        /* Work that is worth sharing is not left to one thread to save a barrier. */
        if (!is_possible || (others[i] == GB_SPLIT_ALONE && preferred != GB_SPLIT_ALONE))
            continue;
        accesses a = accesses_of(schedule, call, traits, others[i]);
        if (!fits(schedule, &a))
            continue;
        *split = others[i];
        open_accesses(schedule, &a);
        return false;
    }
    accesses a = accesses_of(schedule, call, traits, preferred);
    gb_schedule_meet(schedule);
    *split = preferred;
    open_accesses(schedule, &a);
    return true;
}
