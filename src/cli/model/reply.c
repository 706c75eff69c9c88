/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/reply.h"

#include "base/clock.h"
#include "cli/base/measure.h"
#include "cli/base/signals.h"
#include "cli/model/conversations.h"
#include "cli/model/drafts.h"

static gumbel_status generate_tokens(cli_generator *generator, cli_output *output, cli_reply *reply,
                                     gumbel_error *error) {
    const gumbel_session *session = generator->model->session;
    double begin = gb_seconds();
    gumbel_generated generated;
    do {
        generated = (gumbel_generated){.size = sizeof generated};
        gumbel_status status = cli_generator_next(generator, &generated, error);
        if (status != GUMBEL_OK) {
            cli_output_rest(output, &generated);
            return status;
        }
        double now = gb_seconds();
        if (reply->tokens.count == 0) {
            reply->first_token_seconds = now - begin;
            reply->prompt_end = gumbel_session_position(session, NULL);
        }
        reply->decode_seconds = now - begin - reply->first_token_seconds;
        cli_tokens_add(&reply->tokens, generated.token);
        status = cli_output_token(output, &generated, error);
        if (status != GUMBEL_OK)
            return status;
    } while (generated.finish == GUMBEL_FINISH_NONE);
    reply->finish = generated.finish;
    reply->stop_string = generated.stop_string;
    return GUMBEL_OK;
}

/* A reply that was broken off is ended where it is; its first error is the one to report. */
static void end_broken_off(cli_output *output, const cli_reply *reply) {
    gumbel_error ignored;
    const gumbel_generated nothing = {.size = sizeof nothing};
    if (!output->conversation || reply->tokens.count == 0)
        return;
    gumbel_conversation_end_reply(output->conversation, &ignored);
    cli_output_rest(output, &nothing);
}

gumbel_status cli_generate_reply(cli_generator *generator, const int32_t *tokens, size_t count,
                                 const gumbel_generate_options *options, cli_output *output, cli_reply *reply,
                                 gumbel_error *error) {
    cli_reply_free(reply);
    reply->stop_string = -1;
    reply->prompt_tokens = count;
    gumbel_status status = cli_generator_begin(generator, tokens, count, options, error);
    if (status != GUMBEL_OK)
        return status;
    cli_cancel_on_interrupt(generator->model->session);
    if (cli_interrupted()) /* just before */
        gumbel_session_cancel(generator->model->session);
    status = generate_tokens(generator, output, reply, error);
    cli_cancel_on_interrupt(NULL);
    if (status != GUMBEL_OK)
        end_broken_off(output, reply);
    cli_output_end(output);
    if (status != GUMBEL_ERROR_CANCELLED)
        return status;
    reply->interrupted = true;
    return GUMBEL_OK;
}

void cli_reply_free(cli_reply *reply) {
    cli_tokens_free(&reply->tokens);
    *reply = (cli_reply){0};
}

const char *cli_reply_finish(const cli_reply *reply) {
    static const char *const names[] = {[GUMBEL_FINISH_NONE] = "interrupted",
                                        [GUMBEL_FINISH_STOP] = "stop",
                                        [GUMBEL_FINISH_LENGTH] = "length",
                                        [GUMBEL_FINISH_CONTEXT] = "context",
                                        [GUMBEL_FINISH_STOP_STRING] = "stop"};
    return names[reply->finish];
}

static double rate(size_t tokens, double seconds) {
    return seconds > 0 ? (double)tokens / seconds : 0;
}

/* What the states of that many positions take, as far as attention reads them. */
static double state_megabytes(const cli_model *model, uint32_t positions) {
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = 1, .tokens = 1, .position = positions > 0 ? positions - 1 : 0};
    gumbel_step_costs costs = {.size = sizeof costs};
    const bool is_known = gumbel_program_get_costs(model->program, &shape, &costs, NULL) == GUMBEL_OK;
    return is_known ? costs.state_bytes / 1e6 : 0;
}

void cli_print_stats(const cli_model *model, const cli_sampling *sampling, const cli_reply *reply,
                     FILE *file) {
    fflush(stdout);
    fprintf(file, "engine           %s\n", gumbel_engine_description(model->engine));
    cli_print_sampling(sampling, file);
    fprintf(file, "load             %.3f s\n", model->load_seconds);
    fprintf(file, "prompt           %zu tokens, %.1f tokens/s\n", reply->prompt_tokens,
            rate(reply->prompt_tokens, reply->first_token_seconds));
    fprintf(file, "first token      %.3f s\n", reply->first_token_seconds);
    size_t generated = reply->tokens.count, decoded = generated > 0 ? generated - 1 : 0;
    fprintf(file, "generated        %zu tokens, %.1f tokens/s\n", generated,
            rate(decoded, reply->decode_seconds));
    gumbel_draft_stats drafts = {.size = sizeof drafts};
    if (gumbel_session_draft_stats(model->session, &drafts, NULL) == GUMBEL_OK)
        cli_print_draft_stats(&drafts, file);
    fprintf(file, "finish           %s\n", cli_reply_finish(reply));
    const uint32_t positions = gumbel_session_position(model->session, NULL);
    fprintf(file, "context          %u of %u positions\n", positions, model->max_context);
    fprintf(file, "caches           %.3f MB, %.3f MB when the context is full\n",
            state_megabytes(model, positions), state_megabytes(model, model->max_context));
    cli_print_conversations(model->engine, file);
    fprintf(file, "peak memory      %.1f MB\n", cli_peak_megabytes());
}
