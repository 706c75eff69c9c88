/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between the host and the device in a step, by kernels that read and write the host's pinned
 * memory: in a captured step they follow and precede the others without the pauses of copies, and the host
 * sees the tokens as soon as they are there.
 */
#ifndef GUMBEL_RUN_CUDA_HANDOVER_H
#define GUMBEL_RUN_CUDA_HANDOVER_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GB_CUDA_MOST_PARTS = 24 };

/* Parts of a block of memory, as words of 4 bytes. */
typedef struct gb_cuda_parts {
    uint32_t count;
    uint32_t first[GB_CUDA_MOST_PARTS], words[GB_CUDA_MOST_PARTS];
} gb_cuda_parts;

/* What the host reads: the tokens behind it are there once number is that of the step. */
typedef struct gb_cuda_handed_out {
    uint32_t number;
} gb_cuda_handed_out;

/* [slots] */
static inline int32_t *gb_cuda_handed_tokens(gb_cuda_handed_out *out) {
    return (int32_t *)(out + 1);
}

/* Copies the parts of `from`, pinned memory, to the same places of `to`, the device's. */
void gb_cuda_bring_in(const gb_cuda_parts *parts, const void *from, void *to, cudaStream_t stream);

/* Writes tokens [count] (NULL for none) and then *number, both the device's, to `out`, pinned memory. */
void gb_cuda_hand_out(const int32_t *tokens, uint32_t count, const uint32_t *number, gb_cuda_handed_out *out,
                      cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
