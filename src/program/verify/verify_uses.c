/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer.h"
#include "program/verify/verify.h"

#include <string.h>

static bool has_name(const char *name, size_t length, const char *expected) {
    return strlen(expected) == length && memcmp(name, expected, length) == 0;
}

/* A draft head turns queries by the position behind the last one of its program. */
static bool turns_by_last(const gb_program *program, const gb_node *node, gb_ref operand) {
    const gb_ref last = gb_program_input(program, GB_ROLE_LAST);
    return node->op == GB_OP_ROPE && last != GB_NO_VALUE && operand == last;
}

/* An embedding may look up what belongs to a position, such as a scale of queries. */
static bool looks_up_positions(const gb_program *program, const gb_node *node) {
    const gb_ref positions = gb_program_input(program, GB_ROLE_POSITIONS);
    return node->op == GB_OP_EMBEDDING && positions != GB_NO_VALUE && node->operands[1] == positions;
}

/* Rule 31: operands that index something come straight from the engine, which has checked them. */
static gumbel_status check_engine_operand(gb_verification *verification, const gb_node *node,
                                          uint32_t operand) {
    static const gb_role roles[] = {GB_ROLE_TOKENS, GB_ROLE_POSITIONS, GB_ROLE_SLOTS, GB_ROLE_ROWS,
                                    GB_ROLE_LAST};
    size_t length;
    const char *name = gb_op_operand_name(node->op, operand, &length);
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++) {
        const char *role = gb_role_find(roles[i])->name;
        if (has_name(name, length, role) &&
            node->operands[operand] != gb_program_input(verification->program, roles[i]) &&
            !turns_by_last(verification->program, node, node->operands[operand]) &&
            !looks_up_positions(verification->program, node))
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "%s: operand %s is value %u, expected the input %s", gb_op_find(node->op)->name,
                           role, node->operands[operand], role);
    }
    return GUMBEL_OK;
}

/* Whether both attend to the same keys and values in the same caches, where both store the same. */
static bool stores_the_same(const gb_node *a, const gb_node *b) {
    enum { FIRST = 1, END = 7 }; /* all operands but the query */
    if (a == b || a->op != GB_OP_ATTENTION || b->op != GB_OP_ATTENTION)
        return false;
    for (int i = FIRST; i < END; i++)
        if (a->operands[i] != b->operands[i])
            return false;
    return true;
}

static bool only_read(const gb_node *a, const gb_node *b) {
    return a->op == GB_OP_ATTEND && b->op == GB_OP_ATTEND;
}

/* Whether one reads the hidden states that the other then stores. */
static bool reads_before(const gb_node *a, const gb_node *b) {
    return a->op == GB_OP_LOAD_HIDDEN && b->op == GB_OP_KEEP_HIDDEN;
}

/* Rules 29 and 30: one use, several that store the same or only read, or one that reads before one that
 * stores; and always executed, so that what a slot holds depends on its own tokens alone. */
static gumbel_status check_state_operand(gb_verification *verification, const gb_node *node, gb_ref ref,
                                         int depth) {
    const gb_value *value = &verification->program->values[ref];
    if (value->kind != GB_VALUE_STATE)
        return GUMBEL_OK;
    const char *name = verification->program->states[value->index].name;
    const gb_node **user = &verification->state_users[value->index];
    if (*user && !stores_the_same(*user, node) && !only_read(*user, node) && !reads_before(*user, node))
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "state %s is used twice", name);
    if (depth > 0)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "state %s is used within an if", name);
    *user = node;
    verification->values[ref] |= GB_VALUE_USED;
    return GUMBEL_OK;
}

/* Rule 32. */
static gumbel_status check_attention(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    const gb_ref *caches = &node->operands[node->op == GB_OP_ATTEND ? 3 : 5];
    const gb_state *key = &program->states[program->values[caches[0]].index];
    const gb_state *value = &program->states[program->values[caches[1]].index];
    int64_t window = gb_node_int(node, GB_ATTRIBUTE_WINDOW);
    if (key->kind == GB_STATE_RECURRENT || key->kind != value->kind || key->window != value->window)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "%s: %s and %s are not two caches of one kind and window", gb_op_find(node->op)->name,
                       key->name, value->name);
    if (key->kind == GB_STATE_RING && window != key->window)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "%s: window = %lld, its ring %s is for %u",
                       gb_op_find(node->op)->name, (long long)window, key->name, key->window);
    return GUMBEL_OK;
}

/* Rule 33. */
static gumbel_status check_embedding(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    const bool has_positions = looks_up_positions(program, node);
    const uint64_t needed = has_positions ? program->metadata.max_context : program->metadata.vocab_size;
    int64_t rows = program->values[node->operands[0]].type.shape.dims[0];
    if ((uint64_t)rows < needed)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "embedding: a table of %lld rows, %s is %llu", (long long)rows,
                       has_positions ? "max_context" : "vocab_size", (unsigned long long)needed);
    return GUMBEL_OK;
}

/* Rule 38: what has no rows per position is no cache. */
static gumbel_status check_recurrent(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const gb_value *value = &program->values[node->operands[i]];
        if (value->kind == GB_VALUE_STATE && program->states[value->index].kind != GB_STATE_RECURRENT)
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                           "%s: state %s is a %s, expected recurrent", gb_op_find(node->op)->name,
                           program->states[value->index].name,
                           gb_state_kind_name(program->states[value->index].kind));
    }
    return GUMBEL_OK;
}

/* Rule 39: the experts were chosen among as many as the weight has. */
static gumbel_status check_experts(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    const gb_value *experts = &program->values[node->operands[2]];
    int64_t count = program->values[node->operands[1]].type.shape.dims[0];
    const gb_node *router = experts->kind == GB_VALUE_RESULT ? &program->nodes[experts->index] : NULL;
    if (!router || (router->op != GB_OP_ROUTE_TOP_K && router->op != GB_OP_ROUTE_SIGMOID) ||
        router->results[0] != node->operands[2] ||
        program->values[router->operands[0]].type.shape.dims[1] != count)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "%s: operand experts is not chosen by route_top_k or route_sigmoid from %lld experts",
                       gb_op_find(node->op)->name, (long long)count);
    return GUMBEL_OK;
}

/* Rule 40: history is indexed by position. */
static gumbel_status check_count_tokens(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    const gb_state *history = &program->states[program->values[node->operands[5]].index];
    if (history->kind != GB_STATE_CACHE)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "count_tokens: state %s is of kind %s, expected cache", history->name,
                       gb_state_kind_name(history->kind));
    return GUMBEL_OK;
}

/* Rule 45: hidden states are indexed by position. */
static gumbel_status check_hidden(gb_verification *verification, const gb_node *node) {
    const gb_program *program = verification->program;
    const gb_ref last = node->operands[node->operand_count - 1];
    const gb_state *hidden = &program->states[program->values[last].index];
    if (hidden->kind != GB_STATE_CACHE)
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "%s: state %s is of kind %s, expected cache",
                       gb_op_find(node->op)->name, hidden->name, gb_state_kind_name(hidden->kind));
    return GUMBEL_OK;
}

/* Rule 44: a file's program is not sharded. */
static gumbel_status check_all_gather(gb_verification *verification, const gb_node *node) {
    const uint32_t ranks = verification->program->ranks > 0 ? verification->program->ranks : 1;
    if (gb_node_int(node, GB_ATTRIBUTE_RANKS) == (int64_t)ranks)
        return GUMBEL_OK;
    return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "all_gather: %lld ranks, expected %u",
                   (long long)gb_node_int(node, GB_ATTRIBUTE_RANKS), ranks);
}

gumbel_status gb_verify_uses(gb_verification *verification, const gb_node *node, int depth) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        GB_TRY(check_engine_operand(verification, node, i));
        GB_TRY(check_state_operand(verification, node, node->operands[i], depth));
    }
    if (node->op == GB_OP_ATTENTION || node->op == GB_OP_ATTEND)
        return check_attention(verification, node);
    if (node->op == GB_OP_EMBEDDING)
        return check_embedding(verification, node);
    if (node->op == GB_OP_CAUSAL_CONV || node->op == GB_OP_GATED_DELTA)
        return check_recurrent(verification, node);
    if (node->op == GB_OP_EXPERT_LINEAR || node->op == GB_OP_ADD_EXPERT_BIAS)
        return check_experts(verification, node);
    if (node->op == GB_OP_ALL_GATHER)
        return check_all_gather(verification, node);
    if (node->op == GB_OP_KEEP_HIDDEN || node->op == GB_OP_LOAD_HIDDEN)
        return check_hidden(verification, node);
    if (node->op == GB_OP_COUNT_TOKENS)
        return check_count_tokens(verification, node);
    return GUMBEL_OK;
}
