/* SPDX-License-Identifier: Apache-2.0
 *
 * How recurrent states forget drafts: a state stands before the drafts of its slot's last step, and the log
 * has what its op was given for each of them. Whatever changes or reads the state next first runs the op's
 * sums over those that are still wanted. So no state is copied, and no token is run twice.
 */
#ifndef GUMBEL_BACKENDS_CPU_ROW_LOG_H
#define GUMBEL_BACKENDS_CPU_ROW_LOG_H

#include "backends/backend.h"
#include "backends/states/drafts.h"

struct gb_row_log;

/* Of a state: a row is what its op was given for a token, in the order of the op's operands. */
typedef struct gb_state_log {
    const struct gb_row_log *of;
    float *rows;       /* of slot 0: [2, capacity, row_floats], which steps with drafts fill by turns */
    size_t row_floats; /* 0: the state is not recurrent */
} gb_state_log;

typedef struct gb_row_log {
    uint32_t capacity;      /* drafts of a slot in a step, at most; 0: nothing is logged */
    size_t slot_floats;     /* from a slot's rows to the next one's */
    gb_slot_drafts *drafts; /* [slots] those that are logged, which the states lack */
    gb_state_log *states;   /* [state_count], the program's states */
    float *memory;
    const bool *is_draft; /* [N] of the step that is executed */
} gb_row_log;

/* Reserves the log of that many drafts. Safe to destroy after a failure. Errors: UNSUPPORTED (keys of a delta
 * net that are too long), MEMORY. */
gumbel_status gb_row_log_create(const gb_program *program, uint32_t slots, uint32_t drafts, gb_row_log *log,
                                gumbel_error *error);
void gb_row_log_destroy(gb_row_log *log);

/* After a step: its drafts are logged, and nothing else of its slots is. */
void gb_row_log_advance(gb_row_log *log, const gb_batch *batch);

/* The slot's states stand at position, and lack nothing. */
void gb_row_log_reset(gb_row_log *log, uint32_t slot, uint32_t position);

/* Forgets the logged tokens from position on; false where the states stand elsewhere. */
bool gb_row_log_truncate(gb_row_log *log, uint32_t slot, uint32_t position);

/* How many of the tokens first .. end - 1 of one slot are drafts, which stand last. log may be NULL. */
static inline size_t gb_count_drafts(const gb_state_log *log, size_t first, size_t end) {
    size_t count = 0;
    while (log && end - count > first && log->of->is_draft[end - count - 1])
        count++;
    return count;
}

/* How many logged tokens the state lacks. log may be NULL. */
static inline size_t gb_logged_count(const gb_state_log *log, size_t slot) {
    return log ? log->of->drafts[slot].count : 0;
}

static inline float *gb_rows_of_turn(const gb_state_log *log, size_t slot, uint32_t turn) {
    return log->rows + slot * log->of->slot_floats + turn % 2 * (size_t)log->of->capacity * log->row_floats;
}

/* Their rows, and where those of the step's drafts go. */
static inline float *gb_logged_rows(const gb_state_log *log, size_t slot) {
    return gb_rows_of_turn(log, slot, log->of->drafts[slot].turn);
}

static inline float *gb_rows_to_log(const gb_state_log *log, size_t slot) {
    return gb_rows_of_turn(log, slot, log->of->drafts[slot].turn + 1);
}

#endif
