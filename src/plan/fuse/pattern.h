/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of ops as data, and matching one in a plan. Only this folder includes it.
 */
#ifndef GUMBEL_PLAN_FUSE_PATTERN_H
#define GUMBEL_PLAN_FUSE_PATTERN_H

#include "plan/plan.h"

enum { GB_MOST_PATTERN_OPERANDS = 7 };

typedef enum gb_source_kind {
    GB_SOURCE_ANY = 0, /* is not looked at */
    GB_SOURCE_PART,    /* result `result` of part `index` */
    GB_SOURCE_OPERAND, /* operand `index` of the fused step: the same value wherever it stands */
    GB_SOURCE_NONE     /* the op has no such operand */
} gb_source_kind;

typedef struct gb_pattern_source {
    gb_source_kind kind;
    uint8_t index, result;
} gb_pattern_source;

typedef enum gb_part_flag {
    GB_PART_OPTIONAL = 1, /* where missing, its first operand stands for its result */
    GB_PART_RESULT = 2,   /* steps behind may read its result */
    GB_PART_WORK = 4,     /* kernels store its results, whoever reads them */
    GB_PART_OUTSIDE = 8,  /* the root of the match, which stays a step of its own */
    GB_PART_COPIES = 16,  /* several nodes may compute it, of the same operands */
    GB_PART_SECOND = 32   /* OPTIONAL: its second operand stands for it */
} gb_part_flag;

/* One op of a pattern. The sources of an operand that the op lacks do not count; those of an addition or a
 * multiplication may be exchanged; behind the operand of an `if` come what its regions yield. */
typedef struct gb_pattern_part {
    uint64_t ops; /* a bit each: one of them */
    uint32_t flags;
    gb_pattern_source operands[GB_MOST_PATTERN_OPERANDS];
} gb_pattern_part;

struct gb_match;
struct gb_fuser;

typedef struct gb_pattern {
    gb_fused_kind kind;
    const char *name;
    /* Fuses what it finds (match.c, join.c); NULL: a sampler, which is found when steps are listed. */
    void (*fuse)(struct gb_fuser *fuser, const struct gb_pattern *pattern);
    const gb_pattern_part *parts; /* in an order in which they can be executed */
    uint32_t part_count, operand_count;
    uint32_t root;         /* the part that matching begins with */
    uint32_t fewest_nodes; /* to be worth a step */
    bool tries_less;       /* where all that is found cannot be fused: without optional parts */
    /* NULL, or what attributes and shapes must be beside the edges. */
    bool (*fits)(const gb_program *program, const struct gb_match *match);
    /* ---- Where steps are joined, each of which is the one part ---- */
    uint32_t most;               /* such steps */
    gb_fused_kind before, joins; /* a fused step in front of them; fused steps that count like nodes */
    /* NULL, or moves steps to where they can be joined. */
    void (*arrange)(struct gb_fuser *fuser, const struct gb_pattern *pattern);
} gb_pattern;

/* The table in order of preference: larger patterns come first. The first one is the sampler's. */
extern const gb_pattern gb_patterns[];
extern const size_t gb_pattern_count;

/* The pattern that makes steps of a kind; NULL: none. */
const gb_pattern *gb_pattern_of(gb_fused_kind kind);

typedef struct gb_match {
    const gb_node *nodes[GB_MAX_FUSED_NODES]; /* by part; NULL: it is missing */
    gb_ref operands[GB_MAX_STEP_OPERANDS];    /* by number; GB_NO_VALUE: it is missing */
    uint32_t left_out;                        /* bit i: an operand stands for optional part i */
} gb_match;

/* The state of fusing a plan's steps. */
typedef struct gb_fuser {
    gb_plan *plan;
    const gb_plan_options *options;
    /* [node_count]: the step that executes the node alone, or GB_NO_STEP; NULL: steps are being listed. */
    uint32_t *step_of;
    uint32_t *reader_count; /* [value_count]: by storage, operands of steps, and outputs */
    uint32_t end;           /* of the steps that may be moved: nothing passes a branch */
    uint32_t fused_count;   /* of plan->fused */
} gb_fuser;

#define GB_NO_STEP UINT32_MAX

/* Matches a pattern whose root is that node. left_out: bits of optional parts that it shall not have. */
bool gb_pattern_matches(const gb_fuser *fuser, const gb_pattern *pattern, const gb_node *root,
                        uint32_t left_out, gb_match *match);

/* ---- Steps (fuse.c) ------------------------------------------------------------------------------------ */

/* A fused step that may take the place of others. */
typedef struct gb_candidate {
    gb_fused fused; /* all but live */
    uint32_t flags[GB_MAX_FUSED_NODES];
    gb_ref operands[GB_MAX_STEP_OPERANDS];
    uint32_t operand_count;
    uint32_t steps[GB_MAX_FUSED_NODES]; /* which it replaces */
    uint32_t step_count;
    bool moves_up; /* it stands in the first one's place, otherwise in the last one's */
} gb_candidate;

/* Adds to the candidate's operands what its parts read and do not compute; false: too many. */
bool gb_candidate_add_operands(const gb_fuser *fuser, gb_candidate *candidate);

/* Puts the candidate into the plan where order, readers and the backend allow it. */
bool gb_fuse_candidate(gb_fuser *fuser, const gb_candidate *candidate);

/* Whether a step reads the bytes of a value. */
bool gb_step_reads(const gb_fuser *fuser, const gb_step *step, gb_ref value);

/* ---- How patterns are found ---------------------------------------------------------------------------- */

/* Nodes with edges between them, from the last step on, so that a chain is found from its end (fuse.c). */
void gb_fuse_graphs(gb_fuser *fuser, const gb_pattern *pattern);

/* Steps anywhere behind the first one that have its operand 0; as many as the backend supports (join.c). */
void gb_fuse_followers(gb_fuser *fuser, const gb_pattern *pattern);

/* A step `before`, and one right behind it whose operand 0 is its last result. */
void gb_fuse_neighbors(gb_fuser *fuser, const gb_pattern *pattern);

/* Steps on equally many rows right behind one another: the longest chain that the backend supports. */
void gb_fuse_chains(gb_fuser *fuser, const gb_pattern *pattern);

/* Whether a step is one of those that the pattern joins. */
bool gb_is_joined(const gb_fuser *fuser, const gb_pattern *pattern, const gb_step *step);

/* Puts products of one input behind the first of them (arrange.c). */
void gb_arrange_products(gb_fuser *fuser, const gb_pattern *pattern);

/* Puts slices and experts' sums in front of what reads them. */
void gb_arrange_slices(gb_fuser *fuser, const gb_pattern *pattern);

/* A step that was replaced has no kind. */
static inline bool gb_is_replaced(const gb_step *step) {
    return step->kind == 0;
}

/* Bytes of a value: the value whose storage it views. */
static inline gb_ref gb_storage(const gb_fuser *fuser, gb_ref value) {
    return fuser->plan->places[value].storage;
}

static inline uint32_t gb_step_of(const gb_fuser *fuser, const gb_node *node) {
    return fuser->step_of[node - fuser->plan->program->nodes];
}

#endif
