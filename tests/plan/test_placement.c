/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/plan.h"
#include "support/assertions.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GRANULE = 64, MOST_VALUES = 64 };

static uint32_t random_state;

static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

/* ---- Random graphs ------------------------------------------------------------------------------------- */

typedef struct pool {
    gb_builder *builder;
    gb_ref values[MOST_VALUES]; /* f32[N, width], or f32[B, width] */
    int64_t widths[MOST_VALUES];
    uint32_t count, constants;
} pool;

static gb_ref pick(const pool *p, int64_t width) {
    uint32_t start = random_below(p->count);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->widths[(start + i) % p->count] == width)
            return p->values[(start + i) % p->count];
    return GB_NO_VALUE;
}

static gb_ref random_linear(pool *p, gb_ref x, int64_t from, int64_t to) {
    char name[32];
    snprintf(name, sizeof name, "weight%u", p->constants++);
    gb_ref weight = gb_build_constant(p->builder, name, GB_BF16, 2, (const int64_t[]){to, from});
    return gb_build_op(p->builder, GB_OP_LINEAR, (const gb_ref[]){x, weight}, 2, NULL, 0);
}

static void add_node(pool *p) {
    static const int64_t widths[] = {8, 24, 40, 200};
    uint32_t index = random_below(p->count);
    gb_ref x = p->values[index], y;
    int64_t width = p->widths[index];
    gb_attribute heads = gb_int(GB_ATTRIBUTE_HEADS, 4);
    switch (random_below(7)) {
    case 6: { /* of a rank that is alone */
        const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_RANKS, 1), gb_int(GB_ATTRIBUTE_SECTIONS, 1)};
        y = gb_build_op(p->builder, GB_OP_ALL_GATHER, &x, 1, attributes, 2);
        break;
    }
    case 4: {
        const gb_attribute epsilon = gb_float(GB_ATTRIBUTE_EPSILON, 1e-6);
        y = gb_build_op(p->builder, GB_OP_RMS_NORM, &x, 1, &epsilon, 1);
        break;
    }
    case 5:
        y = gb_build_op(p->builder, GB_OP_SILU, &x, 1, NULL, 0);
        y = gb_build_op(p->builder, GB_OP_MULTIPLY, (const gb_ref[]){pick(p, width), y}, 2, NULL, 0);
        break;
    case 0:
        y = gb_build_op(p->builder, GB_OP_ADD, (const gb_ref[]){x, pick(p, width)}, 2, NULL, 0);
        break;
    case 1:
        y = gb_build_op(p->builder, GB_OP_GELU_TANH, &x, 1, NULL, 0);
        break;
    case 2: /* views of views */
        y = gb_build_op(p->builder, GB_OP_SPLIT_HEADS, &x, 1, &heads, 1);
        y = gb_build_op(p->builder, GB_OP_MERGE_HEADS, &y, 1, NULL, 0);
        break;
    default:
        y = random_linear(p, x, width, widths[random_below(4)]);
        width = gb_build_type(p->builder, y).shape.dims[1];
    }
    p->values[p->count] = y;
    p->widths[p->count++] = width;
}

static gb_program *random_program(void) {
    gb_builder *b = gb_builder_create();
    gb_metadata *metadata = gb_builder_metadata(b);
    metadata->architecture = "random";
    metadata->vocab_size = TINY_VOCABULARY;
    metadata->max_context = metadata->prefill_chunk = 8;
    metadata->use_sampling = true;
    pool p = {.builder = b};
    gb_build_input(b, GB_ROLE_POSITIONS);
    gb_build_input(b, GB_ROLE_SLOTS);
    gb_ref table = gb_build_constant(b, "table", GB_F32, 2, (const int64_t[]){TINY_VOCABULARY, 40});
    gb_ref embedding[] = {table, gb_build_input(b, GB_ROLE_TOKENS)};
    p.values[0] = gb_build_op(b, GB_OP_EMBEDDING, embedding, 2, NULL, 0);
    p.widths[p.count++] = 40;
    for (uint32_t nodes = random_below(40); nodes > 0; nodes--)
        add_node(&p);
    gb_ref last = random_linear(&p, p.values[p.count - 1], p.widths[p.count - 1], TINY_VOCABULARY);
    gb_ref gather[] = {last, gb_build_input(b, GB_ROLE_ROWS)};
    p.values[0] = gb_build_op(b, GB_OP_GATHER_ROWS, gather, 2, NULL, 0);
    p.widths[0] = TINY_VOCABULARY;
    p.count = 1;
    for (uint32_t nodes = random_below(10); nodes > 0; nodes--)
        add_node(&p);
    gb_ref logits = random_linear(&p, p.values[p.count - 1], p.widths[p.count - 1], TINY_VOCABULARY);
    gb_build_output(b, GB_ROLE_NEXT, tiny_program_sampler(b, logits));
    if (random_below(2))
        gb_build_output(b, GB_ROLE_LOGITS, logits);
    gb_program *program;
    gumbel_error error;
    assert_ok(gb_builder_finish(b, &program, &error), &error);
    gb_builder_destroy(b);
    return program;
}

/* ---- Walking a plan ------------------------------------------------------------------------------------ */

/* Which value was written last into each granule of the arena. */
typedef struct shadow {
    const gb_plan *plan;
    gb_ref *owners;
} shadow;

static void assert_holds(const shadow *s, gb_ref value) {
    gb_ref storage = s->plan->places[value].storage;
    const gb_place *place = &s->plan->places[storage];
    if (s->plan->program->values[storage].kind != GB_VALUE_RESULT)
        return;
    assert_true(place->in_arena);
    for (uint64_t g = place->offset / GRANULE; g < (place->offset + place->size) / GRANULE; g++)
        if (s->owners[g] != storage)
            fail_msg("value %u is read where value %u was written over it", storage, s->owners[g]);
}

static void write_result(const shadow *s, const gb_step *step, gb_ref value) {
    const gb_place *place = &s->plan->places[value];
    assert_true(place->in_arena && place->storage == value && place->offset % GRANULE == 0);
    assert_true(place->offset + place->size <= s->plan->arena_bytes);
    for (uint64_t g = place->offset / GRANULE; g < (place->offset + place->size) / GRANULE; g++)
        s->owners[g] = value;
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE)
            assert_holds(s, step->operands[i]); /* results do not overlap operands */
}

static bool is_exchange(const gb_step *step) {
    return step->kind == GB_STEP_NODE && step->node->op == GB_OP_ALL_GATHER;
}

static uint32_t step_after(const gb_plan *plan, uint32_t at, bool take) {
    const gb_step *step = &plan->steps[at];
    const bool jumps = step->kind == GB_STEP_JUMP || (step->kind == GB_STEP_BRANCH && !take);
    assert_true(!jumps || (step->target > at && step->target <= plan->step_count));
    return jumps ? step->target : at + 1;
}

/* A rank that has come past an exchange may write the next one's result here, where the plan says so. */
static void write_ahead(const shadow *s, uint32_t exchange, bool take) {
    uint32_t next = step_after(s->plan, exchange, take);
    while (next < s->plan->step_count && !is_exchange(&s->plan->steps[next]))
        next = step_after(s->plan, next, take);
    if (next == s->plan->step_count || gb_plan_exchange_before(s->plan, next) == next)
        return;
    assert_int_equal(gb_plan_exchange_before(s->plan, next), exchange);
    const gb_ref result = s->plan->steps[next].results[0];
    const gb_place *place = &s->plan->places[result];
    for (uint64_t g = place->offset / GRANULE; g < (place->offset + place->size) / GRANULE; g++)
        s->owners[g] = result;
}

/* Buffers are filled by their first step beside its results, and hold until their last one has ended. */
static void walk_buffers(const shadow *s, uint32_t step) {
    for (uint32_t i = 0; i < s->plan->buffer_count; i++) {
        const gb_plan_buffer *buffer = &s->plan->buffers[i];
        const gb_ref owner = (gb_ref)s->plan->program->value_count + i;
        assert_true(buffer->offset % GRANULE == 0 && buffer->offset + buffer->size <= s->plan->arena_bytes);
        for (uint64_t g = buffer->offset / GRANULE; g < (buffer->offset + buffer->size) / GRANULE; g++) {
            if (buffer->first == step)
                s->owners[g] = owner;
            else if (buffer->first < step && step <= buffer->last)
                assert_int_equal(s->owners[g], owner);
        }
    }
}

/* Follows one path through the branches. */
static void walk(const gb_plan *plan, bool take) {
    shadow s = {plan, malloc((size_t)(plan->arena_bytes / GRANULE + 1) * sizeof(gb_ref))};
    assert_non_null(s.owners);
    memset(s.owners, 0xff, (size_t)(plan->arena_bytes / GRANULE + 1) * sizeof(gb_ref));
    for (uint32_t at = 0; at < plan->step_count; at = step_after(plan, at, take)) {
        const gb_step *step = &plan->steps[at];
        if (is_exchange(step) && gb_plan_exchange_before(plan, at) != at)
            assert_holds(&s, step->results[0]);
        if (is_exchange(step))
            write_ahead(&s, at, take);
        for (uint32_t i = 0; i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                assert_holds(&s, step->operands[i]);
        for (uint32_t i = 0; i < step->result_count; i++)
            write_result(&s, step, step->results[i]);
        walk_buffers(&s, at);
        for (uint32_t i = 0; i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                assert_holds(&s, step->operands[i]); /* nor do buffers */
    }
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        assert_holds(&s, plan->program->outputs[i].value);
    free(s.owners);
}

static uint64_t unshared_bytes(const gb_plan *plan) {
    uint64_t total = 0;
    for (gb_ref i = 0; i < plan->program->value_count; i++)
        total += plan->places[i].in_arena ? plan->places[i].size : 0;
    return total;
}

/* ---- Fused steps --------------------------------------------------------------------------------------- */

/* A backend that supports some of the candidates. */
static bool take_at_random(const gb_plan *plan, const gb_step *candidate, void *user) {
    uint32_t *state = user;
    (void)plan;
    assert_int_equal(candidate->kind, GB_STEP_FUSED);
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % 4 != 0;
}

/* Of random sizes and lives. */
static gumbel_status add_buffers(gb_plan *plan, void *user, gumbel_error *error) {
    (void)user;
    for (uint32_t count = random_below(12); count > 0 && plan->step_count > 0; count--) {
        const uint32_t first = random_below(plan->step_count),
                       last = first + random_below(plan->step_count - first);
        const gumbel_status status = gb_plan_add_buffer(plan, first, last, 1 + random_below(5000), error);
        if (status != GUMBEL_OK)
            return status;
    }
    return GUMBEL_OK;
}

/* The nodes of a step in order, as far as they are there. */
static uint32_t list_nodes(const gb_step *step, const gb_node *nodes[GB_MAX_FUSED_NODES]) {
    uint32_t count = 0;
    if (step->kind != GB_STEP_FUSED) {
        nodes[0] = step->node;
        return step->node ? 1 : 0;
    }
    for (uint32_t p = 0; p < step->fused->node_count; p++)
        if (step->fused->nodes[p])
            nodes[count++] = step->fused->nodes[p];
    return count;
}

static bool has_operand(const gb_plan *plan, const gb_step *step, gb_ref value) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE &&
            plan->places[step->operands[i]].storage == plan->places[value].storage)
            return true;
    return false;
}

/* Every value is made before it is read, by a node of an earlier step or of the same one; what a step reads
 * of others is its operand, and what others read of it is its result. Returns how many steps are fused. */
static uint32_t check_order(const gb_plan *plan) {
    uint32_t *producer = calloc(plan->program->value_count, sizeof *producer), fused = 0; /* step + 1 */
    assert_non_null(producer);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const gb_step *step = &plan->steps[s];
        const gb_node *nodes[GB_MAX_FUSED_NODES];
        const uint32_t count = list_nodes(step, nodes);
        fused += step->kind == GB_STEP_FUSED;
        for (uint32_t n = 0; n < count; n++) {
            for (uint32_t i = 0; i < nodes[n]->operand_count && nodes[n]->op != GB_OP_IF; i++) {
                const gb_ref storage = plan->places[nodes[n]->operands[i]].storage;
                if (plan->program->values[storage].kind != GB_VALUE_RESULT)
                    continue;
                assert_int_not_equal(producer[storage], 0);
                if (producer[storage] == s + 1)
                    continue;
                assert_true(has_operand(plan, step, storage));
                assert_true(gb_step_produces(&plan->steps[producer[storage] - 1], storage));
            }
            for (uint32_t r = 0; r < nodes[n]->result_count; r++) {
                assert_int_equal(producer[nodes[n]->results[r]], 0);
                producer[nodes[n]->results[r]] = s + 1;
            }
        }
    }
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        assert_int_not_equal(producer[plan->places[plan->program->outputs[i].value].storage], 0);
    free(producer);
    return fused;
}

static void fused_steps_keep_order_and_places(void **unused) {
    (void)unused;
    uint32_t fused = 0;
    for (uint32_t seed = 0; seed < 400; seed++) {
        uint32_t state = random_state = seed;
        gb_program *program = random_program();
        gb_plan_options options = {.step_tokens = 1 + random_below(300),
                                   .rows = 1 + random_below(9),
                                   .fuse = true,
                                   .supports = take_at_random,
                                   .finish_steps = add_buffers,
                                   .user = &state};
        gb_plan *plan;
        gumbel_error error;
        assert_ok(gb_plan_create(program, &options, &plan, &error), &error);
        fused += check_order(plan);
        walk(plan, true);
        gb_plan_destroy(plan);
        gb_program_destroy(program);
    }
    assert_true(fused > 400);
}

static void nothing_needed_is_overwritten(void **unused) {
    (void)unused;
    uint64_t shared = 0, unshared = 0;
    for (uint32_t seed = 0; seed < 200; seed++) {
        random_state = seed;
        gb_program *program = random_program();
        for (int fuse = 0; fuse < 2; fuse++) {
            gb_plan_options options = {
                .step_tokens = 1 + random_below(300), .rows = 1 + random_below(9), .fuse = fuse};
            gb_plan *plan;
            gumbel_error error;
            assert_ok(gb_plan_create(program, &options, &plan, &error), &error);
            walk(plan, true);
            walk(plan, false);
            shared += plan->arena_bytes;
            unshared += unshared_bytes(plan);
            uint64_t bytes;
            assert_ok(gb_plan_scratch_bytes(program, &options, &bytes, &error), &error);
            assert_int_equal(bytes, plan->arena_bytes);
            gb_plan_destroy(plan);
        }
        gb_program_destroy(program);
    }
    assert_true(shared < unshared * 3 / 4); /* memory is used again */
}

static void sizes_out_of_range(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_plan *plan;
    gumbel_error error;
    for (gb_ref i = 0; i < program->value_count; i++)
        if (program->values[i].kind == GB_VALUE_RESULT && program->values[i].type.shape.rank == 2)
            program->values[i].type.shape.dims[1] = INT64_MAX / 8;
    gb_plan_options options = {.step_tokens = 16, .rows = 1, .fuse = true};
    assert_fails(gb_plan_create(program, &options, &plan, &error), GUMBEL_ERROR_FORMAT, &error,
                 "out of range");
    options.rows = 0;
    assert_fails(gb_plan_create(program, &options, &plan, &error), GUMBEL_ERROR_ARGUMENT, &error, "0 rows");
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_needed_is_overwritten),
        cmocka_unit_test(fused_steps_keep_order_and_places),
        cmocka_unit_test(sizes_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
