/* SPDX-License-Identifier: Apache-2.0
 *
 * What host and device exchange in a step, by kernels that read and write pinned memory of the host: inputs
 * are fetched, results are posted to a mailbox, so that the host sees tokens without waiting for a copy.
 * Posting a token also advances the device's inputs to those of the next step. After a stop token a row's
 * inputs stay, so that steps in flight repeat the stopped one and leave nothing to undo.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_EXCHANGE_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_EXCHANGE_H

#include "backends/batch/batch.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The exporter writes as many stop tokens; of a longer list the host looks for the rest. */
enum { GB_CUDA_MOST_RESULTS = 4, GB_CUDA_MOST_STOPS = 64 };

/* A program's inputs, and what a step has beside them. */
enum { GB_CUDA_OWN_PARTS = 7, GB_CUDA_MOST_PARTS = GB_MOST_INPUTS + GB_CUDA_OWN_PARTS };

/* Parts of a block of memory, as words of 4 bytes. */
typedef struct gb_cuda_parts {
    uint32_t count;
    uint32_t first[GB_CUDA_MOST_PARTS], words[GB_CUDA_MOST_PARTS];
} gb_cuda_parts;

/* Where steps post their results, in pinned memory: step n in entry n % entries, whose first word becomes
 * n after its results. */
typedef struct gb_cuda_mailbox {
    uint32_t *memory; /* [entries, entry_words] */
    uint32_t entries, entry_words;
} gb_cuda_mailbox;

/* Words that are posted, from word `at` of an entry on. */
typedef struct gb_cuda_result {
    const uint32_t *from;
    uint32_t words, at;
} gb_cuda_result;

/* The tokens that end answers, on the device: data, so that others need no other launch. */
typedef struct gb_cuda_stops {
    const uint32_t *count; /* 0 .. GB_CUDA_MOST_STOPS */
    const int32_t *ids;
} gb_cuda_stops;

/* Inputs of a step whose every token has a row, on the device. */
typedef struct gb_cuda_advance {
    uint32_t count; /* rows; 0: nothing advances */
    gb_cuda_stops stops;
    const int32_t *drawn; /* [count], as are the following ones */
    int32_t *tokens, *positions;
    uint64_t *seed;           /* NULL: the program has none */
    const float *temperature; /* likewise */
    /* Versions of a recurrent state (kernels.h), of a step of one row: they go round the slot itself and
     * `spares` slots from first_spare on. NULL: the program has no such states, or the step more rows. */
    const int32_t *slots;
    int32_t *from, *to;
    uint32_t *turn; /* of `to`, 0: the slot itself; 1: the first spare; and so on */
    uint32_t first_spare, spares;
} gb_cuda_advance;

typedef struct gb_cuda_post {
    gb_cuda_mailbox mailbox;
    uint32_t *number; /* the step's, on the device; it becomes that of the next one */
    uint32_t count;
    gb_cuda_result results[GB_CUDA_MOST_RESULTS];
    gb_cuda_advance advance;
} gb_cuda_post;

/* Copies parts of `from`, pinned memory, to the same places of `to`, the device's. */
void gb_cuda_fetch_inputs(const gb_cuda_parts *parts, const void *from, void *to, cudaStream_t stream);

/* Posts a step's results and advances its inputs: each row's token is the one drawn (0 where none was),
 * its position one more, its seed one more where it has a temperature. A row that drew a stop token keeps
 * its inputs and versions; the step's number advances in any case. */
void gb_cuda_post_results(const gb_cuda_post *post, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
