/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts that a checkpoint has one by one, by the name of the stack that they are one matrix of.
 */
#ifndef GUMBEL_EXPORT_EXPERT_NAMES_H
#define GUMBEL_EXPORT_EXPERT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the name of one expert's matrix into text, which holds size bytes: of expert 3 in
 * "mlp.switch_mlp.up_proj.weight" or "mlp.experts.switch_glu.up_proj.weight" that is
 * "mlp.experts.3.up_proj.weight". False where the name is no stack's or does not fit. */
bool gb_expert_member_name(const char *stack, uint64_t member, char *text, size_t size);

#endif
