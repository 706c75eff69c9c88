/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cuda.h"
#include "backends/cuda/lowering/lowering.h"
#include "backends/cuda/runtime/facts.h"
#include "base/memory.h"
#include "plan/print_plan.h"

/* How values would lie, without memory of the device. */
typedef struct layout {
    gb_cuda_weights weights;
    gb_states states;
    gb_cuda_scratch scratch;
} layout;

/* As gb_cuda_wgmma_blocks says of the device. */
static uint32_t wgmma_blocks(void) {
    const gb_cuda_facts *facts = gb_cuda_find_facts();
    return facts->is_there ? gb_cuda_wgmma_blocks() : facts->multiprocessors;
}

static gumbel_status make_layout(const gb_program *program, const gb_backend_options *options, layout *l,
                                 gumbel_error *error) {
    enum { ALIGNMENT = 256 };
    GB_TRY(gb_cuda_weights_place(program, &l->weights, error));
    l->states.places = gb_allocate(program->state_count, sizeof *l->states.places);
    if (!l->states.places)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of states");
    l->scratch.wgmma_blocks = wgmma_blocks();
    return gb_states_place(program, options->max_context, ALIGNMENT, &l->states, error);
}

static void print_lowered(const gb_cuda_lowered *lowered, const gb_text_sink *sink) {
    gb_print(sink, "cuda, %s: %u steps\n", gb_cuda_class_name(lowered->class), lowered->plan->step_count);
    gb_print_step_columns(sink);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++) {
        const gb_cuda_kernel *kernel = lowered->launches[s].kernel;
        gb_print_step(lowered->plan, s, kernel ? kernel->name : "", sink);
    }
}

static gumbel_status describe_class(gb_cuda_lowering_options *options, gb_cuda_class class,
                                    const gb_text_sink *sink, gumbel_error *error) {
    gb_cuda_lowered lowered;
    options->class = class;
    const gumbel_status status = gb_cuda_lower(options, &lowered, error);
    if (status == GUMBEL_OK)
        print_lowered(&lowered, sink);
    gb_cuda_lowered_destroy(&lowered);
    return status;
}

gumbel_status gb_cuda_describe_plan(const gb_program *program, const gb_backend_options *options,
                                    const gb_text_sink *sink, gumbel_error *error) {
    layout l = {.states = {.places = NULL}};
    gumbel_status status = make_layout(program, options, &l, error);
    gb_cuda_lowering_options lowering = {.program = program,
                                         .backend = options,
                                         .weights = &l.weights,
                                         .states = &l.states,
                                         .scratch = &l.scratch};
    for (int class = 0; class < GB_CUDA_CLASSES && status == GUMBEL_OK; class ++) {
        if (class > 0)
            gb_print(sink, "\n");
        status = describe_class(&lowering, (gb_cuda_class) class, sink, error);
    }
    gb_cuda_weights_destroy(&l.weights);
    gb_free(l.states.places);
    return status;
}
