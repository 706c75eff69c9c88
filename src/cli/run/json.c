/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/json.h"
#include "cli/base/measure.h"
#include "cli/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static json_t *text_json(const char *text) {
    return cli_json_text(text, strlen(text));
}

static json_t *tokens_json(const cli_tokens *tokens) {
    json_t *list = json_array();
    for (size_t i = 0; i < tokens->count; i++)
        json_array_append_new(list, json_integer(tokens->ids[i]));
    return list;
}

static json_t *number_json(const gumbel_setting *setting, const cli_sampling *sampling) {
    const double value = cli_setting_value(setting, sampling);
    return setting->type == GUMBEL_SETTING_INT32 ? json_integer((json_int_t)value) : cli_json_number(value);
}

static void add_setting(json_t *settings, const char *name, json_t *value, const char *origin) {
    json_object_set_new(settings, name, json_pack("{s:o, s:s}", "value", value, "origin", origin));
}

/* The seed is text, since it may be larger than an integer of JSON is here. */
static json_t *settings_json(const run_options *options, const cli_sampling *sampling) {
    json_t *settings = json_object();
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        add_setting(settings, setting->name, number_json(setting, sampling), sampling->origins[i]);
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, sampling->seed);
    add_setting(settings, "seed", json_string(seed), sampling->seed_origin);
    const cli_integer *limit = &options->max_new_tokens;
    uint32_t tokens = run_token_limit(options);
    add_setting(settings, "max_new_tokens", tokens > 0 ? json_integer(tokens) : json_null(),
                cli_given_origin(limit->given, limit->from_environment));
    json_t *biases = json_object();
    for (size_t i = 0; i < sampling->values.bias_count; i++) {
        char token[16];
        const gumbel_bias *bias = &sampling->values.bias[i];
        snprintf(token, sizeof token, "%" PRId32, bias->token);
        json_object_set_new(biases, token,
                            isinf(bias->value) ? json_string("-inf") : cli_json_float(bias->value));
    }
    json_object_set_new(settings, "logit_bias", biases);
    return settings;
}

static json_t *program_json(const run_arguments *arguments, const cli_model *model) {
    char id[2 * sizeof model->info.id + 1];
    for (size_t i = 0; i < sizeof model->info.id; i++)
        snprintf(id + 2 * i, 3, "%02x", model->info.id[i]);
    return json_pack("{s:s, s:o, s:o, s:o}", "id", id, "name", text_json(model->info.name), "architecture",
                     text_json(model->info.architecture), "path", text_json(arguments->model.source.path));
}

static json_t *timings_json(const cli_model *model, const cli_reply *reply) {
    json_t *timings = json_object();
    json_object_set_new(timings, "load_seconds", cli_json_number(model->load_seconds));
    json_object_set_new(timings, "first_token_seconds", cli_json_number(reply->first_token_seconds));
    json_object_set_new(timings, "decode_seconds", cli_json_number(reply->decode_seconds));
    json_object_set_new(timings, "peak_megabytes", cli_json_number(cli_peak_megabytes()));
    return timings;
}

/* What drafts did; null where there were none. */
static json_t *drafts_json(const cli_model *model) {
    gumbel_draft_stats stats = {.size = sizeof stats};
    if (gumbel_session_draft_stats(model->session, &stats, NULL) != GUMBEL_OK || stats.steps == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "steps", (json_int_t)stats.steps, "tokens",
                     (json_int_t)stats.proposed, "accepted", (json_int_t)stats.accepted);
}

static json_t *reply_text_json(const run_options *options, const gb_byte_buffer *text) {
    return options->print_tokens ? json_null() : cli_json_text(text->text ? text->text : "", text->size);
}

static json_t *stop_string_json(const run_state *state) {
    int32_t index = state->reply.stop_string;
    return index < 0 ? json_null() : text_json(state->stops.texts[index]);
}

static void keep(void *user, const char *text, size_t length) {
    cli_append(user, text, length);
}

/* The assistant's message as OpenAI's API has it; null where the prompt was no message. */
static json_t *message_json(const run_state *state) {
    gb_byte_buffer text = {0};
    const gumbel_reply *reply = state->conversation ? gumbel_conversation_reply(state->conversation) : NULL;
    json_t *message = NULL;
    if (reply && gumbel_reply_message(reply, keep, &text, NULL) == GUMBEL_OK)
        message = json_loadb(text.text, text.size, JSON_ALLOW_NUL, NULL);
    gb_buffer_free(&text);
    return message ? message : json_null();
}

void run_print_json(const run_arguments *arguments, const run_state *state, FILE *file) {
    const run_options *options = &arguments->run;
    const cli_reply *reply = &state->reply;
    json_t *root = json_object();
    json_object_set_new(root, "text", reply_text_json(options, &state->record.text));
    json_t *message = message_json(state);
    const bool calls = reply->finish == GUMBEL_FINISH_STOP && json_object_get(message, "tool_calls");
    json_object_set_new(root, "message", message);
    json_object_set_new(root, "finish_reason", json_string(calls ? "tool_calls" : cli_reply_finish(reply)));
    json_object_set_new(root, "stop_string", stop_string_json(state));
    json_object_set_new(root, "tokens", tokens_json(&reply->tokens));
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)reply->prompt_tokens));
    if (state->record.logprobs)
        json_object_set(root, "logprobs", state->record.logprobs);
    json_object_set_new(root, "settings", settings_json(options, &state->sampling));
    json_object_set_new(root, "program", program_json(arguments, &state->model));
    json_object_set_new(root, "engine", text_json(gumbel_engine_description(state->model.engine)));
    json_object_set_new(root, "timings", timings_json(&state->model, reply));
    json_object_set_new(root, "drafts", drafts_json(&state->model));
    json_object_set_new(root, "gumbel", json_string(gumbel_version()));
    cli_json_print(root, JSON_COMPACT | JSON_REAL_PRECISION(9), file);
    fputc('\n', file);
    json_decref(root);
}
