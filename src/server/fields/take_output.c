/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of how an answer is sent.
 */
#include "server/fields/fields.h"

#include <string.h>

bool server_take_top_logprobs(const char *name, json_t *value, server_request *request,
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
    return server_take_top_logprobs(name, value, request, failure);
}

/* llama.cpp's; thoughts are taken apart unless it is none. */
bool server_take_reasoning_format(const char *name, json_t *value, server_request *request,
                                  server_failure *failure) {
    const char *word;
    if (!server_read_choice(name, value, "auto deepseek none", &word, failure))
        return false;
    request->reasoning_is_text = strcmp(word, "none") == 0;
    return true;
}

bool server_take_prompt_logprobs(const char *name, json_t *value, server_request *request,
                                 server_failure *failure) {
    int64_t count;
    if (!server_read_integer(name, value, 0, GUMBEL_TOP_LOGPROBS_LIMIT, &count, failure))
        return false;
    request->wants_prompt_logprobs = true;
    request->prompt_top_logprobs = (uint32_t)count;
    return true;
}

bool server_take_stream_options(const char *name, json_t *value, server_request *request,
                                server_failure *failure) {
    bool ignored, wants_all = false;
    const struct {
        const char *member, *field;
        bool *flag;
    } flags[] = {
        {"include_usage", "stream_options.include_usage", &request->wants_usage},
        {"continuous_usage_stats", "stream_options.continuous_usage_stats", &wants_all},
        {"include_obfuscation", "stream_options.include_obfuscation", &ignored},
    };
    if (!server_check_members(name, value, "include_usage continuous_usage_stats include_obfuscation",
                              failure))
        return false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_t *member = json_object_get(value, flags[i].member);
        if (member && !json_is_null(member) &&
            !server_read_bool(flags[i].field, member, flags[i].flag, failure))
            return false;
    }
    request->wants_all_usage = wants_all && request->wants_usage; /* as vLLM has it */
    return true;
}

/* The one word that says what happens here anyway. */
static bool check_word(const char *name, const json_t *value, const char *word, server_failure *failure) {
    const char *given;
    return server_read_string(name, value, &given, failure) &&
           (strcmp(given, word) == 0 ||
            server_refuse(failure, name, "%s: only \"%s\" is in this version", name, word));
}

/* A wish that a template could not pass on. */
static bool check_verbosity(const char *name, const json_t *value, server_failure *failure) {
    const char *word;
    return server_read_choice(name, value, "low medium high", &word, failure);
}

bool server_take_text(const char *name, json_t *value, server_request *request, server_failure *failure) {
    if (!server_check_members(name, value, "format verbosity", failure))
        return false;
    json_t *format = json_object_get(value, "format");
    const json_t *verbosity = json_object_get(value, "verbosity");
    return (!format || json_is_null(format) || server_take_format("text.format", format, request, failure)) &&
           (!verbosity || json_is_null(verbosity) || check_verbosity("text.verbosity", verbosity, failure));
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
    return check_verbosity(name, value, failure);
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
