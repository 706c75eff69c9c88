/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks that are made while their step computes. A row's mask depends on the token before it, so it is the
 * one input that a step may begin without: a backend waits for the masks before the first op that reads them.
 */
#ifndef GUMBEL_BACKENDS_BATCH_LATE_MASKS_H
#define GUMBEL_BACKENDS_BATCH_LATE_MASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the masks of a request's rows, which stand one after the other: words[rows * mask_words] of the
 * batch. Called on any thread, once at a time for each user; make NULL: there is none. */
typedef struct gb_mask_source {
    void (*make)(void *user, uint32_t *words, uint32_t rows);
    void *user;
} gb_mask_source;

typedef struct gb_late_masks gb_late_masks;

/* For the masks of at most that many requests in a step. NULL without memory. */
gb_late_masks *gb_late_masks_create(uint32_t capacity);

/* NULL is allowed. */
void gb_late_masks_destroy(gb_late_masks *masks);

/* Begins a step without masks. Those of the step before are finished. */
void gb_late_masks_clear(gb_late_masks *masks);

/* Adds those of a request's rows; words are written until gb_late_masks_finish has returned. */
void gb_late_masks_add(gb_late_masks *masks, gb_mask_source source, uint32_t *words, uint32_t rows);

/* Whether the step has any. */
bool gb_late_masks_any(gb_late_masks *masks);

/* Makes masks that no thread has begun, one after the other, until there are none. Any number of threads. */
void gb_late_masks_work(gb_late_masks *masks);

/* The same, and then waits for those that other threads make. */
void gb_late_masks_finish(gb_late_masks *masks);

#endif
