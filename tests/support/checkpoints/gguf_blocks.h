/* SPDX-License-Identifier: Apache-2.0
 *
 * Random blocks of GGUF's quantized types, and the numbers that they stand for.
 */
#ifndef GUMBEL_TESTS_GGUF_BLOCKS_H
#define GUMBEL_TESTS_GGUF_BLOCKS_H

#include "export/quantize/import_blocks.h"
#include "support/checkpoints/gguf_writer.h"

/* Adds a tensor of random blocks with small scales, or of the float32 numbers that they stand for. The last
 * of dims is a multiple of the block's weights. The same seed gives the same blocks. Returns the blocks'
 * bytes. */
uint64_t gguf_add_blocks(gguf_writer *writer, const char *name, gb_block_type type, int32_t rank,
                         const int64_t *dims, uint64_t seed, bool as_numbers);

#endif
