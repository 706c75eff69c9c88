/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/meeting.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* How a message begins that says which rank failed. */
#define RANK "rank "

struct gb_meeting {
    pthread_mutex_t mutex;
    pthread_cond_t met;
    uint32_t ranks, here;
    uint64_t turn; /* how often all have met */
    atomic_bool is_broken;
    gumbel_error why;
    void *addresses[GB_MOST_RANKS];
    gumbel_error outcomes[GB_MOST_RANKS];
};

gumbel_status gb_meeting_create(uint32_t ranks, gb_meeting **meeting, gumbel_error *error) {
    *meeting = NULL;
    gb_meeting *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a meeting of %u ranks", ranks);
    created->ranks = ranks;
    pthread_mutex_init(&created->mutex, NULL);
    pthread_cond_init(&created->met, NULL);
    *meeting = created;
    return GUMBEL_OK;
}

void gb_meeting_destroy(gb_meeting *meeting) {
    if (!meeting)
        return;
    pthread_cond_destroy(&meeting->met);
    pthread_mutex_destroy(&meeting->mutex);
    gb_free(meeting);
}

void gb_meeting_break(gb_meeting *m, const gumbel_error *why) {
    pthread_mutex_lock(&m->mutex);
    if (!m->is_broken)
        m->why = *why;
    m->is_broken = true;
    pthread_cond_broadcast(&m->met);
    pthread_mutex_unlock(&m->mutex);
}

/* With the mutex held. */
static void wait_for_all(gb_meeting *m) {
    const uint64_t turn = m->turn;
    if (++m->here == m->ranks) {
        m->here = 0;
        m->turn++;
        pthread_cond_broadcast(&m->met);
    }
    while (m->turn == turn && !m->is_broken)
        pthread_cond_wait(&m->met, &m->mutex);
}

bool gb_rank_meet(const gb_rank *rank) {
    gb_meeting *m = rank->meeting;
    if (rank->count < 2)
        return true;
    pthread_mutex_lock(&m->mutex);
    wait_for_all(m);
    const bool all_came = !m->is_broken;
    pthread_mutex_unlock(&m->mutex);
    return all_came;
}

/* What is given stays until the second meeting, since somebody may be slow to take it. */
bool gb_rank_share(const gb_rank *rank, void *mine, void *all[GB_MOST_RANKS]) {
    if (rank->count < 2) {
        all[0] = mine;
        return true;
    }
    rank->meeting->addresses[rank->index] = mine;
    const bool all_came = gb_rank_meet(rank);
    memcpy(all, rank->meeting->addresses, rank->count * sizeof *all);
    return gb_rank_meet(rank) && all_came;
}

bool gb_rank_is_broken(const gb_rank *rank) {
    return rank->count > 1 && atomic_load_explicit(&rank->meeting->is_broken, memory_order_acquire);
}

gumbel_status gb_rank_broken(const gb_rank *rank, gumbel_error *error) {
    gb_meeting *m = rank->meeting;
    pthread_mutex_lock(&m->mutex);
    const gumbel_error why = m->why;
    pthread_mutex_unlock(&m->mutex);
    return gb_fail(error, why.status, "%s", why.message);
}

gumbel_status gb_rank_agree(const gb_rank *rank, gumbel_status status, gumbel_error *error) {
    if (rank->count < 2)
        return status;
    gb_meeting *m = rank->meeting;
    m->outcomes[rank->index].status = status;
    if (status != GUMBEL_OK && error)
        m->outcomes[rank->index] = *error;
    if (!gb_rank_meet(rank))
        return gb_rank_broken(rank, error);
    uint32_t failed = 0;
    while (failed < rank->count && m->outcomes[failed].status == GUMBEL_OK)
        failed++;
    const gumbel_error first =
        failed < rank->count ? m->outcomes[failed] : (gumbel_error){.status = GUMBEL_OK};
    gb_rank_meet(rank);
    if (first.status == GUMBEL_OK)
        return GUMBEL_OK;
    if (error)
        *error = first;
    return strncmp(first.message, RANK, sizeof RANK - 1) == 0
               ? first.status
               : gb_prefix(error, first.status, RANK "%u", failed);
}
