/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/meeting_functions.h"

#include <string.h>

/* How a message begins that says which rank failed. */
#define RANK "rank "

void gb_meeting_destroy(gb_meeting *meeting) {
    if (meeting)
        meeting->functions->destroy(meeting);
}

void gb_meeting_break(gb_meeting *m, const gumbel_error *why) {
    pthread_mutex_lock(&m->mutex);
    const bool is_first = !m->is_broken;
    if (is_first)
        m->why = *why;
    m->is_broken = true;
    for (uint32_t i = 0; i < GB_MOST_STOPS; i++)
        if (m->stops[i])
            *m->stops[i] = 1;
    pthread_mutex_unlock(&m->mutex);
    if (is_first)
        m->functions->wake(m);
}

bool gb_rank_meet(const gb_rank *rank) {
    return rank->count < 2 || rank->meeting->functions->meet(rank->meeting, rank->index);
}

bool gb_rank_share(const gb_rank *rank, const void *mine, size_t size, const void *all[GB_MOST_RANKS]) {
    if (rank->count >= 2)
        return rank->meeting->functions->share(rank->meeting, rank->index, mine, size, all);
    all[0] = mine;
    return true;
}

bool gb_rank_release(const gb_rank *rank) {
    return rank->count < 2 || rank->meeting->functions->release(rank->meeting, rank->index);
}

bool gb_rank_has_threads(const gb_rank *rank) {
    return rank->count < 2 || rank->meeting->functions->has_threads;
}

static bool replace_stop(gb_meeting *m, const volatile uint32_t *old, volatile uint32_t *word) {
    uint32_t i = 0;
    pthread_mutex_lock(&m->mutex);
    while (i < GB_MOST_STOPS && m->stops[i] != old)
        i++;
    if (i < GB_MOST_STOPS)
        m->stops[i] = word;
    if (word && m->is_broken)
        *word = 1;
    pthread_mutex_unlock(&m->mutex);
    return i < GB_MOST_STOPS;
}

bool gb_rank_add_stop(const gb_rank *rank, volatile uint32_t *word) {
    return rank->count < 2 || replace_stop(rank->meeting, NULL, word);
}

void gb_rank_remove_stop(const gb_rank *rank, const volatile uint32_t *word) {
    if (rank->count >= 2 && word)
        replace_stop(rank->meeting, word, NULL);
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

/* Copies the first failure of all. */
static uint32_t find_failure(const void *const *outcomes, uint32_t ranks, gumbel_error *failure) {
    for (uint32_t r = 0; r < ranks; r++) {
        memcpy(failure, outcomes[r], sizeof *failure);
        if (failure->status != GUMBEL_OK)
            return r;
    }
    return ranks;
}

gumbel_status gb_rank_agree(const gb_rank *rank, gumbel_status status, gumbel_error *error) {
    gumbel_error own = {.status = status}, first = {.status = GUMBEL_OK};
    const void *outcomes[GB_MOST_RANKS];
    if (rank->count < 2)
        return status;
    if (status != GUMBEL_OK && error)
        own = gb_error_to_send(error);
    own.status = status;
    if (!gb_rank_share(rank, &own, sizeof own, outcomes))
        return gb_rank_broken(rank, error);
    const uint32_t failed = find_failure(outcomes, rank->count, &first);
    gb_rank_release(rank);
    if (first.status == GUMBEL_OK)
        return GUMBEL_OK;
    first.message[sizeof first.message - 1] = '\0';
    if (error)
        *error = first;
    return strncmp(first.message, RANK, sizeof RANK - 1) == 0
               ? first.status
               : gb_prefix(error, first.status, RANK "%u", failed);
}
