/* SPDX-License-Identifier: Apache-2.0
 *
 * A Gemma 4 checkpoint of any size, written without holding it in memory.
 */
#ifndef GUMBEL_TESTS_LARGE_CHECKPOINT_H
#define GUMBEL_TESTS_LARGE_CHECKPOINT_H

#include <stdint.h>

/* Writes config.json and model.safetensors (bfloat16, finite numbers that repeat after a megabyte) into
 * directory: an embedding of vocabulary x 1024, and so many layers of some 26 million weights. There is no
 * tokenizer. Returns the bytes of the weights. Ends the test on an error. */
uint64_t write_large_checkpoint(const char *directory, int64_t vocabulary, int layers);

#endif
