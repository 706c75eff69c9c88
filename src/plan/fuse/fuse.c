/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/fuse/pattern.h"
#include "plan/passes.h"

#include <string.h>

/* ---- Readers ------------------------------------------------------------------------------------------- */

bool gb_step_reads(const gb_fuser *fuser, const gb_step *step, gb_ref value) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE &&
            gb_storage(fuser, step->operands[i]) == gb_storage(fuser, value))
            return true;
    return false;
}

/* How often the candidate's parts read a value. The sampler's operands are none that a part makes. */
static uint32_t count_inner_reads(const gb_fuser *fuser, const gb_candidate *c, gb_ref value) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < c->fused.node_count; p++) {
        const gb_node *node = c->fused.nodes[p];
        for (uint32_t i = 0; node && node->op != GB_OP_IF && i < node->operand_count; i++)
            count += gb_storage(fuser, node->operands[i]) == gb_storage(fuser, value);
    }
    return count;
}

static bool is_read_outside(const gb_fuser *fuser, const gb_candidate *c, gb_ref value) {
    return fuser->reader_count[gb_storage(fuser, value)] > count_inner_reads(fuser, c, value);
}

/* Fills in the step's results and which are live; false where others read what they must not. */
static bool find_results(const gb_fuser *fuser, gb_candidate *c, gb_step *step) {
    for (uint32_t p = 0; p < c->fused.node_count; p++) {
        const gb_node *node = c->fused.nodes[p];
        for (uint32_t i = 0; node && i < node->result_count; i++) {
            const bool is_read = is_read_outside(fuser, c, node->results[i]);
            if (is_read && !(c->flags[p] & GB_PART_RESULT))
                return false;
            if (!is_read && !(c->flags[p] & GB_PART_WORK))
                continue;
            if (step->result_count == GB_MAX_STEP_RESULTS)
                return false;
            step->results[step->result_count++] = node->results[i];
            if (is_read && i == 0)
                c->fused.live |= 1u << p;
        }
    }
    return true;
}

static bool is_produced_inside(const gb_fuser *fuser, const gb_candidate *c, gb_ref value) {
    for (uint32_t p = 0; p < c->fused.node_count; p++)
        for (uint32_t i = 0; c->fused.nodes[p] && i < c->fused.nodes[p]->result_count; i++)
            if (c->fused.nodes[p]->results[i] == gb_storage(fuser, value))
                return true;
    return false;
}

bool gb_candidate_add_operands(const gb_fuser *fuser, gb_candidate *c) {
    for (uint32_t p = 0; p < c->fused.node_count; p++) {
        const gb_node *node = c->fused.nodes[p];
        for (uint32_t i = 0; node && i < node->operand_count; i++) {
            bool is_there = is_produced_inside(fuser, c, node->operands[i]);
            for (uint32_t o = 0; o < c->operand_count && !is_there; o++)
                is_there = c->operands[o] == node->operands[i];
            if (is_there)
                continue;
            if (c->operand_count == GB_MAX_STEP_OPERANDS)
                return false;
            c->operands[c->operand_count++] = node->operands[i];
        }
    }
    return true;
}

/* ---- Order --------------------------------------------------------------------------------------------- */

static bool is_member(const gb_candidate *c, uint32_t s) {
    for (uint32_t i = 0; i < c->step_count; i++)
        if (c->steps[i] == s)
            return true;
    return false;
}

static bool share_state(const gb_fuser *fuser, const gb_step *step, const gb_candidate *c) {
    for (uint32_t i = 0; i < c->operand_count; i++)
        if (c->operands[i] != GB_NO_VALUE &&
            fuser->plan->program->values[c->operands[i]].kind == GB_VALUE_STATE &&
            gb_step_reads(fuser, step, c->operands[i]))
            return true;
    return false;
}

/* Whether a step between those that are replaced must stand behind one of them and before the fused step. */
static bool is_in_the_way(const gb_fuser *fuser, const gb_step *step, const gb_candidate *c) {
    if (gb_is_replaced(step))
        return false;
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE && is_produced_inside(fuser, c, step->operands[i]))
            return true;
    return share_state(fuser, step, c);
}

static bool can_move(const gb_fuser *fuser, const gb_candidate *c, uint32_t first, uint32_t last) {
    for (uint32_t s = first + 1; s < last && !c->moves_up; s++)
        if (!is_member(c, s) && is_in_the_way(fuser, &fuser->plan->steps[s], c))
            return false;
    for (uint32_t i = 0; i < c->step_count; i++)
        if (fuser->plan->steps[c->steps[i]].needs_rows != fuser->plan->steps[first].needs_rows)
            return false;
    return last < fuser->end;
}

/* ---- Replacing steps ----------------------------------------------------------------------------------- */

static void replace_steps(gb_fuser *fuser, const gb_candidate *c, const gb_step *step, uint32_t place) {
    gb_plan *plan = fuser->plan;
    gb_fused *fused = &plan->fused[fuser->fused_count++];
    *fused = c->fused;
    for (uint32_t i = 0; i < c->step_count; i++) {
        gb_step *replaced = &plan->steps[c->steps[i]];
        if (replaced->node)
            fuser->step_of[replaced->node - plan->program->nodes] = GB_NO_STEP;
        *replaced = (gb_step){0};
    }
    plan->steps[place] = *step;
    plan->steps[place].fused = fused;
}

bool gb_fuse_candidate(gb_fuser *fuser, const gb_candidate *candidate) {
    gb_candidate c = *candidate;
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < c.step_count; i++) {
        first = c.steps[i] < first ? c.steps[i] : first;
        last = c.steps[i] > last ? c.steps[i] : last;
    }
    if (c.step_count == 0 || !can_move(fuser, &c, first, last))
        return false;
    gb_step step = {.kind = GB_STEP_FUSED,
                    .needs_rows = fuser->plan->steps[first].needs_rows,
                    .operand_count = (uint8_t)c.operand_count,
                    .fused = &c.fused};
    memcpy(step.operands, c.operands, sizeof step.operands);
    if (!find_results(fuser, &c, &step) ||
        !fuser->options->supports(fuser->plan, &step, fuser->options->user))
        return false;
    replace_steps(fuser, &c, &step, c.moves_up ? first : last);
    return true;
}

static void remove_replaced(gb_fuser *fuser) {
    gb_plan *plan = fuser->plan;
    uint32_t count = 0, end = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (gb_is_replaced(&plan->steps[s]))
            continue;
        if (plan->steps[s].node)
            fuser->step_of[plan->steps[s].node - plan->program->nodes] = count;
        end += s < fuser->end;
        plan->steps[count++] = plan->steps[s];
    }
    for (uint32_t s = 0; s < count; s++) /* a target is never before `end`, where nothing is replaced */
        if (plan->steps[s].kind == GB_STEP_BRANCH || plan->steps[s].kind == GB_STEP_JUMP)
            plan->steps[s].target -= plan->step_count - count;
    plan->step_count = count;
    fuser->end = end;
}

/* ---- Patterns ------------------------------------------------------------------------------------------ */

/* A sampler's step knows its operands; its pattern binds only the logits. */
static bool take_sampler_operands(const gb_fuser *fuser, gb_candidate *c) {
    const gb_step *sampler = &fuser->plan->steps[gb_step_of(fuser, c->fused.nodes[GB_LOGPROB_SAMPLER])];
    if (sampler->kind != GB_STEP_SAMPLE || !gb_step_reads(fuser, sampler, c->operands[GB_SAMPLE_LOGITS]))
        return false;
    memcpy(c->operands, sampler->operands, GB_SAMPLE_OPERANDS * sizeof *c->operands);
    return true;
}

static bool fuse_match(gb_fuser *fuser, const gb_pattern *pattern, const gb_match *match) {
    gb_candidate c = {.fused = {.kind = pattern->kind, .node_count = pattern->part_count},
                      .operand_count = pattern->operand_count};
    memcpy(c.operands, match->operands, sizeof c.operands);
    for (uint32_t p = 0; p < pattern->part_count; p++) {
        c.flags[p] = pattern->parts[p].flags;
        if (!match->nodes[p] || (c.flags[p] & GB_PART_OUTSIDE))
            continue;
        c.fused.nodes[p] = match->nodes[p];
        c.steps[c.step_count++] = gb_step_of(fuser, match->nodes[p]);
    }
    if (pattern->kind == GB_FUSED_LOGPROB && !take_sampler_operands(fuser, &c))
        return false;
    return gb_fuse_candidate(fuser, &c);
}

static bool fuse_root(gb_fuser *fuser, const gb_pattern *pattern, const gb_node *root, uint32_t left_out) {
    gb_match match;
    return gb_pattern_matches(fuser, pattern, root, left_out, &match) && fuse_match(fuser, pattern, &match);
}

static uint32_t optional_parts(const gb_pattern *pattern) {
    uint32_t parts = 0;
    for (uint32_t p = 0; p < pattern->part_count; p++)
        parts |= pattern->parts[p].flags & GB_PART_OPTIONAL ? 1u << p : 0;
    return parts;
}

void gb_fuse_graphs(gb_fuser *fuser, const gb_pattern *pattern) {
    for (uint32_t s = fuser->end; s-- > 0;) {
        const gb_step *step = &fuser->plan->steps[s];
        if (step->kind == GB_STEP_NODE && !fuse_root(fuser, pattern, step->node, 0) && pattern->tries_less)
            fuse_root(fuser, pattern, step->node, optional_parts(pattern));
    }
}

/* ---- The pass ------------------------------------------------------------------------------------------ */

static void index_steps(gb_fuser *fuser) {
    const gb_plan *plan = fuser->plan;
    for (uint32_t i = 0; i < plan->program->node_count; i++)
        fuser->step_of[i] = GB_NO_STEP;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        if (step->node)
            fuser->step_of[step->node - plan->program->nodes] = s;
        for (uint32_t i = 0; i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                fuser->reader_count[gb_storage(fuser, step->operands[i])]++;
    }
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        fuser->reader_count[gb_storage(fuser, plan->program->outputs[i].value)]++;
    while (fuser->end < plan->step_count && plan->steps[fuser->end].kind != GB_STEP_BRANCH &&
           plan->steps[fuser->end].kind != GB_STEP_JUMP)
        fuser->end++;
}

static void fuse_pattern(gb_fuser *fuser, const gb_pattern *pattern) {
    if (pattern->arrange)
        pattern->arrange(fuser, pattern);
    if (pattern->fuse)
        pattern->fuse(fuser, pattern);
    remove_replaced(fuser);
}

gumbel_status gb_plan_fuse(gb_plan *plan, const gb_plan_options *options, gumbel_error *error) {
    gb_fuser fuser = {.plan = plan, .options = options};
    plan->fused = gb_allocate(plan->step_count, sizeof *plan->fused);
    fuser.step_of = gb_allocate(plan->program->node_count, sizeof *fuser.step_of);
    fuser.reader_count = gb_allocate(plan->program->value_count, sizeof *fuser.reader_count);
    const bool has_memory = plan->fused && fuser.step_of && fuser.reader_count;
    if (has_memory) {
        index_steps(&fuser);
        for (size_t i = 0; i < gb_pattern_count; i++)
            fuse_pattern(&fuser, &gb_patterns[i]);
    }
    gb_free(fuser.step_of);
    gb_free(fuser.reader_count);
    return has_memory ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
}
