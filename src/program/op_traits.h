/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops.def says of an op beside its meaning: how threads may share it, how much it multiplies and reads.
 */
#ifndef GUMBEL_PROGRAM_OP_TRAITS_H
#define GUMBEL_PROGRAM_OP_TRAITS_H

#include "program/program.h"

/* How the threads of a team share an op's outputs out. */
typedef enum gb_split {
    GB_SPLIT_ALONE = 1,   /* thread 0 computes all */
    GB_SPLIT_TOKENS = 2,  /* by the first dim */
    GB_SPLIT_COLUMNS = 4, /* by the last dim, for all that stands before it */
    GB_SPLIT_OWN = 8      /* in the kernel's own way */
} gb_split;

/* How many multiplications, about, an op takes. */
typedef enum gb_work_kind {
    GB_WORK_ELEMENTS = 1, /* factor for each element of an operand, or of the result where that has more */
    GB_WORK_RESULTS,      /* factor for each element of the result */
    GB_WORK_PRODUCTS,     /* factor times a dim of an operand, for each element of the result */
    GB_WORK_POSITIONS,    /* factor for each position of each row of the result */
    GB_WORK_ATTENTION     /* each position of the operand, for each element of the query and of the result */
} gb_work_kind;

typedef struct gb_work {
    gb_work_kind kind;
    uint8_t operand, dim; /* what the kind speaks of */
    uint8_t factor;
} gb_work;

#define GB_PER_ELEMENT(factor)                                                                               \
    { GB_WORK_ELEMENTS, 0, 0, factor }
#define GB_PER_ELEMENT_OF(operand, factor)                                                                   \
    { GB_WORK_ELEMENTS, operand, 0, factor }
#define GB_PER_RESULT(factor)                                                                                \
    { GB_WORK_RESULTS, 0, 0, factor }
#define GB_PRODUCTS(operand, dim, factor)                                                                    \
    { GB_WORK_PRODUCTS, operand, dim, factor }
#define GB_PER_POSITION(factor)                                                                              \
    { GB_WORK_POSITIONS, 0, 0, factor }
#define GB_ATTENTION_WORK(cache)                                                                             \
    { GB_WORK_ATTENTION, cache, 0, 1 }

/* Which bytes of its constants an op reads in a step. */
typedef enum gb_weights_read {
    GB_WEIGHTS_ALL = 0,   /* all, if there is a result */
    GB_WEIGHTS_ROWS = 1,  /* of operand 0 the rows that operand 1 names */
    GB_WEIGHTS_CHOSEN = 2 /* of operand 1 the parts that operand 2 names */
} gb_weights_read;

typedef enum gb_before { GB_BEFORE_NONE = 0, GB_BEFORE_ROUND = 1, GB_BEFORE_APPEND = 2 } gb_before;

typedef struct gb_op_traits {
    uint8_t splits;        /* the ways that the kernel can be split, besides ALONE; 0: OWN */
    uint8_t splits_before; /* likewise, of what runs before it */
    gb_before before;
    gb_work work, work_before; /* of the latter 0: 4 for each element of operand 0 */
    gb_weights_read weights;
    const char *cuts; /* letters of the signature by whose dims ranks can share the op (shard/shard.h), or
                         "...": by any dim that `...` stands for; NULL: each has all of it */
} gb_op_traits;

/* An op's traits. NULL for a number that is no op. */
const gb_op_traits *gb_op_traits_find(uint32_t number);

/* Operands of an op, a bit each, as its signature tells. */
typedef struct gb_operand_roles {
    uint8_t by_token;  /* token m of the result needs only their token m */
    uint8_t by_column; /* column k of the result needs only their column k, or rows of it */
    uint8_t states;    /* the slot's memory, which the op writes */
} gb_operand_roles;

gb_operand_roles gb_op_operand_roles(gb_op op);

#endif
