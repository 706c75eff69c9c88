/* SPDX-License-Identifier: Apache-2.0
 *
 * One way to generate for both kinds of programs: those that end in their sampler are driven by
 * gumbel_generate, those exported with --logits by steps whose logits are sampled here.
 */
#ifndef GUMBEL_CLI_MODEL_GENERATOR_H
#define GUMBEL_CLI_MODEL_GENERATOR_H

#include "cli/base/storage.h"
#include "cli/model/model.h"

typedef struct cli_generator {
    cli_model *model;
    gumbel_generate_options options;
    gumbel_sampling sampling;
    /* The rest is for programs without a sampler. */
    uint64_t seed;                   /* of the next token */
    cli_tokens prompt;               /* still to run: the prompt, later the token drawn last */
    uint32_t generated;              /* since cli_generator_begin */
    gumbel_detokenizer *detokenizer; /* NULL: no text is wanted */
    gb_byte_buffer text;             /* what was given last */
    bool snapshot_is_due;
} cli_generator;

/* The next token is drawn with seed, the ones after it with seed + 1 and so on. */
void cli_generator_set_seed(cli_generator *generator, uint64_t seed);

/* The seed that the next token is drawn with. */
uint64_t cli_generator_seed(const cli_generator *generator);

/* As gumbel_generate; options->sampling must be set and is copied. */
gumbel_status cli_generator_begin(cli_generator *generator, const int32_t *tokens, size_t count,
                                  const gumbel_generate_options *options, gumbel_error *error);

/* As gumbel_next. Ctrl-C ends it with CANCELLED. */
gumbel_status cli_generator_next(cli_generator *generator, gumbel_generated *generated, gumbel_error *error);

/* Runs the token generated last, so that the session holds all that was generated, and forgets a cancel that
 * came too late. LIMIT when the context has no room for it. */
gumbel_status cli_generator_settle(cli_generator *generator, gumbel_error *error);

/* Takes the session back to position; a token that was generated and not run is forgotten. */
gumbel_status cli_generator_rewind(cli_generator *generator, uint32_t position, gumbel_error *error);

void cli_generator_free(cli_generator *generator);

#endif
