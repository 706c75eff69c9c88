/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of the prompt.
 */
#include "server/fields/fields.h"

#include <string.h>

bool server_take_prompt(const char *name, json_t *value, server_request *request, server_failure *failure) {
    request->prompt = value;
    if (json_is_string(value) || (json_is_array(value) && json_array_size(value) > 0))
        return true;
    return server_refuse(failure, name, "%s: expected a string, a list of tokens, or a list of these", name);
}

/* Responses may be given a string; its protocol reads what is in a list. */
bool server_take_messages(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const bool is_text = request->route == SERVER_RESPONSES && json_is_string(value);
    if (!is_text && !server_read_array(name, value, failure))
        return false;
    if (json_is_array(value) && json_array_size(value) == 0)
        return server_refuse(failure, name, "%s: there are none", name);
    request->messages = json_incref(value);
    return true;
}

bool server_take_instructions(const char *name, json_t *value, server_request *request,
                              server_failure *failure) {
    if (request->route == SERVER_MESSAGES && json_is_array(value))
        return true; /* blocks, which its protocol reads */
    return server_read_string(name, value, &request->instructions, failure);
}

/* Variables of several fields go to one object. */
static json_t *kwargs_of(server_request *request) {
    if (!request->template_kwargs)
        request->template_kwargs = json_object();
    return request->template_kwargs;
}

bool server_take_kwargs(const char *name, json_t *value, server_request *request, server_failure *failure) {
    if (!server_read_object(name, value, failure))
        return false;
    json_object_update(kwargs_of(request), value);
    return true;
}

static void set_effort(const char *effort, server_request *request) {
    const bool is_none = strcmp(effort, "none") == 0;
    request->thinking = is_none ? GUMBEL_THINKING_OFF : GUMBEL_THINKING_ON;
    if (!is_none)
        json_object_set_new(kwargs_of(request), "reasoning_effort", json_string(effort));
}

#define EFFORTS "none minimal low medium high xhigh max"

bool server_take_effort(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const char *effort;
    if (!server_read_choice(name, value, EFFORTS, &effort, failure))
        return false;
    set_effort(effort, request);
    return true;
}

/* The effort of an object that has one. */
static bool take_member_effort(const char *name, const json_t *value, server_request *request,
                               server_failure *failure) {
    json_t *effort = json_object_get(value, "effort");
    return !effort || json_is_null(effort) || server_take_effort(name, effort, request, failure);
}

/* OpenAI's, of which the effort counts here. */
bool server_take_reasoning(const char *name, json_t *value, server_request *request,
                           server_failure *failure) {
    return server_check_members(name, value, "effort summary generate_summary", failure) &&
           take_member_effort(name, value, request, failure);
}

/* Anthropic's. */
bool server_take_output_config(const char *name, json_t *value, server_request *request,
                               server_failure *failure) {
    json_t *format = json_object_get(value, "format");
    return server_check_members(name, value, "effort format", failure) &&
           take_member_effort(name, value, request, failure) &&
           (!format || json_is_null(format) ||
            server_take_format("output_config.format", format, request, failure));
}

/* -1, as llama.cpp has it, is no limit. */
bool server_take_reasoning_budget(const char *name, json_t *value, server_request *request,
                                  server_failure *failure) {
    int64_t budget;
    if (!server_read_integer(name, value, -1, INT32_MAX, &budget, failure))
        return false;
    request->has_reasoning_budget = budget >= 0;
    request->reasoning_budget = budget > 0 ? (uint32_t)budget : 0;
    return true;
}

/* Anthropic's. */
bool server_take_thinking(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const char *type;
    if (!server_read_object(name, value, failure) ||
        !server_read_choice("thinking.type", json_object_get(value, "type"), "enabled disabled adaptive",
                            &type, failure))
        return false;
    if (strcmp(type, "adaptive") != 0)
        request->thinking = strcmp(type, "enabled") == 0 ? GUMBEL_THINKING_ON : GUMBEL_THINKING_OFF;
    json_t *budget = json_object_get(value, "budget_tokens");
    return !budget || json_is_null(budget) ||
           server_take_reasoning_budget("thinking.budget_tokens", budget, request, failure);
}
