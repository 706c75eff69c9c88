/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a chat template: refused, ended by a limit, or rendered, with every byte of a message tainted
 * wherever the template puts it.
 */
#include "base/memory.h"
#include "text/jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

/* A character of nobody, which stands in every text that the caller gives. */
#define MARK "\xEE\x80\x80"

static const char variables_text[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"" MARK "\"}, {\"role\": \"user\", \"content\": "
    "[{\"type\": \"text\", \"text\": \"a" MARK "b <i>\"}]}, {\"role\": \"assistant\", \"content\": \"x" MARK
    "\\n\", "
    "\"reasoning_content\": \"" MARK "\", \"tool_calls\": [{\"id\": \"" MARK
    "\", \"function\": {\"name\": \"f" MARK "\", \"arguments\": {\"" MARK "\": [1, -2.5, null, true, \"" MARK
    "\"]}}}]}, {\"role\": \"tool\", \"content\": "
    "\"" MARK "3\"}], \"tools\": [{\"function\": {\"name\": \"" MARK
    "\", \"parameters\": {\"properties\": {\"n\": "
    "{\"type\": \"string\", \"description\": \"" MARK "\"}}}}}], \"add_generation_prompt\": true, "
    "\"kw\": \"" MARK "\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A template that spells the mark itself, or any character by an escape, says nothing about taint. */
static bool may_write_mark(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (data[i] == '\\' || data[i] == (uint8_t)MARK[0])
            return true;
    return false;
}

static void check_taint(const gb_jinja_output *output) {
    for (size_t i = 0; i < output->length; i++)
        if (output->text[i] == MARK[0] && !(output->taint && output->taint[i]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static json_t *variables, *trusted;
    if (!variables) {
        variables = json_loads(variables_text, 0, NULL);
        trusted = json_pack("{s:s}", "bos_token", "<s>");
    }
    const gb_jinja_limits limits = {.steps = 50000, .text = 1 << 16, .memory = 8 << 20, .seconds = 5};
    gb_jinja_input input = {
        .template_text = (const char *)data,
        .length = size,
        .variables = variables,
        .trusted = trusted,
        .has_time = true,
        .limits = &limits,
    };
    gb_jinja_output output = {0};
    gumbel_error error = {0};
    gumbel_status status = gb_jinja_render(&input, &output, &error);
    if (status != GUMBEL_OK && (error.status != status || !error.message[0] || output.text))
        abort();
    if (status == GUMBEL_OK && output.length > limits.text)
        abort();
    if (status == GUMBEL_OK && !may_write_mark(data, size))
        check_taint(&output);
    gb_jinja_output_free(&output);
    return 0;
}
