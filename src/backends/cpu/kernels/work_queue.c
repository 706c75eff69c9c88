/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/work_queue.h"

/* A range is never given out twice, so a part that has the value it had has not changed in between. */

static uint64_t range_of(uint32_t first, uint32_t end) {
    return (uint64_t)first << 32 | end;
}

static uint32_t first_of(uint64_t range) {
    return (uint32_t)(range >> 32);
}

static uint32_t end_of(uint64_t range) {
    return (uint32_t)range;
}

void gb_work_queue_fill(gb_work_queue *queue) {
    const uint64_t units = queue->units, count = queue->thread_count;
    for (uint64_t i = 0; i < count; i++)
        atomic_store(&queue->parts[i].range,
                     range_of((uint32_t)(units * i / count), (uint32_t)(units * (i + 1) / count)));
}

/* A quarter of so many units. */
static uint32_t piece_of(const gb_work_queue *queue, uint32_t units) {
    const uint32_t piece = units / 4 > queue->least ? units / 4 : queue->least;
    return piece < units ? piece : units;
}

static bool take_own(const gb_work_queue *queue, uint32_t index, size_t *first, size_t *end) {
    _Atomic uint64_t *own = &queue->parts[index].range;
    uint64_t range = atomic_load(own);
    while (first_of(range) < end_of(range)) {
        const uint32_t from = first_of(range), to = from + piece_of(queue, end_of(range) - from);
        if (atomic_compare_exchange_weak(own, &range, range_of(to, end_of(range)))) {
            *first = from;
            *end = to;
            return true;
        }
    }
    return false;
}

/* The half that its owner would come to last becomes the thread's own. */
static bool take_half(const gb_work_queue *queue, uint32_t index, uint32_t other) {
    _Atomic uint64_t *part = &queue->parts[other].range;
    uint64_t range = atomic_load(part);
    while (first_of(range) < end_of(range)) {
        const uint32_t first = first_of(range), end = end_of(range), left = end - first;
        const uint32_t middle = left > queue->least ? first + left / 2 : first;
        if (atomic_compare_exchange_weak(part, &range, range_of(first, middle))) {
            atomic_store(&queue->parts[index].range, range_of(middle, end));
            return true;
        }
    }
    return false;
}

bool gb_work_queue_take(const gb_work_queue *queue, uint32_t index, size_t *first, size_t *end) {
    do {
        if (take_own(queue, index, first, end))
            return true;
        uint32_t i = 1;
        while (i < queue->thread_count && !take_half(queue, index, (index + i) % queue->thread_count))
            i++;
        if (i >= queue->thread_count)
            return false;
    } while (true);
}
