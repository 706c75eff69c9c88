/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of how an answer is told.
 */
#include "server/fields/fields.h"

#include <string.h>

static bool take_top(const char *name, const json_t *value, server_request *request,
                     server_failure *failure) {
    int64_t count;
    if (!server_read_integer(name, value, 0, GUMBEL_TOP_LOGPROBS_LIMIT, &count, failure))
        return false;
    request->top_logprobs = (uint32_t)count;
    return true;
}

/* A number of likeliest tokens in completions, true or false in chats. */
bool server_take_logprobs(const char *name, json_t *value, server_request *request, server_failure *failure) {
    if (request->route == SERVER_CHAT)
        return server_read_bool(name, value, &request->wants_logprobs, failure);
    request->wants_logprobs = true;
    return take_top(name, value, request, failure);
}

bool server_take_top_logprobs(const char *name, json_t *value, server_request *request,
                              server_failure *failure) {
    return take_top(name, value, request, failure);
}

bool server_take_stream(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return server_read_bool(name, value, &request->is_stream, failure);
}

bool server_take_stream_options(const char *name, json_t *value, server_request *request,
                                server_failure *failure) {
    if (!server_read_object(name, value, failure))
        return false;
    const char *key;
    json_t *part;
    json_object_foreach(value, key, part) {
        bool ignored;
        if (strcmp(key, "include_usage") == 0) {
            if (!server_read_bool("stream_options.include_usage", part, &request->wants_usage, failure))
                return false;
        } else if (strcmp(key, "include_obfuscation") == 0) {
            if (!server_read_bool("stream_options.include_obfuscation", part, &ignored, failure))
                return false;
        } else {
            return server_refuse(failure, name, "%s.%.40s: this route has no such field", name, key);
        }
    }
    return true;
}

/* The one word that says what happens here anyway. */
static bool check_word(const char *name, const json_t *value, const char *word, server_failure *failure) {
    const char *given;
    return server_read_string(name, value, &given, failure) &&
           (strcmp(given, word) == 0 ||
            server_refuse(failure, name, "%s: only \"%s\" is in this version", name, word));
}

bool server_take_text(const char *name, json_t *value, server_request *request, server_failure *failure) {
    if (!server_check_members(name, value, "format verbosity", failure))
        return false;
    json_t *format = json_object_get(value, "format");
    const json_t *verbosity = json_object_get(value, "verbosity");
    return (!format || json_is_null(format) || server_take_format("text.format", format, request, failure)) &&
           (!verbosity || json_is_null(verbosity) ||
            check_word("text.verbosity", verbosity, "medium", failure));
}

bool server_take_include(const char *name, json_t *value, server_request *request, server_failure *failure) {
    (void)request;
    if (!server_read_array(name, value, failure))
        return false;
    size_t index;
    const json_t *part;
    json_array_foreach(value, index, part) {
        /* Encrypted reasoning is for servers that do not show it; here it is shown. */
        if (!json_is_string(part) || strcmp(json_string_value(part), "reasoning.encrypted_content") != 0)
            return server_refuse(failure, name, "%s[%zu]: this version has no such output", name, index);
    }
    return true;
}

bool server_take_modalities(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    (void)request;
    const char *first = json_string_value(json_array_get(value, 0));
    if (json_array_size(value) == 1 && first && strcmp(first, "text") == 0)
        return true;
    return server_refuse(failure, name, "%s: only [\"text\"] is in this version", name);
}

bool server_take_verbosity(const char *name, json_t *value, server_request *request,
                           server_failure *failure) {
    (void)request;
    return check_word(name, value, "medium", failure);
}

bool server_take_truncation(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    (void)request;
    return check_word(name, value, "disabled", failure);
}

bool server_take_background(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    (void)request;
    return json_is_false(value) || server_refuse(failure, name, "%s: only false is in this version", name);
}

bool server_take_store(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return server_read_bool(name, value, &request->is_stored, failure);
}
