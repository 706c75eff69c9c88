/* SPDX-License-Identifier: Apache-2.0 */
#include "run/mask_workers.h"

#include "base/memory.h"
#include "base/thread.h"

#include <unistd.h>

struct gb_mask_workers {
    gb_late_masks *masks;
    pthread_mutex_t mutex;
    pthread_cond_t awake;
    uint64_t steps; /* how often they were woken */
    bool stops;
    unsigned count; /* that were started */
    pthread_t threads[];
};

/* Sleeps until there is a step after the last one that was seen. False: it is over. */
static bool wait_for_step(gb_mask_workers *workers, uint64_t *seen) {
    pthread_mutex_lock(&workers->mutex);
    while (workers->steps == *seen && !workers->stops)
        pthread_cond_wait(&workers->awake, &workers->mutex);
    *seen = workers->steps;
    const bool goes_on = !workers->stops;
    pthread_mutex_unlock(&workers->mutex);
    return goes_on;
}

static void *worker_main(void *argument) {
    gb_mask_workers *workers = argument;
    for (uint64_t seen = 0; wait_for_step(workers, &seen);)
        gb_late_masks_work(workers->masks);
    return NULL;
}

static void start_threads(gb_mask_workers *workers, unsigned count) {
    while (workers->count < count && gb_start_thread(&workers->threads[workers->count], worker_main, workers))
        workers->count++;
}

gumbel_status gb_mask_workers_create(unsigned most, gb_late_masks *masks, gb_mask_workers **workers,
                                     gumbel_error *error) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned count = cores > 0 && (unsigned long)cores < most ? (unsigned)cores : most;
    *workers = NULL;
    gb_mask_workers *made = gb_allocate(1, sizeof *made + count * sizeof *made->threads);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %u threads", count);
    made->masks = masks;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->awake, NULL);
    start_threads(made, count);
    if (made->count < count) {
        gb_mask_workers_destroy(made);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "the system refuses %u threads", count);
    }
    *workers = made;
    return GUMBEL_OK;
}

void gb_mask_workers_destroy(gb_mask_workers *workers) {
    if (!workers)
        return;
    pthread_mutex_lock(&workers->mutex);
    workers->stops = true;
    pthread_cond_broadcast(&workers->awake);
    pthread_mutex_unlock(&workers->mutex);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->awake);
    pthread_mutex_destroy(&workers->mutex);
    gb_free(workers);
}

void gb_mask_workers_wake(gb_mask_workers *workers) {
    pthread_mutex_lock(&workers->mutex);
    workers->steps++;
    pthread_cond_broadcast(&workers->awake);
    pthread_mutex_unlock(&workers->mutex);
}
