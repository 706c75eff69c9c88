/* SPDX-License-Identifier: Apache-2.0
 *
 * A meeting of threads: a barrier, and each other's addresses.
 */
#include "backends/ranks/meeting_functions.h"
#include "base/memory.h"

#include <string.h>

typedef struct meeting_of_threads {
    gb_meeting base;
    pthread_cond_t met;
    uint32_t here;
    uint64_t turn; /* how often all have met */
    const void *addresses[GB_MOST_RANKS];
} meeting_of_threads;

static void destroy(gb_meeting *meeting) {
    meeting_of_threads *m = (meeting_of_threads *)meeting;
    pthread_cond_destroy(&m->met);
    pthread_mutex_destroy(&m->base.mutex);
    gb_free(m);
}

/* With the mutex held. */
static void wait_for_all(meeting_of_threads *m) {
    const uint64_t turn = m->turn;
    if (++m->here == m->base.ranks) {
        m->here = 0;
        m->turn++;
        pthread_cond_broadcast(&m->met);
    }
    while (m->turn == turn && !m->base.is_broken)
        pthread_cond_wait(&m->met, &m->base.mutex);
}

static bool meet(gb_meeting *meeting, uint32_t index) {
    (void)index;
    pthread_mutex_lock(&meeting->mutex);
    wait_for_all((meeting_of_threads *)meeting);
    const bool all_came = !meeting->is_broken;
    pthread_mutex_unlock(&meeting->mutex);
    return all_came;
}

static bool share(gb_meeting *meeting, uint32_t index, const void *mine, size_t size,
                  const void *all[GB_MOST_RANKS]) {
    meeting_of_threads *m = (meeting_of_threads *)meeting;
    (void)size;
    m->addresses[index] = mine;
    if (!meet(meeting, index))
        return false;
    memcpy(all, m->addresses, meeting->ranks * sizeof(const void *));
    return true;
}

static void wake(gb_meeting *meeting) {
    pthread_mutex_lock(&meeting->mutex);
    pthread_cond_broadcast(&((meeting_of_threads *)meeting)->met);
    pthread_mutex_unlock(&meeting->mutex);
}

static const gb_meeting_functions functions = {destroy, meet, share, meet, true, wake};

gumbel_status gb_meeting_create(uint32_t ranks, gb_meeting **meeting, gumbel_error *error) {
    *meeting = NULL;
    meeting_of_threads *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a meeting of %u ranks", ranks);
    created->base.functions = &functions;
    created->base.ranks = ranks;
    pthread_mutex_init(&created->base.mutex, NULL);
    pthread_cond_init(&created->met, NULL);
    *meeting = &created->base;
    return GUMBEL_OK;
}
