/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders a checkpoint's chat template, so that the exporter can see which known chat format it writes. The
 * language is the part of Jinja 3.1 that chat templates use, in the environment that transformers gives
 * them: trim_blocks, lstrip_blocks, break and continue, no autoescaping, undefined variables that print as
 * nothing, lists and dicts that cannot be changed, and the globals namespace, range, dict, raise_exception
 * and strftime_now. https://jinja.palletsprojects.com/en/stable/templates/
 *
 * A template is untrusted: its length, nesting, evaluation steps, output and memory are bounded (state.h).
 */
#ifndef GUMBEL_TEXT_JINJA_JINJA_H
#define GUMBEL_TEXT_JINJA_JINJA_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/* Renders the length bytes of template_text with the variables in context, a JSON object such as
 * {"messages": [...], "add_generation_prompt": true, "bos_token": "<s>"}. *rendered gets *rendered_length
 * bytes of UTF-8 and a terminating zero; free it with gb_free. rendered_length may be NULL.
 *
 * Errors, each naming the template's line: FORMAT, when the template is not Jinja or fails on these
 * variables; UNSUPPORTED, naming the statement, filter, test or function that is not known here; LIMIT, when
 * it is longer, deeper, slower or larger than allowed; ARGUMENT, with its message, when the template calls
 * raise_exception; MEMORY. Thread-safe. */
gumbel_status gb_jinja_render(const char *template_text, size_t length, const json_t *context,
                              char **rendered, size_t *rendered_length, gumbel_error *error);

#endif
