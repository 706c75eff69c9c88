/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/groups.h"

#include "base/memory.h"
#include "run/cuda/expert_steps.h"

#include <stdio.h>
#include <string.h>

/* By value: one more than the last step that reads its bytes; UINT32_MAX for what is an output. */
static void find_last_readers(const gb_plan *plan, uint32_t *last_reader) {
    for (uint32_t s = 0; s < plan->step_count; s++)
        for (uint32_t i = 0; i < plan->steps[s].operand_count; i++)
            if (plan->steps[s].operands[i] != GB_NO_VALUE)
                last_reader[plan->places[plan->steps[s].operands[i]].storage] = s + 1;
    for (uint32_t i = 0; i < plan->program->output_count; i++)
        last_reader[plan->places[plan->program->outputs[i].value].storage] = UINT32_MAX;
}

/* The names of the group's ops, each that follows itself once, as far as they fit. */
static void name_group(const gb_plan *plan, uint32_t first, gb_cuda_group *group) {
    const char *last = "";
    size_t used = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const char *name = gb_step_name(&plan->steps[first + i]);
        if (strcmp(name, last) != 0 && used + strlen(name) + 2 <= sizeof group->name)
            used += (size_t)snprintf(group->name + used, sizeof group->name - used, "%s%s",
                                     used > 0 ? " " : "", name);
        last = name;
    }
}

/* The group of the steps from `first` on, up to one that does not join. */
static void make_group(const gb_plan *plan, uint32_t first, const uint32_t *last_reader,
                       gb_cuda_group *group) {
    uint32_t end = first + 1;
    while (end < plan->step_count && plan->steps[end].joins)
        end++;
    group->count = end - first;
    for (uint32_t i = 0; i < group->count && i < GB_CUDA_MOST_TOGETHER; i++)
        group->is_kept[i] =
            plan->steps[first + i].result_count > 0 && last_reader[plan->steps[first + i].results[0]] > end;
    name_group(plan, first, group);
}

gumbel_status gb_cuda_groups_create(const gb_plan *plan, gb_cuda_group **groups, gumbel_error *error) {
    gb_cuda_group *made = gb_allocate(plan->step_count, sizeof *made);
    uint32_t *last_reader = gb_allocate(plan->program->value_count, sizeof *last_reader);
    *groups = made;
    if (!made || !last_reader) {
        gb_free(last_reader);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan's steps");
    }
    find_last_readers(plan, last_reader);
    for (uint32_t first = 0; first < plan->step_count; first += made[first].count)
        make_group(plan, first, last_reader, &made[first]);
    for (uint32_t first = 0; first < plan->step_count; first += made[first].count) {
        const uint32_t behind = first + GB_EXPERT_STEPS;
        made[first].is_experts = gb_cuda_are_expert_steps(plan, first, last_reader);
        if (made[first].is_experts && behind < plan->step_count)
            make_group(plan, behind, last_reader, &made[behind]);
    }
    gb_free(last_reader);
    return GUMBEL_OK;
}
