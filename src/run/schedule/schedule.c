/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/schedule.h"

#include "base/memory.h"
#include "base/versioned.h"
#include "run/handles.h"

enum { DEFAULT_QUEUE = 1024, DEFAULT_RESERVE = 1024 };
static const uint64_t default_host_bytes = (uint64_t)1 << 30;

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status settle_options(const gb_slots_of_engine *slots, const gumbel_scheduler_options *given,
                                    gumbel_scheduler_options *options, gumbel_error *error) {
    GB_TRY(gb_read_versioned(given, "scheduler options", options, sizeof *options, error));
    const uint64_t context_bytes = slots->functions->bytes(slots, slots->max_context);
    if (options->max_queued == 0)
        options->max_queued = DEFAULT_QUEUE;
    if (options->answer_reserve == 0)
        options->answer_reserve = DEFAULT_RESERVE;
    if (options->host_bytes == 0)
        options->host_bytes = default_host_bytes;
    if (options->state_bytes == 0)
        options->state_bytes = context_bytes * slots->count;
    if (options->state_bytes < context_bytes)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "state_bytes %llu: one sequence of %u tokens needs %llu (engine option max_context)",
                       (unsigned long long)options->state_bytes, slots->max_context,
                       (unsigned long long)context_bytes);
    return GUMBEL_OK;
}

/* Where the slots do not ask for a grain, steps with room for a block of tokens beside all answers keep one.
 */
static uint32_t grain_of(const gb_slots_of_engine *slots) {
    if (slots->grain > 1)
        return slots->grain;
    const bool has_room = slots->short_step_tokens - slots->count + 1 >= GB_GRAIN;
    const bool has_blocks = slots->prefill_chunk % GB_GRAIN == 0 && slots->short_chunk % GB_GRAIN == 0;
    return has_room && has_blocks ? GB_GRAIN : 1;
}

gumbel_status gb_schedule_create(gb_slots_of_engine *slots, const gumbel_scheduler_options *options,
                                 gb_clock clock, void *clock_user, gb_serving_schedule *schedule,
                                 gumbel_error *error) {
    *schedule = (gb_serving_schedule){
        .slots = slots, .grain = grain_of(slots), .clock = clock, .clock_user = clock_user};
    GB_TRY(settle_options(slots, options, &schedule->options, error));
    schedule->keeps = !schedule->options.no_prefix_cache && slots->reuse != GB_REUSE_NONE;
    schedule->slot_used = gb_allocate(slots->count, sizeof *schedule->slot_used);
    schedule->parts = gb_allocate(slots->count, sizeof *schedule->parts);
    schedule->part_answers = gb_allocate(slots->count, sizeof *schedule->part_answers);
    const size_t most_drafts = (size_t)slots->count * slots->draft_tokens;
    schedule->results = gb_allocate((size_t)slots->count + most_drafts, sizeof *schedule->results);
    schedule->draft_rows = gb_allocate(most_drafts, sizeof *schedule->draft_rows);
    schedule->draft_chances = gb_allocate(most_drafts, sizeof *schedule->draft_chances);
    schedule->draft_costs = gb_allocate(most_drafts, sizeof *schedule->draft_costs);
    schedule->added_costs = gb_allocate(slots->count, sizeof *schedule->added_costs);
    schedule->guesses = gb_allocate(slots->count, sizeof *schedule->guesses);
    if (schedule->slot_used && schedule->parts && schedule->part_answers && schedule->results &&
        schedule->draft_rows && schedule->draft_chances && schedule->draft_costs && schedule->added_costs &&
        schedule->guesses)
        return GUMBEL_OK;
    gb_schedule_destroy(schedule);
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a scheduler");
}

void gb_schedule_destroy(gb_serving_schedule *schedule) {
    while (schedule->kept) {
        gb_sequence *kept = schedule->kept;
        schedule->kept = kept->next;
        gb_sequence_destroy(kept);
    }
    gb_free(schedule->slot_used);
    gb_free(schedule->parts);
    gb_free(schedule->part_answers);
    gb_free(schedule->results);
    gb_free(schedule->draft_rows);
    gb_free(schedule->draft_chances);
    gb_free(schedule->draft_costs);
    gb_free(schedule->added_costs);
    gb_free(schedule->guesses);
}

double gb_schedule_now(const gb_serving_schedule *schedule) {
    return schedule->clock(schedule->clock_user);
}

/* ---- Answers in order ---------------------------------------------------------------------------------- */

static bool goes_before(const gb_answer *a, const gb_answer *b) {
    return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

static void insert(gb_serving_schedule *schedule, gb_answer *answer) {
    gb_answer **at = &schedule->answers;
    while (*at && goes_before(*at, answer))
        at = &(*at)->next;
    answer->next = *at;
    *at = answer;
}

void gb_schedule_add(gb_serving_schedule *schedule, gb_answer *answers) {
    while (answers) {
        gb_answer *answer = answers;
        answers = answer->next;
        schedule->counts.submitted++;
        insert(schedule, answer);
    }
}

static void sweep(gb_serving_schedule *schedule) {
    gb_answer **at = &schedule->answers;
    while (*at) {
        gb_answer *answer = *at;
        if (answer->phase != GB_ENDED) {
            at = &answer->next;
            continue;
        }
        *at = answer->next;
        answer->next = schedule->ended;
        schedule->ended = answer;
    }
}

gb_answer *gb_schedule_take_ended(gb_serving_schedule *schedule) {
    gb_answer *ended = schedule->ended;
    schedule->ended = NULL;
    return ended;
}

/* ---- After a step -------------------------------------------------------------------------------------- */

static void fail(gb_serving_schedule *schedule, gb_answer *answer, gumbel_status status,
                 const char *message) {
    schedule->counts.failed++;
    gb_answer_fail(answer, status, message, gb_schedule_now(schedule));
    gb_release(schedule, answer, false);
}

static bool is_branch(const gb_answer *answer) {
    for (uint32_t i = 0; i < answer->branch_count; i++)
        if (answer->branches[i] == answer->sequence->position)
            return true;
    return false;
}

/* Keeps what cannot be cut where another prompt may go on otherwise. Without memory there is no snapshot. */
static void keep_branch(gb_serving_schedule *schedule, gb_answer *answer) {
    if (!schedule->keeps || !schedule->slots->needs_snapshots || answer->no_prefix_cache ||
        !is_branch(answer))
        return;
    gb_saved *saved;
    if (gb_save_states(schedule->slots, answer->sequence, GB_SAVED_WITHOUT_CACHES, &schedule->host_bytes,
                       &saved, NULL) != GUMBEL_OK)
        return;
    gb_sequence_add_snapshot(answer->sequence, answer->sequence->position, saved);
    gb_trim_host(schedule);
}

/* Whether the row has a token, behind which the grammar goes on. */
static gumbel_status check_token(gb_answer *answer, const gumbel_result *result, gumbel_error *error) {
    if (result->status == GUMBEL_OK)
        return answer->constraint ? gb_constraint_accept(answer->constraint, result->token, error)
                                  : GUMBEL_OK;
    if (answer->constraint && gb_lacks_candidates(result))
        return gb_constraint_explain(answer->constraint, error);
    return gb_fail(error, result->status, "%s", result->problem);
}

/* An answer that ends amid a draft has not run what was accepted behind its end. */
static void forget_draft(const gb_serving_schedule *schedule, const gb_answer *answer) {
    gb_slots_of_engine *slots = schedule->slots;
    const gb_sequence *sequence = answer->sequence;
    if (slots->functions->position(slots, sequence->slot) > sequence->position)
        slots->functions->truncate(slots, sequence->slot, sequence->position);
}

static void take_token(gb_serving_schedule *schedule, gb_answer *answer, const gumbel_result *result) {
    gumbel_error error;
    if (check_token(answer, result, &error) != GUMBEL_OK) {
        fail(schedule, answer, error.status, error.message);
        return;
    }
    if (answer->first_token_at <= 0)
        answer->first_token_at = gb_schedule_now(schedule);
    schedule->counts.generated_tokens++;
    const gumbel_finish finish = gb_answer_add(schedule->slots, answer, result);
    if (finish == GUMBEL_FINISH_NONE)
        return;
    forget_draft(schedule, answer);
    schedule->counts.finished++;
    gb_answer_finish(answer, finish, gb_schedule_now(schedule));
    gb_release(schedule, answer, true);
}

/* Gives the tokens that a part has drawn; those behind the first follow tokens of its draft. */
static void take_tokens(gb_serving_schedule *schedule, gb_answer *answer, const gb_step_part *part) {
    const uint32_t accepted = part->draft_count > 0 ? part->results[0].accepted : 0;
    gb_draft_stats_note(&schedule->counts.drafts, part->draft_count, accepted);
    if (answer->drafter) {
        gb_drafter_note_ahead(answer->drafter, part->following < schedule->slots->most_following
                                                   ? part->following
                                                   : schedule->slots->most_following);
        gb_drafter_note(answer->drafter, accepted);
    }
    for (uint32_t r = 0; r <= accepted && answer->phase == GB_RUNNING; r++) {
        answer->sequence->position += r > 0;
        take_token(schedule, answer, &part->results[r]);
    }
}

static void deliver(gb_serving_schedule *schedule, size_t index) {
    const gb_step_part *part = &schedule->parts[index];
    gb_answer *answer = schedule->part_answers[index];
    if (answer->sequence->position < answer->sequence->prompt_end)
        schedule->counts.prompt_tokens += part->count;
    answer->sequence->position += part->count;
    keep_branch(schedule, answer);
    if (part->draws)
        take_tokens(schedule, answer, part);
}

/* ---- Steps that fail ----------------------------------------------------------------------------------- */

/* Ends answers whose states the failed step has taken with it. */
static void end_lost(gb_serving_schedule *schedule, gumbel_status status, const gumbel_error *error) {
    const gb_slots_of_engine *slots = schedule->slots;
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->phase == GB_RUNNING &&
            slots->functions->position(slots, answer->sequence->slot) != answer->sequence->position)
            fail(schedule, answer, status, error->message);
}

/* False: the step's only answer has all of it, and nothing else can be freed. */
static bool free_device_memory(gb_serving_schedule *schedule) {
    if (gb_evict(schedule))
        return true;
    schedule->is_short = true;
    return gb_spill_youngest(schedule);
}

/* Runs the parts one by one, so that only those whose fault it is fail. */
static void run_alone(gb_serving_schedule *schedule, size_t count) {
    for (size_t i = 0; i < count; i++) {
        gumbel_error error;
        if (schedule->part_answers[i]->phase != GB_RUNNING)
            continue;
        const gumbel_status status =
            schedule->slots->functions->step(schedule->slots, &schedule->parts[i], 1, &error);
        schedule->counts.steps++;
        if (status == GUMBEL_OK || status == GUMBEL_ERROR_NUMERIC)
            deliver(schedule, i);
        else {
            fail(schedule, schedule->part_answers[i], status, error.message);
            end_lost(schedule, status, &error);
        }
    }
}

static void recover(gb_serving_schedule *schedule, size_t count, gumbel_status status,
                    const gumbel_error *error) {
    end_lost(schedule, status, error);
    if (status == GUMBEL_ERROR_MEMORY && free_device_memory(schedule))
        return;
    if (count > 1 && schedule->slots->reuse != GB_REUSE_NONE) {
        run_alone(schedule, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (schedule->part_answers[i]->phase == GB_RUNNING)
            fail(schedule, schedule->part_answers[i], status, error->message);
}

/* ---- Turns --------------------------------------------------------------------------------------------- */

/* Rows of a step that only goes on with answers; 0: it has a prompt. */
static uint32_t decode_rows(const gb_serving_schedule *schedule, size_t count) {
    uint32_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        const gb_sequence *sequence = schedule->part_answers[i]->sequence;
        if (sequence->position < sequence->prompt_end)
            return 0;
        rows += 1 + schedule->parts[i].draft_count;
    }
    return rows;
}

static void run_step(gb_serving_schedule *schedule, size_t count) {
    gumbel_error error;
    const uint32_t rows = decode_rows(schedule, count);
    gb_step_times_begin(schedule->slots->step_times);
    const double begun = gb_schedule_now(schedule);
    const gumbel_status status =
        schedule->slots->functions->step(schedule->slots, schedule->parts, count, &error);
    schedule->counts.steps++;
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_NUMERIC) {
        recover(schedule, count, status, &error);
        gb_note_step_error(schedule, &error);
        return;
    }
    if (rows > 0)
        gb_step_times_note(schedule->slots->step_times, rows, gb_schedule_now(schedule) - begun);
    for (size_t i = 0; i < count; i++)
        deliver(schedule, i);
}

bool gb_schedule_turn(gb_serving_schedule *schedule) {
    gb_end_overdue(schedule);
    gb_admit(schedule);
    gb_fit_memory(schedule);
    const size_t count = gb_compose(schedule);
    if (count > 0)
        run_step(schedule, count);
    sweep(schedule);
    return schedule->answers != NULL;
}

/* ---- Statistics ---------------------------------------------------------------------------------------- */

static void count_phases(const gb_serving_schedule *schedule, gumbel_scheduler_stats *stats) {
    for (const gb_answer *answer = schedule->answers; answer; answer = answer->next) {
        if (answer->phase == GB_RUNNING)
            stats->running_bytes +=
                schedule->slots->functions->bytes(schedule->slots, answer->sequence->position);
        stats->running += answer->phase == GB_RUNNING;
        stats->spilled += answer->phase == GB_SPILLED;
    }
    for (const gb_sequence *kept = schedule->kept; kept; kept = kept->next)
        stats->kept_slots += kept->place == GB_PLACE_SLOT;
    for (uint32_t i = 0; i < schedule->slots->count; i++)
        stats->free_slots += !schedule->slot_used[i];
}

void gb_schedule_get_stats(const gb_serving_schedule *schedule, gumbel_scheduler_stats *stats) {
    *stats = schedule->counts;
    stats->size = sizeof *stats;
    stats->drafts.size = sizeof stats->drafts;
    stats->queued = atomic_load(&schedule->queued);
    stats->slots = schedule->slots->count;
    stats->state_bytes = schedule->options.state_bytes;
    stats->kept_bytes = gb_kept_bytes(schedule);
    stats->host_bytes = schedule->host_bytes;
    stats->spilled_bytes = schedule->spilled_bytes;
    stats->reruns_due = gb_reruns_due(schedule);
    count_phases(schedule, stats);
}
