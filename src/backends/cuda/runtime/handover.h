/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between the host and the device in a step, by kernels that read and write the host's pinned
 * memory, without the pauses of copies: the host sees the tokens as soon as they are there. With the tokens
 * the inputs in the device's memory become those of the step that follows, so that it can be begun without
 * the host. After a token that ends its answer a row's inputs stay: what was enqueued behind that step
 * repeats it, writes the same values to the same places, and leaves nothing to undo.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_HANDOVER_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_HANDOVER_H

#include "backends/batch/batch.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The exporter writes as many stop tokens; of a longer list the host looks for the rest. */
enum { GB_CUDA_MOST_RESULTS = 4, GB_CUDA_MOST_STOPS = 64 };

/* A program's inputs, and what a step has beside them. */
enum { GB_CUDA_OWN_PARTS = 6, GB_CUDA_MOST_PARTS = GB_MOST_INPUTS + GB_CUDA_OWN_PARTS };

/* Parts of a block of memory, as words of 4 bytes. */
typedef struct gb_cuda_parts {
    uint32_t count;
    uint32_t first[GB_CUDA_MOST_PARTS], words[GB_CUDA_MOST_PARTS];
} gb_cuda_parts;

/* Where steps hand out their results, in pinned memory: step number n in entry n % entries, whose first word
 * is n once the results behind it are there. */
typedef struct gb_cuda_ring {
    uint32_t *memory; /* [entries, entry_words] */
    uint32_t entries, entry_words;
} gb_cuda_ring;

/* Words that are handed out, from word `at` of an entry on. */
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

typedef struct gb_cuda_handing {
    gb_cuda_ring ring;
    uint32_t *number; /* the step's, on the device; it becomes that of the next one */
    uint32_t count;
    gb_cuda_result results[GB_CUDA_MOST_RESULTS];
    gb_cuda_advance advance;
} gb_cuda_handing;

/* Copies the parts of `from`, pinned memory, to the same places of `to`, the device's. */
void gb_cuda_bring_in(const gb_cuda_parts *parts, const void *from, void *to, cudaStream_t stream);

/* Writes a step's results to the ring, and then lets its inputs advance: each row's token is the one that was
 * drawn (0 where none was), its position one more, and its seed one more where it has a temperature. A row
 * that drew a stop token keeps them, and its versions. The step's number is one more in any case. */
void gb_cuda_hand_out(const gb_cuda_handing *handing, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
