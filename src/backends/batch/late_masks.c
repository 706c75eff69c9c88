/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/batch/late_masks.h"

#include "base/memory.h"

#include <pthread.h>

typedef struct late_mask {
    gb_mask_source source;
    uint32_t *words, rows;
} late_mask;

/* A thread that comes late to a step may find the next one's masks, so all is behind the mutex. */
struct gb_late_masks {
    pthread_mutex_t mutex;
    pthread_cond_t finished; /* done has become count */
    late_mask *list;         /* [count] of capacity */
    uint32_t capacity, count, begun, done;
};

gb_late_masks *gb_late_masks_create(uint32_t capacity) {
    gb_late_masks *masks = gb_allocate(1, sizeof *masks);
    if (!masks)
        return NULL;
    masks->capacity = capacity;
    masks->list = gb_allocate(capacity, sizeof *masks->list);
    pthread_mutex_init(&masks->mutex, NULL);
    pthread_cond_init(&masks->finished, NULL);
    if (masks->list)
        return masks;
    gb_late_masks_destroy(masks);
    return NULL;
}

void gb_late_masks_destroy(gb_late_masks *masks) {
    if (!masks)
        return;
    pthread_cond_destroy(&masks->finished);
    pthread_mutex_destroy(&masks->mutex);
    gb_free(masks->list);
    gb_free(masks);
}

void gb_late_masks_clear(gb_late_masks *masks) {
    pthread_mutex_lock(&masks->mutex);
    masks->count = masks->begun = masks->done = 0;
    pthread_mutex_unlock(&masks->mutex);
}

void gb_late_masks_add(gb_late_masks *masks, gb_mask_source source, uint32_t *words, uint32_t rows) {
    pthread_mutex_lock(&masks->mutex);
    if (masks->count < masks->capacity)
        masks->list[masks->count++] = (late_mask){source, words, rows};
    pthread_mutex_unlock(&masks->mutex);
}

bool gb_late_masks_any(gb_late_masks *masks) {
    pthread_mutex_lock(&masks->mutex);
    const bool any = masks->count > 0;
    pthread_mutex_unlock(&masks->mutex);
    return any;
}

/* The caller has the mutex, and has it again when this returns. */
static void make_next(gb_late_masks *masks) {
    const late_mask next = masks->list[masks->begun++];
    pthread_mutex_unlock(&masks->mutex);
    next.source.make(next.source.user, next.words, next.rows);
    pthread_mutex_lock(&masks->mutex);
    if (++masks->done == masks->count)
        pthread_cond_broadcast(&masks->finished);
}

void gb_late_masks_work(gb_late_masks *masks) {
    pthread_mutex_lock(&masks->mutex);
    while (masks->begun < masks->count)
        make_next(masks);
    pthread_mutex_unlock(&masks->mutex);
}

void gb_late_masks_finish(gb_late_masks *masks) {
    gb_late_masks_work(masks);
    pthread_mutex_lock(&masks->mutex);
    while (masks->done < masks->count)
        pthread_cond_wait(&masks->finished, &masks->mutex);
    pthread_mutex_unlock(&masks->mutex);
}
