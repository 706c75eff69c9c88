/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler without its thread: answers in order, the sequences that are kept for later prompts, and what
 * each step runs. All of it belongs to one thread.
 */
#ifndef GUMBEL_RUN_SCHEDULE_SCHEDULE_H
#define GUMBEL_RUN_SCHEDULE_SCHEDULE_H

#include "run/schedule/answer.h"

typedef double (*gb_clock)(void *user);

/* Prompts are cut at multiples of this, where steps are large enough: blocks of tokens lie there. */
enum { GB_GRAIN = 64 };

/* A token of a part's draft. */
typedef struct gb_draft_row {
    float chance;
    uint32_t part, place;
    bool is_of_model; /* which is still to guess it */
} gb_draft_row;

typedef struct gb_serving_schedule {
    gb_slots_of_engine *slots;
    gumbel_scheduler_options options; /* with every default filled in */
    uint32_t grain;
    bool keeps; /* there is a prefix cache */
    gb_clock clock;
    void *clock_user;
    gb_answer *answers;        /* by priority, then by arrival */
    gb_answer *ended;          /* not yet taken */
    gb_sequence *kept;         /* of finished answers, the least recently used first */
    const gb_sequence *pinned; /* whose states an answer is about to begin with */
    bool *slot_used;           /* [slots] */
    gb_step_part *parts;       /* [slots] of a step */
    gb_answer **part_answers;  /* [slots] */
    gumbel_result *results;    /* [most rows] of all parts, those of slots without one too */
    gb_draft_row *draft_rows;  /* [slots * draft_tokens] that could be verified */
    float *draft_chances;      /* [slots * draft_tokens] theirs */
    double *draft_costs;       /* [slots * draft_tokens] and what guessing them takes */
    double *added_costs;       /* [slots] of a round of guesses */
    gb_guess *guesses;         /* [slots] of the parts */
    atomic_uint queued;        /* answers that wait, those not yet added included */
    bool is_short;             /* the device had no memory for a step: nobody begins until an answer ends */
    uint64_t host_bytes, spilled_bytes;
    gumbel_error failure; /* with which every step ends from now on; its status GUMBEL_OK: there is none */
    gumbel_scheduler_stats counts; /* the totals */
} gb_serving_schedule;

/* Settles the options. The slots stay the caller's. Errors: ARGUMENT, MEMORY. */
gumbel_status gb_schedule_create(gb_slots_of_engine *slots, const gumbel_scheduler_options *options,
                                 gb_clock clock, void *clock_user, gb_serving_schedule *schedule,
                                 gumbel_error *error);

/* There must be no answers. */
void gb_schedule_destroy(gb_serving_schedule *schedule);

double gb_schedule_now(const gb_serving_schedule *schedule);

/* Takes over a list of answers. */
void gb_schedule_add(gb_serving_schedule *schedule, gb_answer *answers);

/* Ends what is cancelled or late, lets others begin, and runs a step. Returns whether answers are left. */
bool gb_schedule_turn(gb_serving_schedule *schedule);

/* Takes the answers that have ended, to be destroyed. */
gb_answer *gb_schedule_take_ended(gb_serving_schedule *schedule);

void gb_schedule_get_stats(const gb_serving_schedule *schedule, gumbel_scheduler_stats *stats);

/* ---- memory.c: slots and bytes ------------------------------------------------------------------------- */

/* Bytes that a running answer's states have, or will soon. */
uint64_t gb_answer_bytes(const gb_serving_schedule *schedule, const gb_answer *answer);

uint32_t gb_running_count(const gb_serving_schedule *schedule);
/* Of all running answers, with what they will soon have. */
uint64_t gb_running_bytes(const gb_serving_schedule *schedule);
/* Of kept sequences in slots. */
uint64_t gb_kept_bytes(const gb_serving_schedule *schedule);

/* A slot that no sequence has, or GB_NO_SLOT. */
uint32_t gb_free_slot(const gb_serving_schedule *schedule);

/* Gives the sequence's slot back, if it has one. */
void gb_vacate(gb_serving_schedule *schedule, gb_sequence *sequence);

/* Takes a sequence out of those that are kept. */
void gb_unlink_kept(gb_serving_schedule *schedule, const gb_sequence *sequence);

/* Keeps a sequence as the one used last. */
void gb_keep(gb_serving_schedule *schedule, gb_sequence *sequence);

/* Keeps a sequence no longer. */
void gb_drop_kept(gb_serving_schedule *schedule, gb_sequence *sequence);

/* Takes the slot of the kept sequence that was used least recently; its states go to host memory, if they
 * may. False: nobody but the pinned one has one. */
bool gb_evict(gb_serving_schedule *schedule);

/* Drops kept states in host memory until they are within their limit. */
void gb_trim_host(gb_serving_schedule *schedule);

/* Puts the youngest running answer into host memory, if there are others. */
bool gb_spill_youngest(gb_serving_schedule *schedule);

/* Makes the running answers fit into memory. */
void gb_fit_memory(gb_serving_schedule *schedule);

/* Ends an answer: its sequence is kept, or dropped. */
void gb_release(gb_serving_schedule *schedule, gb_answer *answer, bool keep);

/* ---- prefix.c: what a prompt can begin with ------------------------------------------------------------ */

/* The sequence that has the states of the longest prefix of the answer's prompt, and how many tokens that is.
 * NULL: none. */
gb_sequence *gb_find_prefix(const gb_serving_schedule *schedule, const gb_answer *answer, uint32_t *position);

/* Whether a longer prompt could not begin with more of the sequence either. */
bool gb_uses_all(const gb_serving_schedule *schedule, const gb_sequence *sequence, uint32_t position);

/* Cuts the states of a sequence in a slot at the latest position up to `wanted` where they can be. */
gumbel_status gb_cut_back(gb_serving_schedule *schedule, gb_sequence *sequence, uint32_t wanted,
                          gumbel_error *error);

/* Gives the answer a slot with the states of the source's first tokens. On an error the slot is empty. */
gumbel_status gb_begin_with(gb_serving_schedule *schedule, gb_answer *answer, const gb_sequence *source,
                            uint32_t position, uint32_t slot, gumbel_error *error);

/* ---- failure.c: an engine that is lost ----------------------------------------------------------------- */

static inline bool gb_has_failed(const gb_serving_schedule *schedule) {
    return schedule->failure.status != GUMBEL_OK;
}

/* After a step has failed, and what it takes with it has ended: finds out whether all steps do. Then no
 * answer goes on, and options.on_failure is called. */
void gb_note_step_error(gb_serving_schedule *schedule, const gumbel_error *error);

/* ---- admit.c: who begins ------------------------------------------------------------------------------- */

/* Ends answers that were cancelled or whose time is over, and all once the engine has failed. */
void gb_end_overdue(gb_serving_schedule *schedule);

/* Gives slots to the first of those that wait, as far as memory goes. */
void gb_admit(gb_serving_schedule *schedule);

/* ---- compose.c: what a step runs ----------------------------------------------------------------------- */

/* Fills schedule->parts: all answers' next tokens, and of prompts what has room. Returns how many parts. */
size_t gb_compose(gb_serving_schedule *schedule);

/* Gives the first parts, which are all that go on with an answer, drafts with at most so many tokens in all.
 * Returns how many they have. */
uint32_t gb_add_drafts(gb_serving_schedule *schedule, size_t count, uint32_t room);

/* How many of a prompt's tokens a short step with room for so many runs from a position on: up to the next
 * stop, or to a multiple of the grain. */
uint32_t gb_short_chunk(const gb_serving_schedule *schedule, uint32_t position, uint32_t stop, uint32_t room);

/* ---- rerun.c: answers that become prompts ----------------------------------------------------------------
 */

/* Kept answers whose states are of no use to a prompt until they are run as one. */
uint64_t gb_reruns_due(const gb_serving_schedule *schedule);

/* Whether one is due and nobody waits. */
bool gb_has_rerun(const gb_serving_schedule *schedule);

/* Runs a chunk of such an answer again, as a prompt. */
void gb_rerun(gb_serving_schedule *schedule);

#endif
