/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders a chat template. The language is the part of Jinja 3.1 that chat templates use, in the environment
 * that transformers gives them: trim_blocks, lstrip_blocks, break and continue, no autoescaping, undefined
 * variables that print as nothing, lists and dicts that cannot be changed, and the globals namespace, range,
 * dict, raise_exception and strftime_now. https://jinja.palletsprojects.com/en/stable/templates/
 *
 * A template is untrusted: its length, nesting, evaluation steps, time, output and memory are bounded. So is
 * what it is given: the result says which of its bytes come from there (the taint of value/text.h).
 */
#ifndef GUMBEL_TEXT_JINJA_JINJA_H
#define GUMBEL_TEXT_JINJA_JINJA_H

#include "base/status.h"
#include "text/jinja/value/limits.h"

#include <jansson.h>
#include <stddef.h>

typedef struct gb_jinja_input {
    const char *template_text; /* length bytes */
    size_t length;
    const json_t *variables; /* an object, {"messages": [...], ...}; the bytes of its strings are tainted */
    const json_t *trusted;   /* an object of more variables, which are not: {"bos_token": "<s>"}; or NULL.
                                Where both have a name, variables' counts */
    bool has_time;           /* strftime_now tells this time instead of the present one */
    int64_t time;            /* seconds since 1970, shown in the local time zone */
    const gb_jinja_limits *limits; /* NULL: gb_jinja_default_limits */
} gb_jinja_input;

/* Starts zeroed. */
typedef struct gb_jinja_output {
    char *text; /* length bytes of UTF-8 and a terminating zero */
    size_t length;
    uint8_t *taint;         /* [length] 1: the byte comes from variables; NULL: none does */
    bool printed_structure; /* a list of content parts, or arguments of a call, were printed as Python does */
} gb_jinja_output;

/* Errors, which leave nothing to free, each naming the template's line: FORMAT, when the template is not
 * Jinja or fails on these variables; UNSUPPORTED, naming the statement, filter, test or function that is not
 * known here; LIMIT, when it is longer, deeper, slower or larger than allowed; ARGUMENT, with its message,
 * when the template calls raise_exception; MEMORY. Thread-safe. */
gumbel_status gb_jinja_render(const gb_jinja_input *input, gb_jinja_output *output, gumbel_error *error);

/* Whether template_text is Jinja: the same errors but those of running it. */
gumbel_status gb_jinja_check(const char *template_text, size_t length, gumbel_error *error);

/* The JSON as Python's json.dumps writes it. Free *text with gb_free. Errors: LIMIT, MEMORY. */
gumbel_status gb_jinja_write_json(const json_t *json, char **text, gumbel_error *error);

void gb_jinja_output_free(gb_jinja_output *output);

#endif
