/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/prompt.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 2048 };

/* ---- Text ---------------------------------------------------------------------------------------------- */

/* Fills in prompt, whose tokens have room for so many. */
typedef gumbel_status encoder(const void *user, size_t capacity, server_prompt *prompt, gumbel_error *error);

/* Encodes again with room for all where the first room was too small for so many bytes of text. */
static bool encode(encoder *run, const void *user, size_t bytes, const char *param, server_prompt *prompt,
                   server_failure *failure) {
    size_t capacity = FIRST_CAPACITY + bytes / 2;
    gumbel_error error = {GUMBEL_ERROR_MEMORY, "no memory for the prompt"};
    gumbel_status status = GUMBEL_ERROR_LIMIT;
    for (int i = 0; i < 2 && status == GUMBEL_ERROR_LIMIT; i++) {
        int32_t *tokens = realloc(prompt->tokens, capacity * sizeof *tokens);
        if (!tokens) {
            status = GUMBEL_ERROR_MEMORY;
            break;
        }
        prompt->tokens = tokens;
        prompt->count = 0;
        status = run(user, capacity, prompt, &error);
        if (prompt->count <= capacity)
            break; /* LIMIT of another kind */
        capacity = prompt->count;
    }
    if (status == GUMBEL_OK)
        return true;
    free(prompt->tokens);
    *prompt = (server_prompt){0};
    if (status == GUMBEL_ERROR_LIMIT)
        return server_refuse(failure, param, "%s", error.message);
    return server_fail_with(failure, param, &error);
}

typedef struct text_source {
    const gumbel_tokenizer *tokenizer;
    const char *text;
    size_t length;
    gumbel_encode_options options;
} text_source;

static gumbel_status encode_text(const void *user, size_t capacity, server_prompt *prompt,
                                 gumbel_error *error) {
    const text_source *source = user;
    return gumbel_encode(source->tokenizer, source->text, source->length, &source->options, prompt->tokens,
                         capacity, &prompt->count, error);
}

bool server_encode_text(const server_model *model, const char *text, size_t length, bool add_special,
                        bool parse_special, server_prompt *prompt, server_failure *failure) {
    const text_source source = {
        model->tokenizer,
        text,
        length,
        {.size = sizeof source.options, .parse_special = parse_special, .add_special = add_special}};
    return encode(encode_text, &source, length, NULL, prompt, failure);
}

bool server_decode_tokens(const server_model *model, const int32_t *tokens, size_t count, bool show_special,
                          gb_byte_buffer *text, server_failure *failure) {
    gumbel_detokenizer *detokenizer;
    gumbel_error error;
    const char *piece;
    size_t length;
    gumbel_status status = gumbel_detokenizer_create(model->tokenizer, show_special, &detokenizer, &error);
    if (status != GUMBEL_OK)
        return server_fail_with(failure, NULL, &error);
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++) {
        status = gumbel_detokenize(detokenizer, tokens[i], &piece, &length, &error);
        if (status == GUMBEL_OK)
            gb_buffer_append(text, piece, length);
    }
    gumbel_detokenize_end(detokenizer, &piece, &length);
    gb_buffer_append(text, piece, length);
    gumbel_detokenizer_destroy(detokenizer);
    return status == GUMBEL_OK || server_fail_with(failure, "tokens", &error);
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

/* The request's options over the model's; texts are freed by free_chat. */
typedef struct chat {
    const gumbel_tokenizer *tokenizer;
    gumbel_chat_options options;
    char *messages, *tools, *kwargs;
} chat;

static char *dump(const json_t *value) {
    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

/* The server's variables, with the request's over them. */
static char *dump_kwargs(const server_request *request, const server_model *model) {
    json_t *all = model->chat.template_kwargs ? json_loads(model->chat.template_kwargs, 0, NULL) : NULL;
    if (!all || !request->template_kwargs) {
        char *text = dump(request->template_kwargs ? request->template_kwargs : all);
        json_decref(all);
        return text;
    }
    json_object_update(all, request->template_kwargs);
    char *text = dump(all);
    json_decref(all);
    return text;
}

static bool prepare_chat(const server_request *request, const server_model *model, chat *c,
                         server_failure *failure) {
    *c = (chat){.tokenizer = model->tokenizer, .options = model->chat};
    if (!request->messages)
        return server_refuse(failure, "messages", "messages: missing");
    c->messages = dump(request->messages);
    c->tools = request->no_tools ? NULL : dump(request->tools);
    c->kwargs = dump_kwargs(request, model);
    if (!c->messages || (request->tools && !request->no_tools && !c->tools))
        return server_fail(failure, 503, "no memory for the messages");
    gumbel_chat_options *options = &c->options;
    options->size = sizeof *options;
    options->thinking = request->thinking;
    options->no_generation_prompt = request->no_generation_prompt;
    options->continue_final_message = request->continue_final_message;
    options->messages_json = c->messages;
    options->tools = c->tools;
    options->template_kwargs = c->kwargs;
    if (request->template_text) {
        options->template_text = request->template_text;
        options->template_name = NULL;
    }
    return true;
}

static void free_chat(chat *c) {
    free(c->messages);
    free(c->tools);
    free(c->kwargs);
}

static gumbel_status encode_chat(const void *user, size_t capacity, server_prompt *prompt,
                                 gumbel_error *error) {
    const chat *c = user;
    return gumbel_chat_encode_branches(c->tokenizer, NULL, 0, &c->options, prompt->tokens, capacity,
                                       &prompt->count, prompt->branches, error);
}

bool server_encode_messages(const server_request *request, const server_model *model, server_prompt *prompt,
                            server_failure *failure) {
    chat c;
    const bool is_good = prepare_chat(request, model, &c, failure) &&
                         encode(encode_chat, &c, strlen(c.messages), "messages", prompt, failure);
    free_chat(&c);
    return is_good;
}

bool server_render_messages(const server_request *request, const server_model *model, gb_byte_buffer *text,
                            server_failure *failure) {
    chat c;
    gumbel_error error;
    bool is_good = prepare_chat(request, model, &c, failure);
    if (is_good &&
        gumbel_chat_render(c.tokenizer, NULL, 0, &c.options, gb_buffer_write, text, &error) != GUMBEL_OK)
        is_good = error.status == GUMBEL_ERROR_LIMIT ? server_refuse(failure, "messages", "%s", error.message)
                                                     : server_fail_with(failure, "messages", &error);
    free_chat(&c);
    return is_good;
}

static void turn_thinking_off(const server_request *request, server_request *off) {
    *off = *request;
    off->thinking = GUMBEL_THINKING_OFF;
    off->template_kwargs = request->template_kwargs ? json_copy(request->template_kwargs) : json_object();
    json_object_set_new(off->template_kwargs, "enable_thinking", json_false());
    json_object_set_new(off->template_kwargs, "thinking", json_false());
}

bool server_is_thinking(const server_request *request, const server_model *model, bool *is_thinking,
                        server_failure *failure) {
    *is_thinking = false;
    if (request->route == SERVER_COMPLETIONS || request->continue_final_message)
        return true;
    gb_byte_buffer with = {0}, without = {0};
    server_request off;
    turn_thinking_off(request, &off);
    const bool is_good = server_render_messages(request, model, &with, failure) &&
                         server_render_messages(&off, model, &without, failure);
    *is_thinking = is_good && strcmp(gb_buffer_string(&with), gb_buffer_string(&without)) != 0;
    json_decref(off.template_kwargs);
    gb_buffer_free(&with);
    gb_buffer_free(&without);
    return is_good;
}

/* ---- Prompts of completions ---------------------------------------------------------------------------- */

static bool encode_prompt(const server_request *request, const server_model *model, const json_t *value,
                          server_prompt *prompt, server_failure *failure) {
    if (json_is_string(value))
        return server_encode_text(model, json_string_value(value), json_string_length(value),
                                  !request->no_special, true, prompt, failure);
    return server_read_tokens("prompt", value, model->info.vocab_size, &prompt->tokens, &prompt->count,
                              failure);
}

/* A list of integers is one prompt; of anything else a list of prompts. */
static bool encode_prompts(const server_request *request, const server_model *model, server_prompts *prompts,
                           server_failure *failure) {
    const json_t *given = request->prompt;
    if (!given)
        return server_refuse(failure, "prompt", "prompt: missing");
    const bool is_one = json_is_string(given) || json_is_number(json_array_get(given, 0));
    const size_t count = is_one ? 1 : json_array_size(given);
    if (count > SERVER_MOST_PROMPTS)
        return server_refuse(failure, "prompt", "prompt: %zu prompts, at most %d", count,
                             SERVER_MOST_PROMPTS);
    prompts->list = calloc(count, sizeof *prompts->list);
    if (!prompts->list)
        return server_fail(failure, 503, "no memory for %zu prompts", count);
    prompts->count = count;
    for (size_t i = 0; i < count; i++)
        if (!encode_prompt(request, model, is_one ? given : json_array_get(given, i), &prompts->list[i],
                           failure))
            return false;
    return true;
}

/* ---- Any ----------------------------------------------------------------------------------------------- */

/* In OpenAI's words, or Anthropic's: clients know a prompt that is too long by them. */
static bool refuse_length(const server_request *request, uint32_t most, size_t count, const char *param,
                          server_failure *failure) {
    const bool is_text = request->route == SERVER_COMPLETIONS;
    const char *where = is_text ? "prompt" : "messages";
    const uint32_t wanted = request->max_new_tokens;
    if (request->route == SERVER_MESSAGES)
        server_refuse(failure, param, "prompt is too long: %zu tokens > %u maximum", count, most);
    else if (wanted > 0)
        server_refuse(
            failure, param,
            "This model's maximum context length is %u tokens. However, you requested %zu tokens (%zu "
            "in the %s, %u in the completion). Please reduce the length of the %s or completion.",
            most, count + wanted, count, where, wanted, where);
    else
        server_refuse(failure, param,
                      "This model's maximum context length is %u tokens. However, your %s resulted in %zu "
                      "tokens. Please reduce the length of the %s.",
                      most, where, count, where);
    failure->code = "context_length_exceeded";
    return false;
}

/* max_tokens, of --max-prompt, is as if the context were so short; 0: there is no such limit. */
static bool check_length(const server_request *request, const server_model *model, uint32_t max_tokens,
                         const server_prompt *prompt, const char *param, server_failure *failure) {
    const bool is_limited = max_tokens > 0 && max_tokens < model->max_context;
    const uint32_t most = is_limited ? max_tokens : model->max_context;
    if (prompt->count == 0)
        return server_refuse(failure, param, "%s: the prompt has no tokens", param);
    return prompt->count <= most || refuse_length(request, most, prompt->count, param, failure);
}

bool server_make_prompts(const server_request *request, const server_model *model, uint32_t max_tokens,
                         server_prompts *prompts, server_failure *failure) {
    const char *param = request->route == SERVER_COMPLETIONS ? "prompt" : "messages";
    if (request->route == SERVER_COMPLETIONS) {
        if (!encode_prompts(request, model, prompts, failure))
            return false;
    } else {
        prompts->list = calloc(1, sizeof *prompts->list);
        if (!prompts->list)
            return server_fail(failure, 503, "no memory for the prompt");
        prompts->count = 1;
        if (!server_encode_messages(request, model, prompts->list, failure))
            return false;
    }
    for (size_t i = 0; i < prompts->count; i++)
        if (!check_length(request, model, max_tokens, &prompts->list[i], param, failure))
            return false;
    return true;
}

void server_prompts_free(server_prompts *prompts) {
    for (size_t i = 0; i < prompts->count; i++)
        free(prompts->list[i].tokens);
    free(prompts->list);
    *prompts = (server_prompts){0};
}
