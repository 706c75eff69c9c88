/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/plan.h"
#include "support/assertions.h"
#include "support/tiny_program.h"

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
    switch (random_below(4)) {
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

/* Follows one path through the branches. */
static void walk(const gb_plan *plan, bool take) {
    shadow s = {plan, malloc((size_t)(plan->arena_bytes / GRANULE + 1) * sizeof(gb_ref))};
    assert_non_null(s.owners);
    memset(s.owners, 0xff, (size_t)(plan->arena_bytes / GRANULE + 1) * sizeof(gb_ref));
    for (uint32_t at = 0; at < plan->step_count;) {
        const gb_step *step = &plan->steps[at++];
        for (uint32_t i = 0; i < step->operand_count; i++)
            if (step->operands[i] != GB_NO_VALUE)
                assert_holds(&s, step->operands[i]);
        for (uint32_t i = 0; i < step->result_count; i++)
            write_result(&s, step, step->results[i]);
        if (step->kind == GB_STEP_JUMP || (step->kind == GB_STEP_BRANCH && !take)) {
            assert_true(step->target >= at && step->target <= plan->step_count);
            at = step->target;
        }
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

/* ---- Groups -------------------------------------------------------------------------------------------- */

/* A backend's pass that makes groups of steps, some of which overlap the one before. */
static void group_at_random(gb_plan *plan) {
    uint32_t state = plan->step_count;
    for (uint32_t s = 1; s < plan->step_count && plan->steps[s].kind == GB_STEP_NODE; s++) {
        state = state * 1664525u + 1013904223u;
        plan->steps[s].joins = (state >> 8) % 3 == 0;
        plan->steps[s].overlaps = !plan->steps[s].joins && (state >> 12) % 2;
    }
}

static bool share_bytes(const gb_plan *plan, gb_ref a, gb_ref b) {
    const gb_place *first = &plan->places[plan->places[a].storage],
                   *second = &plan->places[plan->places[b].storage];
    return plan->places[a].storage != plan->places[b].storage && first->in_arena && second->in_arena &&
           first->offset < second->offset + second->size && second->offset < first->offset + first->size;
}

/* No result of a step shares bytes with another value of steps from `first` to it. */
static void assert_apart(const gb_plan *plan, uint32_t first, uint32_t step) {
    const gb_step *made = &plan->steps[step];
    for (uint32_t s = first; s <= step; s++) {
        const gb_step *other = &plan->steps[s];
        for (uint32_t r = 0; r < made->result_count; r++) {
            for (uint32_t i = 0; i < other->operand_count; i++)
                if (other->operands[i] != GB_NO_VALUE)
                    assert_false(share_bytes(plan, made->results[r], other->operands[i]));
            for (uint32_t i = 0; i < other->result_count; i++)
                assert_false(share_bytes(plan, made->results[r], other->results[i]));
        }
    }
}

static void what_runs_together_is_apart(void **unused) {
    (void)unused;
    for (uint32_t seed = 0; seed < 200; seed++) {
        random_state = seed;
        gb_program *program = random_program();
        gb_plan_options options = {1 + random_below(300), 1 + random_below(9), true, group_at_random};
        gb_plan *plan;
        gumbel_error error;
        assert_ok(gb_plan_create(program, &options, &plan, &error), &error);
        walk(plan, true);
        uint32_t group = 0, before = 0; /* where the step's group begins, and the one before it */
        for (uint32_t s = 0; s < plan->step_count; s++) {
            if (!plan->steps[s].joins) {
                before = group;
                group = s;
            }
            assert_apart(plan, plan->steps[group].overlaps ? before : group, s);
        }
        gb_plan_destroy(plan);
        gb_program_destroy(program);
    }
}

static void nothing_needed_is_overwritten(void **unused) {
    (void)unused;
    uint64_t shared = 0, unshared = 0;
    for (uint32_t seed = 0; seed < 200; seed++) {
        random_state = seed;
        gb_program *program = random_program();
        for (int fuse = 0; fuse < 2; fuse++) {
            gb_plan_options options = {1 + random_below(300), 1 + random_below(9), fuse, NULL};
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
    gb_plan_options options = {16, 1, true, NULL};
    assert_fails(gb_plan_create(program, &options, &plan, &error), GUMBEL_ERROR_FORMAT, &error,
                 "out of range");
    options.slots = 0;
    assert_fails(gb_plan_create(program, &options, &plan, &error), GUMBEL_ERROR_ARGUMENT, &error, "0 slots");
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_needed_is_overwritten),
        cmocka_unit_test(what_runs_together_is_apart),
        cmocka_unit_test(sizes_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
