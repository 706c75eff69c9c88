/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/quantized_program.h"

#include "program/builder.h"
#include "program/constant_packing.h"
#include "program/draft_head.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const gb_format quantized_table_format = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};
const gb_format quantized_head_format = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 32, 0};

static const int64_t dims[] = {QUANTIZED_VOCABULARY, QUANTIZED_WIDTH};

static gb_builder *begin(void) {
    gb_builder *b = gb_builder_create();
    assert_non_null(b);
    gb_metadata *metadata = gb_builder_metadata(b);
    metadata->architecture = "quantized";
    metadata->vocab_size = QUANTIZED_VOCABULARY;
    metadata->max_context = 8;
    metadata->prefill_chunk = 4;
    return b;
}

/* The product of x with a matrix of 4 bits. */
static gb_ref multiply(gb_builder *b, gb_ref x, const char *name, int64_t rows) {
    const gb_attribute activation = gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_GROUP);
    const gb_ref weight =
        gb_build_quantized(b, name, &quantized_head_format, 2, (const int64_t[]){rows, QUANTIZED_WIDTH});
    return gb_build_op(b, GB_OP_LINEAR, (const gb_ref[]){x, weight}, 2, &activation, 1);
}

static gb_program *end(gb_builder *b, gb_ref logits) {
    gb_build_output(b, GB_ROLE_LOGITS, logits);
    gb_program *program;
    gumbel_error error;
    assert_ok(gb_builder_finish(b, &program, &error), &error);
    gb_builder_destroy(b);
    return program;
}

gb_program *quantized_program_build(void) {
    gb_builder *b = begin();
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
    return end(b, multiply(b, x, "head", QUANTIZED_VOCABULARY));
}

static gb_program *build_with_hidden(bool is_head) {
    gb_builder *b = begin();
    const gb_ref positions = gb_build_input(b, GB_ROLE_POSITIONS), slots = gb_build_input(b, GB_ROLE_SLOTS),
                 hidden = gb_build_state(b, "hidden", GB_STATE_CACHE, GB_F32, 3,
                                         (const int64_t[]){8, 1, QUANTIZED_WIDTH}, 0),
                 table = gb_build_quantized(b, "table", &quantized_table_format, 2, dims);
    gb_ref x = gb_build_op(b, GB_OP_EMBEDDING, (const gb_ref[]){table, gb_build_input(b, GB_ROLE_TOKENS)}, 2,
                           NULL, 0);
    if (is_head) {
        const gb_ref before =
            gb_build_op(b, GB_OP_LOAD_HIDDEN, (const gb_ref[]){positions, slots, hidden}, 3, NULL, 0);
        x = gb_build_op(b, GB_OP_ADD, (const gb_ref[]){multiply(b, x, "mix", QUANTIZED_WIDTH), before}, 2,
                        NULL, 0);
    }
    x = gb_build_op(b, GB_OP_KEEP_HIDDEN, (const gb_ref[]){x, positions, slots, hidden}, 4, NULL, 0);
    x = gb_build_op(b, GB_OP_GATHER_ROWS, (const gb_ref[]){x, gb_build_input(b, GB_ROLE_ROWS)}, 2, NULL, 0);
    return end(b, multiply(b, x, "head", QUANTIZED_VOCABULARY));
}

gb_program *quantized_pair_build(void) {
    gb_program *program = build_with_hidden(false);
    gumbel_error error;
    program->head = build_with_hidden(true);
    assert_ok(gb_share_constants(program, &error), &error);
    return program;
}

gb_program *packed_program_build(void) {
    gb_program *program = quantized_program_build();
    gumbel_error error;
    assert_ok(gb_program_choose_packings(program, GB_ORDER_INTERLEAVED, &error), &error);
    return program;
}
