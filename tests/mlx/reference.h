/* SPDX-License-Identifier: Apache-2.0
 *
 * A program run op by op with the portable CPU kernels, so that another backend's op can be given the same
 * inputs.
 */
#ifndef GUMBEL_TESTS_MLX_REFERENCE_H
#define GUMBEL_TESTS_MLX_REFERENCE_H

#include "backends/backend.h"
#include "plan/plan.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reference reference;

/* Ends the test on an error. */
reference *reference_create(const gb_program *program, const gb_backend_options *options);
void reference_destroy(reference *reference);

/* The program's plan, not fused. */
const gb_plan *reference_plan(const reference *reference);

/* Takes a batch's inputs; its arrays must stay until the next one. */
void reference_begin(reference *reference, const gb_batch *batch);

/* Executes a step of the plan that is a node or a move. */
void reference_execute(reference *reference, const gb_step *step);

/* The value as that batch has it: row-major numbers of its dtype, and how many there are. */
const void *reference_value(const reference *reference, gb_ref value, size_t *count);

/* Number `index` of the result of a linear or expert_linear node, added in double; *magnitude is the sum of
 * the products' absolute values. */
double reference_product(const reference *reference, const gb_node *node, size_t index, double *magnitude);

#ifdef __cplusplus
}
#endif

#endif
