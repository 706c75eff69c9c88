/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the verifier. Each checks some of the numbered rules of docs/program-format.md, named in the
 * comments; later parts rely on the rules of earlier ones, in the order of this file.
 */
#ifndef GUMBEL_PROGRAM_VERIFY_VERIFY_H
#define GUMBEL_PROGRAM_VERIFY_VERIFY_H

#include "program/program.h"

/* How much of each thing a program may have. */
enum {
    GB_MAX_VALUES = 1 << 22,
    GB_MAX_NODES = 1 << 20,
    GB_MAX_CONSTANTS = 1 << 20,
    GB_MAX_REGIONS = 1 << 16,
    GB_MAX_STATES = 1 << 16,
    GB_MAX_STOP_TOKENS = 1024,
    GB_MAX_BIAS = 65536,
    GB_MAX_NAME = 512 /* bytes of a constant's or state's name */
};
#define GB_MAX_SESSION_BYTES (UINT64_C(1) << 48)

/* What is known of a value so far. */
enum {
    GB_VALUE_SEEN = 1,    /* something defines it */
    GB_VALUE_VISIBLE = 2, /* it may be used at this point of the walk */
    GB_VALUE_TOKEN = 4,   /* below vocab_size (or a negative error) */
    GB_VALUE_USED = 8     /* a state that a node has */
};

typedef struct gb_verification {
    const gb_program *program;
    uint8_t *values;             /* flags of each value */
    uint8_t *nodes;              /* 1: in a region that the walk has been through */
    uint8_t *regions;            /* 1: an `if` has it */
    const gb_node **state_users; /* of each state its first node, or NULL */
    gb_ref next_result;          /* results from here on are not defined yet */
    gumbel_error *error;
} gb_verification;

/* Rule 1, which the reader also needs before it reserves the arrays. */
gumbel_status gb_verify_counts(const gb_program *program, gumbel_error *error);

/* Rules 1-7: counts and metadata. */
gumbel_status gb_verify_metadata(const gb_program *program, gumbel_error *error);

/* Rules 8-13: names, constants, states. */
gumbel_status gb_verify_data(const gb_program *program, gumbel_error *error);

/* Rules 14-18: the roles of inputs, and that each value is defined by one thing. */
gumbel_status gb_verify_values(gb_verification *verification);

/* Rules 19-28: regions, nodes and their order. Calls gb_verify_uses for each node. */
gumbel_status gb_verify_regions(gb_verification *verification);

/* Rules 29-33 and 38-40: what a node does with states, tokens, positions, slots, rows and experts. depth: 0
 * in the body. */
gumbel_status gb_verify_uses(gb_verification *verification, const gb_node *node, int depth);

/* Rules 34-37: outputs. */
gumbel_status gb_verify_outputs(gb_verification *verification);

/* Rule 46, of a program with a draft head; each keeps to the other rules by itself. */
gumbel_status gb_verify_head(const gb_program *program, gumbel_error *error);

#endif
