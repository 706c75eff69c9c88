/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/executor.h"

#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/graphs.h"
#include "backends/cuda/runtime/passes.h"
#include "backends/cuda/runtime/results.h"
#include "base/memory.h"

/* A step's results are read before so many more are begun. */
enum { RING_ENTRIES = 2 * GB_CUDA_MOST_AHEAD };

/* Steps of one sequence that follow on one another. */
typedef struct gb_cuda_course {
    bool goes_on;       /* the inputs, here and on the device, are those of the step after the last one */
    uint32_t slot;      /* the sequence's */
    uint32_t last;      /* number of the last step that was asked for */
    uint32_t version;   /* where that step left recurrent states, 0: in the slot */
    uint32_t confirmed; /* steps that came as they were announced, up to GB_CUDA_MOST_AHEAD */
} gb_cuda_course;

struct gb_cuda_executor {
    const gb_program *program;
    cudaStream_t stream;
    gb_cuda_slots *slots;
    gb_cuda_launches launches;
    gb_cuda_inputs inputs;
    gb_cuda_passes passes;
    gb_cuda_results results;
    gb_cuda_graphs graphs;
    gb_cuda_course course;
    uint32_t number; /* of the last step that was enqueued */
};

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* The kernels of the step that is bound, in the stream's order, and handing out what they found. */
static gumbel_status enqueue(void *user, gumbel_error *error) {
    gb_cuda_executor *e = user;
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    GB_TRY(gb_cuda_launches_enqueue(&e->launches, error));
    gb_cuda_handing handing = {.number = gb_cuda_inputs_number(&e->inputs)};
    gb_cuda_results_to_hand(&e->results, e->launches.bound->tensors, sizes->rows, &handing);
    const gb_ref next = gb_program_output(e->program, GB_ROLE_NEXT);
    if (next != GB_NO_VALUE && !sizes->is_prefill && sizes->rows == sizes->tokens)
        handing.advance = gb_cuda_inputs_advancing(&e->inputs, e->launches.bound->tensors[next].data,
                                                   sizes->rows, GB_CUDA_MOST_AHEAD);
    gb_cuda_hand_out(&handing, e->stream);
    return gb_cuda_check(cudaGetLastError(), "handing out a step's tokens", error);
}

/* Whether the launches of a step depend on its sizes alone. */
static bool can_capture(const gb_cuda_executor *e) {
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    return !e->launches.bound->has_branches && !e->launches.profile && !sizes->is_prefill &&
           sizes->runs.count == sizes->tokens && sizes->first_row == 0;
}

/* Enqueues the step that is bound. */
static gumbel_status launch(gb_cuda_executor *e, gumbel_error *error) {
    const gb_cuda_step_sizes *sizes = &e->launches.sizes;
    gb_cuda_graph *graph =
        can_capture(e) ? gb_cuda_graphs_find(&e->graphs, sizes->tokens, sizes->rows) : NULL;
    if (!graph)
        return enqueue(e, error);
    if (!graph->instance) {
        gumbel_status status = gb_cuda_graph_capture(graph, e->stream, enqueue, e, error);
        if (status != GUMBEL_OK && graph->has_failed)
            return status;
        graph->has_failed = status != GUMBEL_OK;
        if (graph->has_failed)
            return enqueue(e, error);
    }
    return gb_cuda_check(cudaGraphLaunch(graph->instance, e->stream), "launching a step", error);
}

/* Waits until the device has handed out a step: while it decodes, by looking at its memory, which is quicker
 * than the driver. */
static gumbel_status wait_for(gb_cuda_executor *e, uint32_t number, gumbel_error *error) {
    enum { LOOKS = 1 << 12 }; /* before the driver is asked whether something went wrong */
    for (uint32_t looks = 1; !e->launches.sizes.is_prefill && !e->launches.profile; looks++) {
        if (gb_cuda_results_are_there(&e->results, number))
            return GUMBEL_OK;
        if (looks % LOOKS == 0 && cudaStreamQuery(e->stream) != cudaErrorNotReady)
            break;
    }
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

/* ---- Passes -------------------------------------------------------------------------------------------- */

/* Executes the batch's generated tokens, or the others, and waits for them. */
static gumbel_status run_pass(gb_cuda_executor *e, const gb_batch *batch, bool generated,
                              gumbel_error *error) {
    uint32_t first_row;
    const gb_batch pass = gb_cuda_pass_of(&e->passes, batch, generated, &first_row);
    if (pass.token_count == 0)
        return GUMBEL_OK;
    gb_cuda_inputs_fill(&e->inputs, &pass, ++e->number);
    bind(e, !generated, first_row);
    gb_cuda_inputs_send(&e->inputs, e->stream);
    gumbel_status status = launch(e, error);
    if (status != GUMBEL_OK) {
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

/* Whether the batch is the step that was announced. Where none was announced after it, its logits may be
 * read, so that nothing may have run after it. */
static bool is_announced(const gb_cuda_executor *e, const gb_batch *batch) {
    return e->course.goes_on && is_one_generated_token(batch) &&
           (batch->following || e->number - e->course.last <= 1) && gb_cuda_inputs_hold(&e->inputs, batch);
}

/* Gives the batch its results, from where a step of one generated token may go on.
 *
 * Where it drew a stop token, what is under way behind it only repeats it: the device's inputs stay, and so
 * do this host's. The numbers of these steps are used up, their entries of the ring are read by nobody. The
 * course must end there, because the token that was drawn may well be run next, by a caller who goes on all
 * the same: that step equals the one that would have been announced, but nothing under way computes it. So it
 * is filled in and sent anew, with the next number, after the repeated ones. These read the version that the
 * stopped step read and write the one that it wrote, which is the course's. Only a step that was sent works
 * in place, where repeating would change a recurrent state twice; nothing is enqueued behind it before its
 * token is read.
 *
 * The stop tokens are those that the course was sent with, which the host's inputs have as well. A batch that
 * comes as it was announced but has others is right all the same: the course ends where the device stayed,
 * and where the device went on so does the course. */
static void finish(gb_cuda_executor *e, gb_batch *batch, uint32_t number) {
    gb_cuda_results_give(&e->results, e->program, batch);
    e->course.last = number;
    const bool may_go_on = batch->following && is_one_generated_token(batch) && can_capture(e);
    e->course.goes_on = may_go_on && gb_cuda_inputs_advance(&e->inputs, batch->next[0]);
    batch->logits = batch->row_count > 0 && !may_go_on ? e->launches.logits : NULL;
}

/* How many steps are to be under way after the one that was announced. */
static uint32_t steps_ahead(gb_cuda_executor *e, const gb_batch *batch) {
    if (e->course.confirmed < GB_CUDA_MOST_AHEAD)
        e->course.confirmed++;
    return batch->following_count < e->course.confirmed ? batch->following_count : e->course.confirmed;
}

/* Enqueues the step that was announced, unless it is under way, and some of those that will follow: one more
 * each time that the engine keeps its word. */
static gumbel_status run_announced(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    gumbel_error ignored;
    const uint32_t number = e->course.last + 1, end = (uint32_t)batch->positions[0] + 1;
    uint32_t ahead = steps_ahead(e, batch);
    GB_TRY(gb_cuda_slots_cover(e->slots, e->course.slot, end, error));
    if (gb_cuda_slots_cover(e->slots, e->course.slot, end + ahead, &ignored) != GUMBEL_OK)
        ahead = 0;
    while (e->number < number + ahead) {
        GB_TRY(launch(e, error));
        e->number++;
    }
    GB_TRY(wait_for(e, number, error));
    gb_cuda_results_collect(&e->results, number, 0, 1);
    e->course.version = e->course.version < GB_CUDA_MOST_AHEAD ? e->course.version + 1 : 0;
    finish(e, batch, number);
    return GUMBEL_OK;
}

void gb_cuda_executor_settle(gb_cuda_executor *e) {
    if (e->course.version > 0)
        gb_cuda_slots_copy_recurrent(e->slots, e->slots->slot_count + e->course.version - 1, e->course.slot);
    e->course = (gb_cuda_course){.goes_on = false};
}

/* Gives the batch's slots the memory that it needs. */
static gumbel_status cover(gb_cuda_executor *e, const gb_batch *batch, gumbel_error *error) {
    for (uint32_t n = 0; n < batch->token_count; n++)
        if (n + 1 == batch->token_count || batch->slots[n + 1] != batch->slots[n])
            GB_TRY(gb_cuda_slots_cover(e->slots, (uint32_t)batch->slots[n], (uint32_t)batch->positions[n] + 1,
                                       error));
    return GUMBEL_OK;
}

gumbel_status gb_cuda_executor_run(gb_cuda_executor *e, gb_batch *batch, gumbel_error *error) {
    if (is_announced(e, batch))
        return run_announced(e, batch, error);
    gb_cuda_executor_settle(e);
    GB_TRY(cover(e, batch, error));
    GB_TRY(run_pass(e, batch, true, error));
    GB_TRY(run_pass(e, batch, false, error));
    e->course.slot = (uint32_t)batch->slots[0];
    finish(e, batch, e->number);
    return GUMBEL_OK;
}

/* ---- Making one ---------------------------------------------------------------------------------------- */

/* Captures the step of one generated token before it comes. Where that fails, the first one tries it again.
 */
static void capture_one_token(gb_cuda_executor *e) {
    gumbel_error ignored;
    const gb_cuda_step_sizes sizes = {.tokens = 1,
                                      .rows = 1,
                                      .runs = {gb_cuda_inputs_runs(&e->inputs).first, 1},
                                      .versions = gb_cuda_inputs_versions(&e->inputs)};
    gb_cuda_launches_bind(&e->launches, &sizes);
    if (can_capture(e))
        gb_cuda_graph_capture(gb_cuda_graphs_find(&e->graphs, 1, 1), e->stream, enqueue, e, &ignored);
}

static gumbel_status prepare(gb_cuda_executor *e, const gb_cuda_resources *resources, gumbel_error *error) {
    const gb_backend_options *options = resources->backend;
    GB_TRY(gb_cuda_inputs_create(e->program, options, &e->inputs, error));
    GB_TRY(gb_cuda_passes_create(e->program, options, &e->passes, error));
    GB_TRY(gb_cuda_results_create(e->program, options->slots, RING_ENTRIES, &e->results, error));
    GB_TRY(gb_cuda_launches_create(resources, &e->inputs, &e->launches, error));
    capture_one_token(e);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_executor_create(const gb_cuda_resources *resources, gb_cuda_executor **executor,
                                      gumbel_error *error) {
    *executor = NULL;
    gb_cuda_executor *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for an executor");
    made->program = resources->program;
    made->stream = resources->stream;
    made->slots = resources->slots;
    gumbel_status status = prepare(made, resources, error);
    if (status != GUMBEL_OK)
        gb_cuda_executor_destroy(made);
    else
        *executor = made;
    return status;
}

void gb_cuda_executor_destroy(gb_cuda_executor *e) {
    if (!e)
        return;
    cudaStreamSynchronize(e->stream); /* what ran ahead may be under way */
    gb_cuda_graphs_destroy(&e->graphs);
    gb_cuda_launches_destroy(&e->launches);
    gb_cuda_results_destroy(&e->results);
    gb_cuda_passes_destroy(&e->passes);
    gb_cuda_inputs_destroy(&e->inputs);
    gb_free(e);
}
