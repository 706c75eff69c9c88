/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/step_times.h"

/* The least rows of each class. */
static const uint32_t least_rows[GB_ROW_CLASSES] = {1,  2,  3,  4,   5,   6,   7,   8,   9,   10, 11,
                                                    12, 13, 14, 15,  16,  17,  21,  25,  33,  41, 49,
                                                    65, 81, 97, 129, 161, 193, 257, 385, 513, 769};
/* A single step that the machine held up counts for little, and what was measured long ago not at all. */
static const double newest_weight = 0.125, most_change = 1.25, usual_slope = 0.16;
static const uint64_t lifetime = 1024;
/* Gains within what measurements scatter by are none. */
static const double least_gain = 1.02;

static uint32_t class_of(uint32_t rows) {
    uint32_t found = GB_ROW_CLASSES - 1;
    while (least_rows[found] > rows)
        found--;
    return found;
}

void gb_step_times_note(gb_step_times *times, uint32_t rows, double seconds) {
    const uint32_t c = class_of(rows);
    double *known = &times->seconds[c];
    if (times->is_fixed)
        return;
    times->steps++;
    times->noted_at[c] = times->steps;
    if (*known <= 0) {
        *known = seconds;
        return;
    }
    const double most = *known * most_change, least = *known / most_change;
    const double clipped = seconds > most ? most : seconds < least ? least : seconds;
    *known += newest_weight * (clipped - *known);
}

static bool is_known(const gb_step_times *times, uint32_t c) {
    return times->seconds[c] > 0 && times->steps - times->noted_at[c] < lifetime;
}

/* Between two known classes on a line; above all of them as is usual; below them as the lowest. */
double gb_step_times_of(const gb_step_times *times, uint32_t rows) {
    const uint32_t own = class_of(rows);
    uint32_t below = own + 1, above = own;
    while (below > 0 && !is_known(times, below - 1))
        below--;
    while (above < GB_ROW_CLASSES && !is_known(times, above))
        above++;
    const double first = below > 0 ? times->seconds[below - 1] : 1,
                 first_rows = below > 0 ? least_rows[below - 1] : 1;
    if (below == own + 1)
        return first;
    if (above == GB_ROW_CLASSES)
        return first * (1 + usual_slope * (rows - first_rows) / (first_rows > 4 ? first_rows : 4));
    const double last = times->seconds[above];
    if (below == 0)
        return last;
    return first + (last - first) * (rows - first_rows) / (least_rows[above] - first_rows);
}

size_t gb_count_paying_rows(const gb_step_times *times, uint32_t rows, const float *chances, size_t count) {
    const double alone = rows / gb_step_times_of(times, rows);
    double tokens = rows, best = alone * least_gain;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        tokens += (double)chances[i];
        const double rate = tokens / gb_step_times_of(times, rows + 1 + (uint32_t)i);
        if (rate > best) {
            best = rate;
            found = i + 1;
        }
    }
    return found;
}
