/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantization with error feedback: what rounding a weight leaves is made up for by the weights of the same
 * row that come after it, as far as their inputs are correlated with its own. So the error of the product
 * becomes small, not that of the weights (Frantar et al., "GPTQ: accurate post-training quantization for
 * generative pre-trained transformers", 2023).
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_FEEDBACK_H
#define GUMBEL_EXPORT_QUANTIZE_FEEDBACK_H

#include "export/quantize/quantizer.h"

/* How the error of one input of a product is spread over the inputs after it, within blocks of inputs. */
typedef struct gb_feedback {
    uint64_t columns, block; /* the last block is what is left */
    float *spread;           /* owned: of each block [size, size], where [i, j], i < j, is taken from weight j
                                for an error of 1 in weight i */
} gb_feedback;

/* Makes it from sums of products of inputs, [size, size] for each block, of which the upper triangles are
 * read. False: no memory. Thread-safe. */
bool gb_feedback_create(const float *sums, uint64_t columns, uint64_t block, unsigned threads,
                        gb_feedback *feedback);

/* Safe on a zeroed one and twice. */
void gb_feedback_free(gb_feedback *feedback);

/* Elements of the squares of all blocks, of rows of that many columns. */
uint64_t gb_block_squares(uint64_t columns, uint64_t block);

/* Rows that gb_quantize_rows takes at once, at most. */
enum { GB_FEEDBACK_ROWS = 16 };

/* Quantizes `count` rows [count, columns], which are changed, with the feedback of their columns. to: one for
 * each. Returns the first row that gb_quantize_row would refuse, or count. Thread-safe; each row's bytes
 * depend on it alone. */
uint64_t gb_quantize_rows(gb_quantize_method method, const gb_format *format, const gb_feedback *feedback,
                          float *values, uint64_t count, const gb_quantized_row *to);

#endif
