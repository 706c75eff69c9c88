/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4's assistants, as draft heads.
 */
#ifndef GUMBEL_EXPORT_MODELS_GEMMA4_ASSISTANT_H
#define GUMBEL_EXPORT_MODELS_GEMMA4_ASSISTANT_H

#include "export/models/gemma4_config.h"
#include "export/models/model.h"

/* Builds the graph of the assistant options->assistant of the model with that configuration, of which
 * options->layers are kept already. Errors as gb_model's build_head; ARGUMENT names the key in which the two
 * do not fit each other. */
gumbel_status gb_gemma4_build_assistant(const gb_gemma4_config *target, const gb_model_options *options,
                                        gb_builder *builder, gb_weights *weights, gumbel_error *error);

#endif
