/* SPDX-License-Identifier: Apache-2.0
 *
 * The packing of a program's constants: which one fits those who multiply with them, and how the bytes of
 * one get into another. A program with constants in any packing is the same program: whoever reads a constant
 * in one that it has no kernels for rearranges it.
 */
#ifndef GUMBEL_PROGRAM_CONSTANT_PACKING_H
#define GUMBEL_PROGRAM_CONSTANT_PACKING_H

#include "program/program.h"

/* The orders that weights can be wanted in. */
typedef enum gb_packing_order {
    GB_ORDER_CANONICAL = 0,   /* every constant as its format's planes say */
    GB_ORDER_INTERLEAVED = 1, /* the matrices of linear and expert_linear by gb_packing_interleaved */
    GB_ORDER_FRAGMENTS = 2    /* by gb_packing_fragments or gb_packing_tiles those that nothing else reads but
                               * embeddings */
} gb_packing_order;

/* For each constant of the program, how it is used. */
typedef struct gb_constant_use {
    bool is_multiplied; /* the weight of a linear or expert_linear */
    bool has_others;    /* an operand of anything else, embeddings aside */
    bool is_int8;       /* of one at least that rounds its input to 8 bits */
    bool is_per_token;  /* of one at least that rounds its input to 8 bits per row */
    bool is_mixed;      /* of several, whose inputs are not rounded alike */
} gb_constant_use;

/* Fills uses, one for each constant. */
void gb_find_constant_uses(const gb_program *program, gb_constant_use *uses);

/* The packing of a constant with that use in that order; all 0 (canonical) for one that no product reads, for
 * fragments where is_mixed, and where rows or columns do not allow it. Of experts [X,O,K] no block holds rows
 * of two. */
gb_packing gb_constant_wanted_packing(const gb_constant *constant, const gb_constant_use *use,
                                      gb_packing_order order);

/* Gives every constant of a program that was built and not yet written, and of its draft head, the packing of
 * that order; then the head shares what it can (gb_share_constants). Errors: MEMORY. */
gumbel_status gb_program_choose_packings(gb_program *program, gb_packing_order order, gumbel_error *error);

/* "interleaved 16", "fragments 16", "packed" (otherwise), or "canonical". */
const char *gb_constant_packing_text(const gb_constant *constant);

/* Rows first .. first + count - 1 of one plane of a quantized constant with data, row-major, into canonical:
 * count * row_bytes of the plane. Both are multiples of the packing's block_rows. */
void gb_constant_canonical_rows(const gb_constant *constant, gb_plane_kind kind, uint64_t first,
                                uint64_t count, uint8_t *canonical);

/* All bytes of a constant with data as they are without a packing, size bytes. Thread-safe. */
void gb_constant_canonical(const gb_constant *constant, uint8_t *canonical);

#endif
