/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "text/chat/chat_forms.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/chat/chat_messages.h"
#include "text/jinja/jinja.h"

#include <string.h>

static bool has_role(const json_t *message, const char *role) {
    return strcmp(gb_chat_role(message), role) == 0;
}

static size_t count_leading_systems(const json_t *messages) {
    size_t count = 0;
    while (count < json_array_size(messages) && gb_chat_is_system(json_array_get(messages, count)))
        count++;
    return count;
}

static bool lacks_content(const json_t *message) {
    return !json_object_get(message, "content");
}

static const json_t *arguments_of(const json_t *call) {
    return json_object_get(json_object_get(call, "function"), "arguments");
}

/* ---- Which are possible -------------------------------------------------------------------------------- */

static bool has_text_arguments(const json_t *message) {
    const json_t *calls = json_object_get(message, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++)
        if (json_is_string(arguments_of(json_array_get(calls, i))))
            return true;
    return false;
}

static bool can_join(const json_t *before, const json_t *message) {
    return (has_role(message, "user") || has_role(message, "assistant")) &&
           strcmp(gb_chat_role(before), gb_chat_role(message)) == 0;
}

static int forms_of(const json_t *message) {
    int forms = json_is_array(json_object_get(message, "content")) ? GB_CHAT_JOINED_PARTS : 0;
    if (json_object_get(message, "tool_calls"))
        forms |= GB_CHAT_WRITTEN_ARGUMENTS;
    if (lacks_content(message))
        forms |= GB_CHAT_EMPTY_CONTENT;
    if (has_text_arguments(message))
        forms |= GB_CHAT_WRAPPED_ARGUMENTS;
    if (has_role(message, "tool"))
        forms |= GB_CHAT_USERS_RESULTS | GB_CHAT_NEIGHBOURS;
    return forms;
}

int gb_chat_possible_forms(const json_t *messages) {
    const size_t systems = count_leading_systems(messages);
    int forms = systems > 1 ? GB_CHAT_ONE_SYSTEM : 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        forms |= forms_of(message);
        if (gb_chat_is_system(message) && i >= systems)
            forms |= GB_CHAT_USERS_RULES | GB_CHAT_USERS_RESULTS | GB_CHAT_NEIGHBOURS;
        if (i > 0 && can_join(json_array_get(messages, i - 1), message))
            forms |= GB_CHAT_NEIGHBOURS;
    }
    return forms;
}

bool gb_chat_is_form(int form) {
    const int arguments = GB_CHAT_WRITTEN_ARGUMENTS | GB_CHAT_WRAPPED_ARGUMENTS,
              users = GB_CHAT_USERS_RULES | GB_CHAT_USERS_RESULTS;
    return (form & arguments) != arguments && (form & users) != users;
}

/* ---- Single messages ----------------------------------------------------------------------------------- */

static void append_string(gb_byte_buffer *text, const json_t *string) {
    if (json_string_length(string) > 0)
        gb_buffer_append(text, json_string_value(string), json_string_length(string));
}

/* Frees the text. */
static json_t *string_of(gb_byte_buffer *text) {
    json_t *string =
        text->failed ? NULL : json_stringn_nocheck(text->size ? (const char *)text->data : "", text->size);
    gb_buffer_free(text);
    return string;
}

/* Appends the content, a string or parts. */
static void append_content(gb_byte_buffer *text, const json_t *content) {
    append_string(text, content);
    for (size_t i = 0; i < json_array_size(content); i++) {
        if (i > 0)
            gb_buffer_append(text, "\n", 1);
        append_string(text, json_object_get(json_array_get(content, i), "text"));
    }
}

static json_t *joined(const json_t *parts) {
    gb_byte_buffer text = {0};
    append_content(&text, parts);
    return string_of(&text);
}

/* The text that the arguments were, or else their JSON. */
static bool write_arguments(json_t *call, json_t *text) {
    json_t *function = json_object_get(call, "function");
    if (json_is_string(text))
        return json_object_set_nocheck(function, "arguments", text) == 0;
    char *dumped = NULL;
    if (gb_jinja_write_json(json_object_get(function, "arguments"), &dumped, NULL) != GUMBEL_OK)
        return false;
    bool good = json_object_set_new_nocheck(function, "arguments", json_string_nocheck(dumped)) == 0;
    gb_free(dumped);
    return good;
}

static bool wrap_arguments(json_t *call) {
    const json_t *text = arguments_of(call);
    return !json_is_string(text) || json_object_set_new(json_object_get(call, "function"), "arguments",
                                                        json_pack("{s:O}", "arguments", text)) == 0;
}

static bool change_role(json_t *message, int wanted) {
    const bool is_users =
        (gb_chat_is_system(message) && (wanted & (GB_CHAT_USERS_RULES | GB_CHAT_USERS_RESULTS))) ||
        (has_role(message, "tool") && (wanted & GB_CHAT_USERS_RESULTS));
    return !is_users || json_object_set_new_nocheck(message, "role", json_string_nocheck("user")) == 0;
}

static bool change_message(json_t *message, const json_t *written, size_t *call, int wanted) {
    json_t *content = json_object_get(message, "content"), *calls = json_object_get(message, "tool_calls");
    bool good = true;
    if ((wanted & GB_CHAT_JOINED_PARTS) && json_is_array(content))
        good = json_object_set_new_nocheck(message, "content", joined(content)) == 0;
    if ((wanted & GB_CHAT_EMPTY_CONTENT) && lacks_content(message))
        good = json_object_set_new_nocheck(message, "content", json_string("")) == 0;
    for (size_t i = 0; good && i < json_array_size(calls); i++, ++*call)
        if (wanted & GB_CHAT_WRITTEN_ARGUMENTS)
            good = write_arguments(json_array_get(calls, i), json_array_get(written, *call));
        else if (wanted & GB_CHAT_WRAPPED_ARGUMENTS)
            good = wrap_arguments(json_array_get(calls, i));
    return good;
}

/* ---- Several as one ------------------------------------------------------------------------------------ */

/* The last message of a list, and what those that join it say. */
typedef struct joining {
    json_t *last;
    bool has_joined;
    gb_byte_buffer content, reasoning;
} joining;

static void add_paragraph(gb_byte_buffer *text, const json_t *content) {
    const size_t before = text->size;
    if (before > 0)
        gb_buffer_append(text, "\n\n", 2);
    const size_t begin = text->size;
    append_content(text, content);
    if (text->size == begin)
        text->size = before;
}

static void add_texts(joining *j, const json_t *message) {
    add_paragraph(&j->content, json_object_get(message, "content"));
    add_paragraph(&j->reasoning, json_object_get(message, "reasoning_content"));
}

static bool join(joining *j, const json_t *message) {
    json_t *calls = json_object_get(message, "tool_calls"), *own = json_object_get(j->last, "tool_calls");
    if (!j->has_joined)
        add_texts(j, j->last);
    j->has_joined = true;
    add_texts(j, message);
    if (!calls)
        return true;
    return own ? json_array_extend(own, calls) == 0 : json_object_set(j->last, "tool_calls", calls) == 0;
}

/* A reasoning has both names, as gb_chat_complete_messages gives them. */
static bool set_reasoning(json_t *message, json_t *text) {
    const bool good = text && json_object_set_nocheck(message, "reasoning_content", text) == 0 &&
                      json_object_set_nocheck(message, "thinking", text) == 0;
    json_decref(text);
    return good;
}

/* Gives the last message what was joined. */
static bool end_joining(joining *j) {
    const bool says = j->content.size > 0 || !json_object_get(j->last, "tool_calls"),
               reasons = j->reasoning.size > 0;
    json_t *content = string_of(&j->content), *reasoning = string_of(&j->reasoning);
    bool good = content && reasoning;
    if (good && j->has_joined && says)
        good = json_object_set_nocheck(j->last, "content", content) == 0;
    if (good && j->has_joined && reasons)
        good = set_reasoning(j->last, json_incref(reasoning));
    json_decref(content);
    json_decref(reasoning);
    j->has_joined = false;
    return good;
}

/* The first `systems` messages as one, and neighbours where they are to be. NULL: no memory. */
static json_t *join_messages(const json_t *messages, size_t systems, bool neighbours) {
    json_t *list = json_array();
    joining j = {0};
    bool good = list != NULL;
    for (size_t i = 0; good && i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        if (i > 0 && (i < systems || (neighbours && can_join(j.last, message)))) {
            good = join(&j, message);
            continue;
        }
        good = (!j.last || end_joining(&j)) && json_array_append(list, message) == 0;
        j.last = message;
    }
    good = good && (!j.last || end_joining(&j));
    gb_buffer_free(&j.content);
    gb_buffer_free(&j.reasoning);
    if (!good)
        json_decref(list);
    return good ? list : NULL;
}

json_t *gb_chat_messages_in_form(const json_t *messages, const json_t *written, int wanted) {
    const size_t systems = count_leading_systems(messages);
    json_t *changed = json_deep_copy(messages);
    size_t call = 0;
    bool good = changed != NULL;
    for (size_t i = 0; good && i < json_array_size(changed); i++) {
        json_t *message = json_array_get(changed, i);
        good =
            change_message(message, written, &call, wanted) && (i < systems || change_role(message, wanted));
    }
    json_t *form =
        !good ? NULL
        : wanted & (GB_CHAT_ONE_SYSTEM | GB_CHAT_NEIGHBOURS)
            ? join_messages(changed, wanted & GB_CHAT_ONE_SYSTEM ? systems : 0, wanted & GB_CHAT_NEIGHBOURS)
            : json_incref(changed);
    json_decref(changed);
    return form;
}

/* ---- What a rendering has ------------------------------------------------------------------------------ */

static bool has_text(const char *text, size_t length, const json_t *string) {
    const char *wanted = json_string_value(string);
    size_t start = 0, end = json_string_length(string);
    if (!wanted || !text)
        return true;
    gb_utf8_strip(wanted, &start, &end);
    return start >= end || memmem(text, length, wanted + start, end - start) != NULL;
}

static bool has_content(const char *text, size_t length, const json_t *content) {
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!has_text(text, length, json_object_get(json_array_get(content, i), "text")))
            return false;
    return has_text(text, length, content);
}

bool gb_chat_lacks_rules(const json_t *messages, const char *text, size_t length) {
    for (size_t i = 1; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        if (gb_chat_is_system(message) && !has_content(text, length, json_object_get(message, "content")))
            return true;
    }
    return false;
}
