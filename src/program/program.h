/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in memory: a graph of single-assignment values, its constants, its per-slot states, its metadata.
 * The exporter builds one (builder.h) and writes it (writer.h); the runtime reads one (reader.h), which has
 * then passed the verifier (verifier.h). Nothing here knows a backend or a model.
 */
#ifndef GUMBEL_PROGRAM_PROGRAM_H
#define GUMBEL_PROGRAM_PROGRAM_H

#include "base/file_map.h"
#include "base/status.h"
#include "program/metadata.h"
#include "tensor/dtype.h"
#include "tensor/packing.h"

#include <stdint.h>

/* ---- Types --------------------------------------------------------------------------------------------- */

enum { GB_MAX_RANK = 4 };
enum { GB_MAX_DIM = INT32_MAX };

/* A dim is a size of 1 .. GB_MAX_DIM or, only as the first dim, one of these symbols. */
enum { GB_DIM_N = -1 /* tokens of the step */, GB_DIM_B = -2 /* rows of the step */ };

typedef struct gb_shape {
    int32_t rank; /* 0 .. GB_MAX_RANK; 0 is a scalar */
    int64_t dims[GB_MAX_RANK];
} gb_shape;

typedef struct gb_type {
    gb_dtype dtype;
    gb_shape shape;
} gb_type;

bool gb_shape_equal(const gb_shape *a, const gb_shape *b);
bool gb_type_equal(const gb_type *a, const gb_type *b);

/* Whether dtype, rank and dims are within what is said above. */
bool gb_type_valid(const gb_type *type);

/* "f32[N,4,32]" into text of GB_TYPE_TEXT bytes; returns text. */
enum { GB_TYPE_TEXT = 96 };
const char *gb_type_text(const gb_type *type, char text[GB_TYPE_TEXT]);

/* Elements of a shape without symbols; false on overflow or a symbol. */
bool gb_shape_elements(const gb_shape *shape, uint64_t *elements);

/* Bytes of a value of a type without symbols; false on overflow, a symbol, a quantized type, whose bytes its
 * format tells, or rows of codes (q8, q4) that are no whole groups. */
bool gb_type_bytes(const gb_type *type, uint64_t *bytes);

/* ---- Ops ----------------------------------------------------------------------------------------------- */

typedef enum gb_op {
    GB_OP_NONE = 0,
#define GB_OP(number, NAME, ...) GB_OP_##NAME = number,
#include "program/ops.def"
#undef GB_OP
    GB_OP_LIMIT = 64 /* one more than the largest number so far; grows with the table */
} gb_op;

typedef struct gb_op_info {
    gb_op op;
    const char *name;
    const char *signature;  /* as in ops.def */
    const char *attributes; /* as in ops.def */
} gb_op_info;

/* The table's line of an op number, or NULL for a number that is no op. */
const gb_op_info *gb_op_find(uint32_t number);

/* Limits of ops, so that kernels need no memory that grows with a program's numbers. */
enum {
    GB_MAX_CONV_WIDTH = 64, /* of causal_conv */
    GB_MAX_EXPERTS = 4096   /* of routers, expert_linear and add_expert_bias */
};

/* Attribute names are numbered once for all ops. The numbers are part of the file format. */
#define GB_ATTRIBUTES(X)                                                                                     \
    X(1, SCALE, scale)                                                                                       \
    X(2, EPSILON, epsilon)                                                                                   \
    X(3, HEADS, heads)                                                                                       \
    X(4, PAIR_OFFSET, pair_offset)                                                                           \
    X(5, WINDOW, window)                                                                                     \
    X(6, CAP, cap)                                                                                           \
    X(7, VALUE, value)                                                                                       \
    X(8, COUNT, count)                                                                                       \
    X(9, START, start)                                                                                       \
    X(10, WEIGHT_OFFSET, weight_offset)                                                                      \
    X(11, NORMALIZE, normalize)                                                                              \
    X(12, ACTIVATION, activation)                                                                            \
    X(13, TILED, tiled)                                                                                      \
    X(14, ROTATION, rotation)                                                                                \
    X(15, VALUE_ROTATION, value_rotation)                                                                    \
    X(16, ALPHA, alpha)                                                                                      \
    X(17, LIMIT, limit)                                                                                      \
    X(18, RANKS, ranks)                                                                                      \
    X(19, SECTIONS, sections)                                                                                \
    X(20, CORRECTS, corrects)                                                                                \
    X(21, BEFORE, before)

typedef enum gb_attribute_key {
    GB_ATTRIBUTE_NONE = 0,
#define X(number, NAME, name) GB_ATTRIBUTE_##NAME = number,
    GB_ATTRIBUTES(X)
#undef X
} gb_attribute_key;

typedef enum gb_attribute_type { GB_ATTRIBUTE_INT = 1, GB_ATTRIBUTE_FLOAT = 2 } gb_attribute_type;

typedef struct gb_attribute {
    gb_attribute_key key;
    gb_attribute_type type;
    union {
        int64_t i;
        double f;
    };
} gb_attribute;

static inline gb_attribute gb_int(gb_attribute_key key, int64_t value) {
    gb_attribute attribute = {.key = key, .type = GB_ATTRIBUTE_INT, .i = value};
    return attribute; /* not a compound literal: C++ reads this header too */
}
static inline gb_attribute gb_float(gb_attribute_key key, double value) {
    gb_attribute attribute = {.key = key, .type = GB_ATTRIBUTE_FLOAT, .f = value};
    return attribute;
}

/* Values of the attribute activation of linear and expert_linear: how they take their input. */
typedef enum gb_activation {
    GB_ACTIVATION_NONE = 0, /* as it is */
    GB_ACTIVATION_INT8_PER_GROUP =
        1, /* rounded to 8 bits, with a scale for each group of the weight's format */
    /* rotated (the attribute rotation), then rounded to 8 bits with a scale for each row; with weights that
     * are integers but for their row's scale (gb_format_is_integer) the whole sum is an exact int32 */
    GB_ACTIVATION_INT8_PER_TOKEN = 2,
    GB_ACTIVATION_BFLOAT16 = 3 /* gb_bf16_operand of each, beside bfloat16 weights that are such numbers */
} gb_activation;

static inline bool gb_activation_is_int8(int64_t activation) {
    return activation == GB_ACTIVATION_INT8_PER_GROUP || activation == GB_ACTIVATION_INT8_PER_TOKEN;
}

/* The largest block of a rotation. */
enum { GB_MAX_ROTATION = 256 };

/* ---- Roles --------------------------------------------------------------------------------------------- */

typedef enum gb_role {
    GB_ROLE_NONE = 0,
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) GB_ROLE_##NAME = number,
#include "program/roles.def"
    GB_ROLE_LIMIT = 128
} gb_role;

typedef enum gb_role_direction { GB_ROLE_INPUT = 1, GB_ROLE_OUTPUT = 2 } gb_role_direction;

typedef struct gb_role_info {
    gb_role role;
    const char *name;
    gb_role_direction direction;
    gb_dtype dtype;
    const char *dims; /* letters N, B, V, L, K */
    bool required;
} gb_role_info;

/* The table's line of a role number, or NULL for a number that is no role. */
const gb_role_info *gb_role_find(uint32_t number);

/* Words of 32 bits that hold one bit of each token. */
uint64_t gb_mask_words(uint64_t vocab_size);

/* The type that a value bound to the role has. */
gb_type gb_role_type(const gb_role_info *role, const gb_metadata *metadata);

/* ---- The graph ----------------------------------------------------------------------------------------- */

typedef uint32_t gb_ref; /* index of a value */
#define GB_NO_VALUE UINT32_MAX

typedef enum gb_value_kind {
    GB_VALUE_INPUT = 1,    /* index: into inputs */
    GB_VALUE_CONSTANT = 2, /* index: into constants */
    GB_VALUE_STATE = 3,    /* index: into states */
    GB_VALUE_RESULT = 4    /* index: the node that makes it */
} gb_value_kind;

typedef struct gb_value {
    gb_value_kind kind;
    uint32_t index;
    gb_type type; /* of a state: its dtype and per-slot shape */
} gb_value;

enum { GB_MAX_OPERANDS = 8, GB_MAX_RESULTS = 4, GB_MAX_ATTRIBUTES = 4 };
enum { GB_MAX_REGION_DEPTH = 8 }; /* ifs within ifs */
#define GB_NO_REGION UINT32_MAX

typedef struct gb_node {
    gb_op op;
    uint8_t operand_count, result_count, attribute_count;
    gb_ref operands[GB_MAX_OPERANDS];
    gb_ref results[GB_MAX_RESULTS];
    gb_attribute attributes[GB_MAX_ATTRIBUTES];
    uint32_t regions[2]; /* of an if: taken when true, when false; else GB_NO_REGION */
} gb_node;

/* A run of nodes in execution order. Region 0 is the body; each other region belongs to one `if` and runs
 * when that does. In the node array the nodes of inner regions stand before those of outer ones, the body's
 * last. Results are numbered as values in order of execution, those of an `if` after its regions' own. */
typedef struct gb_region {
    uint32_t first_node, node_count;
    uint8_t yield_count;
    gb_ref yields[GB_MAX_RESULTS]; /* the results of the if; none for the body */
} gb_region;

typedef struct gb_constant {
    const char *name;                    /* the checkpoint's tensor name, or one of the exporter's */
    gb_type type;                        /* shape without symbols */
    gb_format format;                    /* dense unless the dtype is GB_QUANTIZED */
    gb_packing packing;                  /* how a quantized one's bytes are arranged; all 0: canonically */
    uint64_t offset;                     /* of its bytes in the file, a multiple of 64 */
    uint64_t size;                       /* bytes: elements * dtype size, row-major; or its format's planes */
    uint64_t checksum;                   /* XXH3-64 of its bytes; 0 while building */
    const uint8_t *data;                 /* in the mapping; NULL while building, and of a part */
    const struct gb_constant_part *part; /* of a sharded program: which bytes it has (shard/shard.h) */
    const struct gb_constant *same; /* of a draft head: its program's constant that is this one; or NULL */
} gb_constant;

/* What a state can do besides append; see DESIGN's states. */
typedef enum gb_state_kind {
    GB_STATE_CACHE = 1,    /* [max_context, ...]: position p at row p; truncates anywhere */
    GB_STATE_RING = 2,     /* [capacity, ...]: position p at row p mod capacity; truncates by its slack */
    GB_STATE_RECURRENT = 3 /* no rows per position; only snapshots */
} gb_state_kind;

typedef struct gb_state {
    const char *name;
    gb_state_kind kind;
    gb_type type;       /* of one slot */
    uint32_t window;    /* RING: positions that attention still reads, counting the current one; else 0 */
    uint32_t all_heads; /* of a sharded program's keys or values: those of all ranks; else 0 */
} gb_state;

typedef struct gb_binding {
    gb_role role;
    gb_ref value;
} gb_binding;

/* A section that the graph does not look into: tokenizer, chat templates. Of a program that was read it lies
 * in the file; of one that was built it is the caller's and must outlive the program's writer. */
typedef struct gb_blob {
    const uint8_t *data; /* NULL: absent */
    uint64_t size;
} gb_blob;

typedef struct gb_program {
    gb_metadata metadata;
    gb_value *values;
    gb_node *nodes;
    gb_region *regions;
    gb_constant *constants;
    gb_state *states;
    gb_binding *inputs, *outputs;
    uint32_t value_count, node_count, region_count, constant_count, state_count, input_count, output_count;
    gb_blob tokenizer, chat;    /* of src/text's own formats */
    gb_blob trie;               /* of the tokenizer's tokens; may be absent */
    struct gb_program *head;    /* the draft head of its file; freed with it; NULL: there is none */
    uint32_t ranks;             /* that it is sharded over; 0: not (shard/shard.h) */
    uint8_t id[16];             /* hash of all sections and weights: names the program in session files */
    gb_file_map map;            /* the file, when it was read from one */
    struct gb_storage *storage; /* what owns the arrays and strings; freed by gb_program_destroy */
} gb_program;

/* A constant as a matrix: its last dim are the columns, the others the rows. False where the rank is below 2
 * or a size is none. */
bool gb_constant_matrix(const gb_constant *constant, uint64_t *rows, uint64_t *columns);

/* The planes of a quantized constant's matrix. False where type and format make none. */
bool gb_constant_planes(const gb_constant *constant, gb_planes *planes);

/* Bytes that a constant of its type and format has; false on overflow or where there is no such constant. */
bool gb_constant_bytes(const gb_constant *constant, uint64_t *bytes);

/* "f32", "bf16", or the format's text; returns text. */
const char *gb_constant_format_text(const gb_constant *constant, char text[GB_FORMAT_TEXT]);

/* Bits that one of its numbers takes. */
double gb_constant_bits_per_weight(const gb_constant *constant);

/* Frees a program that gb_program_read or gb_builder_finish made. NULL is allowed. */
void gb_program_destroy(gb_program *program);

/* The node's attribute; an optional one that is absent has its default. key must be one of the op's. */
int64_t gb_node_int(const gb_node *node, gb_attribute_key key);
double gb_node_float(const gb_node *node, gb_attribute_key key);

/* The value bound to a role, or GB_NO_VALUE. */
gb_ref gb_program_input(const gb_program *program, gb_role role);
gb_ref gb_program_output(const gb_program *program, gb_role role);

/* Bytes of one slot's state. */
uint64_t gb_state_bytes(const gb_state *state);

/* Bytes of it that a conversation of so many tokens fills. */
uint64_t gb_state_bytes_at(const gb_state *state, uint64_t tokens);

/* Whether a state of a slot can only be restored, not truncated. */
bool gb_has_recurrent_state(const gb_program *program);

/* The state that has the hidden states which a draft head reads: of the head itself, or of a program that
 * keeps them for one. UINT32_MAX: there is none. */
uint32_t gb_hidden_state(const gb_program *program);

/* Whether the program is a draft head: it goes on from hidden states of another program. */
bool gb_is_draft_head(const gb_program *program);

/* Whether it is one that attends to keys and values of that program, and has no states that it runs tokens
 * for but its hidden ones. */
bool gb_attends_to_program(const gb_program *program);

/* By how many positions a draft head's tokens stand before their own: 1 where a token stands at the position
 * of the hidden state before it. */
uint32_t gb_draft_head_offset(const gb_program *program);

/* How many positions the tightest ring has beside its window: so many can be taken back, or be run ahead, and
 * are as if never run. UINT32_MAX: there are no rings. */
uint32_t gb_ring_slack(const gb_program *program);

/* Whether the node is the last of those that have its last operand's state. */
bool gb_is_last_with_state(const gb_program *program, const gb_node *node);

/* "cache", "ring" or "recurrent". */
const char *gb_state_kind_name(gb_state_kind kind);

/* Sums over the whole program: bytes of the constants, bytes of one session's states, nodes of an op. */
uint64_t gb_program_weight_bytes(const gb_program *program);
uint64_t gb_program_state_bytes(const gb_program *program);
uint64_t gb_program_state_bytes_at(const gb_program *program, uint64_t tokens);
uint32_t gb_program_op_count(const gb_program *program, gb_op op);

#endif
