/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as they are stored, and joined ones.
 */
#include "base/memory.h"
#include "grammar/match/closure.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

uint32_t gb_frame_number(gb_closure *closure, gb_frame frame) {
    uint32_t number = 0;
    _Static_assert(sizeof frame == 5 * sizeof(uint32_t), "a frame is five words");
    if (!gb_intern(&closure->frames, (const uint32_t *)&frame, 5, &number))
        closure->failed = true;
    return number;
}

gb_frame gb_frame_at(const gb_closure *closure, uint32_t number) {
    gb_frame frame;
    memcpy(&frame, gb_interned(&closure->frames, number), sizeof frame);
    return frame;
}

static int by_number(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

uint32_t gb_join_frames(gb_closure *closure, uint32_t *frames, size_t count) {
    gb_frame joined = {.kind = GB_FRAME_JOINED};
    size_t kept = 1;
    if (count > 1)
        qsort(frames, count, sizeof *frames, by_number);
    for (size_t i = 1; i < count; i++)
        if (frames[i] != frames[kept - 1])
            frames[kept++] = frames[i];
    if (kept == 1)
        return frames[0];
    if (gb_intern(&closure->joined, frames, kept, &joined.value))
        return gb_frame_number(closure, joined);
    closure->failed = true;
    return 0;
}

const uint32_t *gb_frames_below(const gb_closure *closure, uint32_t number, size_t *count) {
    const gb_frame frame = gb_frame_at(closure, number);
    if (frame.kind == GB_FRAME_JOINED) {
        *count = gb_interned_size(&closure->joined, frame.value);
        return gb_interned(&closure->joined, frame.value);
    }
    *count = frame.parent != 0;
    return gb_interned(&closure->frames, number) + offsetof(gb_frame, parent) / sizeof(uint32_t);
}

/* ---- From below ---------------------------------------------------------------------------------------- */

static bool push(gb_frame_walk *walk, size_t count, uint32_t frame) {
    if (!gb_grow((void **)&walk->path, &walk->path_capacity, count + 1, sizeof frame))
        return false;
    walk->path[count] = frame;
    return true;
}

/* Adds those below that are not done to the path. False without memory. */
static bool push_below(gb_frame_walk *walk, const gb_closure *closure, uint32_t frame, size_t *count) {
    size_t below_count;
    const uint32_t *below = gb_frames_below(closure, frame, &below_count);
    for (size_t i = 0; i < below_count; i++)
        if (!walk->done[below[i]]) {
            if (!push(walk, *count, below[i]))
                return false;
            ++*count;
        }
    return true;
}

bool gb_walk_frames(gb_frame_walk *walk, const gb_closure *closure, uint32_t top, gb_frame_visitor *visit,
                    void *context) {
    size_t count = top != 0;
    if (count && !push(walk, 0, top))
        return false;
    while (count) {
        const size_t before = count;
        const uint32_t frame = walk->path[count - 1];
        if (!walk->done[frame] && !push_below(walk, closure, frame, &count))
            return false;
        if (count > before)
            continue;
        count--;
        if (!walk->done[frame] && !visit(context, frame))
            return false;
    }
    return true;
}

uint32_t gb_join_done(const gb_frame_walk *walk, const gb_closure *from, uint32_t frame, gb_closure *to) {
    size_t count;
    const uint32_t *below = gb_frames_below(from, frame, &count);
    uint32_t *found = gb_allocate(count, sizeof *found), joined = 0;
    for (size_t i = 0; found && i < count; i++)
        found[i] = walk->done[below[i]];
    if (found)
        joined = gb_join_frames(to, found, count);
    gb_free(found);
    return joined;
}
