/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify/verify.h"

/* Rule 34. */
static gumbel_status check_output_role(const gb_program *program, uint32_t index, gumbel_error *error) {
    gb_role role = program->outputs[index].role;
    const gb_role_info *info = gb_role_find(role);
    if (!info)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "output role %u is not known to this version",
                       (unsigned)role);
    if (info->direction != GB_ROLE_OUTPUT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "output %u: role %s is an input", index, info->name);
    for (uint32_t i = 0; i < index; i++) {
        if (program->outputs[i].role == role)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "two outputs have the role %s", info->name);
    }
    return GUMBEL_OK;
}

/* Rule 35: a result of the body, of the role's type. */
static gumbel_status check_output_value(gb_verification *verification, uint32_t index) {
    const gb_program *program = verification->program;
    const gb_role_info *info = gb_role_find(program->outputs[index].role);
    gb_ref ref = program->outputs[index].value;
    gb_type type = gb_role_type(info, &program->metadata);
    char found[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    if (ref >= program->value_count || program->values[ref].kind != GB_VALUE_RESULT ||
        !(verification->values[ref] & GB_VALUE_VISIBLE))
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "output %s: value %u is not a result of the body", info->name, ref);
    if (!gb_type_equal(&program->values[ref].type, &type))
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "output %s is %s, expected %s", info->name,
                       gb_type_text(&program->values[ref].type, found), gb_type_text(&type, expected));
    return GUMBEL_OK;
}

/* Rule 36. */
static gumbel_status check_ending(const gb_program *program, gumbel_error *error) {
    bool sampling = program->metadata.use_sampling;
    bool next = gb_program_output(program, GB_ROLE_NEXT) != GB_NO_VALUE;
    if (sampling != next)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "use_sampling is %s, but there is %s output next",
                       sampling ? "true" : "false", next ? "an" : "no");
    if (!sampling && gb_program_output(program, GB_ROLE_LOGITS) == GB_NO_VALUE)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "output logits is missing");
    return GUMBEL_OK;
}

gumbel_status gb_verify_outputs(gb_verification *verification) {
    const gb_program *program = verification->program;
    for (uint32_t i = 0; i < program->output_count; i++) {
        GB_TRY(check_output_role(program, i, verification->error));
        GB_TRY(check_output_value(verification, i));
    }
    for (gb_ref ref = 0; ref < program->value_count; ref++) { /* rule 29 */
        const gb_value *value = &program->values[ref];
        if (value->kind == GB_VALUE_STATE && !(verification->values[ref] & GB_VALUE_USED))
            return gb_fail(verification->error, GUMBEL_ERROR_FORMAT, "state %s is used by no node",
                           program->states[value->index].name);
    }
    GB_TRY(check_ending(program, verification->error));
    gb_ref next = gb_program_output(program, GB_ROLE_NEXT);
    if (next != GB_NO_VALUE && !(verification->values[next] & GB_VALUE_TOKEN)) /* rule 37 */
        return gb_fail(verification->error, GUMBEL_ERROR_FORMAT,
                       "output next is not chosen by argmax from %llu logits",
                       (unsigned long long)program->metadata.vocab_size);
    return GUMBEL_OK;
}
