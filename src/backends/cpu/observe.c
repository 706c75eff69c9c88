/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/observe.h"

static const char *weight_name(const gb_program *program, const gb_node *product) {
    return program->constants[program->values[product->operands[1]].index].name;
}

/* Rows of inputs that have their token's choices apart are of one expert each. */
static void add_experts(const gb_cpu_tensor *inputs, const gb_cpu_tensor *experts,
                        gumbel_observation *observation) {
    observation->experts = experts->data;
    observation->choices = inputs->rank == 2 ? experts->dims[1] : 1;
}

gumbel_observation gb_observation_of(const gb_program *program, const gb_ready_step *step) {
    const gb_cpu_tensor *inputs = step->call.operands[0];
    gumbel_observation observation = {.weight = weight_name(program, step->call.node),
                                      .inputs = inputs->data,
                                      .rows = inputs->dims[0],
                                      .columns = inputs->dims[inputs->rank - 1]};
    for (int32_t i = 1; i < inputs->rank - 1; i++)
        observation.rows *= inputs->dims[i];
    if (step->call.node->op == GB_OP_EXPERT_LINEAR)
        add_experts(inputs, step->call.operands[2], &observation);
    return observation;
}
