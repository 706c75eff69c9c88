/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of tools. Functions are the client's, and go to the prompt; what a provider runs itself is left out.
 */
#include "server/fields/fields.h"
#include "server/fields/tools.h"

#include <stdio.h>
#include <string.h>

static bool has_type(const json_t *tool, const char *type) {
    const char *given = json_string_value(json_object_get(tool, "type"));
    return given && strcmp(given, type) == 0;
}

/* What is no tool at all is none that could be left out: its converter refuses it. */
static bool is_hosted(server_route route, const json_t *tool) {
    const char *function = route == SERVER_MESSAGES ? "custom" : "function";
    return json_is_string(json_object_get(tool, "type")) && !has_type(tool, function);
}

/* Types come from the client and go to a header. */
static void note_left_out(const json_t *tool, server_request *request) {
    const char *type = json_string_value(json_object_get(tool, "type"));
    const size_t used = strlen(request->left_out), room = sizeof request->left_out - used;
    for (const char *at = type; *at; at++)
        if (*at <= ' ' || *at > '~')
            return;
    if (!server_has_word(request->left_out, type) && strlen(type) + 2 < room)
        snprintf(request->left_out + used, room, "%s%s", used > 0 ? " " : "", type);
}

/* ---- Namespaces ---------------------------------------------------------------------------------------- */

json_t *server_join_name(const char *space, const char *name) {
    const size_t length = strlen(space);
    const bool is_marked = length >= 2 && strcmp(space + length - 2, "__") == 0;
    return json_sprintf("%s%s%s", space, is_marked ? "" : "__", name);
}

static bool is_joined(const char *joined, const char *space, const char *name) {
    json_t *other = server_join_name(space, name);
    const bool is_same = other && strcmp(json_string_value(other), joined) == 0;
    json_decref(other);
    return is_same;
}

bool server_split_name(const server_request *request, const char *joined, const char **space,
                       const char **name) {
    const json_t *group, *tool;
    size_t i, k;
    json_array_foreach(json_object_get(request->body, "tools"), i, group) {
        *space = has_type(group, "namespace") ? json_string_value(json_object_get(group, "name")) : NULL;
        json_array_foreach(*space ? json_object_get(group, "tools") : NULL, k, tool) {
            *name = json_string_value(json_object_get(tool, "name"));
            if (*name && is_joined(joined, *space, *name))
                return true;
        }
    }
    return false;
}

static void add_tool(json_t *tool, const char *space, server_request *request) {
    const char *name = json_string_value(json_object_get(tool, "name"));
    json_t *copy = json_copy(tool);
    if (name)
        json_object_set_new(copy, "name", server_join_name(space, name));
    json_array_append_new(request->tools, copy);
}

/* The functions of a namespace, whose name goes before theirs: two of them may have one of the same name. */
static void add_namespace(const json_t *group, server_request *request) {
    const char *space = json_string_value(json_object_get(group, "name"));
    json_t *tool;
    size_t i;
    json_array_foreach(json_object_get(group, "tools"), i, tool) {
        if (space && !is_hosted(request->route, tool))
            add_tool(tool, space, request);
        else
            note_left_out(space ? tool : group, request);
    }
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

bool server_take_tools(const char *name, json_t *value, server_request *request, server_failure *failure) {
    json_t *tool;
    size_t i;
    if (!server_read_array(name, value, failure))
        return false;
    request->tools = json_array();
    json_array_foreach(value, i, tool) {
        if (request->route == SERVER_RESPONSES && has_type(tool, "namespace"))
            add_namespace(tool, request);
        else if (is_hosted(request->route, tool))
            note_left_out(tool, request);
        else
            json_array_append(request->tools, tool);
    }
    if (json_array_size(request->tools) > 0)
        return true;
    json_decref(request->tools);
    request->tools = NULL;
    return true;
}

/* ---- Templates without tools --------------------------------------------------------------------------- */

/* Without a template the request fails for that reason. */
static bool shows_tools(const server_request *request, const server_model *model) {
    gumbel_chat_options chat = model->chat;
    chat.size = sizeof chat;
    if (request->template_text) {
        chat.template_text = request->template_text;
        chat.template_name = NULL;
    }
    return gumbel_chat_shows_tools(model->tokenizer, &chat);
}

void server_settle_tools(server_request *request, const server_model *model) {
    const bool is_required = request->tool_choice == GUMBEL_TOOLS_REQUIRED;
    if (!request->tools || request->no_tools || is_required || shows_tools(request, model))
        return;
    json_decref(request->tools);
    request->tools = NULL;
    request->single_call = false;
    request->leaves_tools_out = true;
}

/* ---- Choice -------------------------------------------------------------------------------------------- */

/* The one tool that an answer calls: {"type": "function", "function": {"name": ...}} of OpenAI's chats, and
 * {"type": "function" or "tool", "name": ...} of responses and of Anthropic. */
static bool take_tool_name(const char *name, const json_t *value, server_request *request,
                           server_failure *failure) {
    const json_t *function = json_object_get(value, "function");
    request->tool_choice = GUMBEL_TOOLS_REQUIRED;
    request->tool_name = json_string_value(json_object_get(function ? function : value, "name"));
    return request->tool_name || server_refuse(failure, name, "%s: name: expected a string", name);
}

static bool take_single_call(const char *name, const json_t *value, server_request *request,
                             server_failure *failure) {
    const json_t *single = json_object_get(value, "disable_parallel_tool_use");
    return !single || server_read_bool(name, single, &request->single_call, failure);
}

bool server_take_tool_choice(const char *name, json_t *value, server_request *request,
                             server_failure *failure) {
    static const struct {
        const char *word;
        gumbel_tool_choice choice;
    } choices[] = {{"auto", GUMBEL_TOOLS_AUTO},
                   {"none", GUMBEL_TOOLS_NONE},
                   {"required", GUMBEL_TOOLS_REQUIRED},
                   {"any", GUMBEL_TOOLS_REQUIRED}};
    const char *choice = json_string_value(json_is_object(value) ? json_object_get(value, "type") : value);
    if (json_is_object(value) && !take_single_call(name, value, request, failure))
        return false;
    if (choice && (strcmp(choice, "function") == 0 || strcmp(choice, "tool") == 0))
        return take_tool_name(name, value, request, failure);
    for (size_t i = 0; choice && i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choice, choices[i].word) == 0) {
            request->tool_choice = choices[i].choice;
            request->no_tools = choices[i].choice == GUMBEL_TOOLS_NONE;
            return true;
        }
    return server_refuse(failure, name, "%s: expected auto, none, required (any), or one tool by its name",
                         name);
}
