/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/schedule.h"

static bool runs_prompt(const gb_answer *answer) {
    return answer->sequence->position < answer->sequence->prompt_end;
}

/* The first position behind the sequence's own at which a snapshot is due, or the prompt's end. */
static uint32_t next_stop(const gb_serving_schedule *schedule, const gb_answer *answer) {
    const gb_sequence *sequence = answer->sequence;
    if (schedule->keeps && schedule->slots->needs_snapshots && !answer->no_prefix_cache)
        for (uint32_t i = 0; i < answer->branch_count; i++)
            if (answer->branches[i] > sequence->position)
                return answer->branches[i];
    return sequence->prompt_end;
}

/* The same of a step whose chunks are so long. */
static uint32_t cut_chunk(const gb_serving_schedule *schedule, uint32_t chunk, uint32_t position,
                          uint32_t stop, uint32_t room) {
    const uint32_t due = stop - position, to_end = chunk - position % chunk;
    uint32_t most = due < room ? due : room;
    most = most < to_end ? most : to_end;
    if (most == due)
        return due;
    const uint32_t past = (position + most) % schedule->grain;
    return most > past ? most - past : 0;
}

uint32_t gb_short_chunk(const gb_serving_schedule *schedule, uint32_t position, uint32_t stop,
                        uint32_t room) {
    return cut_chunk(schedule, schedule->slots->short_chunk, position, stop, room);
}

/* Of the prompt that goes first. Where no answer waits for its token a step may be long. */
static uint32_t first_chunk(const gb_serving_schedule *schedule, uint32_t position, uint32_t stop) {
    const gb_slots_of_engine *slots = schedule->slots;
    return cut_chunk(schedule, slots->prefill_chunk, position, stop, slots->step_tokens);
}

static gb_step_part *add_part(gb_serving_schedule *schedule, gb_answer *answer, size_t index,
                              uint32_t count) {
    const gb_sequence *sequence = answer->sequence;
    const bool draws = sequence->position + count >= sequence->prompt_end;
    schedule->part_answers[index] = answer;
    schedule->parts[index] = (gb_step_part){
        .slot = sequence->slot,
        .tokens = sequence->tokens + sequence->position,
        .count = count,
        .draws = draws,
        .wants_logprob = answer->wants_logprob,
        .top_logprobs = answer->top_logprobs,
        .seed = answer->seed + gb_answer_drawn(answer),
        .sampling = gb_answer_sampling(answer),
        .mask = answer->constraint && draws ? gb_constraint_mask(answer->constraint) : (gb_mask_source){0},
    };
    return &schedule->parts[index];
}

/* Whether nobody can join the answers that run. */
static bool nobody_joins(const gb_serving_schedule *schedule) {
    return gb_running_count(schedule) == schedule->slots->count || !schedule->answers->next;
}

/* Says what follows a step of one answer, so that the backend may begin with it. */
static void announce_following(gb_serving_schedule *schedule, size_t count) {
    const gb_answer *answer = schedule->part_answers[0];
    gb_step_part *part = &schedule->parts[0];
    if (count != 1 || !part->draws || part->draft_count > 0 || part->mask.make || !nobody_joins(schedule))
        return;
    part->following = gb_answer_following(answer);
    if (answer->drafter)
        part->following = gb_drafter_lets_ahead(answer->drafter, part->following);
    part->stop_tokens = (gb_token_list){answer->stop_tokens, answer->stop_token_count};
}

/* A prompt's chunk goes before drafts. */
static uint32_t draft_room(const gb_serving_schedule *schedule, uint32_t room) {
    const uint32_t chunk = schedule->slots->short_chunk;
    for (const gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->phase == GB_RUNNING && runs_prompt(answer))
            return room > chunk ? room - chunk : 0;
    return room;
}

static void place_results(gb_serving_schedule *schedule, size_t count) {
    gumbel_result *at = schedule->results;
    for (size_t i = 0; i < count; i++) {
        schedule->parts[i].results = at;
        at += schedule->parts[i].draft_count + 1;
    }
}

size_t gb_compose(gb_serving_schedule *schedule) {
    uint32_t room = schedule->slots->short_step_tokens;
    size_t count = 0;
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->phase == GB_RUNNING && !runs_prompt(answer))
            room -= add_part(schedule, answer, count++, 1)->count;
    room -= gb_add_drafts(schedule, count, draft_room(schedule, room));
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next) {
        if (answer->phase != GB_RUNNING || !runs_prompt(answer))
            continue;
        const uint32_t position = answer->sequence->position, stop = next_stop(schedule, answer);
        const uint32_t chunk = count == 0 ? first_chunk(schedule, position, stop)
                                          : gb_short_chunk(schedule, position, stop, room);
        if (chunk > 0)
            add_part(schedule, answer, count++, chunk);
        room = chunk < room ? room - chunk : 0;
    }
    announce_following(schedule, count);
    place_results(schedule, count);
    return count;
}
