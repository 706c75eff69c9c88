/* SPDX-License-Identifier: Apache-2.0
 *
 * What steps take by how many rows they have, as measured while they ran, and how many draft rows pay.
 */
#ifndef GUMBEL_RUN_DRAFT_STEP_TIMES_H
#define GUMBEL_RUN_DRAFT_STEP_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GB_ROW_CLASSES = 32 };

/* Zeroed at the start. */
typedef struct gb_step_times {
    double seconds[GB_ROW_CLASSES];    /* of a step */
    uint32_t samples[GB_ROW_CLASSES];  /* that they are from, as far as it matters */
    uint64_t noted_at[GB_ROW_CLASSES]; /* after how many steps */
    uint64_t steps;
    uint8_t left_out[GB_ROW_CLASSES]; /* steps since the last one noted */
    bool has_prepared;                /* a step has done so since gb_step_times_begin (batch.h) */
    bool is_fixed; /* nothing is noted, so that what is drafted does not depend on the time (for tests) */
} gb_step_times;

/* From here on the time is taken that is noted next. */
void gb_step_times_begin(gb_step_times *times);

/* Notes that a step that only decodes took so long. One that has prepared what later ones find, which are
 * quicker, is left out, unless so are all others of its size. rows >= 1. */
void gb_step_times_note(gb_step_times *times, uint32_t rows, double seconds);

/* Whether any time is known, so that they are in seconds. */
bool gb_step_times_are_known(const gb_step_times *times);

/* Whether the time of a step of so many rows can be relied on. */
bool gb_step_times_are_settled(const gb_step_times *times, uint32_t rows);

/* What a step of so many rows takes, in an unknown unit where nothing is known. rows >= 1. */
double gb_step_times_of(const gb_step_times *times, uint32_t rows);

/* Draft rows that pay, and the tokens a unit of time with them; count 0: none, and what they had to beat. */
typedef struct gb_paying_rows {
    size_t count;
    double rate;
} gb_paying_rows;

/* How many of `count` draft rows give the most tokens a second beside `rows` others, which give one each.
 * chances: [count] that a draft row's token is accepted, descending. costs: [count] what guessing it takes
 * before the step; NULL: nothing. 0 unless that is clearly more. */
gb_paying_rows gb_find_paying_rows(const gb_step_times *times, uint32_t rows, const float *chances,
                                   const double *costs, size_t count);

/* The same for guesses that take no time. */
size_t gb_count_paying_rows(const gb_step_times *times, uint32_t rows, const float *chances, size_t count);

#endif
