/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_rows.h"

#include <math.h>
#include <pthread.h>

enum { MOST_THREADS = 64 };

/* log of the sum of exp(logits), and where the largest is. */
static double log_sum(const float *logits, uint32_t count, uint32_t *best) {
    *best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[*best])
            *best = i;
    double largest = (double)logits[*best], sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

static void score_row(const cli_scored_row *row, uint32_t count) {
    uint32_t best, reference_best;
    double sum = log_sum(row->logits, count, &best);
    *row->prediction = (cli_prediction){.surprise = sum - (double)row->logits[row->token]};
    if (!row->reference)
        return;
    double reference_sum = log_sum(row->reference, count, &reference_best), divergence = 0;
    for (uint32_t i = 0; i < count; i++) {
        double p = (double)row->reference[i] - reference_sum, q = (double)row->logits[i] - sum;
        if (p > -100)
            divergence += exp(p) * (p - q);
    }
    row->prediction->divergence = divergence;
    row->prediction->agrees = best == reference_best;
}

/* Every stride-th row from the first. */
typedef struct share {
    const cli_scored_row *rows;
    size_t first, count, stride;
    uint32_t vocab_size;
    pthread_t thread;
    bool has_thread;
} share;

static void *score_share(void *given) {
    const share *s = given;
    for (size_t i = s->first; i < s->count; i += s->stride)
        score_row(&s->rows[i], s->vocab_size);
    return NULL;
}

/* Starting a thread is short beside a row, which takes about a millisecond. Where the system has no more of
 * them, the caller's own scores the share. */
void cli_score_rows(const cli_scored_row *rows, size_t count, uint32_t vocab_size, uint32_t threads) {
    share shares[MOST_THREADS];
    size_t stride = threads < MOST_THREADS ? threads : MOST_THREADS;
    stride = stride < count ? stride : count;
    for (size_t t = 0; t < stride; t++) {
        share *s = &shares[t];
        *s = (share){rows, t, count, stride, vocab_size, .has_thread = false};
        s->has_thread = t + 1 < stride && pthread_create(&s->thread, NULL, score_share, s) == 0;
        if (!s->has_thread)
            score_share(s);
    }
    for (size_t t = 0; t < stride; t++)
        if (shares[t].has_thread)
            pthread_join(shares[t].thread, NULL);
}
