/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's graph while it is built from the whole one, node by node.
 */
#ifndef GUMBEL_PROGRAM_SHARD_EMIT_H
#define GUMBEL_PROGRAM_SHARD_EMIT_H

#include "program/builder.h"
#include "program/shard/demands.h"

/* A value of the whole graph in the rank's. */
typedef struct gb_emitted {
    gb_ref own;     /* the rank's share of it; GB_NO_VALUE: not built */
    gb_ref whole;   /* all of it; GB_NO_VALUE: not gathered */
    gb_shard shard; /* of own */
} gb_emitted;

/* What a constant of the rank's graph is. */
typedef struct gb_emitted_constant {
    uint32_t whole; /* its number in the whole graph */
    gb_ref own;
    gb_shard shard;
} gb_emitted_constant;

typedef struct gb_emitter {
    const gb_program *program;
    const gb_shard_options *options;
    gb_builder *builder;
    gb_demand *demands;    /* [value_count] */
    gb_emitted *values;    /* [value_count] */
    gb_shard *states;      /* [state_count], of the whole graph */
    uint32_t *state_order; /* [state_count]: the number in the whole graph, by that in the rank's */
    uint32_t state_count;
    gb_emitted_constant *constants; /* by number in the rank's graph */
    size_t constant_count, constant_capacity;
} gb_emitter;

/* All of a value: gathers it where it is cut. Errors are the builder's. */
gb_ref gb_emit_whole(gb_emitter *emitter, gb_ref value);

/* A rank's part of a constant or of a state, or all of it. */
gb_ref gb_emit_constant(gb_emitter *emitter, gb_ref value, const gb_shard *shard);
gb_ref gb_emit_state(gb_emitter *emitter, gb_ref value, const gb_shard *shard);

/* A node of the whole graph, other than an if. */
void gb_emit_node(gb_emitter *emitter, const gb_node *node);

#endif
