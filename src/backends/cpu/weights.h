/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's constants as this backend's kernels read them: where they are mapped, if their packing allows,
 * otherwise rearranged once into memory of our own.
 */
#ifndef GUMBEL_BACKENDS_CPU_WEIGHTS_H
#define GUMBEL_BACKENDS_CPU_WEIGHTS_H

#include "backends/threads/team.h"
#include "program/program.h"

typedef struct gb_placed_weight {
    const uint8_t *data; /* constant.size bytes, a multiple of 64 */
    bool is_interleaved; /* in the packing of gb_packing_interleaved; otherwise canonical */
    bool is_rearranged;  /* data is in `memory` */
} gb_placed_weight;

typedef struct gb_placed_weights {
    gb_placed_weight *of; /* by constant */
    uint32_t count;
    uint8_t *memory; /* of those that were rearranged; NULL: none was */
    uint64_t memory_bytes;
} gb_placed_weights;

/* Places the constants, which stay the program's where they are not rearranged: matrices that 8-bit
 * activations are multiplied with become interleaved where they can be, and what is packed in an order that
 * kernels do not read becomes canonical. The team does that; log gets how much it was. Errors: UNSUPPORTED
 * (a constant without data), MEMORY. */
gumbel_status gb_place_weights(const gb_program *program, gb_team *team, unsigned thread_count,
                               gumbel_log_callback log, void *log_user, gb_placed_weights *weights,
                               gumbel_error *error);

/* Safe on zeroed weights. */
void gb_free_weights(gb_placed_weights *weights);

#endif
