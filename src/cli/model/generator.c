/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/generator.h"

#include "base/status.h"
#include "cli/base/signals.h"

static bool samples_itself(const cli_generator *generator) {
    return generator->model->info.use_sampling;
}

void cli_generator_set_seed(cli_generator *generator, uint64_t seed) {
    generator->seed = seed;
    gumbel_session_set_seed(generator->model->session, seed);
}

uint64_t cli_generator_seed(const cli_generator *generator) {
    uint64_t seed = generator->seed;
    if (samples_itself(generator))
        gumbel_session_get_seed(generator->model->session, &seed, NULL); /* one was set: it cannot fail */
    return seed;
}

/* Whether count more tokens fit behind the session's; the message is that of the library. */
static gumbel_status check_room(const cli_model *model, size_t count, gumbel_error *error) {
    uint32_t position = gumbel_session_position(model->session, NULL);
    if (count <= model->max_context - position)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_LIMIT,
                   "a prompt of %zu tokens after position %u: the context holds %u", count, position,
                   model->max_context);
}

/* What spells the tokens out, as gumbel_generate does it. */
static gumbel_status prepare_text(cli_generator *generator, const int32_t *prompt, size_t count,
                                  const gumbel_generate_options *options, gumbel_error *error) {
    gumbel_detokenizer_destroy(generator->detokenizer);
    generator->detokenizer = NULL;
    if (!options->tokenizer)
        return GUMBEL_OK;
    gumbel_status status =
        gumbel_detokenizer_create(options->tokenizer, options->show_special, &generator->detokenizer, error);
    if (status == GUMBEL_OK)
        status = gumbel_detokenizer_stop_at(generator->detokenizer, options->stop_strings,
                                            options->stop_string_count, options->include_stop_string, error);
    if (status == GUMBEL_OK && options->stop_in_answer)
        status = gumbel_detokenizer_stop_in_answer(generator->detokenizer, prompt, count, error);
    return status;
}

gumbel_status cli_generator_begin(cli_generator *generator, const int32_t *tokens, size_t count,
                                  const gumbel_generate_options *options, gumbel_error *error) {
    cli_model *model = generator->model;
    if (samples_itself(generator))
        return gumbel_generate(model->session, tokens, count, options, error);
    if (options->grammar) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "the program was exported with --logits and has no sampler to hold to a grammar");
    }
    if (options->wants_logprob) {
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "--logprobs: the program was exported with --logits and has no sampler; `gumbel logits` "
            "writes its logits");
    }
    gumbel_status status = check_room(model, generator->prompt.count + count, error);
    if (status == GUMBEL_OK)
        status = prepare_text(generator, tokens, count, options, error);
    if (status != GUMBEL_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        cli_tokens_add(&generator->prompt, tokens[i]);
    if (generator->prompt.count == 0) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the prompt has no tokens");
    }
    generator->options = *options;
    generator->sampling = *options->sampling;
    generator->generated = 0;
    generator->snapshot_is_due = options->snapshot;
    return GUMBEL_OK;
}

/* Runs what is due and asks for the logits after it. */
static gumbel_status run_due(cli_generator *generator, gumbel_result *result, gumbel_error *error) {
    cli_model *model = generator->model;
    size_t last = generator->prompt.count - 1;
    if (last > 0) {
        gumbel_status status = gumbel_session_append(model->session, generator->prompt.ids, last, error);
        if (status != GUMBEL_OK)
            return status;
        generator->prompt.ids[0] = generator->prompt.ids[last];
        generator->prompt.count = 1;
    }
    if (generator->snapshot_is_due) {
        gumbel_status status = gumbel_session_snapshot(model->session, error);
        if (status != GUMBEL_OK)
            return status;
        generator->snapshot_is_due = false;
    }
    if (cli_interrupted()) {
        return gb_fail(error, GUMBEL_ERROR_CANCELLED, "cancelled");
    }
    const gumbel_request request = {.size = sizeof request,
                                    .session = model->session,
                                    .tokens = generator->prompt.ids,
                                    .token_count = 1,
                                    .result = result};
    return gumbel_step(model->engine, &request, 1, error);
}

static bool is_stop_token(const gumbel_program_info *info, int32_t token) {
    for (size_t i = 0; i < info->stop_token_count; i++)
        if (info->stop_tokens[i] == token)
            return true;
    return false;
}

static gumbel_finish finish_after(const cli_generator *generator, int32_t token) {
    const cli_model *model = generator->model;
    if (!generator->options.ignore_stop && is_stop_token(&model->info, token))
        return GUMBEL_FINISH_STOP;
    if (gumbel_session_position(model->session, NULL) == model->max_context)
        return GUMBEL_FINISH_CONTEXT;
    return generator->generated == generator->options.max_new_tokens ? GUMBEL_FINISH_LENGTH
                                                                     : GUMBEL_FINISH_NONE;
}

/* Gives the characters that are held back. */
static void end_text(cli_generator *generator, gumbel_generated *generated) {
    const char *text;
    size_t length;
    if (!generator->detokenizer)
        return;
    gumbel_detokenize_end(generator->detokenizer, &text, &length);
    cli_append(&generator->text, text, length);
    generated->text = generator->text.text;
    generated->text_length = generator->text.size;
}

/* Gives the token's text, and all that is left where it is the last one. */
static gumbel_status add_text(cli_generator *generator, gumbel_generated *generated, gumbel_error *error) {
    const char *text;
    size_t length;
    generated->stop_string = -1;
    if (!generator->detokenizer)
        return GUMBEL_OK;
    GB_TRY(gumbel_detokenize(generator->detokenizer, generated->token, &text, &length, error));
    cli_append(&generator->text, text, length);
    generated->stop_string = gumbel_detokenizer_stopped(generator->detokenizer);
    if (generated->stop_string >= 0)
        generated->finish = GUMBEL_FINISH_STOP_STRING;
    if (generated->finish != GUMBEL_FINISH_NONE)
        end_text(generator, generated);
    generated->text = generator->text.text;
    generated->text_length = generator->text.size;
    return GUMBEL_OK;
}

gumbel_status cli_generator_next(cli_generator *generator, gumbel_generated *generated, gumbel_error *error) {
    cli_model *model = generator->model;
    if (samples_itself(generator))
        return gumbel_next(model->session, generated, error);
    gumbel_result result = {.size = sizeof result};
    gb_buffer_clear(&generator->text);
    gumbel_status status = run_due(generator, &result, error);
    if (status != GUMBEL_OK) {
        end_text(generator, generated);
        return status;
    }
    generator->prompt.count = 0;
    int32_t token;
    status = gumbel_sample(result.logits, model->info.vocab_size, &generator->sampling, generator->seed,
                           &token, error);
    if (status != GUMBEL_OK)
        return status;
    generated->token = token;
    generated->seed = generator->sampling.temperature > 0 ? generator->seed : 0;
    generator->seed++;
    generator->generated++;
    generated->finish = finish_after(generator, token);
    cli_tokens_add(&generator->prompt, token);
    return add_text(generator, generated, error);
}

static gumbel_status run_last(cli_generator *generator, gumbel_error *error) {
    gumbel_status status = gumbel_session_append(generator->model->session, generator->prompt.ids,
                                                 generator->prompt.count, error);
    if (status == GUMBEL_OK)
        generator->prompt.count = 0;
    return status;
}

gumbel_status cli_generator_settle(cli_generator *generator, gumbel_error *error) {
    if (generator->generated == 0)
        generator->prompt.count = 0; /* the rest of a prompt that was interrupted */
    gumbel_status status = run_last(generator, error);
    return status == GUMBEL_ERROR_CANCELLED ? run_last(generator, error) : status;
}

gumbel_status cli_generator_rewind(cli_generator *generator, uint32_t position, gumbel_error *error) {
    generator->prompt.count = 0;
    return gumbel_session_rewind(generator->model->session, position, error);
}

void cli_generator_free(cli_generator *generator) {
    cli_tokens_free(&generator->prompt);
    gb_buffer_free(&generator->text);
    gumbel_detokenizer_destroy(generator->detokenizer);
    generator->detokenizer = NULL;
}
