/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of how tokens are drawn and where an answer ends.
 */
#include "server/fields/fields.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An integer, or a string of digits, since a seed has 64 bits; -1 draws one. */
bool server_take_seed(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const char *digits = json_string_value(value);
    if (digits) {
        char *end;
        errno = 0;
        request->seed = strtoull(digits, &end, 10);
        request->has_seed = true;
        if (digits[0] >= '0' && digits[0] <= '9' && !*end && errno == 0)
            return true;
        return server_refuse(failure, name, "%s: expected 0 to 18446744073709551615", name);
    }
    int64_t seed;
    if (!server_read_integer(name, value, -1, INT64_MAX, &seed, failure))
        return false;
    request->has_seed = seed >= 0;
    request->seed = (uint64_t)seed;
    return true;
}

/* A number, or false, which bans the token. */
static bool read_bias(const char *name, const char *token, const json_t *value, gumbel_bias *bias,
                      server_failure *failure) {
    char *end;
    const long id = strtol(token, &end, 10);
    if (token[0] < '0' || token[0] > '9' || *end || id > INT32_MAX)
        return server_refuse(failure, name, "%s: \"%.20s\" is no token id", name, token);
    *bias = (gumbel_bias){(int32_t)id, -INFINITY};
    if (json_is_false(value))
        return true;
    double number;
    if (!server_read_number(name, value, &number, failure))
        return false;
    /* OpenAI's -100 means that the token is not drawn. */
    if (number > -100)
        bias->value = (float)number;
    return true;
}

bool server_take_bias(const char *name, json_t *value, server_request *request, server_failure *failure) {
    if (json_is_array(value) && json_array_size(value) == 0)
        return true; /* llama.cpp's way to say that there are none */
    if (!server_read_object(name, value, failure))
        return false;
    free(request->bias);
    request->bias = calloc(json_object_size(value) + 1, sizeof *request->bias);
    if (!request->bias)
        return server_fail(failure, 503, "no memory for %zu biases", json_object_size(value));
    const char *token;
    json_t *number;
    size_t count = 0;
    json_object_foreach(value, token, number) {
        if (!read_bias(name, token, number, &request->bias[count++], failure))
            return false;
    }
    request->sampling.bias = request->bias;
    request->sampling.bias_count = count;
    return true;
}

/* llama.cpp's; -1 is all tokens. */
bool server_take_window(const char *name, json_t *value, server_request *request, server_failure *failure) {
    int64_t tokens;
    if (!server_read_integer(name, value, -1, INT32_MAX, &tokens, failure))
        return false;
    request->has_penalty_window = tokens >= 0;
    return true;
}

static bool take_count(const char *name, const json_t *value, int64_t low, int64_t high, uint32_t *count,
                       server_failure *failure) {
    int64_t read;
    if (!server_read_integer(name, value, low, high, &read, failure))
        return false;
    *count = (uint32_t)read;
    return true;
}

bool server_take_answers(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return take_count(name, value, 1, SERVER_MOST_ANSWERS, &request->answers, failure);
}

bool server_take_best_of(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const json_t *answers = json_object_get(request->body, "n");
    const double wanted = json_is_number(answers) ? json_number_value(answers) : 1;
    if (json_is_number(value) && json_number_value(value) == wanted)
        return true;
    return server_refuse(failure, name,
                         "%s: answers are not ranked in this version; only the value of n is taken", name);
}

/* -1, as llama.cpp has it, is no limit. */
bool server_take_max_tokens(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    const bool is_unlimited = json_is_number(value) && json_number_value(value) == -1;
    const bool is_text = request->route == SERVER_COMPLETIONS;
    request->max_new_tokens = 0;
    request->wants_no_answer = is_text && json_is_number(value) && json_number_value(value) == 0;
    return is_unlimited || request->wants_no_answer ||
           take_count(name, value, 1, INT32_MAX, &request->max_new_tokens, failure);
}

bool server_take_min_tokens(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    return take_count(name, value, 0, INT32_MAX, &request->min_new_tokens, failure);
}

static bool add_stop(const char *name, const json_t *value, server_request *request,
                     server_failure *failure) {
    const char *text;
    if (!server_read_string(name, value, &text, failure))
        return false;
    if (request->stop_count == SERVER_MOST_STOPS)
        return server_refuse(failure, name, "%s: more than %d strings", name, SERVER_MOST_STOPS);
    if (!*text)
        return server_refuse(failure, name, "%s: an empty string ends every answer", name);
    request->stops[request->stop_count++] = text;
    return true;
}

bool server_take_stop(const char *name, json_t *value, server_request *request, server_failure *failure) {
    request->stop_count = 0;
    if (!json_is_array(value))
        return add_stop(name, value, request, failure);
    size_t index;
    json_t *text;
    json_array_foreach(value, index, text) {
        if (!add_stop(name, text, request, failure))
            return false;
    }
    return true;
}

bool server_take_stop_tokens(const char *name, json_t *value, server_request *request,
                             server_failure *failure) {
    free(request->stop_tokens);
    request->stop_tokens = NULL;
    return server_read_tokens(name, value, INT32_MAX, &request->stop_tokens, &request->stop_token_count,
                              failure);
}

/* As vLLM has it, lower numbers go first. */
bool server_take_priority(const char *name, json_t *value, server_request *request, server_failure *failure) {
    int64_t priority;
    if (!server_read_integer(name, value, -INT32_MAX, INT32_MAX, &priority, failure))
        return false;
    request->priority = (int32_t)-priority;
    return true;
}
