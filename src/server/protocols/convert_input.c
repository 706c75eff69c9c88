/* SPDX-License-Identifier: Apache-2.0
 *
 * The Responses API: an input is a text or a list of items, which may go on from an earlier response.
 */
#include "server/fields/tools.h"
#include "server/protocols/convert.h"

#include <stdio.h>
#include <string.h>

enum { PLACE = 64 };
#define TEXT_TYPES "input_text output_text text reasoning_text summary_text"

/* The text of content, a string or parts; NULL, with failure: it is neither. */
static json_t *content_of(const char *place, const json_t *content, bool is_result, server_failure *failure) {
    json_t *parts = json_array();
    const json_t *part;
    size_t i;
    if (json_is_string(content)) {
        json_decref(parts);
        return json_string(json_string_value(content));
    }
    json_array_foreach(content, i, part) {
        const char *text =
            (is_result ? server_result_text : server_part_text)(place, part, TEXT_TYPES, failure);
        if (!text) {
            json_decref(parts);
            return NULL;
        }
        json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", text));
    }
    if (json_is_array(content))
        return parts;
    json_decref(parts);
    server_refuse(failure, "input", "%s.content: expected a string or parts", place);
    return NULL;
}

static bool add_text(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    const char *role = json_string_value(json_object_get(item, "role"));
    if (!role)
        return server_refuse(failure, "input", "%s.role: expected a string", place);
    json_t *content = content_of(place, json_object_get(item, "content"), false, failure);
    if (!content)
        return false;
    const size_t count = json_array_size(messages);
    json_t *last = count > 0 ? json_array_get(messages, count - 1) : NULL;
    const bool completes_thought = strcmp(role, "assistant") == 0 &&
                                   json_object_get(last, "reasoning_content") &&
                                   !json_object_get(last, "content");
    if (completes_thought)
        json_object_set_new(last, "content", content);
    else
        server_add_message(messages, role, content);
    return true;
}

static bool add_call(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    const char *id = json_string_value(json_object_get(item, "call_id"));
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *space = json_string_value(json_object_get(item, "namespace"));
    json_t *arguments = json_object_get(item, "arguments");
    if (!id || !name || !json_is_string(arguments))
        return server_refuse(failure, "input", "%s: expected strings call_id, name and arguments", place);
    json_t *joined = space ? server_join_name(space, name) : NULL;
    server_add_call(server_assistant_message(messages), id, joined ? json_string_value(joined) : name,
                    arguments);
    json_decref(joined);
    return true;
}

/* A call of a tool that takes a text, or of the client's shell, by the function that could be called so. */
static bool add_other_call(json_t *messages, const char *place, const json_t *item, const char *name,
                           json_t *arguments, server_failure *failure) {
    const char *id = json_string_value(json_object_get(item, "call_id"));
    const bool is_good = id && name && arguments;
    if (is_good)
        server_add_call(server_assistant_message(messages), id, name, arguments);
    json_decref(arguments);
    return is_good ||
           server_refuse(failure, "input", "%s: expected call_id, and name and input or an action", place);
}

static bool add_custom_call(json_t *messages, const char *place, const json_t *item,
                            server_failure *failure) {
    json_t *input = json_object_get(item, "input");
    return add_other_call(messages, place, item, json_string_value(json_object_get(item, "name")),
                          json_is_string(input) ? json_pack("{s:O}", "input", input) : NULL, failure);
}

static bool add_shell_call(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    json_t *action = json_object_get(item, "action");
    return add_other_call(messages, place, item, "local_shell",
                          json_is_object(action) ? json_incref(action) : NULL, failure);
}

static bool add_output(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    const char *id = json_string_value(json_object_get(item, "call_id"));
    json_t *output = content_of(place, json_object_get(item, "output"), true, failure);
    if (!output)
        return false;
    json_t *message = server_add_message(messages, "tool", output);
    json_object_set_new(message, "tool_call_id", json_string(id ? id : ""));
    return id || server_refuse(failure, "input", "%s.call_id: expected a string", place);
}

static bool add_thought(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    gb_byte_buffer text = {0};
    const json_t *part;
    size_t i;
    json_array_foreach(json_object_get(item, "content"), i, part) {
        const char *more = server_part_text(place, part, TEXT_TYPES, failure);
        if (!more) {
            gb_buffer_free(&text);
            return false;
        }
        gb_buffer_append_string(&text, more);
    }
    if (text.size > 0)
        json_object_set_new(server_add_message(messages, "assistant", NULL), "reasoning_content",
                            server_json_text(text.text, text.size));
    gb_buffer_free(&text);
    return true;
}

/* What a provider's own tools did is nothing that the model here could go on from. */
static bool leave_out(json_t *messages, const char *place, const json_t *item, server_failure *failure) {
    (void)messages, (void)place, (void)item, (void)failure;
    return true;
}

static const struct {
    const char *types; /* separated by blanks */
    bool (*add)(json_t *messages, const char *place, const json_t *item, server_failure *failure);
} items[] = {
    {"message", add_text},
    {"function_call", add_call},
    {"custom_tool_call", add_custom_call},
    {"local_shell_call", add_shell_call},
    {"function_call_output custom_tool_call_output local_shell_call_output", add_output},
    {"reasoning", add_thought},
    {"web_search_call file_search_call image_generation_call code_interpreter_call mcp_list_tools "
     "tool_search_call tool_search_output compaction",
     leave_out},
};

static bool add_item(json_t *messages, size_t index, const json_t *item, server_failure *failure) {
    char place[PLACE];
    snprintf(place, sizeof place, "input[%zu]", index);
    const char *given = json_string_value(json_object_get(item, "type")), *type = given ? given : "message";
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (!strchr(type, ' ') && server_has_word(items[i].types, type))
            return items[i].add(messages, place, item, failure);
    return server_refuse(failure, "input",
                         "%s.type: \"%.40s\": expected message, function_call, custom_tool_call, "
                         "local_shell_call, the output of one, or reasoning",
                         place, type);
}

static bool add_input(json_t *messages, const json_t *input, server_failure *failure) {
    if (json_is_string(input)) {
        server_add_message(messages, "user", json_string(json_string_value(input)));
        return true;
    }
    size_t i;
    const json_t *item;
    json_array_foreach(input, i, item) {
        if (!add_item(messages, i, item, failure))
            return false;
    }
    return true;
}

static bool has_tool(const server_request *request, const char *wanted) {
    const json_t *tool;
    size_t i;
    json_array_foreach(request->tools, i, tool) {
        const char *name = json_string_value(json_object_get(tool, "name"));
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

/* tool_choice may name a function of a namespace as clients know it. */
static void find_choice(server_request *request, const json_t *name) {
    const char *space, *plain, *joined = json_string_value(name);
    if (request->tool_name && !has_tool(request, request->tool_name) &&
        server_split_name(request, joined, &space, &plain) && strcmp(plain, request->tool_name) == 0)
        request->tool_name = joined;
}

static bool convert_tools(server_request *request, server_failure *failure) {
    json_t *tools = json_array(), *tool;
    size_t i;
    json_array_foreach(request->tools, i, tool) {
        const char *type = json_string_value(json_object_get(tool, "type"));
        json_t *name = json_object_get(tool, "name");
        if (!type || strcmp(type, "function") != 0 || !json_is_string(name)) {
            json_decref(tools);
            return server_refuse(failure, "tools", "tools[%zu]: expected a function with a name", i);
        }
        find_choice(request, name);
        json_array_append_new(tools, server_make_tool(tool, name, json_object_get(tool, "parameters")));
    }
    json_decref(request->tools);
    request->tools = tools;
    return true;
}

/* The conversation without instructions, which hold for one response alone. */
static bool add_conversation(server_request *request, server_responses *responses, json_t *messages,
                             server_failure *failure) {
    json_t *earlier = NULL;
    if (request->previous_response) {
        if (!server_responses_find(responses, request->previous_response, &earlier, NULL)) {
            server_fail(failure, 404,
                        "previous_response_id: there is no response \"%.60s\"; those that were "
                        "stored are kept in memory while there is room",
                        request->previous_response);
            return false;
        }
        json_array_extend(messages, earlier);
        json_decref(earlier);
    }
    return add_input(messages, request->messages, failure);
}

bool server_convert_input(server_request *request, server_responses *responses, server_failure *failure) {
    if (!request->messages)
        return server_refuse(failure, "input", "input: missing");
    json_t *messages = json_array();
    if (request->instructions)
        server_add_message(messages, "system", json_string(request->instructions));
    const bool is_good = add_conversation(request, responses, messages, failure);
    json_decref(request->messages);
    request->messages = messages;
    return is_good && (!request->tools || convert_tools(request, failure));
}
