/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/follow.h"

#include "backends/ranks/processes/message.h"
#include "backends/ranks/processes/sockets.h"
#include "base/memory.h"

#include <string.h>

typedef struct follower {
    gumbel_process_group *processes;
    const gb_followed *followed;
    gb_task_message message;
    gb_byte_buffer payload;
    gb_batch_limits limits[GB_MOST_GROUPS]; /* of steps */
} follower;

static uint32_t own_rank(const follower *f) {
    return f->processes->launch.rank;
}

static gumbel_status is_malformed(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_BACKEND, "what rank 0 has sent is no task");
}

/* ---- Creating a group's rank --------------------------------------------------------------------------- */

static gb_backend_options options_of(const follower *f, const gb_creation_message *message) {
    gb_backend_options options = f->followed->options;
    options.slots = message->slots;
    options.max_context = message->max_context;
    options.step_tokens = message->step_tokens;
    options.prefill_chunk = message->prefill_chunk;
    options.least_chunk = message->least_chunk;
    options.draft_tokens = message->draft_tokens;
    options.fuse = message->fuse;
    options.snapshots = message->snapshots;
    options.profile = message->has_profile ? gb_ignore_profile : NULL;
    return options;
}

static gumbel_status find_program(const follower *f, const gb_creation_message *message,
                                  const gb_program **program, gumbel_error *error) {
    const gb_followed *followed = f->followed;
    *program = NULL;
    for (size_t i = 0; i < followed->program_count && !*program; i++)
        if (memcmp(followed->programs[i]->id, message->program, sizeof message->program) == 0)
            *program = followed->programs[i];
    if (!*program)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "it has another program than rank 0, or one with another --cache");
    if (strncmp(message->backend, followed->backend, sizeof message->backend) != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "it runs on %s, and rank 0 on %.15s", followed->backend,
                       message->backend);
    if (gb_all_state_bytes(*program) != message->state_bytes)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "it has caches of another type than rank 0 (--cache)");
    return GUMBEL_OK;
}

static gumbel_status start(follower *f, gb_group *all, const gb_creation_message *message,
                           gumbel_error *error) {
    const uint32_t rank = own_rank(f);
    const gb_group_creation creation = {f->followed->create, options_of(f, message), message->least_weights,
                                        f->followed->backend};
    const gb_group_task task = {.all = all, .function = GB_GROUP_CREATE, .creation = &creation};
    f->limits[all->number] = (gb_batch_limits){creation.options.step_tokens, gb_most_rows(&creation.options),
                                               gb_batch_widths_of(&all->program->metadata)};
    GB_TRY(gb_group_shard(all, message->least_weights, error));
    gb_group_run_on(&task, rank);
    const gumbel_error *outcome = &all->ranks[rank].outcome;
    return outcome->status == GUMBEL_OK ? GUMBEL_OK : gb_fail(error, outcome->status, "%s", outcome->message);
}

static gumbel_status create_group(follower *f, gumbel_error *error) {
    gumbel_process_group *p = f->processes;
    gb_creation_message message;
    const gb_program *program;
    if (f->payload.size != sizeof message || p->groups[f->message.group])
        return is_malformed(error);
    memcpy(&message, f->payload.data, sizeof message);
    GB_TRY(find_program(f, &message, &program, error));
    gb_group *all = gb_group_new(program, message.max_context, p->launch.count);
    if (!all)
        return gb_no_memory(error, "a backend");
    all->processes = p;
    all->meeting = gb_processes_meeting(p);
    all->first = own_rank(f);
    all->end = all->first + 1;
    all->number = f->message.group;
    p->groups[all->number] = all;
    return start(f, all, &message, error);
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

static void free_group(follower *f, gb_group *all) {
    gb_processes_forget_group(f->processes, all);
    gb_group_free(all);
}

typedef struct arguments {
    gb_batch batch, following, result;
    gb_rows_of_slot rows;
    gb_rank_bytes bytes[GB_MOST_RANKS];
    uint64_t free_bytes[GB_MOST_RANKS];
} arguments;

static gb_group_task task_of(const follower *f, gb_group *all, arguments *a) {
    const gb_task_message *m = &f->message;
    return (gb_group_task){.all = all,
                           .function = (gb_group_function)m->function,
                           .batch = &a->batch,
                           .result = &a->result,
                           .slot = m->slot,
                           .to = m->to,
                           .position = m->position,
                           .state = m->state,
                           .rows = &a->rows,
                           .saved = (gb_saved_states)m->saved,
                           .bytes = a->bytes,
                           .free_bytes = a->free_bytes};
}

static bool read_arguments(follower *f, arguments *a) {
    const gb_task_message *m = &f->message;
    if (m->function == GB_GROUP_STEP)
        return gb_batch_read(f->payload.data, f->payload.size, &f->limits[m->group], &a->batch,
                             &a->following);
    if (m->function == GB_GROUP_LOAD_SLOT)
        a->bytes[own_rank(f)] = (gb_rank_bytes){.data = f->payload.data, .size = f->payload.size};
    if (m->function != GB_GROUP_TAKE_ROWS)
        return true;
    gb_group *other = m->other_group < GB_MOST_GROUPS ? f->processes->groups[m->other_group] : NULL;
    if (!other)
        return false;
    a->rows = (gb_rows_of_slot){&other->base, m->other_slot, m->other_state, m->first, m->end};
    return true;
}

static bool send_reply(const follower *f, const gumbel_error *outcome, const arguments *a) {
    const gb_rank_bytes *bytes = &a->bytes[own_rank(f)];
    const bool saves = f->message.function == GB_GROUP_SAVE_SLOT;
    const gb_reply_message reply = {.outcome = gb_error_to_send(outcome),
                                    .free_bytes = a->free_bytes[own_rank(f)],
                                    .bytes = saves ? bytes->size : 0};
    return gb_send_all(f->processes->peers[0].data, &reply, sizeof reply, bytes->data, (size_t)reply.bytes);
}

/* A group that could not be created has nothing to destroy. */
static gumbel_status run_task(follower *f, arguments *a, gumbel_error *error, bool *is_lost) {
    gb_group *all = f->processes->groups[f->message.group];
    if (f->message.function == GB_GROUP_CREATE) {
        const gumbel_status status = create_group(f, error);
        *is_lost = status != GUMBEL_OK;
        return status;
    }
    *is_lost = !all && f->message.function != GB_GROUP_DESTROY;
    if (!all)
        return *is_lost ? is_malformed(error) : GUMBEL_OK;
    const gb_group_task task = task_of(f, all, a);
    gb_group_run_on(&task, own_rank(f));
    *error = all->ranks[own_rank(f)].outcome;
    const gumbel_status status = error->status;
    if (f->message.function == GB_GROUP_DESTROY)
        free_group(f, all);
    return status;
}

static void leave(follower *f, gumbel_error *why) {
    if (strncmp(why->message, "rank ", 5) != 0)
        gb_prefix(why, why->status, "rank %u", own_rank(f));
    gb_meeting_break(&f->processes->meeting, why);
}

/* A rank that was not created, or does not understand, will not come where the others meet. */
static bool do_task(follower *f) {
    gumbel_error outcome = {.status = GUMBEL_OK};
    arguments a = {0};
    bool is_lost = !read_arguments(f, &a);
    if (is_lost)
        is_malformed(&outcome);
    else
        outcome.status = run_task(f, &a, &outcome, &is_lost);
    if (is_lost)
        leave(f, &outcome);
    const bool was_sent = send_reply(f, &outcome, &a);
    if (f->message.function == GB_GROUP_SAVE_SLOT)
        gb_free(a.bytes[own_rank(f)].data);
    return was_sent;
}

/* ---- The loop ------------------------------------------------------------------------------------------ */

static bool is_task(const follower *f) {
    const gb_task_message *m = &f->message;
    return m->group < GB_MOST_GROUPS && m->function < GB_GROUP_FUNCTION_COUNT &&
           m->function != GB_GROUP_COPY_TO_HOST && m->function != GB_GROUP_COPY_FROM_HOST &&
           m->saved <= GB_SAVED_WITHOUT_CACHES;
}

/* The bytes of a task; false: they do not come, or there is no memory for them. */
static bool receive_payload(follower *f) {
    gumbel_error error;
    gb_buffer_clear(&f->payload);
    uint8_t *to =
        f->message.bytes < SIZE_MAX / 2 ? gb_buffer_extend(&f->payload, (size_t)f->message.bytes + 1) : NULL;
    if (!to) {
        gb_no_memory(&error, "what rank 0 has sent");
        leave(f, &error);
    }
    if (!to || !gb_receive_all(f->processes->peers[0].data, to, (size_t)f->message.bytes))
        return false;
    f->payload.size--;
    return true;
}

static bool follow(follower *f) {
    const int data = f->processes->peers[0].data;
    while (gb_receive_all(data, &f->message, sizeof f->message)) {
        if (f->message.function == GB_MESSAGE_LEAVE)
            return true;
        if (!is_task(f)) {
            gumbel_error error;
            is_malformed(&error);
            leave(f, &error);
        }
        if (f->processes->meeting.is_broken || !receive_payload(f) || !do_task(f))
            return false;
    }
    return false;
}

gumbel_status gb_processes_follow(gumbel_process_group *p, const gb_followed *followed, gumbel_error *error) {
    follower f = {.processes = p, .followed = followed};
    const bool has_left = follow(&f);
    if (has_left)
        atomic_store(&p->is_leaving, true);
    else
        gb_processes_lose(p, &p->peers[0]);
    for (uint32_t i = 0; i < GB_MOST_GROUPS; i++)
        if (p->groups[i]) {
            const gb_group_task task = {.all = p->groups[i], .function = GB_GROUP_DESTROY};
            gb_group_run_on(&task, own_rank(&f));
            free_group(&f, p->groups[i]);
        }
    gb_buffer_free(&f.payload);
    return has_left ? GUMBEL_OK
                    : gb_rank_broken(&(gb_rank){own_rank(&f), p->launch.count, &p->meeting}, error);
}
