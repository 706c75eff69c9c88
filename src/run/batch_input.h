/* SPDX-License-Identifier: Apache-2.0
 *
 * The array of a batch that is bound to an input of the program.
 */
#ifndef GUMBEL_RUN_BATCH_INPUT_H
#define GUMBEL_RUN_BATCH_INPUT_H

#include "run/backend.h"

/* The batch's array for a role, of the role's dtype and dims; NULL for a role that is no input. */
static inline const void *gb_batch_input(const gb_batch *batch, gb_role role) {
    switch (role) {
    case GB_ROLE_TOKENS:
        return batch->tokens;
    case GB_ROLE_POSITIONS:
        return batch->positions;
    case GB_ROLE_SLOTS:
        return batch->slots;
    case GB_ROLE_ROWS:
        return batch->rows;
    case GB_ROLE_TEMPERATURE:
        return batch->temperature;
    case GB_ROLE_TOP_K:
        return batch->top_k;
    case GB_ROLE_TOP_P:
        return batch->top_p;
    case GB_ROLE_SEED:
        return batch->seed;
    case GB_ROLE_MIN_P:
        return batch->min_p;
    case GB_ROLE_REPETITION_PENALTY:
        return batch->repetition_penalty;
    case GB_ROLE_FREQUENCY_PENALTY:
        return batch->frequency_penalty;
    case GB_ROLE_PRESENCE_PENALTY:
        return batch->presence_penalty;
    case GB_ROLE_GENERATED_FROM:
        return batch->generated_from;
    case GB_ROLE_PENALIZE_PROMPT:
        return batch->penalize_prompt;
    case GB_ROLE_BIAS_IDS:
        return batch->bias_ids;
    case GB_ROLE_BIAS_VALUES:
        return batch->bias_values;
    case GB_ROLE_WANT_LOGPROBS:
        return batch->want_logprobs;
    default:
        return NULL;
    }
}

#endif
