/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cuda.h"
#include "backends/cuda/lowering/lowering.h"
#include "backends/cuda/lowering/products.h"
#include "backends/cuda/runtime/facts.h"
#include "base/memory.h"
#include "plan/print_plan.h"

#include <stdio.h>

/* Of an engine that has batches of all classes. */
enum { SLOTS = 256, FEWEST_TOKENS = 1024 };

enum { WIDTH = 51 /* of what a line says of a launch */ };

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

static const char *name_of(gb_cuda_row_class class) {
    static const char *const names[GB_CUDA_ROW_CLASSES] = {[GB_CUDA_ONE_ROW] = "1",
                                                           [GB_CUDA_FEW_ROWS] = "2 to 16",
                                                           [GB_CUDA_MANY_ROWS] = "more than 16",
                                                           [GB_CUDA_FEW_OF_PROMPT] = "up to 16",
                                                           [GB_CUDA_SHORT_PROMPT] = "17 to 512",
                                                           [GB_CUDA_LONG_PROMPT] = "more than 512"};
    return names[class];
}

/* "cuda, decode of 2 to 16 tokens: 70 steps, 83 launches with 16 tokens" */
static void print_title(const gb_cuda_lowered *lowered, uint32_t tokens, const gb_text_sink *sink) {
    const gb_cuda_class *class = &lowered->class;
    const bool is_prompt = class->tokens >= GB_CUDA_FEW_OF_PROMPT;
    gb_print(sink, "cuda, %s of %s token%s", is_prompt ? "prefill" : "decode", name_of(class->tokens),
             class->tokens == GB_CUDA_ONE_ROW ? "" : "s");
    if (is_prompt)
        gb_print(sink, " with %s row%s", name_of(class->rows), class->rows == GB_CUDA_ONE_ROW ? "" : "s");
    gb_print(sink, ": %u steps, %u launches with %u token%s\n", lowered->plan->step_count,
             lowered->launches.count, tokens, tokens == 1 ? "" : "s");
}

/* "128 x 2 (4)": blocks, and those of a cluster where it has several. */
static void print_grid(const gb_cuda_launch *launch, char *text, size_t size) {
    const struct dim3 *grid = &launch->grid;
    const char *const format = grid->z > 1 ? "%u x %u x %u" : grid->y > 1 ? "%u x %u" : "%u";
    const int length = snprintf(text, size, format, grid->x, grid->y, grid->z);
    if (launch->cluster > 1)
        snprintf(text + length, size - (size_t)length, " (%u)", launch->cluster);
}

static void print_launches(const gb_cuda_lowered *lowered, uint32_t s, const gb_text_sink *sink) {
    const gb_cuda_step *step = &lowered->steps[s];
    if (step->first_launch == step->end_launch)
        gb_print_step(lowered->plan, s, "", WIDTH, sink);
    for (uint32_t i = step->first_launch; i < step->end_launch; i++) {
        const gb_cuda_launch *launch = &lowered->launches.launches[i];
        char grid[52], text[132];
        print_grid(launch, grid, sizeof grid);
        snprintf(text, sizeof text, "%-22s %-14s %5u %7zu", launch->name, grid, launch->block.x,
                 launch->shared_bytes);
        if (i == step->first_launch)
            gb_print_step(lowered->plan, s, text, WIDTH, sink);
        else
            gb_print(sink, "%5s  %-16s %s\n", "", "", text);
    }
}

static void print_lowered(const gb_cuda_lowered *lowered, uint32_t tokens, const gb_text_sink *sink) {
    print_title(lowered, tokens, sink);
    gb_print_step_columns("launch                 grid (cluster) block  shared", WIDTH, sink);
    for (uint32_t s = 0; s < lowered->plan->step_count; s++)
        print_launches(lowered, s, sink);
}

/* Of the largest batch of the class that an engine has as a rule: a token a slot, or prompts. */
static gumbel_status describe_class(gb_cuda_lowering_options *options, const gb_text_sink *sink,
                                    gumbel_error *error) {
    gb_cuda_lowered lowered;
    gb_cuda_class_range range;
    gb_cuda_class_find_range(options->class, options->backend, &range);
    gumbel_status status = gb_cuda_lower(options, &lowered, error);
    if (status == GUMBEL_OK) {
        const bool is_prompt = options->class.tokens >= GB_CUDA_FEW_OF_PROMPT;
        const uint32_t tokens = is_prompt ? range.most_tokens : range.most_rows;
        const gb_cuda_runs runs = {.count = range.most_rows};
        const gb_cuda_versions versions = {NULL, NULL};
        gb_cuda_lowered_bind(&lowered, tokens, range.most_rows, &runs, &versions);
        status = gb_cuda_lowered_describe(&lowered, lowered.plan->step_count, error);
        if (status == GUMBEL_OK)
            print_lowered(&lowered, tokens, sink);
    }
    gb_cuda_lowered_destroy(&lowered);
    return status;
}

gumbel_status gb_cuda_describe_plan(const gb_program *program, const gb_backend_options *options,
                                    const gb_text_sink *sink, gumbel_error *error) {
    layout l = {.states = {.places = NULL}};
    gb_backend_options of_all_classes = *options;
    of_all_classes.slots = SLOTS;
    if (of_all_classes.step_tokens < FEWEST_TOKENS)
        of_all_classes.step_tokens = FEWEST_TOKENS;
    gumbel_status status = make_layout(program, options, &l, error);
    gb_cuda_lowering_options lowering = {.program = program,
                                         .backend = &of_all_classes,
                                         .weights = &l.weights,
                                         .states = &l.states,
                                         .scratch = &l.scratch};
    for (int i = 0; i < GB_CUDA_CLASSES && status == GUMBEL_OK; i++) {
        if (i > 0)
            gb_print(sink, "\n");
        lowering.class = gb_cuda_classes[i];
        status = describe_class(&lowering, sink, error);
    }
    gb_cuda_weights_destroy(&l.weights);
    gb_free(l.states.places);
    return status;
}
