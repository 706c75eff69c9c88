/* SPDX-License-Identifier: Apache-2.0
 *
 * A small valid program with quantized weights: embedding, norm and head, which ends in logits. Its constants
 * are table (8 bits, a scale for each row), norm (f32) and head (4 bits, the weight of a linear with 8-bit
 * activations).
 */
#ifndef GUMBEL_TESTS_QUANTIZED_PROGRAM_H
#define GUMBEL_TESTS_QUANTIZED_PROGRAM_H

#include "program/program.h"

enum { QUANTIZED_VOCABULARY = 96, QUANTIZED_WIDTH = 64 };
enum { QUANTIZED_TABLE = 0, QUANTIZED_NORM = 1, QUANTIZED_HEAD = 2 }; /* constants */

extern const gb_format quantized_table_format, quantized_head_format;

/* Free with gb_program_destroy. Fails the test on an error. */
gb_program *quantized_program_build(void);

/* The same with its head interleaved. */
gb_program *packed_program_build(void);

/* A program with table and head of the same formats that keeps its hidden states, and a draft head that
 * shares both and has a matrix "mix" of 4 bits. */
gb_program *quantized_pair_build(void);

#endif
