/* SPDX-License-Identifier: Apache-2.0
 *
 * /tokenize, /detokenize and /apply-template, with the fields of both llama.cpp and vLLM.
 */
#include "server/fields/tools.h"
#include "server/generate/prompt.h"
#include "server/routes/routes.h"

#include <stdlib.h>
#include <string.h>

/* Fields of the text routes; those of messages are the common ones. */
typedef struct text_fields {
    server_request request; /* which holds the model */
    const server_model *model;
    const char *text; /* content or prompt */
    size_t length;
    int32_t *tokens; /* owned */
    size_t count;
    bool add_special, parse_special, with_pieces, skip_special;
} text_fields;

static bool read_flag(const char *name, const json_t *value, bool *flag, server_failure *failure) {
    return json_is_null(value) || server_read_bool(name, value, flag, failure);
}

static bool read_text(const char *name, const json_t *value, text_fields *fields, server_failure *failure) {
    if (!json_is_string(value))
        return server_refuse(failure, name, "%s: expected a string", name);
    fields->text = json_string_value(value);
    fields->length = json_string_length(value);
    return true;
}

static bool read_field(const char *name, const json_t *value, text_fields *fields, server_failure *failure) {
    if (strcmp(name, "model") == 0)
        return true;
    if (strcmp(name, "content") == 0 || strcmp(name, "prompt") == 0)
        return read_text(name, value, fields, failure);
    if (strcmp(name, "tokens") == 0)
        return server_read_tokens(name, value, fields->model->info.vocab_size, &fields->tokens,
                                  &fields->count, failure);
    if (strcmp(name, "add_special") == 0 || strcmp(name, "add_special_tokens") == 0)
        return read_flag(name, value, &fields->add_special, failure);
    if (strcmp(name, "parse_special") == 0)
        return read_flag(name, value, &fields->parse_special, failure);
    if (strcmp(name, "with_pieces") == 0)
        return read_flag(name, value, &fields->with_pieces, failure);
    if (strcmp(name, "skip_special_tokens") == 0)
        return read_flag(name, value, &fields->skip_special, failure);
    return server_refuse(failure, name, "%.40s: this route has no such field", name);
}

static bool read_fields(server *s, const json_t *body, text_fields *fields, server_failure *failure) {
    const char *name;
    json_t *value;
    *fields = (text_fields){.add_special = json_object_get(body, "prompt") != NULL, .parse_special = true};
    fields->model =
        server_find_model_of(s, json_string_value(json_object_get(body, "model")), &fields->request, failure);
    if (!fields->model)
        return false;
    json_object_foreach((json_t *)(uintptr_t)body, name, value) {
        if (!read_field(name, value, fields, failure))
            return false;
    }
    return true;
}

static void free_fields(text_fields *fields) {
    free(fields->tokens);
    server_request_free(&fields->request);
}

/* ---- Replies ------------------------------------------------------------------------------------------- */

static json_t *piece_json(const server_model *model, int32_t token) {
    gb_byte_buffer text = {0};
    server_failure failure;
    server_decode_tokens(model, &token, 1, true, &text, &failure);
    json_t *piece = server_json_text(text.text, text.size);
    gb_buffer_free(&text);
    return json_pack("{s:i, s:o}", "id", (int)token, "piece", piece);
}

static void reply_tokens(server_exchange *exchange, const server_model *model, const server_prompt *prompt,
                         bool with_pieces) {
    json_t *tokens = json_array();
    for (size_t i = 0; i < prompt->count; i++)
        json_array_append_new(tokens, with_pieces ? piece_json(model, prompt->tokens[i])
                                                  : json_integer(prompt->tokens[i]));
    server_reply_json(exchange, 200,
                      json_pack("{s:o, s:I, s:I}", "tokens", tokens, "count", (json_int_t)prompt->count,
                                "max_model_len", (json_int_t)model->max_context));
}

/* Reads a body with messages. */
static bool read_messages(server *s, json_t *body, server_request *request, const server_model **model,
                          server_failure *failure) {
    const bool is_good =
        server_read_request(SERVER_RENDER, body, server_find_model_of, s, request, model, failure);
    if (is_good)
        server_settle_tools(request, *model);
    return is_good;
}

static bool tokenize_messages(server *s, server_exchange *exchange, json_t *body, server_failure *failure) {
    server_request request;
    server_prompt prompt = {0};
    const server_model *model;
    const bool is_good = read_messages(s, body, &request, &model, failure) &&
                         server_encode_messages(&request, model, &prompt, failure);
    if (is_good)
        reply_tokens(exchange, model, &prompt, false);
    free(prompt.tokens);
    server_request_free(&request);
    return is_good;
}

static bool tokenize_text(server *s, server_exchange *exchange, json_t *body, server_failure *failure) {
    text_fields fields;
    server_prompt prompt = {0};
    bool is_good = read_fields(s, body, &fields, failure);
    if (is_good && (!fields.text || fields.tokens))
        is_good = server_refuse(failure, "content", "expected content (or prompt), a string, or messages");
    is_good = is_good && server_encode_text(fields.model, fields.text, fields.length, fields.add_special,
                                            fields.parse_special, &prompt, failure);
    if (is_good)
        reply_tokens(exchange, fields.model, &prompt, fields.with_pieces);
    free(prompt.tokens);
    free_fields(&fields);
    json_decref(body);
    return is_good;
}

void server_tokenize_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_failure failure;
    json_t *body = server_parse_body(&exchange->body, &failure);
    if (!body ||
        !(json_object_get(body, "messages") ? tokenize_messages : tokenize_text)(s, exchange, body, &failure))
        server_reply_failure(exchange, &failure);
}

static bool detokenize(server *s, server_exchange *exchange, const json_t *body, server_failure *failure) {
    text_fields fields;
    gb_byte_buffer text = {0};
    bool is_good = read_fields(s, body, &fields, failure);
    if (is_good && (!fields.tokens || fields.text))
        is_good = server_refuse(failure, "tokens", "tokens: missing");
    is_good = is_good && server_decode_tokens(fields.model, fields.tokens, fields.count, !fields.skip_special,
                                              &text, failure);
    if (is_good) {
        json_t *decoded = server_json_text(text.text, text.size);
        server_reply_json(exchange, 200, json_pack("{s:O, s:o}", "content", decoded, "prompt", decoded));
    }
    gb_buffer_free(&text);
    free_fields(&fields);
    return is_good;
}

void server_detokenize_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_failure failure;
    json_t *body = server_parse_body(&exchange->body, &failure);
    if (!body || !detokenize(s, exchange, body, &failure))
        server_reply_failure(exchange, &failure);
    json_decref(body);
}

void server_template_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_failure failure;
    server_request request = {0};
    gb_byte_buffer text = {0};
    const server_model *model;
    json_t *body = server_parse_body(&exchange->body, &failure);
    if (body && read_messages(s, body, &request, &model, &failure) &&
        server_render_messages(&request, model, &text, &failure))
        server_reply_json(exchange, 200,
                          json_pack("{s:o}", "prompt", server_json_text(text.text, text.size)));
    else
        server_reply_failure(exchange, &failure);
    gb_buffer_free(&text);
    server_request_free(&request);
}
