/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/quantized_program.h"

#include "program/builder.h"
#include "program/constant_packing.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const gb_format quantized_table_format = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};
const gb_format quantized_head_format = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 32, 0};

gb_program *quantized_program_build(void) {
    gb_builder *b = gb_builder_create();
    assert_non_null(b);
    gb_metadata *metadata = gb_builder_metadata(b);
    metadata->architecture = "quantized";
    metadata->vocab_size = QUANTIZED_VOCABULARY;
    metadata->max_context = 8;
    metadata->prefill_chunk = 4;
    const int64_t dims[] = {QUANTIZED_VOCABULARY, QUANTIZED_WIDTH};
    gb_build_input(b, GB_ROLE_POSITIONS);
    gb_build_input(b, GB_ROLE_SLOTS);
    gb_ref operands[] = {gb_build_quantized(b, "table", &quantized_table_format, 2, dims),
                         gb_build_input(b, GB_ROLE_TOKENS)};
    gb_ref x = gb_build_op(b, GB_OP_EMBEDDING, operands, 2, NULL, 0);
    gb_ref rows[] = {x, gb_build_input(b, GB_ROLE_ROWS)};
    x = gb_build_op(b, GB_OP_GATHER_ROWS, rows, 2, NULL, 0);
    gb_ref weight = gb_build_constant(b, "norm", GB_F32, 1, &dims[1]);
    gb_attribute epsilon = gb_float(GB_ATTRIBUTE_EPSILON, 1e-6);
    x = gb_build_op(b, GB_OP_RMS_NORM, (const gb_ref[]){x, weight}, 2, &epsilon, 1);
    gb_attribute activation = gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_GROUP);
    gb_ref head = gb_build_quantized(b, "head", &quantized_head_format, 2, dims);
    x = gb_build_op(b, GB_OP_LINEAR, (const gb_ref[]){x, head}, 2, &activation, 1);
    gb_build_output(b, GB_ROLE_LOGITS, x);
    gb_program *program;
    gumbel_error error;
    assert_ok(gb_builder_finish(b, &program, &error), &error);
    gb_builder_destroy(b);
    return program;
}

gb_program *packed_program_build(void) {
    gb_program *program = quantized_program_build();
    gumbel_error error;
    assert_ok(gb_program_choose_packings(program, GB_ORDER_INTERLEAVED, &error), &error);
    return program;
}
