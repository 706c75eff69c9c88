/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"
#include "plan/passes.h"

#include <string.h>

typedef struct matcher {
    const gb_fuser *fuser;
    const gb_pattern *pattern;
    gb_match match;
} matcher;

static bool match_node(matcher *m, uint32_t part, const gb_node *node);
static bool match_sources(matcher *m, const gb_pattern_part *part, const gb_node *node, bool exchanged);

/* The node that computes a value's bytes, if it is a step of its own. */
static const gb_node *producer_of(const matcher *m, gb_ref value) {
    const gb_program *program = m->fuser->plan->program;
    const gb_value *bytes = &program->values[gb_storage(m->fuser, value)];
    const gb_node *node = bytes->kind == GB_VALUE_RESULT ? &program->nodes[bytes->index] : NULL;
    const bool is_free = node && (!m->fuser->step_of || gb_step_of(m->fuser, node) != GB_NO_STEP);
    return is_free ? node : NULL;
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

/* Whether the node computes what another one does that the part is bound to. */
static bool is_copy(matcher *m, const gb_pattern_part *part, const gb_node *node) {
    return (part->flags & GB_PART_COPIES) != 0 && is_op_of(part, node) && match_sources(m, part, node, false);
}

static bool match_source(matcher *m, const gb_pattern_source *source, gb_ref value) {
    if (source->kind == GB_SOURCE_ANY || source->kind == GB_SOURCE_NONE)
        return source->kind == GB_SOURCE_ANY;
    if (source->kind == GB_SOURCE_OPERAND)
        return match_operand(m, source->index, value);
    const gb_pattern_part *part = &m->pattern->parts[source->index];
    const gb_node *bound = m->match.nodes[source->index], *node = producer_of(m, value);
    if (bound)
        return same_bytes(m, bound->results[source->result], value) || is_copy(m, part, node);
    if (!(m->match.left_out >> source->index & 1u) && is_op_of(part, node) &&
        same_bytes(m, node->results[source->result], value) && !may_leave_out(m, part, value)) {
        const gb_match before = m->match;
        if (match_node(m, source->index, node))
            return true;
        m->match = before;
    }
    if (!(part->flags & GB_PART_OPTIONAL))
        return false;
    m->match.left_out |= 1u << source->index;
    return match_source(m, &part->operands[part->flags & GB_PART_SECOND ? 1 : 0], value);
}

/* An operand, or behind those of an `if` what a region of it yields; GB_NO_VALUE: there is none. */
static gb_ref input_of(const gb_program *program, const gb_node *node, uint32_t number) {
    const uint32_t r = number - node->operand_count;
    if (number < node->operand_count)
        return node->operands[number];
    const gb_region *region = node->op == GB_OP_IF && r < 2 ? &program->regions[node->regions[r]] : NULL;
    return region && region->yield_count > 0 ? region->yields[0] : GB_NO_VALUE;
}

static bool match_sources(matcher *m, const gb_pattern_part *part, const gb_node *node, bool exchanged) {
    for (uint32_t i = 0; i < GB_MOST_PATTERN_OPERANDS; i++) {
        const gb_ref value = input_of(m->fuser->plan->program, node, i);
        if (value != GB_NO_VALUE && !match_source(m, &part->operands[exchanged && i < 2 ? 1 - i : i], value))
            return false;
    }
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

/* Whether a part computes what is bound to an operand, as in x + x: it is not there before the step. */
static bool reads_own_result(const matcher *m) {
    for (uint32_t i = 0; i < GB_MAX_STEP_OPERANDS; i++) {
        const gb_ref operand = m->match.operands[i];
        const gb_node *node = operand == GB_NO_VALUE ? NULL : producer_of(m, operand);
        for (uint32_t p = 0; p < m->pattern->part_count && node; p++)
            if (m->match.nodes[p] == node && !(m->pattern->parts[p].flags & GB_PART_OUTSIDE))
                return true;
    }
    return false;
}

bool gb_pattern_matches(const gb_fuser *fuser, const gb_pattern *pattern, const gb_node *root,
                        uint32_t left_out, gb_match *match) {
    matcher m = {.fuser = fuser, .pattern = pattern, .match.left_out = left_out};
    for (uint32_t i = 0; i < GB_MAX_STEP_OPERANDS; i++)
        m.match.operands[i] = GB_NO_VALUE;
    if (!is_op_of(&pattern->parts[pattern->root], root) || !match_node(&m, pattern->root, root) ||
        count_nodes(pattern, &m.match) < pattern->fewest_nodes || reads_own_result(&m) ||
        (pattern->fits && !pattern->fits(fuser->plan->program, &m.match)))
        return false;
    *match = m.match;
    return true;
}

bool gb_match_sampler(gb_plan *plan, const gb_node *node, gb_step *step) {
    const gb_fuser fuser = {.plan = plan};
    gb_match match;
    if (!gb_pattern_matches(&fuser, &gb_patterns[0], node, 0, &match))
        return false;
    *step = (gb_step){.kind = GB_STEP_SAMPLE,
                      .node = node,
                      .needs_rows = true,
                      .operand_count = GB_SAMPLE_OPERANDS,
                      .result_count = 1,
                      .results = {node->results[0]}};
    memcpy(step->operands, match.operands, sizeof step->operands);
    return true;
}
