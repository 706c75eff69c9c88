/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of drafts, which change no answer: who guesses its tokens, how many at once, and what it is likely
 * to contain.
 */
#include "server/fields/fields.h"

#include <string.h>

bool server_take_drafting(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const char *word;
    if (!server_read_choice(name, value, "auto lookup model off", &word, failure))
        return false;
    request->has_drafting = true;
    request->drafting = strcmp(word, "auto") == 0     ? GUMBEL_DRAFTING_AUTO
                        : strcmp(word, "lookup") == 0 ? GUMBEL_DRAFTING_LOOKUP
                        : strcmp(word, "model") == 0  ? GUMBEL_DRAFTING_MODEL
                                                      : GUMBEL_DRAFTING_OFF;
    return true;
}

/* More than the server's own are that many; 0 is none. */
bool server_take_max_draft(const char *name, json_t *value, server_request *request,
                           server_failure *failure) {
    int64_t most;
    if (!server_read_integer(name, value, 0, INT32_MAX, &most, failure))
        return false;
    if (most == 0) {
        request->has_drafting = true;
        request->drafting = GUMBEL_DRAFTING_OFF;
    }
    request->max_draft = (uint32_t)most;
    return true;
}

static bool add_predicted(const char *name, const json_t *text, server_request *request,
                          server_failure *failure) {
    const char *given;
    if (!server_read_string(name, text, &given, failure))
        return false;
    gb_buffer_append_string(&request->predicted, given);
    return true;
}

static bool add_predicted_parts(const char *name, const json_t *parts, server_request *request,
                                server_failure *failure) {
    const json_t *part;
    const char *type;
    size_t i;
    json_array_foreach(parts, i, part) {
        if (!server_check_members(name, part, "type text", failure) ||
            !server_read_choice("prediction.content.type", json_object_get(part, "type"), "text", &type,
                                failure) ||
            !add_predicted("prediction.content.text", json_object_get(part, "text"), request, failure))
            return false;
    }
    return true;
}

/* OpenAI's: a string, or parts of text. */
bool server_take_prediction(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    const json_t *content = json_object_get(value, "content");
    const char *type;
    if (!server_check_members(name, value, "type content", failure) ||
        !server_read_choice("prediction.type", json_object_get(value, "type"), "content", &type, failure))
        return false;
    request->has_prediction = true;
    return json_is_array(content) ? add_predicted_parts("prediction.content", content, request, failure)
                                  : add_predicted("prediction.content", content, request, failure);
}
