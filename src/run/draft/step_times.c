/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/step_times.h"

/* The least rows of each class. */
static const uint32_t least_rows[GB_ROW_CLASSES] = {1,  2,  3,  4,   5,   6,   7,   8,   9,   10, 11,
                                                    12, 13, 14, 15,  16,  17,  21,  25,  33,  41, 49,
                                                    65, 81, 97, 129, 161, 193, 257, 385, 513, 769};
/* A class's first steps count alike, later ones for little, and what was measured long ago not at all. */
enum { SETTLED = 8, MOST_LEFT_OUT = 4 };
static const uint64_t lifetime = 1024;
/* A step may be held up by the machine, most of all the first one of its class. */
static const double most_change = 1.25, most_surprise = 2;
/* What is usual: a second row takes another path than one, and more add their arithmetic. */
static const double usual_second = 0.2, usual_slope = 0.1;
/* Gains within what measurements scatter by are none. */
static const double least_gain = 1.02;

static uint32_t class_of(uint32_t rows) {
    uint32_t found = GB_ROW_CLASSES - 1;
    while (least_rows[found] > rows)
        found--;
    return found;
}

static bool is_known(const gb_step_times *times, uint32_t c) {
    return times->samples[c] > 0 && times->steps - times->noted_at[c] < lifetime;
}

bool gb_step_times_are_known(const gb_step_times *times) {
    for (uint32_t c = 0; c < GB_ROW_CLASSES; c++)
        if (is_known(times, c))
            return true;
    return false;
}

bool gb_step_times_are_settled(const gb_step_times *times, uint32_t rows) {
    const uint32_t c = class_of(rows);
    return times->is_fixed || (is_known(times, c) && times->samples[c] >= SETTLED / 2);
}

/* Of a step with more rows than one that is known, by that one's. */
static double usual_factor(double known_rows, double rows) {
    const double each = known_rows > 4 ? usual_slope * 4 / known_rows : usual_slope;
    return 1 + (known_rows < 2 ? usual_second : 0) + each * (rows - known_rows);
}

/* Of a step with more rows than class `last`, the largest known. Where rows have been found to add less than
 * is usual, more of them will; else nobody would learn that longer drafts pay. */
static double extrapolate(const gb_step_times *times, uint32_t last, double rows) {
    const double last_rows = least_rows[last], seconds = times->seconds[last];
    const double added = seconds * (usual_factor(last_rows, rows) - 1);
    uint32_t before = last;
    while (before > 0 && (before == last || !is_known(times, before)))
        before--;
    if (before == 0) /* a step of one row takes another path */
        return seconds + added;
    const double each = (seconds - times->seconds[before]) / (last_rows - least_rows[before]);
    const double found = each > 0 ? each * (rows - last_rows) : 0;
    return seconds + (found < added ? found : added);
}

/* Between two known classes on a line; above or below all of them as is usual. */
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
        return below > 0 ? extrapolate(times, below - 1, rows) : usual_factor(1, rows);
    const double last = times->seconds[above];
    if (below == 0)
        return last / usual_factor(rows, least_rows[above]);
    return first + (last - first) * (rows - first_rows) / (least_rows[above] - first_rows);
}

static double clip(const gb_step_times *times, uint32_t c, double seconds) {
    const double known = times->seconds[c];
    if (times->samples[c] == 0) {
        const double most = most_surprise * gb_step_times_of(times, least_rows[c]);
        return gb_step_times_are_known(times) && seconds > most ? most : seconds;
    }
    if (times->samples[c] < SETTLED)
        return seconds;
    return seconds > known * most_change ? known * most_change : seconds;
}

void gb_step_times_begin(gb_step_times *times) {
    times->has_prepared = false;
}

static bool leaves_out(gb_step_times *times, uint32_t c) {
    const bool is_left_out = times->has_prepared && times->left_out[c] < MOST_LEFT_OUT;
    times->left_out[c] = is_left_out ? (uint8_t)(times->left_out[c] + 1) : 0;
    return is_left_out;
}

void gb_step_times_note(gb_step_times *times, uint32_t rows, double seconds) {
    const uint32_t c = class_of(rows);
    if (times->is_fixed)
        return;
    times->steps++;
    if (leaves_out(times, c))
        return;
    if (!is_known(times, c))
        times->samples[c] = 0;
    const double clipped = clip(times, c, seconds);
    times->samples[c] += times->samples[c] < SETTLED;
    times->seconds[c] += (clipped - times->seconds[c]) / times->samples[c];
    times->noted_at[c] = times->steps;
}

gb_paying_rows gb_find_paying_rows(const gb_step_times *times, uint32_t rows, const float *chances,
                                   const double *costs, size_t count) {
    const double alone = rows / gb_step_times_of(times, rows);
    gb_paying_rows best = {.rate = alone * least_gain};
    double tokens = rows, guessing = 0;
    for (size_t i = 0; i < count; i++) {
        tokens += (double)chances[i];
        guessing += costs ? costs[i] : 0;
        const double seconds = gb_step_times_of(times, rows + 1 + (uint32_t)i) + guessing;
        if (tokens / seconds > best.rate)
            best = (gb_paying_rows){.count = i + 1, .rate = tokens / seconds};
    }
    return best;
}

size_t gb_count_paying_rows(const gb_step_times *times, uint32_t rows, const float *chances, size_t count) {
    return gb_find_paying_rows(times, rows, chances, NULL, count).count;
}
