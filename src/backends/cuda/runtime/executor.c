/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/executor.h"

#include "backends/cuda/exchange/exchange.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/graphs.h"
#include "backends/cuda/runtime/passes.h"
#include "backends/cuda/runtime/results.h"
#include "base/memory.h"

#include <time.h>

/* A step's results are read before so many more are enqueued. */
enum { MAILBOX_ENTRIES = 2 * GB_CUDA_MOST_AHEAD };

/* Steps of one sequence, each of which continues the last one. */
typedef struct gb_cuda_lookahead {
    bool continues;     /* the inputs, here and on the device, are those of the step after the last one */
    uint32_t slot;      /* the sequence's */
    uint32_t last;      /* number of the last step of a batch */
    uint32_t version;   /* where that step left recurrent states, 0: in the slot */
    uint32_t confirmed; /* steps that came as they were announced, up to GB_CUDA_MOST_AHEAD */
} gb_cuda_lookahead;

struct gb_cuda_executor {
    const gb_program *program;
    cudaStream_t stream;
    gb_cuda_slots *slots;
    gb_rank rank;
    gb_cuda_exchange exchange; /* with the other ranks */
    gb_cuda_launches launches;
    gb_cuda_inputs inputs;
    gb_cuda_passes passes;
    gb_cuda_results results;
    gb_cuda_graphs graphs;
    gb_cuda_lookahead lookahead;
    gb_cuda_step_part part; /* that is being launched */
    uint32_t number;        /* of the last step that was enqueued */
    bool has_captured;      /* a graph, or tried to, since the batch began */
};

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* The kernels of the bound step, or of its part, in the stream's order, then the post of its results. */
static gumbel_status enqueue(void *user, gumbel_error *error) {
    gb_cuda_executor *e = user;
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    GB_TRY(gb_cuda_launches_enqueue(&e->launches, e->part, error));
    if (e->part == GB_CUDA_BEFORE_MASKS)
        return GUMBEL_OK;
    gb_cuda_post post = {.number = gb_cuda_inputs_number(&e->inputs)};
    gb_cuda_results_describe(&e->results, e->launches.bound->tensors, sizes->rows, &post);
    const gb_ref next = gb_program_output(e->program, GB_ROLE_NEXT);
    if (next != GB_NO_VALUE && !sizes->is_prefill && sizes->rows == sizes->tokens)
        post.advance = gb_cuda_inputs_advancing(&e->inputs, e->launches.bound->tensors[next].data,
                                                sizes->rows, GB_CUDA_MOST_AHEAD);
    gb_cuda_post_results(&post, e->stream);
    return gb_cuda_check(cudaGetLastError(), "posting a step's tokens", error);
}

/* Whether the launches of a step depend on its sizes alone, and it is one of those that come again: of tokens
 * that were decoded, a run each, or with drafts, which all have rows. */
static bool can_capture(const gb_cuda_executor *e) {
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    return !e->launches.bound->has_branches && !e->launches.profile && !sizes->is_prefill &&
           (sizes->runs.count == sizes->tokens || sizes->rows == sizes->tokens) && sizes->first_row == 0;
}

/* Makes the graph, unless that has failed before; false: there is none. */
static bool capture(gb_cuda_executor *e, gb_cuda_graph *graph) {
    gumbel_error ignored;
    if (graph->has_failed)
        return false;
    e->has_captured = true;
    graph->has_failed = gb_cuda_graph_capture(graph, e->stream, enqueue, e, &ignored) != GUMBEL_OK;
    return !graph->has_failed;
}

/* The first step of its size is captured while the device runs it. With several ranks it is captured before:
 * a call that waits for the device would wait for kernels that other ranks have not launched. */
static gumbel_status launch_first(gb_cuda_executor *e, gb_cuda_graph *graph, gumbel_error *error) {
    if (e->rank.count > 1 && capture(e, graph))
        return gb_cuda_check(cudaGraphLaunch(graph->instance, e->stream), "launching a step", error);
    GB_TRY(enqueue(e, error));
    if (e->rank.count < 2)
        capture(e, graph);
    return GUMBEL_OK;
}

/* Enqueues the step that is bound, or a part of it. */
static gumbel_status launch(gb_cuda_executor *e, gb_cuda_step_part part, gumbel_error *error) {
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    e->part = part;
    if (!can_capture(e))
        return enqueue(e, error);
    gb_cuda_graph *graph =
        gb_cuda_graphs_find(&e->graphs, sizes->tokens, sizes->rows, sizes->runs.count, part);
    if (!graph->instance)
        return launch_first(e, graph, error);
    return gb_cuda_check(cudaGraphLaunch(graph->instance, e->stream), "launching a step", error);
}

/* Waits for the stream while other ranks may fail, for which its kernels would wait for ever. */
static gumbel_status wait_beside_others(gb_cuda_executor *e, gumbel_error *error) {
    const struct timespec pause = {.tv_nsec = 20000};
    while (cudaStreamQuery(e->stream) == cudaErrorNotReady) {
        if (gb_rank_is_broken(&e->rank))
            cudaStreamSynchronize(e->stream); /* its kernels were told to stop */
        else
            nanosleep(&pause, NULL);
    }
    return gb_rank_is_broken(&e->rank) ? gb_rank_broken(&e->rank, error) : GUMBEL_OK;
}

/* Waits until the device has posted a step. While it decodes the host polls the mailbox, which is quicker
 * than the driver. */
static gumbel_status wait_for(gb_cuda_executor *e, uint32_t number, gumbel_error *error) {
    enum { LOOKS = 1 << 12 }; /* between queries of the stream for errors */
    for (uint32_t looks = 1; !e->launches.sizes.is_prefill && !e->launches.profile; looks++) {
        if (gb_cuda_results_are_posted(&e->results, number))
            return GUMBEL_OK;
        if (looks % LOOKS == 0 &&
            (cudaStreamQuery(e->stream) != cudaErrorNotReady || gb_rank_is_broken(&e->rank)))
            break;
    }
    if (e->rank.count > 1)
        GB_TRY(wait_beside_others(e, error));
    return gb_cuda_check(cudaStreamSynchronize(e->stream), "executing a step", error);
}

static void bind(gb_cuda_executor *e, bool is_prefill, uint32_t first_row) {
    const gb_cuda_step_sizes sizes = {.tokens = e->inputs.token_count,
                                      .rows = e->inputs.row_count,
                                      .first_row = first_row,
                                      .is_prefill = is_prefill,
                                      .runs = gb_cuda_inputs_runs(&e->inputs),
                                      .versions = gb_cuda_inputs_versions(&e->inputs)};
    gb_cuda_launches_bind(&e->launches, &sizes);
}

/* Of a step that cannot be launched to its end: the kernels of other ranks do not wait for it, and that
 * memory was short is no longer what all have agreed on. */
static gumbel_status end_step(gb_cuda_executor *e, gumbel_status status, gumbel_error *error) {
    gb_cuda_exchange_stop_all(&e->exchange);
    if (e->rank.count < 2 || status != GUMBEL_ERROR_MEMORY)
        return status;
    return gb_prefix(error, GUMBEL_ERROR_BACKEND, "in the middle of a step");
}

/* ---- Passes -------------------------------------------------------------------------------------------- */

/* Enqueues a step whose inputs are there but for late masks: these are waited for when all is in the stream
 * that does not read them. */
static gumbel_status launch_with_masks(gb_cuda_executor *e, const gb_batch *pass, gumbel_error *error) {
    if (!pass->late_masks || !gb_batch_has_mask(pass))
        return launch(e, GB_CUDA_WHOLE, error);
    const bool has_parts = !e->launches.bound->has_branches;
    if (has_parts)
        GB_TRY(launch(e, GB_CUDA_BEFORE_MASKS, error));
    gb_late_masks_finish(pass->late_masks);
    gb_cuda_inputs_fill_masks(&e->inputs, pass);
    gb_cuda_inputs_send(&e->inputs, e->stream);
    return launch(e, has_parts ? GB_CUDA_FROM_MASKS : GB_CUDA_WHOLE, error);
}

/* Executes the decode tokens of a batch, or its prefill tokens, and waits for them. */
static gumbel_status run_pass(gb_cuda_executor *e, const gb_batch *batch, bool generated,
                              gumbel_error *error) {
    uint32_t first_row;
    const gb_batch pass = gb_cuda_pass_of(&e->passes, batch, generated, &first_row);
    if (pass.token_count == 0)
        return GUMBEL_OK;
    gb_cuda_inputs_fill(&e->inputs, &pass, e->slots, ++e->number);
    gb_cuda_slots_advance(e->slots, &pass);
    bind(e, !generated, first_row);
    gb_cuda_inputs_send(&e->inputs, e->stream);
    gumbel_status status = launch_with_masks(e, &pass, error);
    if (status != GUMBEL_OK) {
        status = end_step(e, status, error);
        cudaStreamSynchronize(e->stream); /* the inputs are in use */
        return status;
    }
    GB_TRY(wait_for(e, e->number, error));
    gb_cuda_results_collect(&e->results, e->number, first_row, pass.row_count);
    return GUMBEL_OK;
}

/* ---- Steps ahead --------------------------------------------------------------------------------------- */

static bool is_one_generated_token(const gb_batch *batch) {
    return batch->token_count == 1 && batch->row_count == 1 && batch->generated[0];
}

/* Whether the batch is the step that was announced. A batch that announces none may have its logits read,
 * so nothing may have run after it. */
static bool is_announced(const gb_cuda_executor *e, const gb_batch *batch) {
    return e->lookahead.continues && is_one_generated_token(batch) &&
           (batch->following || e->number - e->lookahead.last <= 1) && gb_cuda_inputs_hold(&e->inputs, batch);
}

/* Gives the batch its results. A step of one decoded token may be continued by lookahead. After a stop
 * token the lookahead ends: the steps in flight repeat the stopped step (host_exchange.h), read the
 * version that it read and write the version that it wrote. A caller who goes on from a stop token gets a
 * step with new inputs and the next number. */
static void finish(gb_cuda_executor *e, gb_batch *batch, uint32_t number) {
    gb_cuda_results_copy_to(&e->results, e->program, batch);
    e->lookahead.last = number;
    const bool may_go_on = batch->following && is_one_generated_token(batch) && can_capture(e);
    e->lookahead.continues = may_go_on && gb_cuda_inputs_advance(&e->inputs, batch->next[0]);
    batch->logits = batch->row_count > 0 && !may_go_on ? e->launches.logits : NULL;
}

/* How many steps are to be in flight after the announced one: one more for each announcement that held. */
static uint32_t steps_ahead(gb_cuda_executor *e, const gb_batch *batch) {
    if (e->lookahead.confirmed < GB_CUDA_MOST_AHEAD)
        e->lookahead.confirmed++;
    return batch->following_count < e->lookahead.confirmed ? batch->following_count : e->lookahead.confirmed;
}

/* Enqueues the announced step, unless it is in flight, and the lookahead behind it. */
static gumbel_status run_announced(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    gumbel_error ignored;
    const uint32_t number = e->lookahead.last + 1, end = (uint32_t)batch->positions[0] + 1;
    uint32_t ahead = steps_ahead(e, batch);
    GB_TRY(gb_cuda_slots_map(e->slots, e->lookahead.slot, end, error));
    if (gb_cuda_slots_map(e->slots, e->lookahead.slot, end + ahead, &ignored) != GUMBEL_OK)
        ahead = 0;
    while (e->number < number + ahead) {
        const gumbel_status status = launch(e, GB_CUDA_WHOLE, error);
        if (status != GUMBEL_OK)
            return end_step(e, status, error);
        e->number++;
    }
    GB_TRY(wait_for(e, number, error));
    gb_cuda_results_collect(&e->results, number, 0, 1);
    e->lookahead.version = e->lookahead.version < GB_CUDA_MOST_AHEAD ? e->lookahead.version + 1 : 0;
    gb_cuda_slots_stand(e->slots, e->lookahead.slot, end);
    finish(e, batch, number);
    return GUMBEL_OK;
}

void gb_cuda_executor_roll_back(gb_cuda_executor *e) {
    if (e->lookahead.version > 0)
        gb_cuda_slots_copy_recurrent(e->slots, e->slots->slot_count + e->lookahead.version - 1,
                                     e->lookahead.slot);
    e->lookahead = (gb_cuda_lookahead){.continues = false};
}

/* Maps the memory that the batch's positions need. */
static gumbel_status map_slots(gb_cuda_executor *e, const gb_batch *batch, gumbel_error *error) {
    for (uint32_t n = 0; n < batch->token_count; n++)
        if (n + 1 == batch->token_count || batch->slots[n + 1] != batch->slots[n])
            GB_TRY(gb_cuda_slots_map(e->slots, (uint32_t)batch->slots[n], (uint32_t)batch->positions[n] + 1,
                                     error));
    return GUMBEL_OK;
}

static gumbel_status run_batch(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    if (is_announced(e, batch))
        return run_announced(e, batch, error);
    gb_cuda_executor_roll_back(e);
    GB_TRY(map_slots(e, batch, error));
    GB_TRY(run_pass(e, batch, true, error));
    GB_TRY(run_pass(e, batch, false, error));
    e->lookahead.slot = (uint32_t)batch->slots[0];
    finish(e, batch, e->number);
    return GUMBEL_OK;
}

/* Without memory no rank has begun; after any other failure the kernels of the others would wait. */
gumbel_status gb_cuda_executor_run(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    e->has_captured = false;
    const gumbel_status status = run_batch(e, batch, error);
    batch->has_prepared = e->has_captured;
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY)
        gb_cuda_exchange_stop_all(&e->exchange);
    return status;
}

/* ---- Making one ---------------------------------------------------------------------------------------- */

/* Captures the decode step of one token beforehand. Where that fails, the first such step tries again.
 */
static void capture_one_token(gb_cuda_executor *e) {
    gumbel_error ignored;
    gb_cuda_runs runs = gb_cuda_inputs_runs(&e->inputs);
    runs.count = 1;
    const gb_cuda_step_sizes sizes = {
        .tokens = 1, .rows = 1, .runs = runs, .versions = gb_cuda_inputs_versions(&e->inputs)};
    gb_cuda_launches_bind(&e->launches, &sizes);
    if (can_capture(e))
        gb_cuda_graph_capture(gb_cuda_graphs_find(&e->graphs, 1, 1, 1, GB_CUDA_WHOLE), e->stream, enqueue, e,
                              &ignored);
}

static gumbel_status prepare_alone(gb_cuda_executor *e, const gb_cuda_resources *resources,
                                   gumbel_error *error) {
    const gb_backend_options *options = resources->backend;
    GB_TRY(gb_cuda_inputs_create(e->program, options, &e->inputs, error));
    GB_TRY(gb_cuda_passes_create(e->program, options, &e->passes, error));
    GB_TRY(gb_cuda_results_create(e->program, gb_most_rows(options), MAILBOX_ENTRIES, &e->results, error));
    return gb_cuda_launches_create(resources, &e->inputs, &e->launches, error);
}

/* Ranks go on together or not at all. */
static gumbel_status prepare(gb_cuda_executor *e, const gb_cuda_resources *resources, gumbel_error *error) {
    GB_TRY(gb_rank_agree(&e->rank, prepare_alone(e, resources, error), error));
    if (e->rank.count > 1) {
        GB_TRY(gb_cuda_exchange_create(&e->rank, resources->backend->device, e->launches.arena, &e->exchange,
                                       error));
        e->launches.scratch.exchange = &e->exchange;
    }
    capture_one_token(e);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_executor_create(const gb_cuda_resources *resources, gb_cuda_executor **executor,
                                      gumbel_error *error) {
    *executor = NULL;
    gb_cuda_executor *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for an executor");
    created->program = resources->program;
    created->stream = resources->stream;
    created->slots = resources->slots;
    created->rank = resources->backend->rank;
    gumbel_status status = prepare(created, resources, error);
    if (status != GUMBEL_OK)
        gb_cuda_executor_destroy(created);
    else
        *executor = created;
    return status;
}

uint32_t gb_cuda_executor_grain(const gb_cuda_executor *e) {
    uint32_t grain = 1;
    for (uint32_t i = 0; i < GB_CUDA_CLASSES; i++) {
        const gb_cuda_lowered *lowered = &e->launches.of[i];
        const uint32_t own = lowered->plan ? gb_cuda_lowered_grain(lowered) : 1;
        grain = own > grain ? own : grain;
    }
    return grain;
}

void gb_cuda_executor_destroy(gb_cuda_executor *e) {
    if (!e)
        return;
    cudaStreamSynchronize(e->stream); /* lookahead may be in flight */
    gb_cuda_exchange_destroy(&e->rank, &e->exchange);
    gb_cuda_graphs_destroy(&e->graphs);
    gb_cuda_launches_destroy(&e->launches);
    gb_cuda_results_destroy(&e->results);
    gb_cuda_passes_destroy(&e->passes);
    gb_cuda_inputs_destroy(&e->inputs);
    gb_free(e);
}
