/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/executor.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/limits.h"
#include "backends/cpu/lock.h"
#include "backends/cpu/slots.h"
#include "backends/cpu/weights.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/memory.h"
#include "base/text_sink.h"
#include "plan/plan.h"

#include <stdio.h>

typedef struct cpu_backend {
    gb_backend base;
    const gb_program *program;
    gumbel_lock lock;
    gb_slots slots;
    gb_row_log log;
    gb_placed_weights weights;
    gb_rank rank;
    gb_plan *plan;
    gb_team *team;
    unsigned thread_count;
    const gb_vector_kernels *vector;
    gb_executor *executor;
} cpu_backend;

static cpu_backend *cpu(gb_backend *backend) {
    return (cpu_backend *)backend;
}

static void destroy(gb_backend *backend) {
    cpu_backend *b = cpu(backend);
    gb_team_destroy(b->team);
    gb_executor_destroy(b->executor);
    gb_plan_destroy(b->plan);
    gb_slots_destroy(&b->slots);
    gb_row_log_destroy(&b->log);
    if (b->lock != GUMBEL_LOCK_NONE && b->weights.of)
        gb_unlock_weights(b->program, &b->weights);
    gb_free_weights(&b->weights);
    gb_free(b);
}

static gumbel_status step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    (void)error; /* kernels cannot fail */
    gb_executor_run(cpu(backend)->executor, batch);
    return GUMBEL_OK;
}

static void reset_slot(gb_backend *backend, uint32_t slot) {
    gb_slots_reset(&cpu(backend)->slots, slot);
    gb_row_log_reset(&cpu(backend)->log, slot, 0);
}

static bool truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position) {
    return gb_row_log_truncate(&cpu(backend)->log, slot, position);
}

static gumbel_status copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                               gumbel_error *error) {
    (void)error;
    gb_executor_take_logged(cpu(backend)->executor, from);
    gb_states_copy(&cpu(backend)->slots.states, from, to, position);
    gb_row_log_reset(&cpu(backend)->log, to, position);
    return GUMBEL_OK;
}

static gumbel_status take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                   gumbel_error *error) {
    (void)error;
    gb_executor_take_logged(cpu(backend)->executor, slot);
    gb_states_take_snapshot(&cpu(backend)->slots.states, slot, position);
    return GUMBEL_OK;
}

static void restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position) {
    gb_states_restore_snapshot(&cpu(backend)->slots.states, slot, position);
    gb_row_log_reset(&cpu(backend)->log, slot, position);
}

static gumbel_status save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_save_stream write, void *user, gumbel_error *error) {
    gb_executor_take_logged(cpu(backend)->executor, slot);
    return gb_states_save(&cpu(backend)->slots.states, slot, position, saved, write, user, error);
}

static gumbel_status load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_load_stream read, void *user, gumbel_error *error) {
    gb_row_log_reset(&cpu(backend)->log, slot, position);
    return gb_states_load(&cpu(backend)->slots.states, slot, position, saved, read, user, error);
}

static gumbel_status take_rows(gb_backend *backend, uint32_t slot, uint32_t state,
                               const gb_rows_of_slot *rows, gumbel_error *error) {
    (void)error;
    gb_states_take_rows(&cpu(backend)->slots.states, slot, state, &cpu(rows->backend)->slots.states, rows);
    return GUMBEL_OK;
}

static gumbel_status measure_limits(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error) {
    const cpu_backend *b = cpu(backend);
    return gb_measure_limits(b->team, b->thread_count, b->vector, limits, error);
}

static const gb_backend_functions functions = {
    .destroy = destroy,
    .step = step,
    .reset_slot = reset_slot,
    .truncate_slot = truncate_slot,
    .copy_slot = copy_slot,
    .take_snapshot = take_snapshot,
    .restore_snapshot = restore_snapshot,
    .save_slot = save_slot,
    .load_slot = load_slot,
    .take_rows = take_rows,
    .measure_limits = measure_limits,
};

/* What one thread multiplies in about the time of a barrier, a microsecond. */
enum { LEAST_SHARED_WORK = 32 * 1024 };

static gumbel_status prepare(cpu_backend *b, const gb_backend_options *options, uint64_t least_shared_work,
                             gumbel_error *error) {
    const gb_vector_kernels *vector;
    GB_TRY(gb_choose_vector_kernels(options->cpu_isa, &vector, error));
    if (options->threads < 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%d threads: expected 1 or more, or 0 for all cores",
                       options->threads);
    unsigned threads = options->threads > 0 ? (unsigned)options->threads : gb_available_cores();
    gb_plan_options plan_options = {.step_tokens = options->step_tokens,
                                    .rows = gb_most_rows(options),
                                    .fuse = options->fuse,
                                    .supports = gb_supports_fused};
    GB_TRY(gb_plan_create(b->program, &plan_options, &b->plan, error));
    GB_TRY(gb_slots_create(b->program, options->slots, options->max_context, options->snapshots, &b->slots,
                           error));
    GB_TRY(gb_row_log_create(b->program, options->slots, options->draft_tokens, &b->log, error));
    GB_TRY(gb_team_create(threads, &b->team, error));
    b->thread_count = b->base.threads = threads;
    b->vector = vector;
    GB_TRY(
        gb_place_weights(b->program, b->team, threads, options->log, options->log_user, &b->weights, error));
    gb_executor_options executor_options = {.plan = b->plan,
                                            .states = &b->slots.states,
                                            .log = &b->log,
                                            .weights = &b->weights,
                                            .vector = vector,
                                            .rank = &b->rank,
                                            .team = b->team,
                                            .thread_count = threads,
                                            .least_shared_work = least_shared_work,
                                            .profile = options->profile,
                                            .profile_user = options->profile_user,
                                            .observe = options->observe,
                                            .observe_user = options->observe_user};
    GB_TRY(gb_executor_create(&executor_options, &b->executor, error));
    GB_TRY(gb_lock_weights(b->program, &b->weights, b->lock, error));
    snprintf(b->base.description, sizeof b->base.description, "cpu %s %u thread%s", vector->name, threads,
             threads == 1 ? "" : "s");
    return GUMBEL_OK;
}

gumbel_status gb_cpu_backend_create(const gb_program *program, const gb_backend_options *options,
                                    gb_backend **backend, gumbel_error *error) {
    return gb_cpu_backend_create_sharing(program, options, LEAST_SHARED_WORK, backend, error);
}

gumbel_status gb_cpu_backend_create_sharing(const gb_program *program, const gb_backend_options *options,
                                            uint64_t least_shared_work, gb_backend **backend,
                                            gumbel_error *error) {
    *backend = NULL;
    cpu_backend *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a backend");
    created->base.functions = &functions;
    created->base.reuse = GB_REUSE_ALL;
    created->program = program;
    created->lock = options->lock;
    created->rank = options->rank;
    gumbel_status status = prepare(created, options, least_shared_work, error);
    if (status != GUMBEL_OK) {
        destroy(&created->base);
        return status;
    }
    *backend = &created->base;
    return GUMBEL_OK;
}

void gb_cpu_describe(gumbel_write_callback write, void *user) {
    const gb_text_sink sink = {write, user};
    const gb_vector_kernels *kernels;
    gb_print(&sink, "instruction sets");
    for (size_t i = 0; (kernels = gb_available_vector_kernels(i)); i++)
        gb_print(&sink, "%s %s", i ? "," : "", kernels->name);
    unsigned cores = gb_available_cores();
    gb_print(&sink, "; %u core%s", cores, cores == 1 ? "" : "s");
}
