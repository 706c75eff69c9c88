/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/settings.h"

#include "base/status.h"
#include "hub/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_on(const char *variable) {
    static const char *const words[] = {"1", "on", "yes", "true"};
    const char *value = getenv(variable);
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

/* Whether text is all visible ASCII: it becomes part of a request's header. */
static bool is_visible(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static gumbel_status read_endpoint(hub_settings *settings, gumbel_error *error) {
    const char *value = getenv("HF_ENDPOINT");
    if (!value || !value[0])
        value = "https://huggingface.co";
    size_t length = strlen(value);
    while (length > 0 && value[length - 1] == '/')
        length--;
    bool is_http = strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0;
    if (!is_http || length < 9 || length >= sizeof settings->endpoint || !is_visible(value))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "HF_ENDPOINT=%.200s: expected a URL such as https://huggingface.co", value);
    memcpy(settings->endpoint, value, length);
    settings->endpoint[length] = '\0';
    return GUMBEL_OK;
}

/* source: the variable or file that the text is from. */
static gumbel_status keep_token(const char *text, const char *source, hub_settings *settings,
                                gumbel_error *error) {
    size_t begin = strspn(text, " \t\r\n"), length = strlen(text + begin);
    while (length > 0 && strchr(" \t\r\n", text[begin + length - 1]))
        length--;
    if (length >= sizeof settings->token)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: a token of %zu bytes; expected %zu at most", source,
                       length, sizeof settings->token - 1);
    memcpy(settings->token, text + begin, length);
    settings->token[length] = '\0';
    return is_visible(settings->token)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                         "%s: not a token: it has blanks or other characters that no token has", source);
}

/* A file that cannot be read counts as none, as in Hugging Face's tools. */
static gumbel_status read_token_file(hub_settings *settings, gumbel_error *error) {
    char path[HUB_PATH], text[sizeof settings->token + 16];
    const char *given = getenv("HF_TOKEN_PATH");
    if (given && given[0] && strlen(given) < sizeof path)
        strcpy(path, given);
    else if (!hub_home_path("token", path))
        return GUMBEL_OK;
    FILE *file = fopen(path, "rb");
    if (!file)
        return GUMBEL_OK;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    return keep_token(text, path, settings, error);
}

/* The first of the variables that is set. */
static const char *first_set(const char *const *variables, size_t count, const char **value) {
    for (size_t i = 0; i < count; i++) {
        *value = getenv(variables[i]);
        if (*value && (*value)[0])
            return variables[i];
    }
    *value = NULL;
    return NULL;
}

gumbel_status hub_read_settings(hub_settings *settings, gumbel_error *error) {
    static const char *const tokens[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    static const char *const certificates[] = {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"};
    const char *token;
    *settings = (hub_settings){.is_offline = is_on("HF_HUB_OFFLINE")};
    GB_TRY(read_endpoint(settings, error));
    first_set(certificates, sizeof certificates / sizeof *certificates, &settings->certificates);
    const char *variable = first_set(tokens, sizeof tokens / sizeof *tokens, &token);
    return variable ? keep_token(token, variable, settings, error) : read_token_file(settings, error);
}
