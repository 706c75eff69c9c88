/* SPDX-License-Identifier: Apache-2.0
 *
 * Harnesses that go on for as long as they are given: cases without end, each drawn from a seed of its own,
 * in a child process, so that one that crashes or hangs is named and can be run again alone.
 *
 *     harness [--seed N] [--cases N] [--seconds N] [--short N]
 *
 * Case i has the seed N + i. It ends after so many cases or seconds, whichever is first; after --short cases
 * in a short run (support/test_arguments.h).
 */
#ifndef GUMBEL_TESTS_CASES_H
#define GUMBEL_TESTS_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_COUNTS = 8 };
#ifdef GUMBEL_SLOW_CASES
enum { CASE_SECONDS = 1200 };
#else
enum { CASE_SECONDS = 120 };
#endif

typedef struct harness {
    const char *name;
    const char *counted[MOST_COUNTS]; /* what a case adds to counts; printed at the end */
    void (*prepare)(void);            /* once, before the child process begins; may be NULL */
    uint64_t (*case_count)(void); /* after prepare: how many different cases there are; NULL: without end */
    void (*run_case)(uint64_t seed, uint64_t *counts); /* within CASE_SECONDS */
} harness;

/* Runs cases as the arguments say and prints the counts. The result is main's: 1 when a case failed. */
int run_harness(const harness *h, int argument_count, char **arguments);

/* Cases that are the items of several lists. Lists take turns, whatever their sizes, and neighbouring cases
 * are items far from each other; of count_turns seeds in a row each item is one's. False: that seed has no
 * item. */
uint64_t count_turns(const size_t *sizes, size_t count);
bool choose_item(uint64_t seed, const size_t *sizes, size_t count, size_t *list, size_t *item);

/* Ends the case, and with it the harness, with a message. */
__attribute__((noreturn, format(printf, 1, 2))) void fail_case(const char *format, ...);

/* ---- Commands with faults ------------------------------------------------------------------------------ */

/* Sets HOME and the XDG folders to the temporary directory: nothing of the user's counts. */
void hide_home(void);

/* How many calls or allocations a command says in that file that it made. Ends the case without one. */
size_t read_fault_count(const char *path);

/* ---- Random numbers of a case -------------------------------------------------------------------------- */

typedef struct random_source {
    uint64_t state; /* the case's seed at the start */
} random_source;

uint64_t random_bits(random_source *source);

/* Within [0, limit); limit is at least 1. */
uint64_t random_below(random_source *source, uint64_t limit);

/* True once in so many. */
static inline bool random_once_in(random_source *source, uint64_t count) {
    return random_below(source, count) == 0;
}

/* One more, one less, twice or half of the number. */
uint64_t neighbour_of(uint64_t number, random_source *source);

/* count token ids below vocab_size. */
void draw_tokens(random_source *source, uint32_t vocab_size, int32_t *tokens, size_t count);

#endif
