/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/reply_families.h"

#include "base/memory.h"
#include "export/checkpoint/checkpoint.h"
#include "export/checkpoint/gguf.h"
#include "export/checkpoint/json.h"
#include "export/text/reply_formats.h"
#include "text/reply/reply_format.h"
#include "text/reply/use_format.h"

#include <string.h>
#include <unistd.h>

enum { MAX_CONFIG_FILE = 64 << 20 };

/* Whether the bytes are a usable format; a reason why not goes to log. */
static bool is_usable(const gb_byte_buffer *bytes, gumbel_log_callback log, void *log_user) {
    gumbel_error reason;
    gb_reply_format *format;
    if (gb_reply_format_create((const char *)bytes->data, bytes->size - 1,
                               "tokenizer_config.json: response_template", &format, &reason) != GUMBEL_OK) {
        if (log)
            log(log_user, GUMBEL_LOG_WARNING, reason.message);
        return false;
    }
    gb_reply_format_destroy(format);
    return true;
}

static json_t *calls_of(const json_t *format) {
    return json_object_get(json_object_get(format, "fields"), "tool_calls");
}

/* Hugging Face's formats do not say how calls are written: where they are read as the family's are, they are
 * written so. */
static void add_written(json_t *own, const char *known) {
    json_t *family = json_loads(known, 0, NULL);
    json_t *calls = calls_of(own), *written = json_object_get(calls_of(family), "written");
    const json_t *content = json_object_get(calls, "content");
    const bool is_generic =
        json_object_get(calls_of(family), "needs_tools") != NULL; /* not the model's own */
    if (content && written && !is_generic && !json_object_get(calls, "written") &&
        json_equal(content, json_object_get(calls_of(family), "content")))
        json_object_set(calls, "written", written);
    json_decref(family);
}

static gumbel_status read_own(const char *path, const char *known, gumbel_log_callback log, void *log_user,
                              gb_byte_buffer *bytes, gumbel_error *error) {
    json_t *config;
    GB_TRY(gb_read_json(path, MAX_CONFIG_FILE, &config, error));
    json_t *template = json_object_get(config, "response_template");
    if (json_is_object(template)) {
        add_written(template, known);
        char *text = json_dumps(template, JSON_COMPACT);
        gb_buffer_append(bytes, text, text ? strlen(text) + 1 : 0);
        free(text);
        if (bytes->size > 0 && !is_usable(bytes, log, log_user))
            bytes->size = 0;
    }
    json_decref(config);
    return GUMBEL_OK;
}

gumbel_status gb_choose_reply_format(const char *directory, const gb_blob *templates,
                                     const gb_blob *vocabulary, gumbel_log_callback log, void *log_user,
                                     gb_byte_buffer *bytes, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    const char *known = gb_find_reply_format(templates, vocabulary);
    char *path = directory ? gb_join_path(directory, "tokenizer_config.json") : NULL;
    if (path && access(path, F_OK) == 0)
        status = read_own(path, known, log, log_user, bytes, error);
    gb_free(path);
    GB_TRY(status);
    if (bytes->size == 0)
        gb_buffer_append(bytes, known, strlen(known) + 1);
    return bytes->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a reply format") : GUMBEL_OK;
}

gumbel_status gb_give_reply_format(const char *checkpoint, const gb_blob *templates,
                                   gumbel_tokenizer *tokenizer, gumbel_error *error) {
    gb_byte_buffer json = {0};
    const gb_blob vocabulary = gb_token_spellings(&tokenizer->data);
    gumbel_status status = gb_choose_reply_format(gb_is_gguf(checkpoint) ? NULL : checkpoint, templates,
                                                  &vocabulary, NULL, NULL, &json, error);
    if (status == GUMBEL_OK && json.size > 0)
        status = gb_tokenizer_use_reply_format(tokenizer, (const char *)json.data, json.size - 1,
                                               "the reply format", error);
    gb_buffer_free(&json);
    return status;
}
