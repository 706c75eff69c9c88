/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/run_on_all.h"

#include "backends/ranks/processes/message.h"
#include "backends/ranks/processes/sockets.h"

#include <stdio.h>
#include <string.h>

/* ---- What a task carries ------------------------------------------------------------------------------- */

static void write_creation(const gb_group_task *t, gb_byte_buffer *to) {
    const gb_backend_options *options = &t->creation->options;
    gb_creation_message message = {.state_bytes = gb_all_state_bytes(t->all->program),
                                   .least_weights = t->creation->least_weights,
                                   .slots = options->slots,
                                   .max_context = options->max_context,
                                   .step_tokens = options->step_tokens,
                                   .prefill_chunk = options->prefill_chunk,
                                   .least_chunk = options->least_chunk,
                                   .draft_tokens = options->draft_tokens,
                                   .fuse = options->fuse,
                                   .snapshots = options->snapshots,
                                   .has_profile = options->profile != NULL};
    memcpy(message.program, t->all->program->id, sizeof message.program);
    snprintf(message.backend, sizeof message.backend, "%s", t->creation->backend);
    gb_buffer_append(to, &message, sizeof message);
}

static void write_payload(const gb_group_task *t, gb_byte_buffer *to) {
    const gb_batch_widths widths = gb_batch_widths_of(&t->all->program->metadata);
    gb_buffer_clear(to);
    if (t->function == GB_GROUP_CREATE)
        write_creation(t, to);
    else if (t->function == GB_GROUP_STEP)
        gb_batch_write(t->batch, &widths, to);
}

/* States to load are another's for each rank. */
static bool send_to(gumbel_process_group *p, const gb_group_task *t, uint32_t rank) {
    gb_task_message message = gb_task_message_of(t);
    const bool loads = t->function == GB_GROUP_LOAD_SLOT;
    const void *bytes = loads ? t->bytes[rank].data : p->message.data;
    message.bytes = loads ? t->bytes[rank].size : p->message.size;
    if (gb_send_all(p->peers[rank].data, &message, sizeof message, bytes, (size_t)message.bytes))
        return true;
    gb_processes_lose(p, &p->peers[rank]);
    return false;
}

/* ---- What comes back ----------------------------------------------------------------------------------- */

/* For which there is no memory is received all the same, so that what follows is understood. */
static bool receive_states(const gb_peer *peer, uint64_t size, gb_rank_bytes *bytes, gumbel_error *outcome) {
    uint8_t block[1 << 14];
    for (uint64_t left = size; left > 0;) {
        const size_t part = left < sizeof block ? (size_t)left : sizeof block;
        if (!gb_receive_all(peer->data, block, part))
            return false;
        if (outcome->status == GUMBEL_OK && !gb_rank_bytes_append(bytes, block, part))
            outcome->status = gb_no_memory(outcome, "the states of a rank");
        left -= part;
    }
    return true;
}

static bool receive_reply(const gb_peer *peer, const gb_group_task *t, uint32_t rank) {
    gb_reply_message reply;
    if (!gb_receive_all(peer->data, &reply, sizeof reply))
        return false;
    reply.outcome.message[sizeof reply.outcome.message - 1] = '\0';
    t->all->ranks[rank].outcome = reply.outcome;
    if (t->free_bytes)
        t->free_bytes[rank] = reply.free_bytes;
    return reply.bytes == 0 ||
           (t->bytes && receive_states(peer, reply.bytes, &t->bytes[rank], &t->all->ranks[rank].outcome));
}

/* ---- A task -------------------------------------------------------------------------------------------- */

/* Why it is broken, which no later step survives: even for want of memory. */
static void fail_all(gumbel_process_group *p, const gb_group_task *t) {
    const gb_rank own = {0, p->launch.count, &p->meeting};
    for (uint32_t r = 0; r < p->launch.count; r++) {
        gumbel_error *outcome = &t->all->ranks[r].outcome;
        gb_rank_broken(&own, outcome);
        if (t->function != GB_GROUP_CREATE)
            outcome->status = GUMBEL_ERROR_BACKEND;
    }
}

static bool send_all(gumbel_process_group *p, const gb_group_task *t) {
    gumbel_error error;
    write_payload(t, &p->message);
    if (p->message.failed) {
        gb_no_memory(&error, "what ranks are told");
        gb_meeting_break(&p->meeting, &error);
    }
    for (uint32_t r = 1; r < p->launch.count; r++)
        if (p->meeting.is_broken || !send_to(p, t, r))
            return false;
    return !p->meeting.is_broken;
}

static bool receive_all(gumbel_process_group *p, const gb_group_task *t) {
    for (uint32_t r = 1; r < p->launch.count; r++)
        if (!receive_reply(&p->peers[r], t, r)) {
            gb_processes_lose(p, &p->peers[r]);
            return false;
        }
    return true;
}

/* What is destroyed here is destroyed whatever becomes of the others. */
void gb_processes_run(const gb_group_task *t) {
    gumbel_process_group *p = t->all->processes;
    pthread_mutex_lock(&p->running);
    const bool was_sent = send_all(p, t);
    if (was_sent || t->function == GB_GROUP_DESTROY)
        gb_group_run_on(t, 0);
    if (!was_sent || p->meeting.is_broken || !receive_all(p, t) || p->meeting.is_broken)
        fail_all(p, t);
    pthread_mutex_unlock(&p->running);
}

void gb_processes_dismiss(gumbel_process_group *p) {
    enum { PATIENCE = 5 };
    const gb_task_message message = {.function = GB_MESSAGE_LEAVE};
    uint8_t last;
    for (uint32_t r = 1; r < p->launch.count; r++)
        gb_send_all(p->peers[r].data, &message, sizeof message, NULL, 0);
    for (uint32_t r = 1; r < p->launch.count; r++) {
        gb_limit_waiting(p->peers[r].data, PATIENCE);
        while (gb_receive_all(p->peers[r].data, &last, sizeof last))
            continue;
    }
}
