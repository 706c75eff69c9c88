/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#include <string.h>

typedef struct matcher {
    const gb_fuser *fuser;
    const gb_pattern *pattern;
    gb_match match;
} matcher;

static bool match_node(matcher *m, uint32_t part, const gb_node *node);

/* The node that computes a value's bytes, if it is a step of its own. */
static const gb_node *producer_of(const matcher *m, gb_ref value) {
    const gb_program *program = m->fuser->plan->program;
    const gb_value *bytes = &program->values[gb_storage(m->fuser, value)];
    const gb_node *node = bytes->kind == GB_VALUE_RESULT ? &program->nodes[bytes->index] : NULL;
    return node && gb_step_of(m->fuser, node) != GB_NO_STEP ? node : NULL;
}

static bool is_op_of(const gb_pattern_part *part, const gb_node *node) {
    return node && (part->ops >> node->op & 1u) != 0;
}

static bool same_bytes(const matcher *m, gb_ref a, gb_ref b) {
    return gb_storage(m->fuser, a) == gb_storage(m->fuser, b);
}

static bool match_operand(matcher *m, uint32_t number, gb_ref value) {
    gb_ref *bound = &m->match.operands[number];
    if (*bound == GB_NO_VALUE)
        *bound = value;
    return same_bytes(m, *bound, value);
}

/* An optional part whose result others read, too, is left to them. */
static bool may_leave_out(const matcher *m, const gb_pattern_part *part, gb_ref value) {
    return (part->flags & GB_PART_OPTIONAL) != 0 && (part->flags & (GB_PART_RESULT | GB_PART_WORK)) == 0 &&
           m->fuser->reader_count[gb_storage(m->fuser, value)] > 1;
}

static bool match_source(matcher *m, const gb_pattern_source *source, gb_ref value) {
    if (source->kind == GB_SOURCE_ANY)
        return true;
    if (source->kind == GB_SOURCE_OPERAND)
        return match_operand(m, source->index, value);
    const gb_pattern_part *part = &m->pattern->parts[source->index];
    const gb_node *bound = m->match.nodes[source->index], *node = producer_of(m, value);
    if (bound)
        return same_bytes(m, bound->results[source->result], value);
    if (is_op_of(part, node) && same_bytes(m, node->results[source->result], value) &&
        !may_leave_out(m, part, value)) {
        const gb_match before = m->match;
        if (match_node(m, source->index, node))
            return true;
        m->match = before;
    }
    return (part->flags & GB_PART_OPTIONAL) != 0 && match_source(m, &part->operands[0], value);
}

static bool match_sources(matcher *m, const gb_pattern_part *part, const gb_node *node, bool exchanged) {
    for (uint32_t i = 0; i < node->operand_count && i < GB_MOST_PATTERN_OPERANDS; i++)
        if (!match_source(m, &part->operands[exchanged && i < 2 ? 1 - i : i], node->operands[i]))
            return false;
    return true;
}

/* Whether the first operands match better exchanged: the part that a source names computes the other one. */
static bool begins_exchanged(const matcher *m, const gb_pattern_part *part, const gb_node *node) {
    for (uint32_t i = 0; i < 2; i++) {
        const gb_pattern_source *source = &part->operands[i];
        if (source->kind != GB_SOURCE_PART)
            continue;
        const gb_pattern_part *wanted = &m->pattern->parts[source->index];
        if (is_op_of(wanted, producer_of(m, node->operands[i])))
            return false;
        if (is_op_of(wanted, producer_of(m, node->operands[1 - i])))
            return true;
    }
    return false;
}

static bool match_node(matcher *m, uint32_t number, const gb_node *node) {
    const gb_pattern_part *part = &m->pattern->parts[number];
    const bool commutes = node->op == GB_OP_ADD || node->op == GB_OP_MULTIPLY;
    const bool exchanged = commutes && begins_exchanged(m, part, node);
    m->match.nodes[number] = node;
    const gb_match before = m->match;
    if (match_sources(m, part, node, exchanged))
        return true;
    m->match = before;
    return commutes && match_sources(m, part, node, !exchanged);
}

static uint32_t count_nodes(const gb_pattern *pattern, const gb_match *match) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < pattern->part_count; i++)
        count += match->nodes[i] && !(pattern->parts[i].flags & GB_PART_OUTSIDE);
    return count;
}

bool gb_pattern_matches(const gb_fuser *fuser, const gb_pattern *pattern, const gb_node *root,
                        gb_match *match) {
    matcher m = {.fuser = fuser, .pattern = pattern};
    for (uint32_t i = 0; i < GB_MAX_STEP_OPERANDS; i++)
        m.match.operands[i] = GB_NO_VALUE;
    if (!is_op_of(&pattern->parts[pattern->root], root) || !match_node(&m, pattern->root, root) ||
        count_nodes(pattern, &m.match) < pattern->fewest_nodes ||
        (pattern->fits && !pattern->fits(fuser->plan->program, &m.match)))
        return false;
    *match = m.match;
    return true;
}
