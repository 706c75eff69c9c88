/* SPDX-License-Identifier: Apache-2.0
 *
 * Anthropic's messages: contents are blocks, results of tools are blocks of a user's message.
 */
#include "server/protocols/convert.h"

#include <stdio.h>
#include <string.h>

enum { PLACE = 80 };

/* A message that is being converted. */
typedef struct turn {
    json_t *messages; /* where to */
    const char *role;
    size_t index;
    json_t *parts; /* texts so far; owned */
    server_failure *failure;
} turn;

/* Blocks of an answer that only the provider who gave them can read, or whose tools it ran. */
#define PROVIDERS                                                                                            \
    "redacted_thinking server_tool_use web_search_tool_result web_fetch_tool_result "                        \
    "code_execution_tool_result tool_search_tool_result mcp_tool_use mcp_tool_result container_upload"

static void add_part(json_t *parts, const char *text) {
    json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", text));
}

/* Texts between other blocks are one message. */
static void end_parts(turn *t) {
    if (json_array_size(t->parts) == 0)
        return;
    json_t *message = strcmp(t->role, "assistant") == 0 ? server_assistant_message(t->messages)
                                                        : server_add_message(t->messages, t->role, NULL);
    json_t *content = json_object_get(message, "content");
    if (content)
        json_array_extend(content, t->parts);
    else
        json_object_set(message, "content", t->parts);
    json_decref(t->parts);
    t->parts = json_array();
}

/* A block of a result as text: a tool that a search found is given by its name. */
static const char *result_text(const turn *t, const json_t *part, const char *place) {
    const char *type = json_string_value(json_object_get(part, "type"));
    const char *name = json_string_value(json_object_get(part, "tool_name"));
    return type && name && strcmp(type, "tool_reference") == 0
               ? name
               : server_result_text(place, part, "text", t->failure);
}

/* The content of a tool's result: a string, or text blocks. */
static bool add_result(turn *t, const json_t *block, const char *place) {
    const char *id = json_string_value(json_object_get(block, "tool_use_id"));
    json_t *content = json_object_get(block, "content"), *part;
    json_t *parts = json_array();
    size_t i;
    if (!id) {
        json_decref(parts);
        return server_refuse(t->failure, "messages", "%s.tool_use_id: expected a string", place);
    }
    if (json_is_string(content))
        add_part(parts, json_string_value(content));
    json_array_foreach(content, i, part) {
        const char *text = result_text(t, part, place);
        if (!text) {
            json_decref(parts);
            return false;
        }
        add_part(parts, text);
    }
    end_parts(t);
    json_object_set_new(server_add_message(t->messages, "tool", parts), "tool_call_id", json_string(id));
    return true;
}

static bool add_use(turn *t, const json_t *block, const char *place) {
    const char *id = json_string_value(json_object_get(block, "id"));
    const char *name = json_string_value(json_object_get(block, "name"));
    json_t *input = json_object_get(block, "input");
    if (!id || !name || !json_is_object(input))
        return server_refuse(t->failure, "messages", "%s: expected id, name and an object input", place);
    end_parts(t);
    server_add_call(server_assistant_message(t->messages), id, name, input);
    return true;
}

static bool add_thought(turn *t, const json_t *block, const char *place) {
    json_t *thought = json_object_get(block, "thinking");
    if (!json_is_string(thought))
        return server_refuse(t->failure, "messages", "%s.thinking: expected a string", place);
    json_object_set(server_assistant_message(t->messages), "reasoning_content", thought);
    return true;
}

static bool add_block(turn *t, const json_t *block, size_t number) {
    char place[PLACE];
    snprintf(place, sizeof place, "messages[%zu].content[%zu]", t->index, number);
    const char *type = json_string_value(json_object_get(block, "type"));
    const bool is_assistant = strcmp(t->role, "assistant") == 0;
    if (type && !is_assistant && strcmp(type, "tool_result") == 0)
        return add_result(t, block, place);
    if (type && is_assistant && strcmp(type, "tool_use") == 0)
        return add_use(t, block, place);
    if (type && is_assistant && strcmp(type, "thinking") == 0)
        return add_thought(t, block, place);
    if (type && is_assistant && !strchr(type, ' ') && server_has_word(PROVIDERS, type))
        return true;
    const char *text = server_part_text(
        place, block, is_assistant ? "text tool_use thinking" : "text tool_result", t->failure);
    if (!text)
        return false;
    add_part(t->parts, text);
    return true;
}

static bool add_turn(turn *t, const json_t *message) {
    json_t *content = json_object_get(message, "content"), *block;
    size_t i;
    t->role = json_string_value(json_object_get(message, "role"));
    if (!t->role ||
        (strcmp(t->role, "user") != 0 && strcmp(t->role, "assistant") != 0 && strcmp(t->role, "system") != 0))
        return server_refuse(t->failure, "messages", "messages[%zu].role: expected user or assistant",
                             t->index);
    if (json_is_string(content)) {
        server_add_message(t->messages, t->role, json_incref(content));
        return true;
    }
    if (!json_is_array(content))
        return server_refuse(t->failure, "messages", "messages[%zu].content: expected a string or blocks",
                             t->index);
    t->parts = json_array();
    bool is_good = true;
    json_array_foreach(content, i, block) {
        is_good = is_good && add_block(t, block, i);
    }
    end_parts(t);
    json_decref(t->parts);
    return is_good;
}

/* A line for accounting, which differs in each request, so that no two prompts would begin alike. */
static bool is_accounting(const char *text) {
    static const char begin[] = "x-anthropic-billing-header:";
    return strncmp(text, begin, sizeof begin - 1) == 0;
}

static bool add_system(json_t *messages, const json_t *system, server_failure *failure) {
    if (json_is_string(system) && json_string_length(system) > 0)
        server_add_message(messages, "system", json_string(json_string_value(system)));
    if (!json_is_array(system))
        return true;
    json_t *parts = json_array(), *block;
    size_t i;
    bool is_good = true;
    json_array_foreach(system, i, block) {
        const char *text = is_good ? server_part_text("system", block, "text", failure) : NULL;
        is_good = text != NULL;
        if (text && !is_accounting(text))
            add_part(parts, text);
    }
    if (json_array_size(parts) > 0)
        server_add_message(messages, "system", json_incref(parts));
    json_decref(parts);
    return is_good;
}

static bool convert_tools(server_request *request, server_failure *failure) {
    json_t *tools = json_array(), *tool;
    size_t i;
    json_array_foreach(request->tools, i, tool) {
        const char *type = json_string_value(json_object_get(tool, "type"));
        json_t *name = json_object_get(tool, "name");
        if (!json_is_string(name) || (type && strcmp(type, "custom") != 0)) {
            json_decref(tools);
            return server_refuse(failure, "tools", "tools[%zu]: expected a tool with name and input_schema%s",
                                 i, type ? "; the server has none of its own" : "");
        }
        json_array_append_new(tools, server_make_tool(tool, name, json_object_get(tool, "input_schema")));
    }
    json_decref(request->tools);
    request->tools = tools;
    return true;
}

/* A last message of the assistant's is the beginning of its answer. */
static bool ends_in_assistant(const json_t *messages) {
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    return role && strcmp(role, "assistant") == 0 && !json_object_get(last, "tool_calls");
}

bool server_convert_messages(server_request *request, server_responses *responses, server_failure *failure) {
    (void)responses;
    turn t = {.messages = json_array(), .failure = failure};
    const json_t *message;
    if (!request->messages) {
        json_decref(t.messages);
        return server_refuse(failure, "messages", "messages: missing");
    }
    bool is_good = add_system(t.messages, json_object_get(request->body, "system"), failure);
    json_array_foreach(request->messages, t.index, message) {
        is_good = is_good && add_turn(&t, message);
    }
    json_decref(request->messages);
    request->messages = t.messages;
    request->continue_final_message = ends_in_assistant(t.messages);
    return is_good && (!request->tools || convert_tools(request, failure));
}
