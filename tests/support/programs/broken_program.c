/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/broken_program.h"

#include "program/verify/verifier.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void refuse_as(gb_program *program, gumbel_status expected, const char *part) {
    gumbel_error error = {0};
    gumbel_status status = gb_program_verify(program, &error);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, message \"%s\"; expected status %d and \"%s\"", (int)status, error.message,
                 (int)expected, part);
}

void refuse_of(bool sampling, breakage change, int64_t argument, gumbel_status expected, const char *part) {
    gb_program *program = tiny_program_build(sampling);
    change(program, argument);
    refuse_as(program, expected, part);
    gb_program_destroy(program);
}

void refuse(breakage change, int64_t argument, const char *part) {
    refuse_of(true, change, argument, GUMBEL_ERROR_FORMAT, part);
}

void refuse_recurrent(breakage change, int64_t argument, const char *part) {
    gb_program *program = tiny_recurrent_build(false);
    change(program, argument);
    refuse_as(program, GUMBEL_ERROR_FORMAT, part);
    gb_program_destroy(program);
}

gb_node *node_of(gb_program *program, gb_op op, uint32_t nth) {
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->nodes[i].op == op && nth-- == 0)
            return &program->nodes[i];
    }
    fail_msg("no such node");
    return NULL;
}

void set_attribute(gb_node *node, gb_attribute attribute) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].key == attribute.key)
            node->attributes[i] = attribute;
    }
}

gb_ref value_of_kind(const gb_program *program, gb_value_kind kind, uint32_t nth) {
    for (gb_ref ref = 0; ref < program->value_count; ref++) {
        if (program->values[ref].kind == kind && nth-- == 0)
            return ref;
    }
    return GB_NO_VALUE;
}
