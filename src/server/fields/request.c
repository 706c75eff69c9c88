/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fields/request.h"

#include "server/fields/fields.h"
#include "server/fields/neutral.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The sampler's settings ---------------------------------------------------------------------------- */

/* The number of the setting of that name; -1: there is none. */
static int find_setting(const char *name) {
    const gumbel_setting *setting;
    for (int i = 0; (setting = gumbel_setting_at((size_t)i)); i++)
        if (strcmp(setting->name, name) == 0 || (setting->aliases && server_has_word(setting->aliases, name)))
            return i;
    return -1;
}

static bool take_setting(int index, const char *name, const json_t *value, server_request *request,
                         server_failure *failure) {
    const gumbel_setting *setting = gumbel_setting_at((size_t)index);
    double number;
    gumbel_error error;
    if (!server_read_number(name, value, &number, failure))
        return false;
    if (setting->type == GUMBEL_SETTING_INT32 && !server_is_whole(value))
        return server_refuse(failure, name, "%s: expected an integer", name);
    if (gumbel_setting_set(setting, number, &request->sampling, &error) != GUMBEL_OK)
        return server_fail_with(failure, name, &error);
    request->origins[index] = "request";
    return true;
}

json_t *server_settings_json(const server_request *request) {
    json_t *settings = json_object();
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++) {
        const double value = gumbel_setting_get(setting, &request->sampling);
        json_t *number = setting->type == GUMBEL_SETTING_INT32 ? json_integer((json_int_t)value)
                                                               : server_json_float((float)value);
        json_object_set_new(settings, setting->name,
                            json_pack("{s:o, s:s}", "value", number, "origin",
                                      request->origins[i] ? request->origins[i] : "default"));
    }
    return settings;
}

/* ---- The body ------------------------------------------------------------------------------------------ */

json_t *server_parse_body(const gb_byte_buffer *body, server_failure *failure) {
    json_error_t error;
    if (body->size == 0) {
        server_refuse(failure, NULL, "the body is empty, expected a JSON object");
        return NULL;
    }
    json_t *value = json_loadb(body->text, body->size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (json_is_object(value))
        return value;
    if (value)
        server_refuse(failure, NULL, "the body is JSON but no object");
    else
        server_refuse(failure, NULL, "the body is no JSON: line %d, column %d: %.160s", error.line,
                      error.column, error.text);
    json_decref(value);
    return NULL;
}

/* Names of fields come from the client: what is repeated of them is short and printable. */
static const char *shown(const char *name, char text[48]) {
    size_t length = 0;
    for (; name[length] && length < 40; length++)
        text[length] = name[length] >= ' ' && name[length] <= '~' ? name[length] : '?';
    text[length] = '\0';
    return text;
}

static bool refuse_unknown(const char *name, server_failure *failure) {
    char text[48];
    return server_refuse(failure, shown(name, text), "%s: this route has no such field", text);
}

/* Several names of one field must not say different things. */
static bool check_once(const server_field *field, const char *name, server_request *request,
                       server_failure *failure) {
    const size_t number = (size_t)(field - server_fields);
    const char *before = request->given[number];
    request->given[number] = name;
    if (!before || field->take == server_take_any ||
        json_equal(json_object_get(request->body, before), json_object_get(request->body, name)))
        return true;
    return server_refuse(failure, name, "%s and %s are the same field; give one of them", before, name);
}

/* A name may stand in several rows of the table, for different routes. */
static const server_field *find_field(const char *name, unsigned routes) {
    for (const server_field *field = server_fields; field->names; field++)
        if ((field->routes & routes) && server_has_word(field->names, name))
            return field;
    return NULL;
}

/* A field that this route has not, as a client may send it to all routes and servers. */
static bool take_other(const char *name, const json_t *value, const server_request *request,
                       server_failure *failure) {
    const bool is_answered = request->route != SERVER_RENDER && !strchr(name, ' ');
    const server_neutral *neutral = is_answered ? server_find_neutral(name) : NULL;
    if (neutral)
        return server_take_neutral(neutral, name, value, failure);
    return (is_answered && json_is_null(value) && find_field(name, UINT_MAX)) ||
           refuse_unknown(name, failure);
}

static bool take_field(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const server_field *field = strchr(name, ' ') ? NULL : find_field(name, (unsigned)request->route);
    const int setting = field || request->route == SERVER_RENDER ? -1 : find_setting(name);
    if (!field && setting < 0)
        return take_other(name, value, request, failure);
    if (json_is_null(value))
        return true;
    if (!field)
        return take_setting(setting, name, value, request, failure);
    return check_once(field, name, request, failure) &&
           server_take_field(field, name, value, request, failure);
}

static void set_defaults(const server_model *model, server_request *request) {
    request->sampling = model->sampling;
    memcpy(request->origins, model->origins, sizeof request->origins);
    request->thinking = model->chat.thinking;
    request->has_reasoning_budget = model->has_reasoning_budget;
    request->reasoning_budget = model->reasoning_budget;
    request->answers = 1;
    request->is_stored = true;
}

static const char *model_name(const json_t *body) {
    return json_string_value(json_object_get(body, "model"));
}

static bool has_penalty(const gumbel_sampling *sampling) {
    const float repetition = sampling->repetition_penalty;
    return (repetition != 0 && repetition != 1) || sampling->frequency_penalty != 0 ||
           sampling->presence_penalty != 0;
}

/* What fields ask for together. */
static bool check_request(const server_request *request, server_failure *failure) {
    if (request->top_logprobs > 0 && !request->wants_logprobs)
        return server_refuse(failure, "top_logprobs", "top_logprobs: needs logprobs: true");
    if (request->wants_prompt_logprobs && request->is_stream)
        return server_refuse(failure, "prompt_logprobs", "prompt_logprobs: not in a stream");
    if (!request->tools && request->tool_choice == GUMBEL_TOOLS_REQUIRED)
        return server_refuse(failure, "tool_choice", "tool_choice: there are no tools");
    if (request->has_penalty_window && has_penalty(&request->sampling))
        return server_refuse(failure, "repeat_last_n",
                             "repeat_last_n: only -1 is taken with penalties: they count all tokens");
    return true;
}

bool server_read_request(server_route route, json_t *body, server_find_model find_model, void *user,
                         server_request *request, const server_model **model, server_failure *failure) {
    *request = (server_request){.route = route, .body = body};
    *model = find_model(user, model_name(body), request, failure);
    if (!*model)
        return false;
    set_defaults(*model, request);
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value) {
        if (!take_field(name, value, request, failure))
            return false;
    }
    return check_request(request, failure);
}

void server_request_free(server_request *request) {
    if (request->acquired)
        request->release(request->release_user, request->acquired);
    json_decref(request->messages);
    json_decref(request->tools);
    json_decref(request->template_kwargs);
    free(request->bias);
    free(request->grammar_text);
    gb_buffer_free(&request->predicted);
    free(request->stop_tokens);
    json_decref(request->body);
    *request = (server_request){0};
}
