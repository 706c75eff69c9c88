/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/fused.h"
#include "plan/print_plan.h"

enum { WIDTH = 20 };

gumbel_status gb_cpu_describe_plan(const gb_program *program, const gb_backend_options *options,
                                   const gb_text_sink *sink, gumbel_error *error) {
    const gb_plan_options plan_options = {.step_tokens = options->step_tokens,
                                          .rows = gb_most_rows(options),
                                          .fuse = options->fuse,
                                          .supports = gb_supports_fused};
    const gb_vector_kernels *vector;
    gb_plan *plan;
    GB_TRY(gb_choose_vector_kernels(options->cpu_isa, &vector, error));
    GB_TRY(gb_plan_create(program, &plan_options, &plan, error));
    gb_print(sink, "cpu, all batches: %u steps, kernels in the instruction set %s\n", plan->step_count,
             vector->name);
    gb_print_step_columns("kernel", WIDTH, sink);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const bool is_control = plan->steps[s].kind == GB_STEP_BRANCH || plan->steps[s].kind == GB_STEP_JUMP;
        gb_print_step(plan, s, is_control ? "" : vector->name, WIDTH, sink);
    }
    gb_plan_destroy(plan);
    return GUMBEL_OK;
}
