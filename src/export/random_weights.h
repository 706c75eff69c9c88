/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights drawn from a counter-based generator, for programs at real sizes without a checkpoint. Element i of
 * a tensor depends on the seed, the tensor's name and i alone, so that any part can be made at any time, in
 * any order. The text such a program writes is noise.
 */
#ifndef GUMBEL_EXPORT_RANDOM_WEIGHTS_H
#define GUMBEL_EXPORT_RANDOM_WEIGHTS_H

#include "tensor/dtype.h"

#include <stdint.h>

/* A uniform distribution on [low, high). */
typedef struct gb_uniform {
    float low, high;
} gb_uniform;

/* For a matrix with inputs columns: variance 1 / inputs, so that a product with values of unit size keeps
 * their size. For a norm's weight or a scale: around 1. For a norm's weight kept as its difference from 1:
 * around 0. For a bias: around 0, of the size of the products that it is added to. */
gb_uniform gb_random_matrix(int64_t inputs);
gb_uniform gb_random_gain(void);
gb_uniform gb_random_difference(void);
gb_uniform gb_random_bias(void);

/* The stream of one tensor: what the element function needs of seed and name. */
uint64_t gb_random_stream(uint64_t seed, const char *name);

/* Writes elements first .. first + count - 1 of a stream into output, rounded to dtype (f32, f16 or bf16). */
void gb_random_fill(uint64_t stream, gb_uniform uniform, gb_dtype dtype, uint64_t first, uint64_t count,
                    void *output);

/* Writes bytes first .. first + count - 1 of a stream of random bytes into output. */
void gb_random_bytes(uint64_t stream, uint64_t first, uint64_t count, uint8_t *output);

#endif
