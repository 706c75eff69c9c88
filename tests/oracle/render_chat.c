/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders conversations for check_templates.py: a JSON object on each line of standard input, one on each
 * line of the output. What it takes are the texts of gumbel_chat_options, "template" and "special_tokens".
 */
#include "base/memory.h"
#include "text/chat/chat_render.h"

#include <stdio.h>
#include <stdlib.h>

static const char *text_of(const json_t *job, const char *key) {
    return json_string_value(json_object_get(job, key));
}

static json_t *spans_of(const gb_jinja_output *output) {
    json_t *spans = json_array();
    for (size_t at = 0; output->taint && at < output->length; at++) {
        size_t start = at;
        while (at < output->length && output->taint[at])
            at++;
        if (at > start)
            json_array_append_new(spans, json_pack("[i, i]", (int)start, (int)at));
    }
    return spans;
}

static void add_tokens(const json_t *tokens, gb_chat_section *section) {
    gumbel_error error;
    const char *name;
    json_t *spelling;
    json_object_foreach((json_t *)(uintptr_t)tokens, name, spelling) {
        if (gb_chat_section_add_token(section, name, json_string_value(spelling),
                                      json_string_length(spelling), &error) != GUMBEL_OK)
            fprintf(stderr, "%s\n", error.message);
    }
}

static json_t *render(const json_t *job) {
    gb_chat_section section = {0};
    gb_jinja_output output = {0};
    gumbel_error error = {0};
    gumbel_chat_options options = {
        .size = sizeof options,
        .messages_json = text_of(job, "messages"),
        .tools = text_of(job, "tools"),
        .template_kwargs = text_of(job, "kwargs"),
        .template_text = text_of(job, "template"),
        .no_generation_prompt = !json_is_true(json_object_get(job, "generate")),
        .continue_final_message = json_is_true(json_object_get(job, "continue")),
        .has_time = true,
        .time = json_integer_value(json_object_get(job, "time")),
    };
    if (gb_chat_section_create(&section, &error) != GUMBEL_OK)
        abort();
    add_tokens(json_object_get(job, "special_tokens"), &section);
    gumbel_status status = gb_chat_render(&section, NULL, 0, &options, &output, &error);
    json_t *answer = status == GUMBEL_OK ? json_pack("{s:s%, s:o}", "text", output.text, output.length,
                                                     "tainted", spans_of(&output))
                                         : json_pack("{s:i, s:s}", "status", status, "error", error.message);
    gb_jinja_output_free(&output);
    gb_chat_section_free(&section);
    return answer;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        json_error_t reason;
        json_t *job = json_loads(line, JSON_ALLOW_NUL, &reason);
        json_t *answer = job ? render(job) : json_pack("{s:s}", "error", reason.text);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(job);
    }
    free(line);
    return 0;
}
