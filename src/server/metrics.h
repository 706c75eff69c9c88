/* SPDX-License-Identifier: Apache-2.0
 *
 * What /metrics shows, counted as it happens. All of it is thread-safe.
 */
#ifndef GUMBEL_SERVER_METRICS_H
#define GUMBEL_SERVER_METRICS_H

#include "base/byte_buffer.h"
#include "gumbel.h"

#include <stdatomic.h>

enum { SERVER_MOST_BUCKETS = 24, SERVER_STATUS_CLASSES = 6 };

/* Observations by size. The limits stand with its name. */
typedef struct server_histogram {
    atomic_ullong buckets[SERVER_MOST_BUCKETS];
    atomic_ullong count;
    atomic_ullong sum; /* in millionths */
} server_histogram;

typedef struct server_metrics {
    atomic_ullong requests[SERVER_STATUS_CLASSES]; /* by the first digit of the status */
    atomic_ullong stopped, cut, failed;            /* answers: at a stop, at a limit, not whole */
    atomic_ullong disconnects, slow_readers;
    atomic_ullong grammar_hits;                                            /* those that had been compiled */
    server_histogram grammar_compile;                                      /* seconds */
    server_histogram queue, first_token, token_gap, prompt, answer, whole; /* seconds */
    server_histogram prompt_size, answer_size;                             /* tokens */
} server_metrics;

/* Buckets of seconds go from 1 ms to 250 s, those of tokens are powers of two. */
void server_observe(server_histogram *histogram, double seconds);
void server_observe_tokens(server_histogram *histogram, uint32_t tokens);

/* An answer has ended. */
void server_count_answer(server_metrics *metrics, const gumbel_usage *usage, bool is_whole,
                         gumbel_finish finish);

/* The state of one model's scheduler. */
typedef struct server_gauges {
    const char *model;
    gumbel_scheduler_stats stats;
} server_gauges;

/* Writes all in Prometheus' text format. with_vllm: by vLLM's names, too. */
void server_print_metrics(const server_metrics *metrics, const server_gauges *gauges, size_t gauge_count,
                          bool with_vllm, gb_byte_buffer *text);

#endif
