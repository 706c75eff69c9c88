/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/passes.h"

/* The sub-graph that a sample step replaces (docs/sampling.md), temperature t, logits, both of B rows:
 *
 *     x = logits
 *     x = apply_bias(x, bias_ids, bias_values)                (optional)
 *     x = penalize(x, counts, repetition, frequency, presence, penalize_prompt)    (optional)
 *     x = apply_mask(x, masked, mask)                         (optional)
 *     zero = is_zero(t)
 *     next = if any_false(zero):
 *                scaled = apply_temperature(x, select(zero, fill_like(1), t))
 *                keep = candidates(x)
 *                keep = NAME_mask(scaled, keep, NAME)        (optional; one for each mask of roles.def)
 *                drawn = argmax(add(scaled, gumbel_noise(random_bits(seed))), keep)
 *                yield choose_token(zero, greedy, drawn)
 *            else:
 *                yield greedy
 *
 * with greedy = argmax(x). Each name may stand for several equal nodes, inside or outside the `if`. */

/* The node that computes a value if it is of that op, else NULL. */
static const gb_node *produced_by(const gb_program *program, gb_ref value, gb_op op) {
    const gb_node *node = gb_producer(program, value);
    return node && node->op == op ? node : NULL;
}

static bool is_zero_of(const gb_program *program, gb_ref value, gb_ref temperature) {
    const gb_node *node = produced_by(program, value, GB_OP_IS_ZERO);
    return node && node->operands[0] == temperature;
}

static bool is_greedy(const gb_program *program, gb_ref value, gb_ref logits) {
    const gb_node *node = produced_by(program, value, GB_OP_ARGMAX);
    return node && node->operand_count == 1 && node->operands[0] == logits;
}

/* Whether value is select(is_zero(t), 1, t); gives t. */
static bool match_divisor(const gb_program *program, gb_ref value, gb_ref *temperature) {
    const gb_node *select = produced_by(program, value, GB_OP_SELECT);
    if (!select || !is_zero_of(program, select->operands[0], select->operands[2]))
        return false;
    const gb_node *one = produced_by(program, select->operands[1], GB_OP_FILL_LIKE);
    if (!one || gb_node_float(one, GB_ATTRIBUTE_VALUE) != 1)
        return false;
    *temperature = select->operands[2];
    return true;
}

/* Follows the masks from the last to candidates(logits); gives their settings. */
static bool match_masks(const gb_program *program, gb_ref keep, gb_ref scaled, gb_step *step) {
    static const struct {
        gb_op op;
        uint32_t setting;
    } masks[] = {
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)({GB_OP_##NAME##_MASK, GB_SAMPLE_##NAME}, )
#include "program/roles.def"
    };
    for (size_t i = sizeof masks / sizeof *masks; i-- > 0;) {
        const gb_node *mask = produced_by(program, keep, masks[i].op);
        if (!mask)
            continue;
        if (mask->operands[0] != scaled)
            return false;
        step->operands[masks[i].setting] = mask->operands[2];
        keep = mask->operands[1];
    }
    const gb_node *candidates = produced_by(program, keep, GB_OP_CANDIDATES);
    return candidates && candidates->operands[0] == step->operands[GB_SAMPLE_LOGITS];
}

/* Matches the argmax of the noisy scores; gives every operand of the sample step. */
static bool match_draw(const gb_program *program, gb_ref value, gb_step *step) {
    const gb_node *argmax = produced_by(program, value, GB_OP_ARGMAX);
    if (!argmax || argmax->operand_count != 2)
        return false;
    const gb_node *add = produced_by(program, argmax->operands[0], GB_OP_ADD);
    if (!add)
        return false;
    gb_ref scaled = add->operands[0];
    const gb_node *temper = produced_by(program, scaled, GB_OP_APPLY_TEMPERATURE);
    const gb_node *noise = produced_by(program, add->operands[1], GB_OP_GUMBEL_NOISE);
    const gb_node *bits = noise ? produced_by(program, noise->operands[0], GB_OP_RANDOM_BITS) : NULL;
    if (!temper || !bits)
        return false;
    step->operands[GB_SAMPLE_LOGITS] = temper->operands[0];
    step->operands[GB_SAMPLE_SEED] = bits->operands[0];
    return match_divisor(program, temper->operands[1], &step->operands[GB_SAMPLE_TEMPERATURE]) &&
           match_masks(program, argmax->operands[1], scaled, step);
}

/* Goes from the logits that are drawn from back to those before masks, penalties and biases. */
static void match_adjustments(const gb_program *program, gb_step *step) {
    const gb_node *mask = produced_by(program, step->operands[GB_SAMPLE_LOGITS], GB_OP_APPLY_MASK);
    if (mask) {
        step->operands[GB_SAMPLE_MASKED] = mask->operands[1];
        step->operands[GB_SAMPLE_MASK] = mask->operands[2];
        step->operands[GB_SAMPLE_LOGITS] = mask->operands[0];
    }
    const gb_node *penalize = produced_by(program, step->operands[GB_SAMPLE_LOGITS], GB_OP_PENALIZE);
    for (uint32_t i = 1; penalize && i < penalize->operand_count; i++)
        step->operands[GB_SAMPLE_COUNTS + i - 1] = penalize->operands[i];
    if (penalize)
        step->operands[GB_SAMPLE_LOGITS] = penalize->operands[0];
    const gb_node *bias = produced_by(program, step->operands[GB_SAMPLE_LOGITS], GB_OP_APPLY_BIAS);
    if (!bias)
        return;
    step->operands[GB_SAMPLE_BIAS_IDS] = bias->operands[1];
    step->operands[GB_SAMPLE_BIAS_VALUES] = bias->operands[2];
    step->operands[GB_SAMPLE_LOGITS] = bias->operands[0];
}

/* The sampler draws one token for each row of the batch from a row of known length. */
static bool shapes_fit(const gb_program *program, const gb_step *step) {
    const gb_type *logits = &program->values[step->operands[GB_SAMPLE_LOGITS]].type;
    return logits->shape.rank == 2 && logits->shape.dims[0] == GB_DIM_B && logits->shape.dims[1] > 0 &&
           logits->shape.dims[1] < 1 << 23;
}

/* Settings are there before the step: fused samplers may read them early. */
static bool settings_are_given(const gb_program *program, const gb_step *step) {
    for (uint32_t i = 0; i < GB_SAMPLE_OPERANDS; i++)
        if (i != GB_SAMPLE_LOGITS && i != GB_SAMPLE_COUNTS && step->operands[i] != GB_NO_VALUE &&
            program->values[step->operands[i]].kind == GB_VALUE_RESULT)
            return false;
    return true;
}

bool gb_match_sampler(const gb_program *program, const gb_node *node, gb_step *step) {
    *step = (gb_step){.kind = GB_STEP_SAMPLE,
                      .node = node,
                      .needs_rows = true,
                      .operand_count = GB_SAMPLE_OPERANDS,
                      .result_count = 1,
                      .results = {node->results[0]}};
    for (uint32_t i = 0; i < GB_SAMPLE_OPERANDS; i++)
        step->operands[i] = GB_NO_VALUE;
    const gb_region *sampled = &program->regions[node->regions[0]];
    const gb_region *greedy = &program->regions[node->regions[1]];
    if (node->result_count != 1 || sampled->yield_count != 1 || greedy->yield_count != 1)
        return false;
    const gb_node *choose = produced_by(program, sampled->yields[0], GB_OP_CHOOSE_TOKEN);
    if (!choose || !match_draw(program, choose->operands[2], step))
        return false;
    gb_ref logits = step->operands[GB_SAMPLE_LOGITS], temperature = step->operands[GB_SAMPLE_TEMPERATURE];
    const gb_node *any = produced_by(program, node->operands[0], GB_OP_ANY_FALSE);
    match_adjustments(program, step);
    return any && is_zero_of(program, any->operands[0], temperature) &&
           is_zero_of(program, choose->operands[0], temperature) &&
           is_greedy(program, choose->operands[1], logits) && is_greedy(program, greedy->yields[0], logits) &&
           shapes_fit(program, step) && settings_are_given(program, step);
}
